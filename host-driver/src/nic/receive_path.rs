//! The receive path: rings, doorbells, counters, and readers of the frames.
//!
//! [`super::Nic`] and a separate [`super::ReceiveQueue`] share it; they differ in their access to
//! the card.

use std::sync::Arc;

use super::bar::Bar;
use super::config::GiveBack;
use super::counters::{Counts, QueueCounts};
use super::drops::DropReason;
use super::error::NicError;
use super::frame::ReceivedFrame;
use super::receive::ReceiveRings;
use crate::live::{Direction, Readers};
use crate::transport::TransportError;

pub(super) struct ReceivePath {
    pub rings: ReceiveRings,
    counts: Arc<Counts>,
    readers: Readers,
    give_back: GiveBack,
}

impl ReceivePath {
    pub fn new(
        rings: ReceiveRings,
        counts: Arc<Counts>,
        readers: Readers,
        give_back: GiveBack,
    ) -> Self {
        Self {
            rings,
            counts,
            readers,
            give_back,
        }
    }

    /// Returns the rings, when receiving has ended.
    pub fn into_rings(self) -> ReceiveRings {
        self.rings
    }

    /// Passes at most `budget` frames to `deliver` and reports returned buffers to the card.
    pub fn receive(
        &mut self,
        card: &mut impl Bar,
        budget: u32,
        mut deliver: impl FnMut(ReceivedFrame<'_>) -> Result<(), NicError>,
    ) -> Result<u32, NicError> {
        let available = self.rings.available()?;
        let taken = available.min(budget);
        for _ in 0..taken {
            let readers = &self.readers;
            let mut deliver = |frame: ReceivedFrame<'_>| {
                readers.offer(Direction::In, || frame.to_vec().ok());
                deliver(frame)
            };
            let bytes = self.rings.take(&self.counts, &mut deliver)?;
            if bytes > 0 {
                self.counted().frame(bytes);
            }
        }
        if taken > 0 {
            self.report(card, taken == available)?;
        }
        self.note(available)?;
        Ok(taken)
    }

    /// Reports returned buffers and return BDs to the card.
    fn report(&mut self, card: &mut impl Bar, all: bool) -> Result<(), NicError> {
        self.publish_buffers(card, all && self.give_back == GiveBack::EachTime)?;
        if let Some((word, value)) = self.rings.publish_due(all)? {
            card.write(word, value)?;
        }
        Ok(())
    }

    /// Reports what was taken to the card, and enables the interrupt of the queue's next frame.
    pub fn rearm(&mut self, card: &mut impl Bar) -> Result<(), NicError> {
        if let Some((mailbox, word)) = self.rings.rearm_due()? {
            card.write(mailbox, word)?;
            self.note(0)?;
        }
        Ok(())
    }

    /// This queue's counters.
    fn counted(&self) -> &QueueCounts {
        counted(&self.counts, self.rings.queue_number())
    }

    /// Notes what was found, for [`super::Control::queue_reports`].
    fn note(&self, found: u32) -> Result<(), NicError> {
        if self.rings.queue_number().is_some() {
            let polled = self.rings.is_polled()?;
            self.counted().note(found, self.rings.outstanding(), polled);
        }
        Ok(())
    }

    /// Notes which CPU the queue's thread is bound to.
    pub fn bind(&self, cpu: u32) {
        self.counted().bind(cpu);
    }

    /// Says that the queue is in somebody's hands, until that is dropped.
    pub fn presence(&self) -> Presence {
        self.counted().serve(true);
        Presence {
            counts: self.counts.clone(),
            queue: self.rings.queue_number(),
        }
    }

    /// Reports returned buffers to the card, if there are enough of them.
    pub fn publish_buffers(
        &mut self,
        card: &mut impl Bar,
        all: bool,
    ) -> Result<(), TransportError> {
        for (mailbox, producer) in self.rings.rings_due(all) {
            card.write(mailbox, producer)?;
        }
        Ok(())
    }

    /// Counts frames that the user could not take or send.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.counts.drop_frames(reason, frames);
    }
}

/// A queue that somebody serves.
pub(super) struct Presence {
    counts: Arc<Counts>,
    queue: Option<u8>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        counted(&self.counts, self.queue).serve(false);
    }
}

/// What is counted of a queue; classic mode has one.
fn counted(counts: &Counts, queue: Option<u8>) -> &QueueCounts {
    let [classic, ..] = &counts.received;
    let number = usize::from(queue.unwrap_or_default());
    counts.received.get(number).unwrap_or(classic)
}
