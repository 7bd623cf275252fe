//! The firmware on more than two CPUs.
//!
//! Paper, section 7, on a board [beyond the chip](tigon2_chip::beyond); docs/beyond.md has
//! the whole. The handlers are the two-CPU firmware's. Each side, that of CPU A and that of
//! CPU B, is worked on by a *group* of CPUs: its own and further ones, the *workers*. The
//! side's state lies in SRAM behind a [lock](lock), so a handler is alone with it; what costs
//! most of a frame, filling descriptors, is done without:
//!
//! ```text
//! CPU A  [claim 0-15]  [fill 0-15 .......]  [settle, claim 32-47]  [fill ...
//! CPU C                [claim 16-31]  [fill 16-31 .......]  [settle ...
//!         side A's lock ^^^^^^^^^^^^                        ^^^^^^
//! ```
//!
//! The channel sees descriptors in order, whoever is done first: [`channel`]. Frames that are
//! not plain are the two-CPU firmware's handler's, which runs under the lock.
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
