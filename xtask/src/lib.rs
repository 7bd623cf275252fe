//! Every command that a developer of tigon-rs types: one module a verb.
//!
//! `main.rs` only parses and dispatches. A verb says what its arguments are and judges them;
//! what it starts is in the crate `testbed`, what it measures in `tigon-bench`. The tests
//! depend on those and never on this.
#![forbid(unsafe_code)]

pub mod build;
pub mod doc;
pub mod flash;
pub mod gdb;
pub mod guest;
pub mod man;
pub mod new_variant;
pub mod qemu_run;
pub mod repeat;
pub mod sim_run;
pub mod test;
