//! Runs the same workload under many random schedules of both CPUs.
//!
//! ```text
//!   seed ─► Disturbance: when CPUs, DMA and MAC proceed  ─┐
//!        └► Story: ring sizes, coalescing, frames, batches ┴─► the card carries frames both
//!           ways; each must come out exactly once, in order, with every byte
//! ```
//!
//! Firmware for two CPUs without locks is correct only if it is correct under every skew between
//! them ("Exploiting Task-level Concurrency in a Programmable Network Interface", section 4). A
//! run with the cycle model shows one schedule; the explorer shows thousands. It uses the
//! functional clock: each step of a schedule is a random choice, not limited by the timing of any
//! board. A seed identifies each failure, and the same seed reproduces the run.
//!
//! | module | what |
//! | --- | --- |
//! | [`disturbance`] | the random delays |
//! | [`schedule`] | one under way |
//! | [`story`] | the workload |
//! | [`check`] | its checks |
//! | [`endpoints`] | the workload of endpoints, and its checks |
//! | [`queues`] | the workload of queue mode, and its checks |
//! | [`trail`] | a run that Spin has found |

pub mod check;
pub mod disturbance;
pub mod endpoints;
pub mod queues;
pub mod schedule;
pub mod story;
#[cfg(test)]
mod tests;
pub mod trail;

pub use disturbance::{Disturbance, Pace};
pub use schedule::Outcome;
pub use story::{PATIENCE, Story, run, run_on};

use crate::workload::datagram::Mismatch;
use host_driver::NicError;
use thiserror::Error;
use tigon2_chip::Cpu;
use tigon2_model::CpuFault;

/// A schedule under which the card did not do what it should.
#[derive(Debug, Error)]
pub enum ExploreError {
    /// The driver reports an error.
    #[error("driver: {0}")]
    Driver(#[from] NicError),
    /// A frame came out that was not expected next.
    #[error("{direction}: {fault}")]
    Frame {
        /// Which way.
        direction: &'static str,
        /// What is wrong.
        fault: FrameFault,
    },
    /// Frames did not come out.
    #[error(
        "no frame moved for {milliseconds} ms: {sent} of {expected} sent, {received} of {expected} received"
    )]
    Stalled {
        /// For so long, in the card's time.
        milliseconds: u64,
        /// Frames that the wire got.
        sent: u64,
        /// Frames that the host got.
        received: u64,
        /// Frames of each direction.
        expected: u64,
    },
    /// A receive queue got what it should not, or lacks what it should have.
    #[error("queue {queue}: {fault}")]
    Queue {
        /// Its number.
        queue: usize,
        /// What is wrong.
        fault: QueueFault,
    },
    /// An endpoint got what it should not, or its firmware did.
    #[error("endpoint: {0}")]
    Endpoint(EndpointFault),
    /// The send BDs did not all come back.
    #[error("{0} send BDs did not come back")]
    Outstanding(u32),
    /// What the host did besides.
    #[error("beside the frames: {0}")]
    Aside(String),
    /// A CPU met what it cannot execute.
    #[error("{cpu:?} halted at {pc:#x}: {fault:?}")]
    Fault {
        /// Which one.
        cpu: Cpu,
        /// Why.
        fault: CpuFault,
        /// Where.
        pc: u32,
    },
    /// Firmware touched what does not exist.
    #[error("{0} accesses to addresses without memory or register")]
    Undefined(u64),
    /// Firmware took TxPrd or RxCon back.
    #[error("TxPrd or RxCon moved back {0} times")]
    MovedBack(u64),
}

/// What is wrong with a frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// It is another one than the one that is due.
    #[error("frame {number} came where {due} was due")]
    Order {
        /// Which one came.
        number: u64,
        /// Which one was due.
        due: u64,
    },
    /// It came though all had come.
    #[error("frame {number} came twice")]
    Twice {
        /// Which one.
        number: u64,
    },
    /// Its bytes are wrong.
    #[error("{0}")]
    Bytes(Mismatch),
}

/// What is wrong with a receive queue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueueFault {
    /// A frame is none of this queue's next frames: another queue's, one that came before, one out
    /// of order, or one with other bytes.
    #[error("after {frames} good frames, one of {bytes} bytes is none of the next")]
    Unexpected {
        /// Its length.
        bytes: usize,
        /// Frames that the queue got before.
        frames: usize,
    },
    /// The hash or its type is another one than the reference's.
    #[error("the hash of frame {frame} is {found:#x}, not {expected:#x}")]
    Hash {
        /// The frame's place in the queue.
        frame: usize,
        /// What the return BD has: the type in bits 39:32, and the hash.
        found: u64,
        /// What the reference says.
        expected: u64,
    },
    /// Frames did not come, and the card has not counted so many.
    #[error("{missing} frames are missing, {counted} were dropped")]
    Lost {
        /// How many did not come.
        missing: usize,
        /// How many the queue's counters name.
        counted: u32,
    },
}

/// What is wrong with endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EndpointFault {
    /// The library refuses.
    #[error("{0}")]
    Library(String),
    /// A descriptor is not done as it should be.
    #[error("a descriptor is completed with {0:?}")]
    Status(eudp::Status),
    /// A received datagram is none that was sent.
    #[error("a datagram of {0} bytes is completed that nobody has sent")]
    Received(usize),
    /// A descriptor was completed that was not posted.
    #[error("a descriptor is completed that was not posted")]
    Twice,
    /// A frame on the wire is of no endpoint.
    #[error("a packet of {0} bytes leaves that no endpoint has sent")]
    Frame(usize),
    /// A frame of the driver's own did not leave as it was sent, and when it was.
    #[error("a frame of the driver's own is lost, late or wrong")]
    Plain,
    /// A datagram on the wire is not the one that is due.
    #[error(
        "{bytes} bytes leave where datagram {due:?} is due; they differ from byte {differs} on"
    )]
    Sent {
        /// The number of the one that is due.
        due: Option<u32>,
        /// How many bytes leave.
        bytes: usize,
        /// The first one that differs.
        differs: usize,
    },
    /// Packets of two datagrams are mixed, or lie over each other.
    #[error("packets of two datagrams are mixed")]
    Mixed,
    /// A checksum on the wire is wrong.
    #[error("a datagram leaves with a wrong checksum")]
    Sum,
    /// The firmware refuses what is right, or takes a row that no table has.
    #[error("the firmware refuses datagrams: {0:?}")]
    Refused(eudp::Refusals),
    /// More datagrams were refused for a wrong checksum than had one.
    #[error("{0} datagrams are refused for a wrong checksum, more than have one")]
    BadSums(u32),
    /// More datagrams are missing than the firmware has counted.
    #[error("{0} datagrams are missing, and no drop was counted")]
    Lost(u32),
    /// The trace was overwritten.
    #[error("the trace does not hold all that was done")]
    Forgotten,
    /// A transition is none of the tables'.
    #[error("{0:?}")]
    Row(frame_pipeline::trace::Fault),
}
