//! The driver process's record of the extensions on its card.
//!
//! The [`Loader`] knows which pieces of the arena are in use. The record adds what the card does
//! not know: names, texts of logs, what was proven, who owns each guard, and the routes of a
//! router. Restarted firmware has no domains; the record notices the restart at its next look and
//! is empty, too.

mod leases;
mod messages;
mod routes;
mod texts;

pub use messages::{EndpointReport, Ledger};
pub use routes::{ChangeError, RouteChange, RouterReport};
pub use texts::{Line, Texts};

use crate::guard::{Guard, GuardText};
use crate::load::lease::Lease;
use crate::load::{Card, LoadError, Loader};
use crate::policy::{Policy, PolicyError};
use crate::sign::TrustError;
use host_interface::spine::counts::{Counts, HandlerTime, PROCEDURES};
use host_interface::spine::{DOMAINS, DomainCount, HandlerCount};
use serde::{Deserialize, Serialize};
use spine_image::Image;

/// A domain that is loaded, and what it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The domain's number.
    pub domain: u32,
    /// The extension's name.
    pub name: String,
    /// Bytes in the arena.
    pub bytes: u32,
    /// Bytes of its text that run from CPU A's scratch pad: all of it, or none.
    pub in_pad: u32,
    /// Bytes of stack that `init` or a handler needs at most, as proven.
    pub stack: u32,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Runs of its handlers, and calls of its procedures.
    pub runs: u32,
    /// Runs that took too long.
    pub overruns: u32,
    /// Runs that panicked.
    pub panics: u32,
    /// Runs that met a fault of the CPU.
    pub faults: u32,
    /// Frames that it consumed.
    pub consumed: u32,
    /// Frames that it dropped.
    pub dropped: u32,
    /// Frames that it had transmitted.
    pub transmitted: u32,
    /// What it may write to.
    pub lease: Lease,
    /// Its own counters.
    pub counters: Vec<u32>,
    /// What each of its handlers did.
    pub handlers: Vec<HandlerReport>,
}

/// A handler that is installed, and what it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandlerReport {
    /// Its number; none for the procedures of the domain that others call.
    pub number: Option<u32>,
    /// Runs, or calls.
    pub runs: u32,
    /// Runs that took too long.
    pub overruns: u32,
    /// Runs that panicked.
    pub panics: u32,
    /// Runs that met a fault of the CPU.
    pub faults: u32,
    /// Microseconds of the runs that were timed, and how many they were: the older, the less they
    /// count.
    pub timed: (u32, u32),
}

impl HandlerReport {
    /// What it is called in reports.
    pub fn name(&self) -> String {
        match self.number {
            Some(number) => format!("handler {number}"),
            None => "procedures".to_owned(),
        }
    }

    fn of(counts: &Counts, handler: u32) -> HandlerReport {
        let of = |count| counts.of_handler(handler, count);
        let time = if handler == PROCEDURES {
            HandlerTime::default()
        } else {
            counts.time(handler)
        };
        HandlerReport {
            number: (handler != PROCEDURES).then_some(handler),
            runs: of(HandlerCount::Runs),
            overruns: of(HandlerCount::Overruns),
            panics: of(HandlerCount::Panics),
            faults: of(HandlerCount::Faults),
            timed: (time.microseconds(), time.runs()),
        }
    }

    /// The mean time of a run in microseconds, if some were timed.
    pub fn mean(&self) -> Option<f64> {
        let (microseconds, runs) = self.timed;
        (runs != 0).then(|| f64::from(microseconds) / f64::from(runs))
    }
}

#[derive(Debug)]
struct Loaded {
    name: String,
    texts: Texts,
    bytes: u32,
    stack: u32,
    /// Of its signer.
    priority: u32,
    routes: routes::Routes,
    lease: Lease,
}

/// The extensions of a card.
#[derive(Debug)]
pub struct Extensions {
    policy: Policy,
    loader: Option<Loader>,
    loaded: [Option<Loaded>; DOMAINS as usize],
    guards: Vec<Guard>,
    starts: u64,
}

impl Extensions {
    /// Nothing is loaded; what may be is the policy's to say.
    pub fn new(policy: Policy) -> Extensions {
        Extensions {
            policy,
            loader: None,
            loaded: Default::default(),
            guards: Vec::new(),
            starts: 0,
        }
    }

    /// The loader, of the firmware that runs now.
    fn loader<C: Card>(&mut self, card: &mut C) -> Result<&mut Loader, LoadError<C::Error>> {
        let loader = match self.loader.take() {
            Some(loader) if loader.is_current(card)? => loader,
            _ => {
                self.loaded = Default::default();
                self.guards.clear();
                self.starts += 1;
                Loader::find(card)?
            }
        };
        Ok(self.loader.insert(loader))
    }

    /// Where guards of a priority go: behind those of a higher one, and of the same one.
    fn place_of(&self, priority: u32) -> usize {
        let is_lower = |guard: &Guard| {
            let row = self.loaded.get(guard.domain as usize);
            row.is_some_and(|row| row.as_ref().is_some_and(|row| row.priority < priority))
        };
        let place = self.guards.iter().position(is_lower);
        place.unwrap_or(self.guards.len())
    }

    /// Loads a container, and has the frames that `guards` name go to it, behind those that others of
    /// the same priority or a higher one want. Returns the domain's number. When the guards are
    /// refused it is not loaded.
    ///
    /// # Errors
    /// Which of the walls refused it, and why.
    pub fn load<C: Card>(
        &mut self,
        card: &mut C,
        container: &[u8],
        guards: &[GuardText],
    ) -> Result<u32, LoadError<C::Error>> {
        let image = Image::parse(container).map_err(TrustError::from)?;
        let name = image.extension().to_owned();
        let texts = Texts::of(&image);
        let bytes = crate::link::bytes(&image);
        let build = *self.policy.build().ok_or(PolicyError::NoBuild)?;
        let policy = self.policy.clone();
        // By the signer that it names: whether that has signed it is judged before it is loaded.
        let grant = policy.grant(&image.trailer().signer, image.grade())?;
        grant.judge(guards)?;
        let priority = grant.priority;
        let loader = self.loader(card)?;
        let (domain, proof) = loader.load(card, container, &policy, &build)?;
        let before = self.guards.clone();
        let new = guards.iter().map(|guard| guard.of_domain(domain));
        let at = self.place_of(priority);
        self.guards.splice(at..at, new);
        let guards = self.guards.clone();
        let loader = self.loader(card)?;
        if let Err(refused) = loader.set_guards(card, &guards) {
            let unloaded = loader.unload(card, domain);
            self.guards = before;
            unloaded?;
            return Err(refused);
        }
        if let Some(row) = self.loaded.get_mut(domain as usize) {
            *row = Some(Loaded {
                name,
                texts,
                bytes,
                stack: proof.most,
                priority,
                routes: routes::Routes::new(),
                lease: Lease::NONE,
            });
        }
        Ok(domain)
    }

    /// Unloads a domain, and its guards with it.
    ///
    /// # Errors
    /// [`LoadError::NotLoaded`], or what the firmware says.
    pub fn unload<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
    ) -> Result<(), LoadError<C::Error>> {
        self.loader(card)?.unload(card, domain)?;
        if let Some(row) = self.loaded.get_mut(domain as usize) {
            *row = None;
        }
        self.guards.retain(|guard| guard.domain != domain);
        Ok(())
    }

    /// The name of the extension that a domain has.
    pub fn name(&self, domain: u32) -> Option<&str> {
        let row = self.loaded.get(domain as usize)?.as_ref()?;
        Some(&row.name)
    }

    /// The texts of its log.
    pub fn texts(&self, domain: u32) -> Option<&Texts> {
        let row = self.loaded.get(domain as usize)?.as_ref()?;
        Some(&row.texts)
    }

    /// Whether nothing is loaded, as of the last look at the card.
    pub fn is_empty(&self) -> bool {
        self.loaded.iter().all(Option::is_none)
    }

    /// Lets a domain run again that was suspended.
    ///
    /// # Errors
    /// What the firmware says.
    pub fn resume<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
    ) -> Result<(), LoadError<C::Error>> {
        self.loader(card)?.resume(card, domain)
    }

    /// Bytes of the arena that are free.
    ///
    /// # Errors
    /// If the firmware loads no extensions, or the card is gone.
    pub fn free<C: Card>(&mut self, card: &mut C) -> Result<u32, LoadError<C::Error>> {
        Ok(self.loader(card)?.free())
    }

    /// Each domain that is loaded, and what it did.
    ///
    /// # Errors
    /// If the firmware loads no extensions, or the card is gone.
    pub fn reports<C: Card>(&mut self, card: &mut C) -> Result<Vec<Report>, LoadError<C::Error>> {
        self.loader(card)?;
        let Some(loader) = &self.loader else {
            return Ok(Vec::new());
        };
        let rows = (0..).zip(&self.loaded);
        let rows = rows.filter_map(|(domain, row)| Some((domain, row.as_ref()?)));
        rows.map(|(domain, row)| report(loader, card, domain, row))
            .collect()
    }
}

fn report<C: Card>(
    loader: &Loader,
    card: &mut C,
    domain: u32,
    row: &Loaded,
) -> Result<Report, LoadError<C::Error>> {
    let counts = loader.counts(card, domain)?;
    let mut handlers: Vec<HandlerReport> = counts
        .handlers()
        .map(|handler| HandlerReport::of(&counts, handler))
        .collect();
    let procedures = HandlerReport::of(&counts, PROCEDURES);
    if procedures.runs != 0 {
        handlers.push(procedures);
    }
    Ok(Report {
        domain,
        name: row.name.clone(),
        bytes: row.bytes,
        in_pad: loader.text_in_pad(domain),
        stack: row.stack,
        suspended: counts.of(DomainCount::Suspended) != 0,
        runs: counts.of(HandlerCount::Runs),
        overruns: counts.of(HandlerCount::Overruns),
        panics: counts.of(HandlerCount::Panics),
        faults: counts.of(HandlerCount::Faults),
        consumed: counts.of(DomainCount::Consumed),
        dropped: counts.of(DomainCount::Dropped),
        transmitted: counts.of(DomainCount::Transmitted),
        lease: row.lease,
        counters: counts.counters().to_vec(),
        handlers,
    })
}
