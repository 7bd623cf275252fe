//! The hardware model as a library that QEMU's machine `tigon2` loads.
//!
//! QEMU provides the two CPUs, memory, time and the wire; [`tigon2_model`] provides the chip;
//! `vfio_user_nic` provides the PCI side. This crate connects them:
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
//! | module | contents |
//! | --- | --- |
//! | [`ffi`] | the C interface, a mirror of `hw/mips/tigon2/ffi.h` |
//! | [`host`] | QEMU behind a safe trait |
//! | [`ports`] | QEMU's memory and CPUs in the form that the model needs |
//! | [`machine`] | the card, its locks and the order of their effects |
//! | [`outbox`] | effects that wait for QEMU's big lock |
//! | [`counts`] | counts of errors and delays on the wire |
//! | [`exact`] | which register accesses end a translation block |
//! | [`parking`] | idle CPUs sleep |
//! | [`server`] | the PCI side, over vfio-user |
//! | [`waiting`] | DMA that waits for the client |
//! | [`bell`] | wakes the thread of this DMA |
//! | [`entrance`] | when a client is let in |
//! | [`properties`] | properties of a running card in the monitor |
//! | [`limit`] | limits repeated messages |
//! | [`setup`] | the board file and the EEPROM's image |
//! | [`entry`] | the entry points that QEMU calls |
//!
//! Lock order: QEMU's big lock, then the machine's, then the inner ones (the outbox, the
//! interrupt, the client's memory). No thread waits for the big lock while it holds another lock,
//! and no frame is sent under the machine's lock, because the call may deliver another frame
//! before it returns. A CPU's register access needs only the machine's lock.

// The exceptions are the C interface and the two modules on either side of it.
#![deny(unsafe_code)]

pub mod bell;
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
