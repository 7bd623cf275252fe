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
