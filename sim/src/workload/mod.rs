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
//! | [`rig`] | card, driver and both ends under a load |
//! | [`bound`] | the engines without any CPU |
//! | [`experiment`] | the paper's microbenchmarks |

pub mod arrivals;
pub mod bound;
pub mod datagram;
pub mod experiment;
pub(crate) mod ping;
pub mod rig;

use crate::workload::datagram::Mismatch;
use host_driver::NicError;
use thiserror::Error;

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
    /// A datagram that no frame holds.
    #[error("a datagram of {0} bytes: must be from {1} to {2}")]
    Size(usize, usize, usize),
}
