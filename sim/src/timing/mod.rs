//! The cycle model of the board: what each access costs, and who waits for whom.
//!
//! The machine of the paper: two in-order CPUs, two DMA channels and both sides of the MAC
//! share one SRAM port; both DMA channels share one PCI bus.
//!
//! ```text
//!   MAC receive ─┐ 1                         ┌─ DMA read  ─┐
//!   MAC transmit ┤ 2     one access          │             ├─ PCI bus ── host memory
//!   DMA read ────┤ 3 ──► of 8 bytes ──► SRAM └─ DMA write ─┘
//!   DMA write ───┤ 4     a cycle
//!   CPU A ───────┤ 5          CPU: scratch pad, one instruction line of 64 bytes,
//!   CPU B ───────┘ 6               a store buffer
//! ```
//!
//! Within one cycle the order is: timers, DMA and PCI, MAC, one grant of the SRAM port,
//! CPU A, CPU B, and on a board beyond the chip the others in their order. What a CPU asks for in a cycle is granted in the next one at the
//! earliest. Functional effects happen when a load, store or register access issues, when
//! a DMA transfer completes, when a frame starts to leave and when one has arrived.
//!
//! | module | what |
//! | --- | --- |
//! | [`parameters`] | the figures, by profile, from the board file |
//! | [`variation`] | the board file with one figure changed |
//! | [`port`] | who gets the SRAM port |
//! | [`pipeline`] | a CPU between two instructions |
//! | [`counts`] | where a CPU's cycles went |
//! | [`dma`] | both channels and the PCI bus |
//! | [`mac`] | both sides of the MAC |
//! | `fine`, `timed` | times that are no whole cycles; all engines together |
//! | `flow` | cycles in a row in which both only move data |

pub mod counts;
pub mod dma;
mod fine;
mod flow;
#[cfg(test)]
mod flow_tests;
pub mod mac;
pub mod parameters;
pub mod pipeline;
pub mod port;
mod timed;
pub mod variation;

pub use fine::Fine;
pub(crate) use flow::Flowed;
pub use parameters::{Parameters, ProfileError};
pub use timed::Timed;
