//! The commands for developers of tigon-rs: one module for each verb.
//!
//! `main.rs` only parses and dispatches. A verb defines and validates its arguments; the crate
//! `testbed` starts what it needs, and `tigon-bench` measures. The tests depend on those two and
//! never on this crate.
#![forbid(unsafe_code)]

pub mod bench;
pub mod build;
pub mod doc;
pub mod eta;
pub mod explore;
pub mod extension;
pub mod flash;
pub mod gdb;
pub mod guest;
pub mod man;
pub mod new_variant;
pub mod qemu_run;
pub mod repeat;
pub mod sim_run;
pub mod soak;
pub mod test;
pub mod trace;
pub mod verify;
