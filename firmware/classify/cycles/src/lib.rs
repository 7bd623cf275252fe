//! Classifies frames in SRAM again and again, for its cycles to be counted.
//!
//! Code, stack, classifier and indirection table are in CPU A's scratch pad, frames and rows in
//! SRAM: as in the firmware's receive path. Whoever runs it fills in [`layout`]'s words, puts
//! frames into their slots and runs CPU A to its halt; the cycles of one frame are the
//! difference between many and few.
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
