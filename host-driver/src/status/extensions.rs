//! Loads, unloads and lists SPINE extensions for clients of the status socket.

use serde_json::{Value, json};
use spine_linker::endpoint::RingSizes;
use spine_linker::extensions::{Extensions, RouteChange};
use spine_linker::guard::GuardText;
use spine_linker::load::LoadError;
use spine_linker::routes::{self, RouteError};

use super::applications::{Applications, Wanted};
use super::inbox::Inbox;
use super::request::{Request, RouteRequest};
use crate::nic::{Control, ExtensionCard, NicError};
use crate::transport::Transport;

/// What the driver knows of extensions, and of those who exchange messages with them.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// What is loaded on the card; none where the driver has no policy.
    pub extensions: Option<Extensions>,
    /// Processes with endpoints.
    pub applications: Applications,
    /// The driver's own endpoint.
    pub inbox: Inbox,
}

impl Served {
    /// Takes and passes on messages. The driver's own loop notices a card that has gone.
    pub fn serve<T: Transport>(&mut self, control: &mut Control<T>) {
        if let Some(extensions) = &mut self.extensions {
            let _ = self.applications.serve(extensions, control);
            let _ = self.inbox.serve(extensions, control);
        }
    }

    /// Closes all endpoints. A card that has gone has none.
    pub fn close<T: Transport>(&mut self, control: &mut Control<T>) {
        if let Some(extensions) = &mut self.extensions {
            let _ = self.applications.close(extensions, control);
            let _ = self.inbox.close(extensions, control);
        }
    }
}

/// Does what a request asks for: `{"domain": n}` after a load, and always what is loaded then,
/// `{"free": bytes, "extensions": [..]}`.
pub(super) fn answer<T: Transport>(
    served: &mut Served,
    request: &Request,
    control: &mut Control<T>,
) -> Result<Value, String> {
    let Served {
        extensions,
        applications,
        inbox,
    } = served;
    let Some(extensions) = extensions else {
        return Err(
            "the driver loads no extensions: bridge --extensions POLICY has it do so".to_owned(),
        );
    };
    if let Request::OpenEndpoint {
        slots,
        bulk,
        domains,
        unload,
        screen,
    } = request
    {
        let wanted = Wanted {
            sizes: RingSizes {
                slots: *slots,
                bulk: *bulk,
            },
            domains: domains.clone(),
            unload: *unload,
            screen: *screen,
        };
        return applications.open(extensions, control, &wanted);
    }
    if let Request::HandlerMessages { from } = request {
        return Ok(json!({ "handler_messages": inbox.messages(*from) }));
    }
    if let Request::LoadExtension { .. } = request {
        inbox.open(extensions, control).map_err(text)?;
    }
    if let Request::UnloadExtension { domain } = request {
        let revoked = applications.revoke(extensions, control, *domain);
        revoked.map_err(text)?;
    }
    let mut card = ExtensionCard(control);
    if let Request::Routes { domain, change } = request {
        let change = route_change(change.as_ref()).map_err(|error| error.to_string())?;
        let report = extensions.change_routes(&mut card, *domain, &change);
        let report = report.map_err(|error| error.to_string())?;
        return Ok(json!({ "router": report }));
    }
    let mut loaded = None;
    match request {
        Request::LoadExtension { container, guards } => {
            let container = bytes(container).ok_or("a container that is no digits")?;
            let guards = guards.iter().map(|guard| guard.parse::<GuardText>());
            let guards: Result<Vec<_>, _> = guards.collect();
            let guards = guards.map_err(|error| error.to_string())?;
            let domain = extensions.load(&mut card, &container, &guards);
            let domain = domain.map_err(text)?;
            inbox.follow_domain(extensions, domain);
            loaded = Some(domain);
        }
        Request::UnloadExtension { domain } => {
            extensions.unload(&mut card, *domain).map_err(text)?;
        }
        Request::Lease { domain, lease } => {
            if let Some(endpoint) = applications.screen_of(*domain) {
                return Err(format!(
                    "domain {domain} writes to the screen of endpoint {endpoint}"
                ));
            }
            let put = extensions.set_lease(&mut card, *domain, *lease);
            put.map_err(text)?;
        }
        Request::ResumeExtension { domain } => {
            extensions.resume(&mut card, *domain).map_err(text)?;
        }
        Request::SendMessage {
            domain,
            handler,
            arguments,
        } => {
            let sent = extensions.send(&mut card, *domain, *handler, arguments);
            sent.map_err(text)?;
        }
        _ => {}
    }
    let reports = extensions.reports(&mut card).map_err(text)?;
    let free = extensions.free(&mut card).map_err(text)?;
    let ledger = extensions.ledger(&mut card).map_err(text)?;
    inbox.follow(extensions, control).map_err(text)?;
    let mut numbers = applications.numbers();
    numbers.splice(0..0, inbox.number());
    let endpoints = extensions.endpoints(&mut ExtensionCard(control), &numbers);
    let endpoints = endpoints.map_err(text)?;
    Ok(json!({
        "domain": loaded,
        "free": free,
        "extensions": reports,
        "ledger": ledger,
        "endpoints": endpoints,
    }))
}

fn route_change(request: Option<&RouteRequest>) -> Result<RouteChange, RouteError> {
    Ok(match request {
        None => RouteChange::None,
        Some(RouteRequest::Add(route)) => RouteChange::Add(route.parse()?),
        Some(RouteRequest::Delete(prefix)) => RouteChange::Delete(prefix.parse()?),
        Some(RouteRequest::Replace(all)) => RouteChange::Replace(routes::parse(all)?),
    })
}

fn text(error: LoadError<NicError>) -> String {
    error.to_string()
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let places = (0..digits.len()).step_by(2);
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    places.map(byte).collect()
}
