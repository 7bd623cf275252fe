//! The Tigon II chip as data: memory map, registers, events, descriptors.
//!
//! This crate is the project's lowest layer: firmware, hardware model, simulator and host tools
//! all take the chip's addresses, bit fields and layouts from here, each defined once. It has no
//! behaviour except arithmetic that follows from a layout (ring wrap, the "passed" rule, the
//! priority encoder, the multicast hash).
//!
//! Section numbers are those of the hardware reference; the letters are its marks: **C**
//! confirmed, **C!** confirmed by exclusion, **I** inferred, **U** unknown.
//!
//! | module | what | reference |
//! | --- | --- | --- |
//! | [`memory`] | the address map of a CPU, the descriptor/buffer block | 2 |
//! | [`instruction`] | the instruction set, PRI and JOFF | 3.1-3.3 |
//! | [`registers`] | every register's offset | appendix A |
//! | [`bits`] | the fields of the control and state registers | 3.4, 6, 9, 10.4 |
//! | [`events`] | the bits of the event registers | 5 |
//! | [`dma`] | DMA descriptors and ring arithmetic | 6 |
//! | [`mailbox`] | the mailboxes that the host writes | 8 |
//! | [`eeprom`], [`mdio`] | the two bit-banged buses | 9 |
//! | [`mac`] | MAC descriptors, statistics, filters | 10 |
//! | [`phy`] | registers of the copper PHY | 11 |
//! | [`HostAddress`] | an address in host memory | 6.3 |
//! | [`place!`] | NIC addresses of a structure's fields | none |
//! | [`table!`] | numbered things with names, docs and access | none |
//! | [`beyond`] | further CPUs, which the chip does not have | none |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod beyond;
pub mod bits;
mod cpu;
pub mod dma;
pub mod eeprom;
pub mod events;
mod host_address;
pub mod instruction;
pub mod mac;
pub mod mailbox;
pub mod mdio;
pub mod memory;
pub mod phy;
mod place;
pub mod registers;
mod table;

pub use cpu::Cpu;
pub use host_address::{HostAddress, HostAddressAt};
pub use registers::Register;
pub use table::Access;
