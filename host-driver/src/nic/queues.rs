//! Queues with their own threads.
//!
//! [`super::Nic::split`] splits a driver into control and its queues. Each queue has its own
//! memory, doorbells and wake-up, and sending and receiving take no lock.
//!
//! ```text
//!  Nic ──split──> Control       commands, events, statistics, link
//!                 SendQueue     send ring, slots         mailbox 2
//!                 ReceiveQueue  return and buffer rings  mailboxes 3, 4, 5, return consumer
//!      <──join───
//! ```
//!
//! [`super::Nic::open_queues`] does the same in queue mode, with several receive queues
//! ([`mod@open`]).

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::Duration;

mod block;
pub(super) mod mark;
mod open;
mod report;
mod settings;

pub use block::QueueCounters;
pub(super) use open::QueueMode;
pub use open::QueueParts;
pub use report::{QueueReport, skew};
pub use settings::{Classification, QueueSettings};

use super::drops::DropReason;
use super::error::NicError;
use super::frame::{Received, ReceivedFrame};
use super::line::Waiter;
use super::receive_path::{Presence, ReceivePath};
use super::rings::Ring;
use super::send::SendOptions;
use super::send_path::SendPath;
use crate::dma::DmaMemory;
use crate::transport::{Port, Vector};

/// The queue of frames to send.
pub struct SendQueue {
    pub(super) path: SendPath,
    port: Box<dyn Port>,
    pub(super) waiter: Waiter,
}

/// The queue of received frames.
///
/// Dropping a queue leaves its buffers in place: the card may write to them until control halts
/// it, and the transport keeps the memory that long.
pub struct ReceiveQueue {
    pub(super) path: ReceivePath,
    port: Box<dyn Port>,
    pub(super) waiter: Waiter,
    _presence: Presence,
}

impl SendQueue {
    pub(super) fn new(path: SendPath, port: Box<dyn Port>, waiter: Waiter) -> Self {
        Self { path, port, waiter }
    }

    /// Send BDs that are free now.
    pub fn room(&self) -> u32 {
        self.path.ring.free()
    }

    /// Send BDs that the card has.
    pub fn outstanding(&self) -> u32 {
        self.path.ring.outstanding()
    }

    /// Queues a frame of one or more fragments, as [`super::Nic::queue_as`].
    ///
    /// # Errors
    /// [`NicError::BadFrame`] for a frame that cannot be sent.
    pub fn queue(
        &mut self,
        fragments: &[IoSlice<'_>],
        options: SendOptions,
    ) -> Result<bool, NicError> {
        self.path.queue(fragments, options)
    }

    /// Makes `fill` write a frame straight into the next slot, as
    /// [`super::Nic::queue_with_options`].
    ///
    /// # Errors
    /// The errors of `fill`, as [`NicError::Io`]; [`NicError::BadFrame`].
    pub fn queue_with(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<(usize, SendOptions)>,
    ) -> Result<Option<usize>, NicError> {
        self.path.queue_with(fill)
    }

    /// Notifies the card of everything that was queued, with one mailbox write.
    ///
    /// # Errors
    /// What the transport says.
    pub fn submit(&mut self) -> Result<(), NicError> {
        Ok(self.path.submit(&mut self.port)?)
    }

    /// Takes back the BDs that the card has sent; returns their number.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the card reports an invalid index; the transport's errors.
    pub fn reclaim(&mut self) -> Result<u32, NicError> {
        self.path.reclaim(&mut self.port)
    }

    /// How long the card has made no progress while it had work, for [`super::Control::watch`].
    pub fn waiting_for(&self) -> Duration {
        self.path.waiting_for()
    }

    /// Restarts the clock of [`SendQueue::waiting_for`]: the card had no link.
    pub fn excuse(&mut self) {
        self.path.ring.excuse();
    }

    /// Counts frames that the user could not send.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.path.count_drops(reason, frames);
    }

    /// Its interrupt.
    pub fn vector(&self) -> Vector {
        self.waiter.vector()
    }

    /// Waits until the card may have sent something, at most for `timeout`; true if it may have.
    /// Call [`SendQueue::reclaim`] afterwards.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        let path = &self.path;
        let has_work = || path.has_sent();
        self.waiter.wait(&mut *self.port, timeout, has_work)
    }

    /// The descriptors to poll with others, before [`SendQueue::wait`] with a zero timeout: there
    /// may be work when either is readable. None if the engine runs in process.
    pub fn descriptors(&self) -> Option<[BorrowedFd<'_>; 2]> {
        self.waiter.descriptors(&*self.port)
    }
}

impl ReceiveQueue {
    pub(super) fn new(path: ReceivePath, port: Box<dyn Port>, waiter: Waiter) -> Self {
        let _presence = path.presence();
        Self {
            path,
            port,
            waiter,
            _presence,
        }
    }

    /// Receive buffers that the card has.
    pub fn outstanding(&self) -> usize {
        self.path.rings.outstanding()
    }

    /// Receive buffers of one ring that the card has.
    pub fn outstanding_in(&self, ring: Ring) -> usize {
        self.path.rings.outstanding_in(ring)
    }

    /// Passes at most `budget` received frames to `deliver`, in order, as [`super::Nic::receive`].
    ///
    /// # Errors
    /// [`NicError::BadIndex`] or [`NicError::Nonsense`] if the card reports invalid values; the
    /// errors of `deliver` and of the transport.
    pub fn receive(
        &mut self,
        budget: u32,
        deliver: impl FnMut(ReceivedFrame<'_>) -> Result<(), NicError>,
    ) -> Result<u32, NicError> {
        let taken = self.path.receive(&mut self.port, budget, deliver)?;
        if taken > 0 {
            self.port.flush()?;
        }
        Ok(taken)
    }

    /// Copies at most `budget` received frames, with the card's report about each.
    ///
    /// # Errors
    /// As [`ReceiveQueue::receive`].
    pub fn receive_described(&mut self, budget: u32) -> Result<Vec<Received>, NicError> {
        let mut frames = Vec::new();
        self.receive(budget, |frame| {
            frames.push(frame.to_received()?);
            Ok(())
        })?;
        Ok(frames)
    }

    /// Counts frames that the user could not take.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.path.count_drops(reason, frames);
    }

    /// Its interrupt.
    pub fn vector(&self) -> Vector {
        self.waiter.vector()
    }

    /// The queue's number; 0 in classic mode.
    pub fn number(&self) -> u8 {
        self.path.rings.queue_number().unwrap_or_default()
    }

    /// Whether frames are ready.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the card reports an invalid index.
    pub fn has_frames(&self) -> Result<bool, NicError> {
        Ok(self.path.rings.available()? > 0)
    }

    /// Reports what was taken to the card, and enables the interrupt of the queue's next frame; if
    /// the card already has more, it interrupts at once. [`ReceiveQueue::wait`] does this; call it
    /// to wait for [`ReceiveQueue::descriptors`]. In classic mode it does nothing.
    ///
    /// # Errors
    /// What the transport says.
    pub fn rearm(&mut self) -> Result<(), NicError> {
        self.path.rearm(&mut self.port)?;
        Ok(self.port.flush()?)
    }

    /// Takes the wake-up that one of [`ReceiveQueue::descriptors`] has told of, and
    /// acknowledges the interrupt if it is the line's; true if frames may be there. Unlike
    /// [`ReceiveQueue::wait`] it does not arm the queue, so the card does not interrupt for
    /// the frames that are about to be taken.
    ///
    /// # Errors
    /// What the transport says.
    pub fn woken(&mut self) -> Result<bool, NicError> {
        let path = &self.path;
        let has_work = || Ok(path.rings.available()? > 0);
        self.waiter.wait(&mut *self.port, Duration::ZERO, has_work)
    }

    /// Says which CPU the thread that serves this queue is bound to, for
    /// [`super::Control::queue_reports`].
    pub fn bound_to(&self, cpu: u32) {
        self.path.bind(cpu);
    }

    /// Whether another waiter has taken an interrupt that was this queue's, too, since this was
    /// last asked; the first time it is true in any case. For those who schedule their own
    /// threads beside an engine in this process, where there are no
    /// [`ReceiveQueue::descriptors`]; the queue stays as it is.
    pub fn take_wake_up(&self) -> bool {
        self.waiter.take_bell()
    }

    /// Waits until frames may be ready, at most for `timeout`; true if they may be. Call
    /// [`ReceiveQueue::receive`] afterwards, until there are no more.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        self.rearm()?;
        let path = &self.path;
        let has_work = || Ok(path.rings.available()? > 0);
        self.waiter.wait(&mut *self.port, timeout, has_work)
    }

    /// The descriptors to poll with others, before [`ReceiveQueue::wait`] with a zero timeout:
    /// there may be work when either is readable. None if the engine runs in process.
    pub fn descriptors(&self) -> Option<[BorrowedFd<'_>; 2]> {
        self.waiter.descriptors(&*self.port)
    }
}
