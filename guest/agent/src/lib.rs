//! Runs commands in the guest for the machine that started it.
//!
//! The guest's own program is small: it opens a virtio-serial port and serves
//! it ([`serve`]). What passes through the port ([`wire`]) is used by both
//! sides, so that there is one definition of it. `docs/guest.md` tells how the
//! guest is put together.
#![forbid(unsafe_code)]

pub mod files;
pub mod jobs;
pub mod outbox;
pub mod serve;
pub mod wire;

/// The name of the virtio-serial port that host and guest talk through.
pub const PORT: &str = "tigon.agent";
