//! Receiving: the rings, their doorbells, what is counted and shown of the frames.
//!
//! The same for a [`super::Nic`] and for a [`super::ReceiveQueue`] of its own; they differ in
//! the way to the card.

use std::sync::Arc;

use host_interface::gencom::Gencom;

use super::bar::Bar;
use super::config::GiveBack;
use super::counters::Counts;
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

    /// Hands at most `budget` frames to `deliver` and tells the card of what it has back.
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
                self.counts.received.frame(bytes);
            }
        }
        if taken > 0 {
            self.tell(card, taken == available)?;
        }
        Ok(taken)
    }

    /// Tells the card which buffers and return BDs it has back.
    fn tell(&mut self, card: &mut impl Bar, all: bool) -> Result<(), TransportError> {
        self.tell_buffers(card, all && self.give_back == GiveBack::EachTime)?;
        if let Some(consumer) = self.rings.tell_due(all) {
            card.write(Gencom::ReceiveReturnConsumer.bar_offset(), consumer)?;
        }
        Ok(())
    }

    /// Tells the card of the buffers that wait for it, if there are enough of them.
    pub fn tell_buffers(&mut self, card: &mut impl Bar, all: bool) -> Result<(), TransportError> {
        for (mailbox, producer) in self.rings.rings_due(all) {
            card.write(mailbox, producer)?;
        }
        Ok(())
    }

    /// Counts frames that the user of the driver could not take or give.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.counts.drop_frames(reason, frames);
    }
}
