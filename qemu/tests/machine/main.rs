//! Small MIPS programs on the machine `tigon2` under QEMU.
//!
//! They need the machine and the model as they are built from this checkout:
//! `TIGON_QEMU_MIPS` names `qemu-system-mips`, `TIGON_QEMU_MODEL` the shared
//! library of this crate. `cargo xtask test` sets both.

mod assembler;
mod card;
mod command_line;
mod cpus;
mod debugger;
mod dma;
mod memory;
mod monitor;
mod parking;
mod wire;
