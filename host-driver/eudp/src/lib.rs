//! E-UDP: datagrams between a process's memory and the wire, without the kernel and without a copy.
//!
//! ```text
//!   Eudp ── opens ──► Endpoint ── send, post ──► descriptors: some in NIC memory, others here; mailbox
//!     │                  ▲   poll
//!     └ regions, handles └──────────────────── completions in the process's memory
//! ```
//!
//! | what | is |
//! | --- | --- |
//! | [`Eudp`] | who owns the card's function: it alone writes endpoints, regions and address handles |
//! | [`Endpoint`] | a local port with a queue to send, one to receive, and its completions |
//! | [`Region`] | memory that the card may read, or read and write, for one endpoint; it stays where it is |
//! | [`AddressHandle`] | where datagrams go to and come from: nobody can forge a source |
//! | [`Pool`] | memory for datagrams whose UDP header comes later than other fragments |
//! | [`Segment`] | a piece of a region |
//!
//! [`host_interface::eudp`] is the interface to the firmware. What the card hands back is judged: no
//! number of it is an index before it was compared with what this side has counted itself.
#![forbid(unsafe_code)]

mod address;
mod broker;
mod card;
mod config;
mod endpoint;
mod error;
mod pool;
mod region;

pub use address::{AddressHandle, Destination, Headers};
pub use broker::{Eudp, Refusals};
pub use card::{Access, Card, Memory};
pub use config::{CutThrough, DESCRIPTORS, EndpointConfig, PUSHED};
pub use endpoint::{Completion, Endpoint, Received};
pub use error::{EudpError, SendError};
pub use host_interface::eudp::{
    Checksum, DATAGRAM_MAX, DESCRIPTORS_MAX, INLINE_BYTES, SEGMENTS, SLOTS, Status,
};
pub use pool::{Pool, PoolConfig};
pub use region::{Region, Segment};
