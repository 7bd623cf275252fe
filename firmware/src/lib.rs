//! The firmware of tigon-rs, as handlers of events.
//!
//! The card's CPU reads its event register, takes the most urgent bit and runs that
//! event's handler to its end. There are no interrupts, no heap and no locks on the packet
//! path. Which events there are is declared once, in [`events`].
//!
//! Everything is generic over [`tigon2_hal::Bus`]: on the chip the handlers are plain
//! loads and stores in CPU A's scratch pad, on a host they run against the hardware model.
//!
//! The sources stand on floors. An import goes down, never up, and rooms of one floor do not
//! know each other; `tests/floors.rs` holds them to it.
//!
//! | floor | module | what |
//! | --- | --- | --- |
//! | top | `start` (chip only) | reset, dispatch loop, panic |
//! | | [`boot`] | from reset to the dispatch loop |
//! | | [`events`] | the table of events and handlers |
//! | 5 | [`sides`] | the state of each CPU, and what joins paths |
//! | 4 | [`path`] | the paths of frames |
//! | 3 | [`control`] | the link, events to the host |
//! | 2 | [`record`] | log, trace, counts, the end |
//! | 1 | [`io`] | what a path works with: DMA rings, deadlines, interrupts |
//! | 0 | [`memory`] | layout, words that both CPUs see, configuration |
//!
//! In the parallel variant each CPU has its side and its own dispatch loop; in the
//! uniprocessor variant CPU A has both sides and CPU B stays halted. Either does what vendor
//! firmware leaves to CPU B (hardware reference, section 15) by other means: coalescing by
//! the timer events, and the DMA rings by the chip's assist engines.
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
