//! Datagrams at the wire's rate into the host, past guards or into handlers.

use super::card::Kit;
use super::cost::{CLOCK, WATCHDOG, setup};
use super::frames::WANTED;
use super::handled::EFFECTS;
use super::loaded::Loaded;
use super::router;
use anyhow::Result;
use host_interface::spine::DomainCount;
use serde::Serialize;
use spine_linker::load::{Guard, Loader};
use spine_linker::routes;
use testbed::interrupt;
use tigon2_sim::timing::counts::Activity;
use tigon2_sim::workload::arrivals::{Arrivals, Pattern};
use tigon2_sim::workload::experiment::{Duration, wire_limit};
use tigon2_sim::workload::testbench::{Load, Reading, Source, Testbench};

/// Routes of the router's table.
pub(super) const ROUTES: usize = 1000;

/// Datagrams past guards.
#[derive(Clone, Debug, Serialize)]
pub struct Guarded {
    /// What is installed.
    pub guards: String,
    /// Bytes of a datagram.
    pub datagram: usize,
    /// Datagrams a second into the host.
    pub rate: f64,
    /// CPU A's cycles for each.
    pub cycles: f64,
}

/// An extension with its guards, in the way of datagrams.
struct Case {
    name: &'static str,
    /// Its folder; none where no extension is loaded.
    folder: Option<&'static str>,
    guards: fn(u32) -> Vec<Guard>,
    /// Its handler lets none through to the host.
    consumes: bool,
}

fn past(domain: u32, count: usize) -> Vec<Guard> {
    vec![Guard::ether_type(domain, 0, WANTED); count]
}

fn cases() -> Vec<Case> {
    let of_effects = |name, guards, consumes| Case {
        name,
        folder: Some(EFFECTS),
        guards,
        consumes,
    };
    vec![
        Case {
            name: "no extension",
            folder: None,
            guards: |_| Vec::new(),
            consumes: false,
        },
        of_effects("none", |domain| past(domain, 0), false),
        of_effects("1 that no frame meets", |domain| past(domain, 1), false),
        of_effects("2", |domain| past(domain, 2), false),
        of_effects("8", |domain| past(domain, 8), false),
        of_effects(
            "all to a handler that leaves them",
            |domain| vec![Guard::any(domain, 6)],
            false,
        ),
        of_effects(
            "all to a handler that consumes them",
            |domain| vec![Guard::any(domain, 0)],
            true,
        ),
        Case {
            name: "all to the router, 1000 routes",
            folder: Some(router::FOLDER),
            guards: |domain| vec![Guard::ether_type(domain, 0, 0x0800)],
            consumes: true,
        },
    ]
}

/// Nanoseconds of a look at the smallest datagrams, at least.
const LONG_WINDOW: u64 = 40_000_000;

/// Guards that no datagram meets, and guards whose handler gets each.
pub(super) fn guarded(kit: &Kit, sizes: &[usize], duration: Duration) -> Result<Vec<Guarded>> {
    let mut rows = Vec::new();
    for datagram in sizes {
        // The host takes frames by dozens: in a shorter window that is more than one per cent of the
        // smallest ones.
        let smallest = Some(datagram) == sizes.iter().min();
        let least = if smallest { LONG_WINDOW } else { 0 };
        let duration = Duration {
            window: duration.window.max(least),
            ..duration
        };
        for case in cases() {
            interrupt::check()?;
            rows.push(one_guarded(kit, &case, *datagram, duration)?);
        }
    }
    Ok(rows)
}

fn one_guarded(kit: &Kit, case: &Case, datagram: usize, duration: Duration) -> Result<Guarded> {
    let setup = setup(&kit.image)?;
    let mut testbench = Testbench::start(&setup)?;
    let mut load = Load::default();
    let mut card = Loaded::new(&mut testbench, &mut load);
    let mut loader = Loader::find(&mut card)?;
    let mut domain = 0;
    if let Some(folder) = case.folder {
        let container = kit.container(folder.as_ref())?;
        let policy = kit.policy(WATCHDOG, 0)?;
        domain = loader.load(&mut card, &container, &policy, &kit.build)?.0;
        if folder == router::FOLDER {
            let table = routes::table(&router::routes(ROUTES, 0)?)?;
            routes::replace(&mut loader, &mut card, domain, &table)?;
        }
        loader.set_guards(&mut card, &(case.guards)(domain))?;
    }
    let arrivals = Arrivals::new(
        Pattern::Constant,
        wire_limit(datagram),
        testbench.now(),
        setup.seed,
    );
    load.receive = Some(Source::new(testbench.inbound(datagram)?, arrivals));
    testbench.run(&mut load, duration.warm_up)?;
    let before = seen(&mut testbench, &loader, domain)?;
    testbench.run(&mut load, duration.window)?;
    let after = seen(&mut testbench, &loader, domain)?;
    let frames = if case.consumes {
        after.1 - before.1
    } else {
        after.0.received - before.0.received
    };
    let seconds = (after.0.cycle - before.0.cycle) as f64 / (CLOCK * 1e6);
    Ok(Guarded {
        guards: case.name.to_owned(),
        datagram,
        rate: (frames as f64 / seconds).round(),
        cycles: busy(&before.0, &after.0) as f64 / frames.max(1) as f64,
    })
}

/// What was counted by the testbench, and frames that the domain has consumed.
fn seen(testbench: &mut Testbench, loader: &Loader, domain: u32) -> Result<(Reading, u64)> {
    let mut nothing = Load::default();
    let mut card = Loaded::new(testbench, &mut nothing);
    let consumed = loader.counts(&mut card, domain)?.of(DomainCount::Consumed);
    Ok((testbench.reading(), consumed.into()))
}

/// Cycles of CPU A in which it did not idle.
fn busy(before: &Reading, after: &Reading) -> u64 {
    let (Some(before), Some(after)) = (before.counts.first(), after.counts.first()) else {
        return 0;
    };
    let counts = after.since(before);
    let busy = counts.iter();
    let busy = busy.filter(|(activity, _)| *activity != Activity::Idle);
    busy.map(|(_, tally)| tally.total()).sum()
}
