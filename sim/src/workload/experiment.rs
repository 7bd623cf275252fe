//! The microbenchmarks of the paper: send, receive, bidirectional, ping.
//!
//! "Exploiting Task-level Concurrency in a Programmable Network Interface", section 6: UDP
//! datagrams of 18 to 1472 bytes at the highest rate that the card carries, in either direction,
//! and in both at equal rates; the latency of a ping without coalescing. In addition to the
//! paper's constant traffic there are mixes, bursts and Poisson arrivals.

use super::WorkloadError;
use super::arrivals::{Arrivals, Mix, Pattern};
use super::datagram::HEADERS;
pub use super::measured::Measured;
use super::search::{Look, highest};
use super::testbench::{Load, Setup, Source, Testbench};
use serde::Serialize;
use tigon2_chip::mac::{CRC_BYTES, MIN_FRAME};

/// Preamble, start delimiter and gap, in bytes.
const BETWEEN: usize = 20;
/// The wire's bits a second.
const WIRE_BPS: f64 = 1e9;

/// The direction of the datagrams.
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

/// What the datagrams are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Their sizes.
    pub mix: Mix,
    /// When they come from the wire; the host sends as fast as it can.
    pub pattern: Pattern,
}

impl Traffic {
    /// The paper's: all of one size, at equal distances.
    pub fn of(datagram: usize) -> Traffic {
        Traffic {
            mix: Mix::only(datagram),
            pattern: Pattern::Constant,
        }
    }

    /// Frames a second that a direction of the wire carries.
    pub fn wire_limit(&self) -> f64 {
        1.0 / self.mix.mean(|size| 1.0 / wire_limit(size))
    }

    /// Mean bytes of a datagram.
    pub fn datagram(&self) -> f64 {
        self.mix.mean(|size| size as f64)
    }
}

/// How long to look, in nanoseconds of the card's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duration {
    /// Before the measurement.
    pub warm_up: u64,
    /// The measurement.
    pub window: u64,
    /// Most steps of a search for a rate.
    pub steps: u32,
    /// How near a search comes to the highest rate, as a part of it.
    pub nearness: f64,
}

impl Duration {
    /// As in the calibration of the timing model.
    pub const FULL: Duration = Duration {
        warm_up: 8_000_000,
        window: 20_000_000,
        steps: 12,
        nearness: 0.004,
    };
    /// For a first look.
    pub const QUICK: Duration = Duration {
        warm_up: 3_000_000,
        window: 6_000_000,
        steps: 8,
        nearness: 0.01,
    };
}

/// Frames a second that a direction of the wire carries.
pub fn wire_limit(datagram: usize) -> f64 {
    let bytes = (datagram + HEADERS).max(MIN_FRAME) + CRC_BYTES + BETWEEN;
    WIRE_BPS / 8.0 / bytes as f64
}

/// Carries out an experiment of the paper.
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
        Experiment::Ping => super::ping::run(setup, datagram, duration),
        _ => carry(setup, experiment, &Traffic::of(datagram), duration),
    }
}

/// Carries traffic: as much as there is room for at a constant distance, else as much as
/// gets through without loss and without the wire being held.
///
/// # Errors
/// [`WorkloadError`] of the card, the driver or the traffic.
pub fn carry(
    setup: &Setup<'_>,
    experiment: Experiment,
    traffic: &Traffic,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let look = |rate| at_rate(setup, experiment, traffic, rate, duration);
    let limit = traffic.wire_limit() * f64::from(setup.board.mac.times);
    match experiment {
        Experiment::Send | Experiment::Ping => look(0.0),
        Experiment::Receive if traffic.pattern == Pattern::Constant => look(limit),
        Experiment::Receive | Experiment::Bidirectional => {
            let mut measured = highest(limit, duration, |rate| {
                let measured = look(rate)?;
                Ok(Look {
                    surplus: measured.surplus(rate),
                    carried: measured.mean_rate(),
                    measured,
                })
            })?;
            if experiment == Experiment::Bidirectional {
                measured.level();
            }
            Ok(measured)
        }
    }
}

/// One look: `rate` frames a second arrive, if any do in this experiment.
fn at_rate(
    setup: &Setup<'_>,
    experiment: Experiment,
    traffic: &Traffic,
    rate: f64,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let mut testbench = Testbench::start(setup)?;
    let mut load = Load::default();
    if experiment != Experiment::Receive {
        load.send = Some(testbench.outbound(&traffic.mix)?);
    }
    if matches!(experiment, Experiment::Receive | Experiment::Bidirectional) {
        let arrivals = Arrivals::new(traffic.pattern, rate, testbench.now(), setup.seed);
        load.receive = Some(Source::new(testbench.inbound(&traffic.mix)?, arrivals));
    }
    testbench.run(&mut load, duration.warm_up)?;
    let before = testbench.reading();
    testbench.run(&mut load, duration.window)?;
    Ok(Measured::new(&testbench, experiment, traffic, before))
}
