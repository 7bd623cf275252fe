//! Runs the firmware on both CPUs of the card, deterministic and without QEMU.
//!
//! The second engine round the hardware model: two MIPS II interpreters, SRAM, the wire and
//! host memory under one clock, in one thread. A program for the card is loaded by the
//! driver through [`SimTransport`] as on real hardware, or put in memory by a test with
//! [`Machine::load_image`].
//!
//! - Deterministic: the same inputs at the same cycles give the same outputs. Host time,
//!   threads and addresses of this process do not matter.
//! - Functional: each instruction takes one cycle of the board's clock, DMA and the MAC
//!   take none. The wire has the speed of gigabit Ethernet.
//! - Waiting is free: while all CPUs poll empty event registers, time jumps to the next
//!   deadline, with the same result as of executing the polls.
//!
//! | module | what |
//! | --- | --- |
//! | [`cpu`] | the CPUs (hardware reference, section 3) |
//! | [`memory`] | SRAM and host memory (section 2) |
//! | [`clock`] | cycles and nanoseconds |
//! | [`wire`] | frames in both directions |
//! | [`machine`] | all of it together |
//! | [`transport`] | the way of a driver to it |
#![forbid(unsafe_code)]

#[cfg(test)]
mod asm;
pub mod clock;
pub mod cpu;
pub mod machine;
pub mod memory;
pub mod timing;
pub mod transport;
pub mod wire;

pub use machine::Machine;
pub use transport::SimTransport;
