//! The send path: ring, doorbell, counters, and readers of the frames.
//!
//! [`super::Nic`] and a separate [`super::SendQueue`] share it; they differ in their access to the
//! card.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use host_interface::bar;
use host_interface::extension::Extension;

use super::bar::Bar;
use super::counters::Counts;
use super::drops::DropReason;
use super::error::NicError;
use super::send::{InPlace, SendOptions, SendRing};
use crate::dma::DmaMemory;
use crate::live::{Direction, Readers};
use crate::transport::TransportError;

pub(super) struct SendPath {
    pub ring: SendRing,
    counts: Arc<Counts>,
    readers: Readers,
    /// Whether the consumer index is read from the firmware's word on the card.
    by_register: bool,
}

impl SendPath {
    pub fn new(ring: SendRing, counts: Arc<Counts>, readers: Readers) -> Self {
        Self {
            ring,
            counts,
            readers,
            by_register: false,
        }
    }

    /// Selects where the consumer index is read from now on.
    pub fn read_by_register(&mut self, on: bool) {
        self.by_register = on;
    }

    pub fn queue(
        &mut self,
        fragments: &[IoSlice<'_>],
        options: SendOptions,
    ) -> Result<bool, NicError> {
        let queued = self.ring.queue(fragments, options)?;
        if queued {
            let bytes = fragments.iter().map(|fragment| fragment.len()).sum();
            self.counts.sent.frame(bytes);
            self.readers.offer(Direction::Out, || {
                let bytes = fragments.iter().flat_map(|fragment| fragment.iter());
                Some(bytes.copied().collect())
            });
        }
        Ok(queued)
    }

    pub fn queue_in_place(
        &mut self,
        header: &[u8],
        rest: &[InPlace<'_>],
        options: SendOptions,
    ) -> Result<bool, NicError> {
        let queued = self.ring.queue_in_place(header, rest, options)?;
        if queued {
            let bytes: usize = rest.iter().map(|part| part.bytes).sum();
            self.counts.sent.frame(header.len() + bytes);
            self.readers.offer(Direction::Out, || {
                let mut frame = header.to_vec();
                for part in rest {
                    let start = frame.len();
                    frame.resize(start + part.bytes, 0);
                    let place = frame.get_mut(start..)?;
                    part.memory.read_bytes(part.offset, place).ok()?;
                }
                Some(frame)
            });
        }
        Ok(queued)
    }

    pub fn queue_with(
        &mut self,
        fill: impl FnOnce(&DmaMemory, usize, usize) -> io::Result<(usize, SendOptions)>,
    ) -> Result<Option<usize>, NicError> {
        let mut place = 0;
        let queued = self.ring.queue_with(|memory, offset, room| {
            place = offset;
            fill(memory, offset, room)
        })?;
        if let Some(bytes) = queued.filter(|bytes| *bytes > 0) {
            self.counts.sent.frame(bytes);
            self.readers.offer(Direction::Out, || {
                let mut frame = vec![0; bytes];
                self.ring.memory().read_bytes(place, &mut frame).ok()?;
                Some(frame)
            });
        }
        Ok(queued)
    }

    /// Notifies the card of queued frames, with one mailbox write.
    pub fn submit(&mut self, card: &mut impl Bar) -> Result<(), TransportError> {
        if let Some(producer) = self.ring.ring_due() {
            card.write(bar::MAILBOX_SEND_PRODUCER, producer)?;
            self.counts.sent.ring();
        }
        card.flush()
    }

    /// Takes back the BDs that the card has sent.
    pub fn reclaim(&mut self, card: &mut impl Bar) -> Result<u32, NicError> {
        if self.ring.outstanding() == 0 {
            return Ok(0);
        }
        let reported = if self.by_register {
            card.read(Extension::SendConsumer.bar_offset())?
        } else {
            self.ring.reported()?
        };
        self.ring.reclaim(reported)
    }

    /// Whether the card has reported BDs that were not taken back. Does not read a word on the
    /// card.
    pub fn has_sent(&self) -> Result<bool, NicError> {
        Ok(self.ring.outstanding() > 0 && self.ring.has_news()?)
    }

    /// How long the card has made no progress while it had work.
    pub fn waiting_for(&self) -> Duration {
        self.ring.waiting_for()
    }

    /// Counts frames that the user could not take or send.
    pub fn count_drops(&self, reason: DropReason, frames: u64) {
        self.counts.drop_frames(reason, frames);
    }
}
