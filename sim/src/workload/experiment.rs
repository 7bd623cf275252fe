//! The microbenchmarks of the paper: send, receive, bidirectional, ping.
//!
//! "Exploiting Task-level Concurrency in a Programmable Network Interface", section 6: UDP
//! datagrams of 18 to 1472 bytes at the highest rate that the card carries, in either direction,
//! and in both at equal rates; the latency of a ping without coalescing. In addition to the
//! paper's constant traffic there are mixes, bursts and Poisson arrivals.

use super::WorkloadError;
use super::arrivals::{Arrivals, Pattern};
pub use super::measured::Measured;
use super::search::{Look, highest};
use super::testbench::{Load, Setup, Source, Testbench};
pub use super::traffic::{Duration, Experiment, Traffic, wire_limit};

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
