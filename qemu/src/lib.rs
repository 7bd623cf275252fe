//! The hardware model as a library that QEMU's machine `tigon2` loads.
//!
//! QEMU brings the two CPUs, memory, time and the wire; [`tigon2_model`] brings
//! the chip; `vfio_user_nic` brings the PCI side. This crate joins them:
//!
//! ```text
//!   vCPU threads      QEMU's main loop        server thread
//!   registers,        timer, frames from      BAR, configuration space,
//!   faults            the wire, reset         reset, client gone
//!        \                  |                      /
//!         v                 v                     v
//!   entry ─────────► Machine::enter ◄──────── server
//!                     │ Card + Environment ──► interrupt,   under the machine's lock
//!                     ▼                        sleep, timer
//!                    outbox ──► CPUs, wire                  under the big lock only
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`ffi`] | the C interface, a mirror of `hw/mips/tigon2/ffi.h` |
//! | [`host`] | QEMU behind a safe trait |
//! | [`ports`] | QEMU's memory and CPUs as the model wants to see them |
//! | [`machine`] | the card, its locks and the order of effects |
//! | [`outbox`] | what waits for QEMU's big lock |
//! | [`counts`] | what went wrong on the wire or had to wait, counted |
//! | [`exact`] | which register accesses end a translation block |
//! | [`parking`] | idle CPUs sleep |
//! | [`server`] | the PCI side, over vfio-user |
//! | [`waiting`] | DMA for which the client is waited for |
//! | [`entrance`] | when a client is let in |
//! | [`properties`] | what the monitor sees and changes of a running card |
//! | [`limit`] | lines that could come without end |
//! | [`setup`] | the board file and the EEPROM's image |
//! | [`entry`] | what QEMU calls |
//!
//! Lock order: QEMU's big lock, then the machine's, then those inside of it (the
//! outbox, the interrupt, the client's memory). Nothing waits for the big lock
//! under another one, and no frame leaves under the machine's lock, because it
//! may come back as another one before the call returns. A CPU's access to a
//! register needs the machine's lock only.

// The exceptions are the C interface and the two modules on either side of it.
#![deny(unsafe_code)]

pub mod counts;
pub mod entrance;
#[allow(unsafe_code)]
pub mod entry;
pub mod exact;
#[allow(unsafe_code)]
pub mod ffi;
#[allow(unsafe_code)]
pub mod host;
pub mod limit;
pub mod machine;
pub mod outbox;
pub mod parking;
pub mod ports;
pub mod properties;
pub mod server;
pub mod setup;
pub mod stalls;
#[cfg(test)]
mod testing;
pub mod waiting;
