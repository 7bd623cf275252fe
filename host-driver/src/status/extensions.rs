//! Loads, unloads and lists SPINE extensions for clients of the status socket.

use serde_json::{Value, json};
use spine_linker::endpoint::RingSizes;
use spine_linker::extensions::{Extensions, RouteChange};
use spine_linker::guard::GuardText;
use spine_linker::load::LoadError;
use spine_linker::routes::{self, RouteError};

use super::applications::{Applications, Wanted};
use super::request::{Request, RouteRequest};
use crate::nic::{Control, ExtensionCard, NicError};
use crate::transport::Transport;

/// Does what a request asks for: `{"domain": n}` after a load, and always what is loaded then,
/// `{"free": bytes, "extensions": [..]}`.
pub(super) fn answer<T: Transport>(
    extensions: &mut Option<Extensions>,
    applications: &mut Applications,
    request: &Request,
    control: &mut Control<T>,
) -> Result<Value, String> {
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
            loaded = Some(domain.map_err(text)?);
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
    let endpoints = extensions.endpoints(&mut card, &applications.numbers());
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
