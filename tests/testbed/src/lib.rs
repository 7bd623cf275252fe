//! What the commands and the tests both start, as values: a process that ends with its owner,
//! a card's monitor, the places of a checkout.
#![forbid(unsafe_code)]

pub mod cache;
pub mod conditions;
pub mod firmware;
pub mod interrupt;
pub mod monitor;
pub mod paths;
pub mod process;
pub mod progress;
pub mod progress_bar;
pub mod qemu_build;
pub mod setup;
pub mod tools;
pub mod worker;
