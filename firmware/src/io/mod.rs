//! Layer 1: the resources that a path works with.
//!
//! A path's function takes its own state and its CPU's io, [`IoA`] or [`IoB`]: the chip, the CPU's
//! DMA ring, deadlines, and the ways to the host and to the other CPU.
//!
//! | module | what |
//! | --- | --- |
//! | [`a`], [`b`] | what each CPU has |
//! | [`note`] | what transfers are for, in one table for each channel |
//! | [`states`] | state words of transfers |
//! | [`bd_ring`] | BDs on their way from the host |
//! | [`buffer_ring`] | the rings of empty buffers: which they are, and where |
//! | [`deadline`] | the period of housekeeping, and slots that paths arm |
//! | [`interrupt`] | interrupts to the host |
//! | [`outbox`] | events that the host is to get |
//! | [`filter`] | which frames are for this card |
//! | [`loadable`] | handlers that are loaded at run time |
//! | [`direct`] | transfers without the assist |
//! | [`recovery`] | which CPU recovers a DMA channel |
//! | [`transmitter`] | `R[200]`, which both CPUs want to set |

pub mod a;
pub mod b;
pub mod bd_ring;
pub mod buffer_ring;
pub mod deadline;
pub mod direct;
pub mod filter;
pub mod interrupt;
pub mod loadable;
pub mod note;
pub mod outbox;
pub mod recovery;
pub mod states;
pub mod transmitter;

pub use a::IoA;
pub use b::IoB;

/// No room, or not finished yet: nothing was queued, and the caller tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// A transfer that could not be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;
