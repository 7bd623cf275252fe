//! Every command that a developer of tigon-rs types, as a library.
//!
//! `main.rs` only parses and dispatches; here is one module a verb, and below
//! them what several verbs share. The integration tests use the latter to
//! start cards and namespaces in the same way as the commands do.
#![forbid(unsafe_code)]

pub mod bench;
pub mod build;
pub mod chart;
pub mod conversation;
pub mod doc;
pub mod explore;
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

pub use testbed::{
    cache, card, conditions, firmware, hosts, interrupt, judge, monitor, net, paths, process,
    progress, progress_bar, qemu_build, setup, tools, worker,
};
