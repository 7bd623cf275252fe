//! The latency of a ping, without coalescing.
//!
//! ```text
//!   driver rings ─► card ─► frame's end on the wire          out
//!   frame's start on the wire ─► card ─► end of the service  back
//! ```
//! The peer and the wire in between take no part: what is measured is the card and its
//! host.

use super::WorkloadError;
use super::experiment::{Duration, Experiment, Measured};
use super::rig::{Rig, Setup};
use host_driver::nic::Coalescing;
use std::io::IoSlice;

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
    let mut rig = Rig::start(&setup)?;
    let (mut out, mut back) = (rig.outbound(datagram)?, rig.inbound(datagram)?);
    let count = (duration.window / 1_000_000 * PER_MS).max(4);
    let before = rig.reading();
    let mut total = 0;
    for _ in 0..count {
        let frame = out.frame();
        let start = rig.now();
        rig.nic().queue(&[IoSlice::new(&frame)])?;
        rig.nic().submit()?;
        total += rig.wait_sent(PATIENCE)? - start;
        let answer = rig.now();
        rig.machine().lock().send_frame(0, back.frame());
        total += rig.wait_received(PATIENCE)? - answer;
    }
    let after = rig.reading();
    let hertz = rig.machine().lock().clock().cycle_at(1_000_000_000) as f64;
    Ok(Measured {
        experiment: Experiment::Ping,
        datagram,
        seconds: (after.cycle - before.cycle) as f64 / hertz,
        sent: after.sent - before.sent,
        received: after.received - before.received,
        dropped: after.dropped - before.dropped,
        latency_us: Some(total as f64 / count as f64 / 1000.0),
        readings: [before, after],
    })
}
