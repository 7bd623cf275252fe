//! The receive return ring and its buffer rings.
//!
//! ```text
//!   driver --buffers--> standard, jumbo, mini ring --> card --frames--> return ring
//!             ^                                                             |
//!             +---------------------------- driver <------------------------+
//! ```
//!
//! In queue mode each queue has one ring of buffers and a return ring; the producer of the
//! return ring is the first word of the queue's status line ([`super::queues::mark`]).

use host_interface::bd::ReceiveBd;
use host_interface::gencom::Gencom;
use host_interface::ring;

use super::buffers::{self, BufferMemory, BufferRing};
use super::counters::Counts;
use super::drops::DropReason;
use super::error::NicError;
use super::frame::ReceivedFrame;
use super::plan::ReceivePlan;
use super::queues::mark::PolledMark;
use super::region::Table;
use super::rings::Ring;
use super::sizes::MIN_FRAME;
use crate::dma::DmaError;

/// The memory of a receive queue.
pub(super) struct ReceiveMemory {
    /// The producer of the return ring, or the status line.
    pub producer: Table<4>,
    pub returns: Table<8>,
    /// In the order of the plan.
    pub rings: Vec<BufferMemory>,
}

/// The rings of a receive queue, and their memory.
pub(super) struct ReceiveRings {
    rings: Vec<BufferRing>,
    producer: Table<4>,
    returns: Table<8>,
    /// Queue mode's addition.
    mark: Option<PolledMark>,
    /// Whether frames with errors are wanted.
    bad_frames: bool,
    entries: u32,
    /// The next return BD to process.
    consumer: u32,
    /// The last index reported to the card.
    reported: u32,
    /// Return BDs that match no queued buffer.
    nonsense: u32,
    buffers: u32,
}

impl ReceiveRings {
    /// Empty rings.
    pub fn new(plan: &ReceivePlan, memory: ReceiveMemory, bad_frames: bool) -> Self {
        let rings = plan.rings.iter().zip(memory.rings);
        Self {
            rings: rings
                .map(|(plan, memory)| BufferRing::new(plan, memory))
                .collect(),
            producer: memory.producer,
            returns: memory.returns,
            mark: plan.queue.map(PolledMark::new),
            bad_frames,
            entries: plan.returns,
            consumer: 0,
            reported: 0,
            nonsense: 0,
            buffers: plan.buffers(),
        }
    }

    /// The card restarts: all rings are empty.
    pub fn restart(&mut self) -> Result<(), DmaError> {
        (self.consumer, self.reported, self.nonsense) = (0, 0, 0);
        for ring in &mut self.rings {
            ring.restart()?;
        }
        if let Some(mark) = &mut self.mark {
            mark.restart();
        }
        self.returns.clear()?;
        self.producer.clear()
    }

    /// The queue's number in queue mode.
    pub fn queue_number(&self) -> Option<u8> {
        self.mark.as_ref().map(PolledMark::number)
    }

    /// Interrupts that the card has raised for the queue, from its status line.
    pub fn interrupts(&self) -> Result<u32, DmaError> {
        let [_, interrupts, ..] = self.producer.read(0)?;
        Ok(interrupts)
    }

    /// Whether the queue is polled: an interrupt was raised since it was armed.
    pub fn is_polled(&self) -> Result<bool, DmaError> {
        let interrupts = self.interrupts()?;
        let mark = self.mark.as_ref();
        Ok(mark.is_some_and(|mark| mark.is_polled(interrupts)))
    }

    /// The status line, for the thread that takes an interrupt for all queues.
    pub fn status(&self) -> Table<4> {
        self.producer.again()
    }

    /// The card's addresses of the return ring and of its producer index.
    pub fn return_addresses(&self) -> Result<(u64, u64), DmaError> {
        Ok((self.returns.address()?, self.producer.address()?))
    }

    /// The card's address of a buffer ring; None without that ring.
    pub fn address_of(&self, kind: Ring) -> Result<Option<u64>, DmaError> {
        let ring = self.rings.iter().find(|ring| ring.kind() == kind);
        ring.map(BufferRing::address).transpose()
    }

    /// Buffers that the card has, in all rings.
    pub fn outstanding(&self) -> usize {
        self.rings.iter().map(BufferRing::outstanding).sum()
    }

    /// Buffers of one ring that the card has.
    pub fn outstanding_in(&self, kind: Ring) -> usize {
        let rings = self.rings.iter().filter(|ring| ring.kind() == kind);
        rings.map(BufferRing::outstanding).sum()
    }

    /// Queues the buffers of these rings that the card does not have.
    pub fn fill(&mut self, wanted: impl Fn(Ring) -> bool) -> Result<(), NicError> {
        for ring in self.rings.iter_mut().filter(|ring| wanted(ring.kind())) {
            ring.fill()?;
        }
        Ok(())
    }

    /// The card has discarded a ring and its buffers.
    pub fn forget(&mut self, kind: Ring) {
        for ring in self.rings.iter_mut().filter(|ring| ring.kind() == kind) {
            ring.forget();
        }
    }

    /// Mailboxes and producer indices for the doorbells.
    pub fn rings_due(&mut self, all: bool) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.rings
            .iter_mut()
            .filter_map(move |ring| ring.ring_due(all))
    }

    /// Address and value that report the return consumer index to the card, once it has advanced
    /// far enough (or at all, if `all`). In queue mode [`ReceiveRings::rearm_due`] reports the last
    /// ones.
    pub fn publish_due(&mut self, all: bool) -> Result<Option<(u32, u32)>, DmaError> {
        let moved = ring::used(self.consumer, self.reported, self.entries);
        let last = all && self.mark.is_none();
        let enough = if last { 1 } else { self.entries / 16 };
        if moved < enough {
            return Ok(None);
        }
        self.reported = self.consumer;
        Ok(Some(match &self.mark {
            None => (Gencom::ReceiveReturnConsumer.bar_offset(), self.consumer),
            Some(mark) => mark.stay(self.consumer, self.interrupts()?),
        }))
    }

    /// Address and value that enable the interrupt of a queue's next frame; None if the card knows
    /// everything, and in classic mode.
    pub fn rearm_due(&mut self) -> Result<Option<(u32, u32)>, DmaError> {
        let interrupts = self.interrupts()?;
        let Some(mark) = &mut self.mark else {
            return Ok(None);
        };
        let known = self.reported == self.consumer;
        self.reported = self.consumer;
        Ok(mark.rearm(self.consumer, interrupts, known))
    }

    /// Return BDs that the card has filled and that were not taken, by its producer index, which is
    /// read and checked here.
    pub fn available(&self) -> Result<u32, NicError> {
        let reported = self.producer.first_word(0)?;
        if reported >= self.entries {
            return Err(NicError::BadIndex {
                what: "return producer index",
                value: reported,
                allowed: format!("below {}", self.entries),
            });
        }
        Ok(ring::used(reported, self.consumer, self.entries))
    }

    /// Takes the next return BD: passes a good frame to `deliver`, counts the drop reason of a bad
    /// one, and queues the buffer again.
    pub fn take(
        &mut self,
        counts: &Counts,
        deliver: &mut impl FnMut(ReceivedFrame<'_>) -> Result<(), NicError>,
    ) -> Result<usize, NicError> {
        // A copy: the card may change the ring meanwhile.
        let words = self.returns.read(self.consumer)?;
        self.consumer = ring::advance(self.consumer, 1, self.entries);
        let bd = ReceiveBd::from_words(words);
        let checked = match &self.mark {
            Some(mark) if !mark.is_of(&bd) => Err(DropReason::BadQueue),
            _ => buffers::check(&self.rings, &bd),
        };
        let (at, buffer) = match checked {
            Ok(found) => found,
            Err(reason) => {
                counts.drop_frames(reason, 1);
                return self.tolerate();
            }
        };
        let Some(ring) = self.rings.get_mut(at) else {
            return Ok(0);
        };
        let result = match check_frame(&bd, ring.capacity(), self.bad_frames) {
            Ok(bytes) => {
                let places = ring.pieces(buffer);
                deliver(ReceivedFrame::new(ring.memory(), places, bd, ring.kind())).map(|()| bytes)
            }
            Err(reason) => {
                counts.drop_frames(reason, 1);
                Ok(0)
            }
        };
        // Also when `deliver` failed: the card gets the buffer again.
        ring.queue(buffer)?;
        result
    }

    /// Each return BD without a valid buffer loses a buffer: a few are counted, but when they
    /// exceed the number of buffers nothing is left to receive into.
    fn tolerate(&mut self) -> Result<usize, NicError> {
        self.nonsense += 1;
        if self.nonsense <= self.buffers {
            return Ok(0);
        }
        Err(NicError::Nonsense {
            what: "return BDs that name no queued buffer",
            count: self.nonsense,
        })
    }
}

fn check_frame(bd: &ReceiveBd, capacity: usize, bad_frames: bool) -> Result<usize, DropReason> {
    let bytes = usize::from(bd.length());
    if bd.flags().error() && !bad_frames {
        return Err(DropReason::FrameError);
    }
    if bytes > capacity {
        return Err(DropReason::TooLong);
    }
    // A frame with known errors may be a fragment.
    let shortest = if bd.flags().error() { 1 } else { MIN_FRAME };
    if bytes < shortest {
        return Err(DropReason::TooShort);
    }
    Ok(bytes)
}
