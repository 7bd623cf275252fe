//! Which receive queue a frame belongs to.
//!
//! After "Packet classification in the NIC for improved SMP-based Internet servers" (KNET),
//! section 3, and the receive-side scaling that NICs have today. Firmware, driver and
//! simulator share this crate, so that all of them name the same queue.
//!
//! ```text
//!   frame ──► fields ──► source address ──► & (queues - 1) ───────────────► queue
//!                   └──► addresses, ports ──► toeplitz ──► table[hash & 127] ► queue, hash
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`frame`] | reads a frame where it lies, also round the end of a buffer |
//! | [`fields`] | finds addresses and ports |
//! | [`key`], [`toeplitz`] | the hash, by look-ups in rows that cold code builds |
//! | [`table`] | from hash to queue |
//! | [`classifier`] | all together: a frame in, a [`Verdict`] out |
//!
//! # What counts
//! A frame begins with its destination address and ends before its CRC. In front of IP there
//! may be one or two tags (802.1Q, 802.1ad). An IPv4 header may have options, an IPv6 header
//! hop-by-hop options (right behind it), routing, destination options and fragment headers,
//! [`EXTENSIONS_MAX`](fields::EXTENSIONS_MAX) of them. Ports are those of TCP and UDP, of
//! which the whole fixed header must be there.
//!
//! Each fragment of a datagram goes by its addresses alone, the first one too, so that they
//! stay together. A datagram that only must not be fragmented (DF), or has a fragment header
//! and is whole, is no fragment.
//!
//! What is cut, contradicts itself or is not IP has no hash and goes to queue 0. No byte
//! behind the frame's end is read. Checksums are not looked at, nor what a tunnel carries:
//! outer addresses count.
//!
//! # Cost
//! The chip has no multiplication and no division, and a load from SRAM takes four cycles
//! (hardware reference, section 3). An untagged IPv4 datagram without options is taken in a
//! straight line with one load for each word that matters.
#![no_std]
#![forbid(unsafe_code)]

pub mod classifier;
pub mod fields;
pub mod frame;
pub mod key;
pub mod table;
pub mod toeplitz;

pub use classifier::{BadClassifier, Classifier, Verdict};
pub use frame::Frame;
pub use host_interface::queue::{ClassifierKind, HashType, HashTypes};
pub use key::Key;
pub use table::IndirectionTable;
pub use toeplitz::{Memory, Tables};
