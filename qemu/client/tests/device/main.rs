//! The device `tigon2-vfio-user` in a PC without software, in front of a made-up card.
//!
//! The PC is `qemu-system-x86_64` as it is built from this checkout, driven by its qtest
//! protocol: the test is the guest's CPU. The card is a vfio-user server in the test. The
//! tests need `TIGON_GUEST_QEMU`, which names the program, and `TIGON_GUEST_CLIENT`, the
//! shared library of this crate; `cargo xtask test --guest` sets both.

mod access;
mod command_line;
mod death;
mod dma;
mod fake;
mod interrupt;
mod pc;
