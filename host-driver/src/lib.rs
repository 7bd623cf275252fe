//! Linux userspace driver for the Tigon II (AceNIC).
//!
//! From the bottom up:
//!
//! | module | what |
//! | --- | --- |
//! | [`dma`] | memory that driver and card share |
//! | [`transport`] | the way to a card: registers, memory, interrupt |
//! | [`eeprom`] | the station address, by moving two wires |
//! | [`flash`] | firmware in the card's own EEPROM |
//! | [`nic`] | the card as a network interface: load, open, send, receive, recover |
//! | [`checksum`] | checksums that card and host share |
//! | [`tap`], [`bridge`] | the kernel's network stack as the user of the card |
//! | [`capture`], [`replay`] | captures: replayed out of the card, recorded from it |
//! | [`stack`], [`peer`] | a stack in process, on either side of the wire |
//! | [`status`] | looking at a card that another process drives |
//! | [`live`] | its frames, for whoever reads beside the driver |
//! | [`rss`] | which receive queue a flow belongs to, and why |
//! | [`log`] | the firmware's log, decoded |
//! | [`profile`] | which handler a CPU is in, by its program counter |
//!
//! What it relies on: section numbers in the docs are those of the project's
//! hardware reference, and "Host/NIC software interface" is the page of that name.

#![deny(unsafe_code)]

pub mod bridge;
pub mod capture;
pub mod checksum;
#[allow(unsafe_code)]
pub mod dma;
pub mod eeprom;
pub mod flash;
pub mod live;
pub mod log;
pub mod nic;
pub mod peer;
pub mod profile;
pub mod replay;
pub mod rss;
pub mod stack;
pub mod status;
pub mod tap;
pub mod transport;

pub use dma::{DmaError, DmaMemory};
pub use nic::{Config, Nic, NicError};
pub use transport::{Transport, TransportError, Vector};
