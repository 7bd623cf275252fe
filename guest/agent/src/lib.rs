//! Runs commands in the guest for the machine that started it.
//!
//! The agent in the guest is small: it opens a virtio-serial port and serves it ([`serve`]). Both
//! sides use the message format in [`wire`], so it is defined once. `docs/guest.md` describes how
//! the guest is built.
#![forbid(unsafe_code)]

pub mod files;
pub mod jobs;
pub mod outbox;
pub mod serve;
pub mod wire;

/// The name of the virtio-serial port that host and guest talk through.
pub const PORT: &str = "tigon.agent";
