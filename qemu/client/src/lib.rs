//! The vfio-user client that QEMU's device `tigon2-vfio-user` loads.
//!
//! QEMU 10.0 has no vfio-user client of its own. The device in the overlay brings
//! what only QEMU can do: configuration space, BAR 0, the pin, the guest's memory;
//! [`vfio_user_nic::Client`] speaks the protocol; this crate joins them:
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
//! | module | what |
//! | --- | --- |
//! | [`ffi`] | the C interface, a mirror of `hw/net/tigon2/client.h` |
//! | [`card`] | the card as the guest's machine uses it, and what happens when it dies |
//! | [`host`] | QEMU behind a safe trait |
//! | [`watch`] | when QEMU's main loop looks at the card's socket |
//! | [`turns`] | one access at a time, also if one comes from within another |
//! | [`entry`] | what QEMU calls |
//!
//! A vCPU waits for a read (10 to 14 us) and never for a write. While it waits, the
//! card's own requests for the guest's memory are served, so neither side can wait for
//! the other in a circle.

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
