//! Runs the firmware on both CPUs of the card, deterministic and without QEMU.
//!
//! | module | what |
//! | --- | --- |
//! | [`cpu`] | the CPUs (hardware reference, section 3) |
//! | [`memory`] | SRAM and host memory (section 2) |
#![forbid(unsafe_code)]

#[cfg(test)]
mod asm;
pub mod cpu;
pub mod memory;
