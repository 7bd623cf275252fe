//! Runs the firmware on both CPUs of the card, deterministically and without QEMU.
//!
//! This is the second engine for the hardware model: two MIPS II interpreters, SRAM, the wire and
//! host memory under one clock, in one thread. A driver loads a program for the card through
//! [`SimTransport`], as on real hardware, or a test puts it in memory with
//! [`Machine::load_image`].
//!
//! - Deterministic: the same inputs at the same cycles give the same outputs. Host time,
//!   threads and addresses of this process do not matter.
//! - Two clocks. Functional ([`Machine::new`]): each instruction takes one cycle, DMA and the MAC
//!   take none, the wire has the speed of gigabit Ethernet. Timed ([`Machine::timed`]): everything
//!   takes as long as on the board, see [`timing`].
//! - Waiting is free: while all CPUs poll empty event registers, time jumps to the next deadline,
//!   with the same result as executing the polls.
//!
//! | module | what |
//! | --- | --- |
//! | [`asm`] | instruction words for test programs |
//! | [`cpu`] | the CPUs (hardware reference, section 3) |
//! | [`memory`] | SRAM and host memory (section 2) |
//! | [`clock`] | cycles and nanoseconds |
//! | [`wire`] | frames in both directions |
//! | [`machine`] | all of it together |
//! | [`fabric`] | several machines under one clock |
//! | [`log`] | the firmware's log, without the driver |
//! | [`timeline`] | what happened when |
//! | [`explore`] | the same work under random schedules of both CPUs |
//! | [`gdb`] | both CPUs in gdb, forward and backward |
//! | [`timing`] | the cycle model of the board |
//! | [`stalls`] | counts that explain a stall |
//! | [`theme`] | the style of all pictures |
//! | [`transport`] | a driver's access to the machine |
//! | [`workload`] | a host and a wire for experiments |
//! | [`hosts`] | a host with several CPUs |
#![forbid(unsafe_code)]

pub mod asm;
pub mod clock;
pub mod cpu;
pub mod explore;
pub mod fabric;
pub mod gdb;
pub mod hosts;
pub mod log;
pub mod machine;
pub mod memory;
mod shared_bus;
pub mod stalls;
pub mod theme;
pub mod timeline;
pub mod timing;
pub mod transport;
pub mod wire;
pub mod workload;

pub use machine::Machine;
pub use transport::SimTransport;
