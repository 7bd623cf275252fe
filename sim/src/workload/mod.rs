//! A host and a wire for the simulated card, as the paper's experiments need them.
//!
//! ```text
//!   datagrams ─► driver (host-driver) ─► card ─► wire ─► sink: every byte, the order
//!   sink ◄────── driver ◄─────────────── card ◄─ wire ◄─ datagrams, arrivals
//! ```
//!
//! Everything runs in one thread on the card's clock: the driver is the project's, over
//! [`SimTransport`](crate::SimTransport); the timing profile sets its time.
//!
//! | module | what |
//! | --- | --- |
//! | [`datagram`] | numbered UDP datagrams, and the sink that checks them |
//! | [`arrivals`] | arrival times: constant, in bursts, Poisson |
//! | [`host`] | the setup of the driver |
//! | [`testbench`] | card, driver and both ends under a load |
//! | [`bound`] | the limit that the engines set, without any CPU |
//! | [`cut_through`] | frames that leave while they are fetched, without any CPU |
//! | [`experiment`] | the paper's microbenchmarks |
//! | [`traffic`] | what they carry, which way, for how long |
//! | [`model_table`] | reference numbers of the cycle model, without firmware |
//! | [`knet`] | a host with several CPUs |
//! | [`predict`] | the analytic model of frames that are cut through |
//! | [`speed`] | the speed of the simulation on this computer |
//! | [`measured`] | results and limiting resources |
//! | [`talk`] | slow endless traffic, for a debugger |

pub mod arrivals;
pub mod bound;
pub mod cut_through;
pub mod datagram;
pub mod experiment;
pub mod host;
pub mod knet;
pub mod measured;
pub mod model_table;
pub(crate) mod ping;
pub mod predict;
pub(crate) mod receiver;
mod search;
pub mod speed;
pub mod talk;
pub mod testbench;
pub mod traffic;
pub(crate) mod transmitter;

use crate::timing::ProfileError;
use crate::workload::datagram::Mismatch;
use host_driver::NicError;
use thiserror::Error;
use tigon2_model::BoardError;

/// An experiment could not be carried out.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// The driver reports an error.
    #[error("driver: {0}")]
    Driver(#[from] NicError),
    /// A frame is not what was sent.
    #[error("{direction}: {mismatch}")]
    Corrupt {
        /// Which way it went.
        direction: &'static str,
        /// What is wrong.
        mismatch: Mismatch,
    },
    /// A frame of many flows is not what was sent, out of order, or in the wrong queue.
    #[error("{0}")]
    Misdirected(#[from] knet::flows::FlowMismatch),
    /// The frame pipeline took no row of its tables.
    #[error("the frame pipeline: {0:?}")]
    Pipeline(frame_pipeline::Step),
    /// A frame was not the one that was sent.
    #[error("a frame on the wire is not the one that was sent")]
    Mangled,
    /// Nothing moved for long.
    #[error("no frame moved for {0} ms of the card's time")]
    Stalled(u64),
    /// Somebody else ended the recording.
    #[error("the recording was ended too early")]
    NotRecorded,
    /// The board file cannot be used.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// A timing profile cannot be had.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// No rate was found that the card keeps up with.
    #[error("the card keeps up with no rate that was tried")]
    Hopeless,
    /// A datagram that no frame holds.
    #[error("a datagram of {0} bytes: must be from {1} to {2}")]
    Size(usize, usize, usize),
}
