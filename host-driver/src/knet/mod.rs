//! Network threads: one for each receive queue, bound to a CPU.
//!
//! "Packet classification in the NIC for improved SMP-based Internet servers" (KNET), section
//! 3. The card has sorted the frames; a thread takes those of its queue and hands them to a
//! [`QueueUser`], whose work for them stays on that CPU.
//!
//! ```text
//!            ┌──────────── more, or deferral is not over ───────────┐
//!            ▼                                                      │
//!   take up to a budget ──► user: each frame ──► user: its own work ┤
//!            ▲                                                      │ nothing, for long enough
//!            └──── interrupt, bell, user's descriptor ◄── sleep ◄── re-arm
//! ```
//!
//! | part | what |
//! | --- | --- |
//! | [`cpus`] | which CPU each thread is bound to |
//! | [`pace`] | budget, deferral, busy polling |
//! | [`send`] | the one send ring for all threads, in turns |
//! | [`stack`], [`neighbours`] | a smoltcp stack for each thread, with one address |
//! | [`files`] | the paper's file server and its clients |
//! | [`threads`] | starting them, looking after them, their ends |
//!
//! Threads share nothing on the receive path: each owns its [`ReceiveQueue`] and its user.
//! Only who sends takes a turn at the send ring.
//!
//! [`ReceiveQueue`]: crate::nic::ReceiveQueue

pub mod cpus;
pub mod files;
pub mod neighbours;
pub mod pace;
pub mod send;
pub mod stack;
mod thread;
pub mod threads;

use std::os::fd::BorrowedFd;
use std::time::Duration;

pub use pace::{Pace, PaceSettings};
pub use send::{SendCosts, SharedSend};
pub use thread::ThreadReport;
pub use threads::{Death, KnetError, Progress, Served, Settings, serve};

use crate::nic::{NicError, ReceivedFrame};

/// What a network thread does with its queue's frames.
pub trait QueueUser: Send {
    /// Takes a received frame.
    ///
    /// # Errors
    /// What ends this thread; the others go on.
    fn frame(&mut self, frame: ReceivedFrame<'_>) -> Result<(), NicError>;

    /// Does what else there is to do, such as sending, a bounded part of it; called after
    /// each batch and when there was none. Gives what it did.
    ///
    /// # Errors
    /// What ends this thread; the others go on.
    fn work(&mut self, send: &SharedSend) -> Result<Work, NicError> {
        let _ = send;
        Ok(Work::None)
    }

    /// Time until there is work without a frame or its descriptor; none if there is none.
    fn due(&mut self) -> Option<Duration> {
        None
    }

    /// Is readable when there is work besides frames.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// What a [`QueueUser`] did besides taking frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// There was nothing to do.
    None,
    /// So many frames were sent, or steps done.
    Done(u32),
    /// There is something, but the send ring has no room for it.
    NoRoom,
}
