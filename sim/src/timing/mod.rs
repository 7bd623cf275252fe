//! The cycle model of the board: the cost of each access, and contention.
//!
//! It models the machine of the paper: two in-order CPUs, two DMA channels and both sides of the
//! MAC share one SRAM port; both DMA channels share one PCI bus.
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
//! Within one cycle the order is: timers, DMA and PCI, MAC, one grant of the SRAM port, CPU A, CPU
//! B, and on a board beyond the chip the other CPUs in their order. A CPU's request in one cycle
//! is granted in the next one at the earliest. Functional effects happen when a load, store or
//! register access issues, when a DMA transfer completes, when a frame starts to leave and when
//! one has arrived. While the read channel brings bytes of the frame that leaves, both move access by
//! access.
//!
//! | module | what |
//! | --- | --- |
//! | [`parameters`] | the parameters, by profile, from the board file |
//! | [`variation`] | the board file with one parameter changed |
//! | [`port`] | arbitration for the SRAM port |
//! | [`pipeline`] | a CPU between two instructions |
//! | [`counts`] | how a CPU's cycles were spent |
//! | [`dma`] | both channels and the PCI bus |
//! | [`mac`] | both sides of the MAC |
//! | `fine`, `timed` | times in fractions of cycles; all engines together |
//! | `flow` | consecutive cycles in which both only move data |

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

pub use dma::HostAccess;
pub use fine::Fine;
pub(crate) use flow::Flowed;
pub use parameters::{BusStalls, Parameters, ProfileError};
pub use timed::Timed;
