//! The direct transport interface (DTI) between an application and a packet processing engine.
//!
//! "Scalable networking for next-generation computing platforms", sections III and IV: an
//! application posts asynchronous operations into a queue in shared memory; the engine completes
//! each with exactly one event. This crate has the layouts and both ends of the queues, and does
//! no I/O except attaching ([`control`]) and waking a sleeping side ([`bell`]).
//!
//! ```text
//!   application                  one memory file                     engine
//!   post ──────────► work queue (descriptors, 32 bytes) ──────────► take
//!   take ◄────────── event queues (events, 32 bytes)    ◄────────── post
//!   read, write ───► pool (payload, by offset)          ◄────────── read, write
//!         bell ────► eventfd, if the engine sleeps;  control socket, if the application does ◄── bell
//! ```
//!
//! `unsafe` stands in [`mapped`] only.

#![deny(unsafe_code)]

pub mod bell;
pub mod control;
pub mod layout;
#[allow(unsafe_code)]
pub mod mapped;
pub mod ring;
pub mod words;
