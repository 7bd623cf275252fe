//! Tests the machine `tigon2` under QEMU with small MIPS programs.
//!
//! They need the machine and the model built from this checkout: `TIGON_QEMU_MIPS` is the path of
//! `qemu-system-mips`, `TIGON_QEMU_MODEL` that of this crate's shared library. `cargo xtask test`
//! sets both.

mod assembler;
mod card;
mod command_line;
mod cpus;
mod debugger;
mod dma;
mod growth;
mod hostile;
mod memory;
mod monitor;
mod parking;
#[path = "../../vfio-user/tests/common/raw.rs"]
#[allow(dead_code)] // the server's own tests use the rest
mod raw;
mod victim;
mod wire;

/// How long a test waits for what must happen.
const LONG: std::time::Duration = std::time::Duration::from_secs(10);
