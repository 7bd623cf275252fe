//! A recording of a window of an experiment.

use super::event::Span;
use super::{LIMIT, Recorder, Timeline, number};
use crate::transport::SharedMachine;
use crate::workload::WorkloadError;
use crate::workload::arrivals::{Arrivals, Pattern};
use crate::workload::experiment::{self, Duration, Experiment, wire_limit};
use crate::workload::ping::AT_ONCE;
use crate::workload::testbench::{Load, Setup, Source, Testbench};
use std::io::IoSlice;

/// The longest that a ping may take one way, in nanoseconds.
const PATIENCE: u64 = 50_000_000;

/// How long the recording goes on behind the part that is looked at, so that the host has
/// heard of its frames: longer than the drivers' coalescing.
pub(crate) const AFTER: u64 = 3_000_000;

/// Which part of an experiment is looked at. The recording begins with the load, since a
/// frame may wait in the send ring for milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Nanoseconds behind the start of the load.
    pub from: u64,
    /// To its end.
    pub to: u64,
}

/// What is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Which experiment.
    pub experiment: Experiment,
    /// Bytes of a datagram.
    pub datagram: usize,
    /// Frames a second that arrive; none for as many as the card carries at equal rates
    /// both ways, or the wire one way.
    pub rate: Option<f64>,
    /// Events that are kept.
    pub limit: usize,
}

impl Subject {
    /// An experiment at a size, at its own rate.
    pub const fn new(experiment: Experiment, datagram: usize) -> Subject {
        Subject {
            experiment,
            datagram,
            rate: None,
            limit: LIMIT,
        }
    }
}

/// Records a window of an experiment.
///
/// # Errors
/// [`WorkloadError`] of the card, the driver or the traffic.
pub fn capture(
    setup: &Setup<'_>,
    subject: Subject,
    window: Window,
) -> Result<Timeline, WorkloadError> {
    let Subject {
        experiment,
        datagram,
        ..
    } = subject;
    if experiment == Experiment::Ping {
        return capture_pings(setup, subject, window);
    }
    let rate = match (subject.rate, experiment) {
        (Some(rate), _) => rate,
        (None, Experiment::Bidirectional) => {
            let found = experiment::run(setup, experiment, datagram, Duration::QUICK)?;
            found.received as f64 / found.seconds
        }
        (None, _) => wire_limit(datagram),
    };
    let mut testbench = Testbench::start(setup)?;
    let mut load = Load::default();
    if experiment != Experiment::Receive {
        load.send = Some(testbench.outbound(datagram)?);
    }
    if experiment != Experiment::Send {
        let arrivals = Arrivals::new(Pattern::Constant, rate, testbench.now(), setup.seed);
        load.receive = Some(Source::new(testbench.inbound(datagram)?, arrivals));
    }
    let start = testbench.now();
    record(&testbench, subject);
    testbench.run(&mut load, window.to + AFTER)?;
    recorded(testbench.machine(), start, window)
}

fn capture_pings(
    setup: &Setup<'_>,
    subject: Subject,
    window: Window,
) -> Result<Timeline, WorkloadError> {
    let setup = Setup {
        coalescing: AT_ONCE,
        ..setup.clone()
    };
    let mut testbench = Testbench::start(&setup)?;
    let (mut out, mut back) = (
        testbench.outbound(subject.datagram)?,
        testbench.inbound(subject.datagram)?,
    );
    let start = testbench.now();
    let mut ping_until = |testbench: &mut Testbench, end: u64| -> Result<(), WorkloadError> {
        while testbench.now() < end {
            let frame = out.frame();
            testbench.nic().queue(&[IoSlice::new(&frame)])?;
            testbench.nic().submit()?;
            testbench.wait_sent(PATIENCE)?;
            testbench.machine().lock().send_frame(0, back.frame());
            testbench.wait_received(PATIENCE)?;
        }
        Ok(())
    };
    record(&testbench, subject);
    ping_until(&mut testbench, start + window.to + AFTER)?;
    recorded(testbench.machine(), start, window)
}

fn record(testbench: &Testbench, subject: Subject) {
    let recorder = Recorder::new(subject.limit, number::of_datagram);
    testbench.machine().lock().record(recorder);
}

/// The recording of a load that began at `start`.
pub(crate) fn recorded(
    machine: &SharedMachine,
    start: u64,
    window: Window,
) -> Result<Timeline, WorkloadError> {
    let recorded = machine.lock().recorded();
    let mut timeline = recorded.ok_or(WorkloadError::NotRecorded)?;
    let cycle = |after: u64| timeline.clock.cycle_at(start + after);
    timeline.shown = Span {
        start: cycle(window.from),
        end: cycle(window.to),
    };
    Ok(timeline)
}
