//! The interface between AceNIC host drivers and the firmware.
//!
//! This is the software interface of the Tigon cards, revision 12.4, which the in-kernel drivers
//! use (Linux `acenic`, the BSDs' `ti`) and which this project's own driver and firmware use as
//! well. The crate defines everything once: layouts and constants, no behaviour. Source: the
//! project's "Host/NIC software interface"; section numbers are those of the hardware reference.
//!
//! # Words
//! DMA moves every structure of this crate so that it keeps the *value* of each 32-bit word
//! (hardware reference, 6.4): host and NIC see the same numbers, each in its own byte order. A
//! structure is therefore an array of `u32` words; where two 16-bit fields share a word, accessors
//! return the halves. Only packet data and the image file may be read byte by byte.
//!
//! | module | what | where it lives |
//! | --- | --- | --- |
//! | [`pci`] | ids, class | configuration space |
//! | [`bar`] | the map of BAR 0 | BAR 0 |
//! | [`gencom`] | words that both sides read and write | BAR 0x600, NIC 0x200 |
//! | [`extension`] | this project's own words in it | BAR 0x6A0, NIC 0x2A0 |
//! | [`handlers`] | the firmware's handlers and their counts | NIC memory |
//! | [`info`] | general information block, ring control blocks | host memory |
//! | [`ring`], [`bd`] | rings and buffer descriptors | host memory |
//! | [`command`] | host to NIC | BAR 0x700, NIC 0x300 |
//! | [`event`] | NIC to host | event ring in host memory |
//! | [`statistics`] | the statistics block | host memory |
//! | [`trace`] | the trace ring of vendor firmware | NIC memory |
//! | [`custom_counters`] | counts of a changed handler's own | NIC memory |
//! | [`loadable`] | handlers that are loaded while the firmware runs | NIC memory |
//! | [`queue`] | receive queues | NIC and host memory |
//! | [`spine`] | extensions that are loaded into the running card | NIC memory |
//! | [`eudp`] | endpoints for datagrams without the kernel | NIC and host memory |
//! | [`log`] | this project's log rings | NIC memory |
//! | [`image`] | the firmware file | `acenic/tg2.bin` |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod bar;
pub mod bd;
pub mod command;
pub mod custom_counters;
pub mod eudp;
pub mod event;
pub mod extension;
pub mod gencom;
pub mod handlers;
pub mod image;
pub mod info;
mod link;
pub mod loadable;
pub mod log;
mod mode;
pub mod pci;
pub mod queue;
pub mod ring;
pub mod spine;
pub mod statistics;
pub mod trace;

pub use link::LinkWord;
pub use mode::{DmaConfig, OperatingMode};
