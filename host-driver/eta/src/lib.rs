//! The packet processing engine: one loop that owns a packet device and runs TCP/IP for
//! applications behind shared-memory queues ([`dti`]).
//!
//! "Scalable networking for next-generation computing platforms", section III (Embedded
//! Transport Acceleration).
//!
//! ```text
//!   application ── work queue ──► Engine ── Stack ── Wire: a card, a TAP device, a memory wire
//!               ◄─ event queues ─┘
//! ```
//!
//! Each connection has a socket set of its own, found by a table of flows and woken by a timer
//! wheel, so what a packet costs does not depend on the connections. An engine without work
//! sleeps until the wire, a doorbell or the control socket wakes it.

#![forbid(unsafe_code)]

mod anonymous;
mod connection;
pub mod engine;
pub mod memory_wire;
mod options;
mod payload;
mod queues;
pub mod quota;
mod regions;
mod sockets;
mod statistics;
pub mod status;
pub mod tap_wire;

pub use engine::{Engine, EngineError, IdleMode, Settings};
pub use host_driver::stack::flows::StackStatistics;
pub use quota::{Quota, Quotas};
pub use statistics::{ApplicationReport, Statistics};
