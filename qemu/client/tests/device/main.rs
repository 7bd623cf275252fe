//! Tests the device `tigon2-vfio-user` in a PC without software, with a fake card.
//!
//! The PC is the `qemu-system-x86_64` built from this checkout. The test drives it through its
//! qtest protocol in place of a CPU. The card is a vfio-user server in the test. The tests need
//! `TIGON_GUEST_QEMU`, the path of the program, and `TIGON_GUEST_CLIENT`, the path of this crate's
//! shared library; `cargo xtask test --guest` sets both.

mod access;
mod command_line;
mod death;
mod dma;
mod fake;
mod interrupt;
mod pc;
