//! Linux userspace driver for the Tigon II (AceNIC).
//!
//! From the bottom up:
//!
//! | module | what |
//! | --- | --- |
//! | [`dma`] | memory that driver and card share |
//! | [`transport`] | access to a card: registers, memory, interrupt |
//! | [`eeprom`] | the serial EEPROM, with the station address |
//! | [`flash`] | firmware in the card's own EEPROM |
//! | [`nic`] | the card as a network interface: load, open, send, receive, recover |
//! | [`checksum`] | checksums that card and host compute together |
//! | [`tap`], [`bridge`] | the kernel's network stack as the user of the card |
//! | [`capture`], [`replay`] | captures: replayed out of the card, recorded from it |
//! | [`stack`], [`peer`] | a stack in process, on either side of the wire |
//! | [`status`] | status of a card that another process drives |
//! | [`knet`] | network threads: one for each receive queue, bound to a CPU |
//! | [`live`] | its frames, for readers beside the driver |
//! | [`rss`] | the receive queue of a flow, explained |
//! | [`log`] | the firmware's log, decoded |
//! | [`profile`] | profiles: the handler of a CPU's program counter |
//!
//! Section numbers in the docs are those of the project's hardware reference; "Host/NIC software
//! interface" is the page of that name.

#![deny(unsafe_code)]

pub mod bridge;
pub mod capture;
pub mod checksum;
#[allow(unsafe_code)]
pub mod dma;
pub mod eeprom;
pub mod flash;
pub mod knet;
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
