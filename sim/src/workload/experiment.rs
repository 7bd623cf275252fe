//! The microbenchmarks of the paper: send, receive, bidirectional, ping.
//!
//! "Exploiting Task-level Concurrency in a Programmable Network Interface", section 6:
//! UDP datagrams of 18 to 1472 bytes at the highest rate that the card carries, one way,
//! the other way, and both ways at equal rates; the latency of a ping without coalescing.

use super::WorkloadError;
use super::arrivals::{Arrivals, Pattern};
use super::datagram::HEADERS;
use super::rig::{Load, Reading, Rig, Setup, Source};
use crate::timing::counts::Activity;
use serde::Serialize;
use tigon2_chip::mac::{CRC_BYTES, MIN_FRAME};

/// Preamble, start delimiter and gap, in bytes.
const BETWEEN: usize = 20;
/// The wire's bits a second.
const WIRE_BPS: f64 = 1e9;
/// Beyond this share of its capacity a resource is the bottleneck.
const SATURATED: f64 = 0.97;

/// The part by which a direction may miss a rate and still count as keeping up.
const HELD_SHARE: f64 = 0.005;

/// Which way the datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Experiment {
    /// Out of the host.
    Send,
    /// Into the host.
    Receive,
    /// Both, at equal rates.
    Bidirectional,
    /// One there, one back, one at a time.
    Ping,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Experiment; 4] = [
        Experiment::Send,
        Experiment::Receive,
        Experiment::Bidirectional,
        Experiment::Ping,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Experiment::Send => "send",
            Experiment::Receive => "receive",
            Experiment::Bidirectional => "bidirectional",
            Experiment::Ping => "ping",
        }
    }
}

/// How long to look, in nanoseconds of the card's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration {
    /// Before the measurement.
    pub warm_up: u64,
    /// The measurement.
    pub window: u64,
    /// Steps of a search for a rate.
    pub steps: u32,
}

impl Duration {
    /// As in the calibration of the timing model.
    pub const FULL: Duration = Duration {
        warm_up: 8_000_000,
        window: 20_000_000,
        steps: 8,
    };
    /// For a first look.
    pub const QUICK: Duration = Duration {
        warm_up: 3_000_000,
        window: 6_000_000,
        steps: 6,
    };
}

/// What was measured, at one size.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which way.
    pub experiment: Experiment,
    /// Bytes of a datagram.
    pub datagram: usize,
    /// Seconds of the window.
    pub seconds: f64,
    /// Frames that left the card.
    pub sent: u64,
    /// Frames that the host got.
    pub received: u64,
    /// Frames that were lost.
    pub dropped: u64,
    /// A ping's time in the card and the host, there and back, in microseconds.
    pub latency_us: Option<f64>,
    /// What was counted before and after the window.
    pub readings: [Reading; 2],
}

impl Measured {
    /// Datagram bits both ways, in Mb/s.
    pub fn mbps(&self) -> f64 {
        (self.sent + self.received) as f64 * self.datagram as f64 * 8.0 / self.seconds / 1e6
    }

    /// What Ethernet allows, in the same measure.
    pub fn limit_mbps(&self) -> f64 {
        let ways = match self.experiment {
            Experiment::Bidirectional => 2.0,
            _ => 1.0,
        };
        ways * wire_limit(self.datagram) * self.datagram as f64 * 8.0 / 1e6
    }

    /// Whether all that arrived at `rate` was received, without the wire being held, and
    /// as many were sent.
    fn keeps_up(&self, rate: f64) -> bool {
        let [before, after] = &self.readings;
        let held = (after.held_back - before.held_back) as f64 / 1e9;
        let expected = rate * self.seconds;
        self.dropped == 0
            && held <= self.seconds * HELD_SHARE
            && self.sent as f64 + 1.0 >= expected * (1.0 - HELD_SHARE)
    }

    fn cycles(&self) -> f64 {
        (self.readings[1].cycle - self.readings[0].cycle) as f64
    }

    /// The share of its time in which a CPU (0 or 1) did not idle.
    pub fn busy(&self, cpu: usize) -> f64 {
        let [before, after] = &self.readings;
        let counts = after.counts[cpu].since(&before.counts[cpu]);
        let busy: u64 = counts
            .iter()
            .filter(|(activity, _)| *activity != Activity::Idle)
            .map(|(_, tally)| tally.total())
            .sum();
        busy as f64 / self.cycles()
    }

    /// The share of the cycles in which the SRAM port was given away.
    pub fn sram(&self) -> f64 {
        let [before, after] = &self.readings;
        let grants: u64 = after.grants.iter().sum::<u64>() - before.grants.iter().sum::<u64>();
        grants as f64 / self.cycles()
    }

    /// The share of the cycles in which a transaction was on the PCI bus.
    pub fn pci(&self) -> f64 {
        let [before, after] = &self.readings;
        (after.pci_busy - before.pci_busy) as f64 / self.cycles()
    }

    /// What limits it.
    pub fn bottleneck(&self) -> &'static str {
        if self.experiment == Experiment::Ping {
            return "latency";
        }
        let wire = self.mbps() / self.limit_mbps();
        let resources = [
            ("wire", wire),
            ("CPU A", self.busy(0)),
            ("CPU B", self.busy(1)),
            ("SRAM port", self.sram()),
            ("PCI bus", self.pci()),
        ];
        let (name, share) = resources
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or(("none", 0.0));
        if share >= SATURATED { name } else { "host" }
    }
}

/// Frames a second that a direction of the wire carries.
pub fn wire_limit(datagram: usize) -> f64 {
    let bytes = (datagram + HEADERS).max(MIN_FRAME) + CRC_BYTES + BETWEEN;
    WIRE_BPS / 8.0 / bytes as f64
}

/// Carries out an experiment.
///
/// # Errors
/// [`WorkloadError`] of the card, the driver or the traffic.
pub fn run(
    setup: &Setup<'_>,
    experiment: Experiment,
    datagram: usize,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    match experiment {
        Experiment::Send | Experiment::Receive => one_way(setup, experiment, datagram, duration),
        Experiment::Bidirectional => bidirectional(setup, datagram, duration),
        Experiment::Ping => super::ping::run(setup, datagram, duration),
    }
}

fn one_way(
    setup: &Setup<'_>,
    experiment: Experiment,
    datagram: usize,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let mut rig = Rig::start(setup)?;
    let mut load = Load::default();
    if experiment == Experiment::Send {
        load.send = Some(rig.outbound(datagram)?);
    } else {
        load.receive = Some(source(
            &mut rig,
            datagram,
            wire_limit(datagram),
            setup.seed,
        )?);
    }
    rig.run(&mut load, duration.warm_up)?;
    window(&mut rig, &mut load, experiment, datagram, duration)
}

fn source(rig: &mut Rig, datagram: usize, rate: f64, seed: u64) -> Result<Source, WorkloadError> {
    let arrivals = Arrivals::new(Pattern::Constant, rate, rig.now(), seed);
    Ok(Source::new(rig.inbound(datagram)?, arrivals))
}

/// Both ways at equal rates: the highest rate of arrivals at which all of them are
/// received and a sender that is always ready still sends as many.
fn bidirectional(
    setup: &Setup<'_>,
    datagram: usize,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let (mut low, mut high) = (0.0, wire_limit(datagram));
    let mut best = None;
    for step in 0..=duration.steps {
        // The first look is at the wire's limit: a card that is up to it needs no search.
        let rate = if step == 0 { high } else { (low + high) / 2.0 };
        let measured = at_rate(setup, datagram, rate, duration)?;
        if measured.keeps_up(rate) {
            low = rate;
            best = Some(measured);
            if step == 0 {
                break;
            }
        } else {
            high = rate;
            best = best.or(Some(measured));
        }
    }
    let mut measured = match best {
        Some(measured) => measured,
        None => at_rate(setup, datagram, low, duration)?,
    };
    // The sender may have sent more; what counts is both.
    measured.sent = measured.sent.min(measured.received);
    Ok(measured)
}

fn at_rate(
    setup: &Setup<'_>,
    datagram: usize,
    rate: f64,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let mut rig = Rig::start(setup)?;
    let mut load = Load {
        send: Some(rig.outbound(datagram)?),
        receive: Some(source(&mut rig, datagram, rate, setup.seed)?),
    };
    rig.run(&mut load, duration.warm_up)?;
    window(
        &mut rig,
        &mut load,
        Experiment::Bidirectional,
        datagram,
        duration,
    )
}

fn window(
    rig: &mut Rig,
    load: &mut Load,
    experiment: Experiment,
    datagram: usize,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let before = rig.reading();
    rig.run(load, duration.window)?;
    let after = rig.reading();
    let hertz = rig.machine().lock().clock().cycle_at(1_000_000_000) as f64;
    Ok(Measured {
        experiment,
        datagram,
        seconds: (after.cycle - before.cycle) as f64 / hertz,
        sent: after.sent - before.sent,
        received: after.received - before.received,
        dropped: after.dropped - before.dropped,
        latency_us: None,
        readings: [before, after],
    })
}
