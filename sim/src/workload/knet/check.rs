//! Compares the simulated host with the paper's model: without locks, misses and latencies the
//! speed-up must be the model's.

use super::model::Model;
use super::web::{Duration, Measured, Point, measure};
use crate::hosts::policy::PolicyKind;
use crate::hosts::profile::HostProfile;
use crate::workload::WorkloadError;
use crate::workload::testbench::Setup;

/// Connections for each CPU: enough to keep all of them busy.
const CONNECTIONS: usize = 20;
/// How long connections take to settle, and how long to look then, for each CPU.
const DURATION: Duration = Duration {
    warm_up: 100_000_000,
    measure: 180_000_000,
};

/// A point of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// CPUs.
    pub cpus: usize,
    /// Ta / Te, as measured.
    pub ratio: f64,
    /// `napi`.
    pub one: Measured,
    /// `knet`.
    pub all: Measured,
}

impl Checked {
    /// The speed-up of the simulated host.
    pub fn speed_up(&self) -> f64 {
        self.all.mbps() / self.one.mbps()
    }

    /// That of the model.
    pub fn alpha(&self) -> f64 {
        let model = Model::new(self.cpus as u32, 1.0, self.ratio);
        model.map_or(f64::NAN, |model| model.alpha())
    }

    /// By how much the simulation is above the model, as a share of it.
    pub fn deviation(&self) -> f64 {
        self.speed_up() / self.alpha() - 1.0
    }
}

/// A profile in which only Te and Ta cost, their ratio near `ratio`, and in which all work is
/// so slow that `cpus` CPUs do not need more of the card and the wire than one does.
fn profile_of(profile: &HostProfile, cpus: usize, ratio: f64) -> HostProfile {
    let mut ideal = profile.clone().ideal();
    let (packet, application) = (ideal.packet, ideal.application);
    // A 20 KB file at an MTU of 1500: 20 segments come, and 16 go with them.
    let network =
        20 * (packet.driver_ns + packet.protocol_ns) + 16 * packet.segment_ns + packet.close_ns;
    let calls = application.select_ns
        + application.accept_ns
        + application.read_ns
        + application.send_ns
        + packet.segment_ns;
    let wanted = (network as f64 * ratio) as u64;
    ideal.application.request_ns = wanted.saturating_sub(calls);
    ideal.slower(times(cpus))
}

/// How much slower work is on a host of so many CPUs.
fn times(cpus: usize) -> u64 {
    cpus as u64 + 1
}

/// Measures a host of `cpus` CPUs whose connections cost about `ratio` times as much in the
/// application as in the network.
///
/// # Errors
/// What the driver reports.
pub fn check(
    setup: &Setup<'_>,
    profile: &HostProfile,
    cpus: usize,
    ratio: f64,
) -> Result<Checked, WorkloadError> {
    let profile = profile_of(profile, cpus, ratio);
    let duration = Duration {
        warm_up: DURATION.warm_up * times(cpus),
        measure: DURATION.measure * times(cpus),
    };
    let run = |policy| {
        let point = Point {
            cpus,
            threads: cpus,
            machines: cpus,
            connections: CONNECTIONS * cpus,
            ..Point::new(policy)
        };
        measure(setup, &profile, &point, duration)
    };
    let (one, all) = (run(PolicyKind::Napi)?, run(PolicyKind::Knet)?);
    Ok(Checked {
        cpus,
        ratio: all.window.ratio(),
        one,
        all,
    })
}
