//! The vfio-user client that QEMU's device `tigon2-vfio-user` loads.
//!
//! QEMU 10.0 has no vfio-user client. The device in the overlay provides what requires QEMU:
//! configuration space, BAR 0, the interrupt pin, the guest's memory; [`vfio_user_nic::Client`]
//! implements the protocol; this crate connects them:
//!
//! ```text
//!   vCPU threads                    QEMU's main loop
//!   BAR, configuration space        memory map, reset, socket readable
//!              \                      /
//!               v                    v           under QEMU's big lock
//!               entry ─────────► Card ─────────► Client ═══ socket ═══► the card
//!                                  │                           DMA by message ◄══╝
//!                                  v
//!                                 Host: guest's memory, messages to the user
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`ffi`] | the C interface, a mirror of `hw/net/tigon2/client.h` |
//! | [`card`] | the card as the guest's machine uses it, and the handling of its failure |
//! | [`host`] | QEMU behind a safe trait |
//! | [`watch`] | when QEMU's main loop reads the card's socket |
//! | [`turns`] | one access at a time, also for nested accesses |
//! | [`entry`] | the entry points that QEMU calls |
//!
//! A vCPU waits for a read (10 to 14 us) and never for a write. While it waits, it serves the
//! card's DMA requests, so the two sides cannot deadlock.

// The exceptions are the C interface and the module behind it.
#![deny(unsafe_code)]

pub mod card;
#[allow(unsafe_code)]
pub mod entry;
#[allow(unsafe_code)]
pub mod ffi;
#[allow(unsafe_code)]
pub mod host;
pub mod turns;
pub mod watch;
