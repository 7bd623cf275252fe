//! The tigon-rs firmware: handlers of hardware events.
//!
//! The CPU reads its event register, takes the bit with the highest priority and runs that event's
//! handler to completion. There are no interrupts, no heap and no locks on the packet path.
//! [`events`] declares each event once.
//!
//! All code is generic over [`tigon2_hal::Bus`]: on the chip the handlers are plain loads and
//! stores in CPU A's scratch pad, on a host they run against the hardware model.
//!
//! The sources are organised in layers. Imports point down, never up, and modules of one layer do
//! not import each other; `tests/layers.rs` checks this.
//!
//! | layer | module | what |
//! | --- | --- | --- |
//! | top | `start` (chip only) | reset, dispatch loop, panic |
//! | | [`boot`] | from reset to the dispatch loop |
//! | | [`events`] | the table of events and handlers |
//! | 5 | [`sides`] | the state of each CPU, and what joins paths |
//! | 4 | [`path`] | the paths of frames |
//! | 3 | [`control`] | the link, events to the host |
//! | 2 | [`record`] | log, trace, counts, fatal errors |
//! | 1 | [`io`] | the resources of a path: DMA rings, deadlines, interrupts |
//! | 0 | [`memory`] | layout, words that both CPUs see, configuration |
//!
//! In the parallel variant each CPU has its own side and its own dispatch loop; in the
//! uniprocessor variant CPU A has both sides and CPU B stays halted. Vendor firmware gives CPU B
//! two tasks (hardware reference, section 15) that this firmware does otherwise: timer events
//! drive coalescing, and the chip's assist engines run the DMA rings.
#![no_std]
#![cfg_attr(target_arch = "mips", feature(asm_experimental_arch))]

pub mod boot;
pub mod control;
pub mod events;
pub mod io;
pub mod memory;
pub mod path;
pub mod record;
pub mod sides;
#[cfg(target_arch = "mips")]
pub mod start;

pub use sides::{SideA, SideB};
