//! Queues that threads of their own serve.
//!
//! [`super::Nic::split`] cuts a driver into control and its queues. Each queue has its
//! memory, its doorbells and its wake-up, and no lock is taken to send or to receive.
//!
//! ```text
//!  Nic ──split──> Control       commands, events, statistics, link
//!                 SendQueue     send ring, slots         mailbox 2
//!                 ReceiveQueue  return and buffer rings  mailboxes 3, 4, 5, return consumer
//!      <──join───
//! ```

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::drops::DropReason;
use super::error::NicError;
use super::frame::{Received, ReceivedFrame};
use super::line::Waiter;
use super::receive_path::ReceivePath;
use super::rings::Ring;
use super::send::SendOptions;
use super::send_path::SendPath;
use crate::dma::DmaMemory;
use crate::transport::{Port, Vector};

/// The queue of frames that the card sends.
pub struct SendQueue {
    pub(super) path: SendPath,
    port: Box<dyn Port>,
    pub(super) waiter: Waiter,
}

/// The queue of frames that the card has received.
///
/// A queue that is dropped leaves its buffers where they are: the card may write to them
/// until control halts it, and the transport keeps the memory for it that long.
pub struct ReceiveQueue {
    pub(super) path: ReceivePath,
    port: Box<dyn Port>,
    pub(super) waiter: Waiter,
}

impl SendQueue {
    pub(super) fn new(path: SendPath, port: Box<dyn Port>, waiter: Waiter) -> Self {
        Self { path, port, waiter }
    }

    /// Send BDs that are free now.
    pub fn room(&self) -> u32 {
        self.path.ring.free()
    }

    /// Send BDs that are with the card.
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

    /// Lets `fill` put a frame straight into the next slot, as
    /// [`super::Nic::queue_with_options`].
    ///
    /// # Errors
    /// What `fill` says, as [`NicError::Io`]; [`NicError::BadFrame`].
    pub fn queue_with(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<(usize, SendOptions)>,
    ) -> Result<Option<usize>, NicError> {
        self.path.queue_with(fill)
    }

    /// Tells the card of everything that was queued, with one mailbox write.
    ///
    /// # Errors
    /// What the transport says.
    pub fn submit(&mut self) -> Result<(), NicError> {
        Ok(self.path.submit(&mut self.port)?)
    }

    /// Takes back the BDs that the card has sent; gives how many.
    ///
    /// # Errors
    /// [`NicError::BadIndex`] if the card reports an index that cannot be; what the
    /// transport says.
    pub fn reclaim(&mut self) -> Result<u32, NicError> {
        self.path.reclaim(&mut self.port)
    }

    /// For how long the card has got on with nothing, while it had work: what
    /// [`super::Control::watch`] judges.
    pub fn waiting_for(&self) -> Duration {
        self.path.waiting_for()
    }

    /// Starts the clock of [`SendQueue::waiting_for`] again: the card had no link.
    pub fn excuse(&mut self) {
        self.path.ring.excuse();
    }

    /// Counts frames that its user could not send.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.path.count_drops(reason, frames);
    }

    /// The interrupt that it waits for.
    pub fn vector(&self) -> Vector {
        self.waiter.vector()
    }

    /// Waits until the card may have sent something, at most for `timeout`; true if it may.
    /// Call [`SendQueue::reclaim`] after it.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        let path = &self.path;
        let has_work = || path.has_sent();
        self.waiter.wait(&mut *self.port, timeout, has_work)
    }

    /// The descriptors to poll next to others, before [`SendQueue::wait`] with no time: it
    /// may have something when either is readable. None if the engine runs in process.
    pub fn descriptors(&self) -> Option<[BorrowedFd<'_>; 2]> {
        self.waiter.descriptors(&*self.port)
    }
}

impl ReceiveQueue {
    pub(super) fn new(path: ReceivePath, port: Box<dyn Port>, waiter: Waiter) -> Self {
        Self { path, port, waiter }
    }

    /// Receive buffers that are with the card.
    pub fn outstanding(&self) -> usize {
        self.path.rings.outstanding()
    }

    /// Receive buffers of one ring that are with the card.
    pub fn outstanding_in(&self, ring: Ring) -> usize {
        self.path.rings.outstanding_in(ring)
    }

    /// Hands at most `budget` received frames to `deliver`, in order, as
    /// [`super::Nic::receive`].
    ///
    /// # Errors
    /// [`NicError::BadIndex`] or [`NicError::Nonsense`] if the card reports what cannot be,
    /// what `deliver` says, or what the transport says.
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

    /// Copies at most `budget` received frames out, with all that the card says about each.
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

    /// Counts frames that its user could not take.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.path.count_drops(reason, frames);
    }

    /// The interrupt that it waits for.
    pub fn vector(&self) -> Vector {
        self.waiter.vector()
    }

    /// Waits until frames may be there, at most for `timeout`; true if they may. Call
    /// [`ReceiveQueue::receive`] after it, until there are no more.
    ///
    /// # Errors
    /// What the transport says.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, NicError> {
        let path = &self.path;
        let has_work = || Ok(path.rings.available()? > 0);
        self.waiter.wait(&mut *self.port, timeout, has_work)
    }

    /// The descriptors to poll next to others, before [`ReceiveQueue::wait`] with no time: it
    /// may have something when either is readable. None if the engine runs in process.
    pub fn descriptors(&self) -> Option<[BorrowedFd<'_>; 2]> {
        self.waiter.descriptors(&*self.port)
    }
}
