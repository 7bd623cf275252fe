//! Overload with datagrams: which policy livelocks (paper, section 3; Mogul and Ramakrishnan).
//!
//! Each sender sends to a separate socket, and each socket has a thread. Under a policy with a CPU
//! for each flow, the thread is bound to the CPU of its sender.

use super::measured::{Reading, Window};
use super::web::Duration;
use crate::hosts::application::Application;
use crate::hosts::card::{CardSetup, HostCard};
use crate::hosts::datagrams::Datagrams;
use crate::hosts::kernel::Kernel;
use crate::hosts::policy::PolicyKind;
use crate::hosts::profile::HostProfile;
use crate::hosts::source::Source;
use crate::hosts::system::{System, World};
use crate::workload::WorkloadError;
use crate::workload::testbench::Setup;

/// Between these rates a loss-free one is looked for.
const RATES: (f64, f64) = (1_000.0, 400_000.0);

/// A point of the experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// How frames are received.
    pub policy: PolicyKind,
    /// CPUs of the host.
    pub cpus: usize,
    /// Datagrams in a second, of as many senders as CPUs; each sends to a socket of its own.
    pub rate: f64,
    /// The first sender's rate instead, if it is to be another one.
    pub flood: Option<f64>,
}

impl Point {
    /// All senders at the same rate, `rate` together.
    pub fn new(policy: PolicyKind, cpus: usize, rate: f64) -> Point {
        Point {
            policy,
            cpus,
            rate,
            flood: None,
        }
    }

    fn rates(&self) -> Vec<f64> {
        let mut rates = vec![self.rate / self.cpus as f64; self.cpus];
        if let (Some(first), Some(flood)) = (rates.first_mut(), self.flood) {
            *first = flood;
        }
        rates
    }
}

/// What a point has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Host and card.
    pub window: Window,
    /// Datagrams that were sent.
    pub offered: u64,
    /// Datagrams that the application got.
    pub delivered: u64,
    /// The same of each sender.
    pub delivered_by: Vec<u64>,
    /// Datagrams that were dropped after work of the host: by the policy, by the socket.
    /// All other missing ones the card had no room for.
    pub wasted: u64,
}

impl Measured {
    /// What the application got, in datagrams per second.
    pub fn rate(&self) -> f64 {
        self.delivered as f64 / self.window.seconds
    }
}

fn counts(system: &System) -> (u64, u64, u64) {
    let sent = match &system.world {
        World::Source(source) => source.sent(),
        World::Clients(_) => 0,
    };
    match &system.application {
        Application::Datagrams(server) => {
            let wasted = server.dropped() + system.policy.wasted();
            (sent, server.delivered(), wasted)
        }
        Application::Web(_) => (sent, 0, 0),
    }
}

fn by_sender(system: &System) -> Vec<u64> {
    match &system.application {
        Application::Datagrams(server) => server.delivered_by(),
        Application::Web(_) => Vec::new(),
    }
}

/// Measures a point; PAUSE is off.
///
/// # Errors
/// What the driver reports.
pub fn measure(
    setup: &Setup<'_>,
    profile: &HostProfile,
    point: &Point,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let card = CardSetup::classic(1500, false).with_queues(point.policy.queues(point.cpus));
    let mut card = HostCard::start(setup, card, profile.card)?;
    let policy = point.policy.build(point.cpus, &mut card);
    let (start, station) = (card.now(), card.station());
    let source = Source::new(station, &point.rates(), start);
    let threads = point.cpus;
    let mut kernel = Kernel::new(profile.clone(), card, point.cpus, threads);
    if point.policy.has_flow_cpus() {
        for thread in 0..threads {
            kernel.bind(thread, thread);
        }
    }
    let mut system = System::new(
        kernel,
        Application::Datagrams(Datagrams::new(threads)),
        policy,
        World::Source(source),
    );
    system.run(start + duration.warm_up)?;
    let (before, first) = (Reading::of(&mut system), counts(&system));
    let by_before = by_sender(&system);
    system.run(start + duration.warm_up + duration.measure)?;
    let (after, last) = (Reading::of(&mut system), counts(&system));
    Ok(Measured {
        window: Window::between(&before, &after),
        offered: last.0 - first.0,
        delivered: last.1 - first.1,
        delivered_by: by_sender(&system)
            .iter()
            .zip(by_before)
            .map(|(after, before)| after - before)
            .collect(),
        wasted: last.2 - first.2,
    })
}

/// The highest rate, in datagrams per second, at which a policy loses nothing (MLFRR), by
/// bisection, to a hundredth.
///
/// # Errors
/// What the driver reports.
pub fn loss_free(
    setup: &Setup<'_>,
    profile: &HostProfile,
    policy: PolicyKind,
    cpus: usize,
    duration: Duration,
) -> Result<f64, WorkloadError> {
    let (mut low, mut high) = (RATES.0, RATES.1);
    while high > low * 1.01 {
        let rate = (low * high).sqrt();
        let point = Point::new(policy, cpus, rate);
        let found = measure(setup, profile, &point, duration)?;
        // What is under way at either end of the window may differ by a few.
        let under_way = (found.offered / 100).max(4 * cpus as u64);
        if found.delivered + under_way >= found.offered && found.wasted == 0 {
            low = rate;
        } else {
            high = rate;
        }
    }
    Ok(low)
}
