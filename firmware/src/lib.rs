//! The firmware of tigon-rs, as handlers of events.
//!
//! The card's CPU reads its event register, takes the most urgent bit and runs that
//! event's handler to its end. There are no interrupts, no heap and no locks on the packet
//! path. Which events there are is declared once, in [`events`].
//!
//! Everything is generic over [`tigon2_hal::Bus`]: on the chip the handlers are plain
//! loads and stores in CPU A's scratch pad, on a host they run against the hardware model.
//!
//! | module | what |
//! | --- | --- |
//! | `start` (chip only) | reset, dispatch loop, panic |
//! | [`boot`] | from reset to the dispatch loop |
//! | [`events`] | the table of events and handlers |
//! | [`mailbox`] | the host's doorbells |
//! | [`send`] | host to wire |
//! | [`receive`] | wire to host |
//! | [`bd_ring`] | BDs on their way from the host |
//! | [`dma`] | finished transfers |
//! | [`command`], [`host_events`], [`interrupt`] | the host's commands, what the host is told |
//! | [`link`], [`phy`], [`filter`] | the MAC's link and address filter |
//! | [`timer`] | coalescing deadlines, housekeeping |
//! | [`statistics`], [`drops`], [`trace`], [`fatal`] | counts, records and ends |
//! | [`own`] | counts for a handler that is changed |
//! | [`direct`] | transfers without the assist |
//! | `lanes` (feature `lanes`) | the packet path on more than two CPUs, for a board beyond the chip |
//! | [`layout`], [`config`] | where things are in SRAM, what the host configured |
//!
//! In the parallel variant each CPU has its side and its own dispatch loop; in the
//! uniprocessor variant CPU A has both sides and CPU B stays halted. Either does what vendor
//! firmware leaves to CPU B (hardware reference, section 15) by other means: coalescing by
//! the timer events, and the DMA rings by the chip's assist engines.
#![no_std]
#![cfg_attr(target_arch = "mips", feature(asm_experimental_arch))]
// With lanes the handlers of frames are theirs, and those of two CPUs are left out.
#![cfg_attr(feature = "lanes", allow(dead_code, unused_imports))]

pub mod bd_ring;
pub mod boot;
pub mod command;
pub mod config;
pub mod direct;
pub mod dma;
pub mod doorbell;
pub mod drops;
pub mod events;
pub mod fatal;
pub mod filter;
pub mod host_events;
pub mod interrupt;
#[cfg(feature = "lanes")]
pub mod lanes;
pub mod layout;
pub mod link;
mod log;
pub mod mailbox;
pub mod own;
pub mod phy;
pub mod question;
pub mod receive;
pub mod refill;
pub mod send;
pub mod send_index;
pub mod shared;
mod side_a;
mod side_b;
#[cfg(target_arch = "mips")]
mod start;
pub mod statistics;
pub mod timer;
pub mod trace;

pub use side_a::SideA;
pub use side_b::SideB;
