//! Measures ping latency: the time in the card and its host, one frame at a time.
//!
//! The outbound part is from the send mailbox to the frame's end on the wire. The inbound part is
//! from the answer's first byte on the wire to the end of the driver's service routine. Host
//! stacks, the other machine and the wire in between are excluded: the result covers the card and
//! its host only.

use super::WorkloadError;
use super::arrivals::Mix;
use super::measured::Measured;
use super::testbench::{Setup, Testbench};
use super::traffic::{Duration, Experiment, Traffic};
use host_driver::nic::Coalescing;

/// Pings of a measurement for each millisecond of its window.
const PER_MS: u64 = 2;
/// The longest that a ping may take one way, in nanoseconds.
const PATIENCE: u64 = 50_000_000;
/// Every BD interrupts.
pub(crate) const AT_ONCE: Coalescing = Coalescing {
    receive_ticks: 170,
    transmit_ticks: 2000,
    statistics_ticks: 1_000_000,
    max_transmit_bds: 1,
    max_receive_bds: 1,
};

/// Sends pings of `datagram` bytes, one at a time.
pub(super) fn run(
    setup: &Setup<'_>,
    datagram: usize,
    duration: Duration,
) -> Result<Measured, WorkloadError> {
    let setup = Setup {
        coalescing: AT_ONCE,
        ..setup.clone()
    };
    let mut testbench = Testbench::start(&setup)?;
    let mix = Mix::only(datagram);
    let (mut out, mut back) = (testbench.outbound(&mix)?, testbench.inbound(&mix)?);
    let count = (duration.window / 1_000_000 * PER_MS).max(4);
    let before = testbench.reading();
    let mut total = 0;
    for _ in 0..count {
        let frame = out.frame();
        let start = testbench.now();
        testbench.queue(&frame)?;
        testbench.nic().submit()?;
        total += testbench.wait_sent(PATIENCE)? - start;
        let answer = testbench.now();
        testbench.machine().lock().send_frame(0, back.frame());
        total += testbench.wait_received(PATIENCE)? - answer;
    }
    let traffic = Traffic::of(datagram);
    let mut measured = Measured::new(&testbench, Experiment::Ping, &traffic, before);
    measured.latency_us = Some(total as f64 / count as f64 / 1000.0);
    Ok(measured)
}
