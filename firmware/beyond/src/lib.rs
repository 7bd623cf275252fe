//! The firmware on more than two CPUs.
//!
//! Paper, section 7, on a board [beyond the chip](tigon2_chip::beyond); see docs/beyond.md. The
//! handlers are the two-CPU firmware's. A *group* of CPUs works on each side: CPU A or CPU B, and
//! further CPUs, the *workers*. The side's state lies in SRAM behind a [`lock`], so a handler
//! has it alone. Filling descriptors, the most expensive part of a frame, needs no lock:
//!
//! ```text
//! CPU A  [claim 0-15]  [fill 0-15 .......]  [settle, claim 32-47]  [fill ...
//! CPU C                [claim 16-31]  [fill 16-31 .......]  [settle ...
//!         side A's lock ^^^^^^^^^^^^                        ^^^^^^
//! ```
//!
//! The channel sees descriptors in order, whoever finishes first: [`channel`]. The two-CPU
//! firmware's handler takes all frames that are not simple, under the lock.
//!
//! | partition | variant | who claims |
//! | --- | --- | --- |
//! | by handler | `by-handler` | CPU C receives, CPU D sends; CPU A and CPU B do all else |
//! | by packet | `by-packet` | every CPU of a group; CPU A and CPU B do all else, too |
//!
//! | module | what |
//! | --- | --- |
//! | [`partition`] | which CPU has which events |
//! | [`lock`] | one CPU at a time |
//! | [`channel`] | a DMA channel whose descriptors several CPUs fill |
//! | [`bus`] | the chip with such channels |
//! | [`group`] | a side, its lock and the events of its CPUs |
//! | `events`, `start` (chip only) | the event table, reset and dispatch loops |
#![no_std]
#![cfg_attr(target_arch = "mips", feature(asm_experimental_arch))]

pub mod bus;
pub mod channel;
#[cfg(target_arch = "mips")]
mod events;
pub mod group;
pub mod lock;
pub mod partition;
#[cfg(target_arch = "mips")]
mod start;
