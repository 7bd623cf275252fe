//! A host and a wire for the simulated card: what the paper's experiments need.
//!
//! ```text
//!   datagrams ─► driver (host-driver) ─► card ─► wire ─► sink: every byte, the order
//!   sink ◄────── driver ◄─────────────── card ◄─ wire ◄─ datagrams, arrivals
//! ```
//!
//! All in one thread and on the card's clock: the driver is the project's own, over
//! [`SimTransport`](crate::SimTransport); its time is that of the timing profile.
//!
//! | module | what |
//! | --- | --- |
//! | [`datagram`] | numbered UDP datagrams, and the sink that checks them |
//! | [`arrivals`] | when frames come: constant, in bursts, Poisson |
//! | [`host`] | whose driver there is |
//! | [`testbench`] | card, driver and both ends under a load |
//! | [`bound`] | the engines without any CPU |
//! | [`experiment`] | the paper's microbenchmarks |
//! | [`model_table`] | the cycle model in a few numbers, without firmware |
//! | [`knet`] | a host with several CPUs |
//! | [`speed`] | how fast this computer simulates it |
//! | [`measured`] | what they find, and what limits it |
//! | [`talk`] | single frames without end, for a debugger |

pub mod arrivals;
pub mod bound;
pub mod datagram;
pub mod experiment;
pub mod host;
pub mod knet;
pub mod measured;
pub mod model_table;
pub(crate) mod ping;
mod search;
pub mod speed;
pub mod talk;
pub mod testbench;

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
