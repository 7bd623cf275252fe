//! Classifies frames in SRAM repeatedly, so that the cycles can be counted.
//!
//! Code, stack, classifier and indirection table are in CPU A's scratch pad, frames and rows in
//! SRAM, as in the firmware's receive path. The runner fills in [`layout`]'s words, puts frames
//! into their slots and runs CPU A until it halts; the difference between many and few frames is
//! the cost of one.
//!
//! ```text
//!   SRAM  0x8000 what to do │ 0x9000 verdicts │ 0x10000 frames │ 0x20000 rows │ 0x30000 flows
//! ```
#![no_std]
#![cfg_attr(target_arch = "mips", feature(asm_experimental_arch))]

pub mod layout;
pub mod program;
#[cfg(target_arch = "mips")]
mod start;
