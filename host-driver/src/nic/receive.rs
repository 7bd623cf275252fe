//! The standard receive ring and the receive return ring.
//!
//! Every receive buffer has a number; the BD that queues it carries the number as
//! its index, and in its opaque word how many times the buffer has been queued. The
//! card copies both to the return BD. Nothing in a return BD is believed until it
//! fits what was queued, so a buffer that is handed back twice is noticed too.
//!
//! ```text
//!   driver --buffers--> standard ring --> card --frames--> return ring --> driver
//!             ^                                                              |
//!             +--------------------------------------------------------------+
//! ```

use host_interface::bd::{BdFlags, ReceiveBd};
use host_interface::ring;

use super::drops::{DropCounts, DropReason};
use super::error::NicError;
use super::memory::{RETURN_RING, SLOT_BYTES, STANDARD_RING};
use super::send::MIN_FRAME;
use crate::dma::{DmaError, DmaMemory};

/// The first turn of every buffer: a number that is not in memory by chance.
const FIRST_TURN: u16 = 0x5452;

/// A frame that was received, still in its buffer; the buffer goes back to the card
/// when the callback returns.
pub struct ReceivedFrame<'a> {
    memory: &'a DmaMemory,
    offset: usize,
    bytes: usize,
}

impl ReceivedFrame<'_> {
    /// Bytes of the frame, without CRC.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Never true: frames without an Ethernet header are dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies the frame out.
    ///
    /// # Errors
    /// [`DmaError`] is impossible here, because the range was checked; it is passed
    /// on rather than hidden.
    pub fn to_vec(&self) -> Result<Vec<u8>, DmaError> {
        let mut frame = vec![0; self.bytes];
        self.memory.read_bytes(self.offset, &mut frame)?;
        Ok(frame)
    }

    /// The memory, offset and length of the frame, to write it somewhere without a
    /// copy in between.
    #[must_use]
    pub fn place(&self) -> (&DmaMemory, usize, usize) {
        (self.memory, self.offset, self.bytes)
    }
}

pub(super) struct ReceiveRings {
    buffers: u16,
    largest: usize,
    /// Where the next BD goes in the standard ring.
    standard_producer: u32,
    rung: u32,
    /// For each buffer its turn, and whether it is with the card.
    queued: Vec<(u16, bool)>,
    /// The next return BD to look at.
    consumer: u32,
    /// What the card has been told.
    told: u32,
    /// Return BDs that fit no queued buffer.
    nonsense: u32,
}

impl ReceiveRings {
    pub fn new(buffers: u16, largest: usize) -> Self {
        let buffers = buffers.clamp(1, ring::STANDARD_ENTRIES as u16 - 1);
        Self {
            buffers,
            largest: largest.min(SLOT_BYTES),
            standard_producer: 0,
            rung: 0,
            queued: vec![(FIRST_TURN, false); usize::from(buffers)],
            consumer: 0,
            told: 0,
            nonsense: 0,
        }
    }

    /// Buffers that the card has.
    pub fn outstanding(&self) -> usize {
        self.queued
            .iter()
            .filter(|(_, with_card)| *with_card)
            .count()
    }

    /// Queues every buffer that is not with the card.
    pub fn fill(&mut self, control: &DmaMemory, receive: &DmaMemory) -> Result<(), NicError> {
        for buffer in 0..self.buffers {
            if !self.is_queued(buffer) {
                self.queue(control, receive, buffer)?;
            }
        }
        Ok(())
    }

    fn is_queued(&self, buffer: u16) -> bool {
        let state = self.queued.get(usize::from(buffer));
        state.is_some_and(|(_, with_card)| *with_card)
    }

    fn queue(
        &mut self,
        control: &DmaMemory,
        receive: &DmaMemory,
        buffer: u16,
    ) -> Result<(), NicError> {
        let Some((turn, with_card)) = self.queued.get_mut(usize::from(buffer)) else {
            return Ok(());
        };
        *turn = turn.wrapping_add(1);
        *with_card = true;
        let address = receive.iova() + u64::from(buffer) * SLOT_BYTES as u64;
        let opaque = u32::from(*turn) << 16 | u32::from(buffer);
        let length = self.largest as u16;
        let bd = ReceiveBd::new(address, length, BdFlags::new(), buffer, opaque);
        let place = STANDARD_RING + self.standard_producer as usize * 32;
        control.write_words(place, &bd.words())?;
        self.standard_producer = ring::advance(self.standard_producer, 1, ring::STANDARD_ENTRIES);
        Ok(())
    }

    /// The standard producer index to ring with, once enough buffers are waiting to
    /// be told of (or any, if `all`).
    pub fn ring_due(&mut self, all: bool) -> Option<u32> {
        let waiting = ring::used(self.standard_producer, self.rung, ring::STANDARD_ENTRIES);
        let enough = if all {
            1
        } else {
            (u32::from(self.buffers) / 8).max(1)
        };
        (waiting >= enough).then(|| {
            self.rung = self.standard_producer;
            self.standard_producer
        })
    }

    /// The return consumer index to tell the card, once it has moved far enough (or
    /// at all, if `all`).
    pub fn tell_due(&mut self, all: bool) -> Option<u32> {
        let moved = ring::used(self.consumer, self.told, ring::RETURN_ENTRIES);
        let enough = if all { 1 } else { ring::RETURN_ENTRIES / 16 };
        (moved >= enough).then(|| {
            self.told = self.consumer;
            self.consumer
        })
    }

    /// Checks a return producer index from the card.
    pub fn available(&self, reported: u32) -> Result<u32, NicError> {
        if reported >= ring::RETURN_ENTRIES {
            return Err(NicError::BadIndex {
                what: "return producer index",
                value: reported,
                allowed: format!("below {}", ring::RETURN_ENTRIES),
            });
        }
        Ok(ring::used(reported, self.consumer, ring::RETURN_ENTRIES))
    }

    /// Takes the next return BD: hands its frame to `deliver` if it is good, counts
    /// why not otherwise, and queues the buffer again.
    pub fn take(
        &mut self,
        control: &DmaMemory,
        receive: &DmaMemory,
        drops: &mut DropCounts,
        deliver: &mut impl FnMut(ReceivedFrame<'_>) -> Result<(), NicError>,
    ) -> Result<usize, NicError> {
        // A copy: the card may change the ring while this one is looked at.
        let mut words = [0; 8];
        control.read_words(RETURN_RING + self.consumer as usize * 32, &mut words)?;
        self.consumer = ring::advance(self.consumer, 1, ring::RETURN_ENTRIES);
        let bd = ReceiveBd::from_words(words);
        let buffer = match self.judge_buffer(&bd) {
            Ok(buffer) => buffer,
            Err(reason) => {
                drops.count(reason);
                return self.tolerate();
            }
        };
        let result = match self.judge_frame(&bd) {
            Ok(bytes) => {
                let frame = ReceivedFrame {
                    memory: receive,
                    offset: usize::from(buffer) * SLOT_BYTES,
                    bytes,
                };
                deliver(frame).map(|()| bytes)
            }
            Err(reason) => {
                drops.count(reason);
                Ok(0)
            }
        };
        // Also when the taker failed: the buffer is the card's again.
        self.queue(control, receive, buffer)?;
        result
    }

    /// A buffer is lost with each return BD that names none: a few are counted, but
    /// when there are more of them than buffers nothing is left to receive into.
    fn tolerate(&mut self) -> Result<usize, NicError> {
        self.nonsense += 1;
        if self.nonsense <= u32::from(self.buffers) {
            return Ok(0);
        }
        Err(NicError::Nonsense {
            what: "return BDs that name no queued buffer",
            count: self.nonsense,
        })
    }

    fn judge_buffer(&self, bd: &ReceiveBd) -> Result<u16, DropReason> {
        let buffer = bd.index();
        let Some((turn, with_card)) = self.queued.get(usize::from(buffer)) else {
            return Err(DropReason::BadIndex);
        };
        if bd.opaque as u16 != buffer {
            return Err(DropReason::BadMark);
        }
        if !with_card || (bd.opaque >> 16) as u16 != *turn {
            return Err(DropReason::Stale);
        }
        Ok(buffer)
    }

    fn judge_frame(&self, bd: &ReceiveBd) -> Result<usize, DropReason> {
        let bytes = usize::from(bd.length());
        if bd.flags().error() {
            return Err(DropReason::FrameError);
        }
        if bytes > self.largest {
            return Err(DropReason::TooLong);
        }
        if bytes < MIN_FRAME {
            return Err(DropReason::TooShort);
        }
        Ok(bytes)
    }
}
