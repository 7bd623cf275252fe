//! Selects the receive queue of a frame.
//!
//! It follows "Packet classification in the NIC for improved SMP-based Internet servers" (KNET),
//! section 3, and the receive-side scaling of current NICs. Firmware, driver and simulator share
//! this crate, so they all select the same queue.
//!
//! ```text
//!   frame ──► fields ──► source address ──► & (queues - 1) ───────────────► queue
//!                   └──► addresses, ports ──► toeplitz ──► table[hash & 127] ► queue, hash
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`frame`] | reads a frame in place, also where it wraps at the end of a buffer |
//! | [`fields`] | finds addresses and ports |
//! | [`key`], [`toeplitz`] | the hash, by look-ups in precomputed rows |
//! | [`memory`] | access to their tables, which the caller provides |
//! | [`flows`] | remembers the hashes of flows |
//! | [`table`] | from hash to queue |
//! | [`classifier`] | combines them: a frame in, a [`Verdict`] out |
//!
//! # Which fields count
//! A frame begins with its destination address and ends before its CRC. One or two tags (802.1Q,
//! 802.1ad) may precede IP. An IPv4 header may have options; an IPv6 header may have hop-by-hop
//! options (directly after it), routing, destination options and fragment headers, up to
//! [`EXTENSIONS_MAX`](fields::EXTENSIONS_MAX). Ports count for TCP and UDP, if the whole fixed
//! header is there.
//!
//! Only addresses count for fragments of a datagram, including the first, so that they stay
//! together. A datagram with DF, or with a fragment header but complete, is no fragment.
//!
//! Frames that are truncated, inconsistent or not IP have no hash and go to queue 0. No byte after
//! the frame's end is read. Checksums and the payload of tunnels are ignored: the outer addresses
//! count.
//!
//! # Cost
//! The chip has no multiplication and no division, and a load from SRAM takes four cycles
//! (hardware reference, section 3). An untagged IPv4 datagram without options takes straight-line
//! code with one load for each word that matters.
#![no_std]
#![forbid(unsafe_code)]

pub mod classifier;
pub mod fields;
pub mod flows;
pub mod frame;
pub mod key;
pub mod memory;
pub mod table;
pub mod toeplitz;

pub use classifier::{BadClassifier, Classifier, Verdict};
pub use frame::Frame;
pub use host_interface::queue::{ClassifierKind, HashType, HashTypes};
pub use key::Key;
pub use memory::Memory;
pub use table::IndirectionTable;
pub use toeplitz::Tables;
