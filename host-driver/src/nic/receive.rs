//! The receive return ring, and the rings of buffers behind it.
//!
//! ```text
//!   driver --buffers--> standard, jumbo, mini ring --> card --frames--> return ring
//!             ^                                                             |
//!             +---------------------------- driver <------------------------+
//! ```

use host_interface::bd::ReceiveBd;
use host_interface::ring;

use super::buffers::{self, BufferMemory, BufferRing};
use super::counters::Counts;
use super::drops::DropReason;
use super::error::NicError;
use super::frame::ReceivedFrame;
use super::plan::ReceivePlan;
use super::region::Table;
use super::rings::Ring;
use super::sizes::MIN_FRAME;
use crate::dma::DmaError;

/// The memory of a receive queue.
pub(super) struct ReceiveMemory {
    pub producer: Table<2>,
    pub returns: Table<8>,
    /// In the order of the plan.
    pub rings: Vec<BufferMemory>,
}

/// The rings of a receive queue, and the memory that they are in.
pub(super) struct ReceiveRings {
    rings: Vec<BufferRing>,
    producer: Table<2>,
    returns: Table<8>,
    /// Frames with errors are wanted.
    bad_frames: bool,
    entries: u32,
    /// The next return BD to look at.
    consumer: u32,
    /// What the card has been told.
    told: u32,
    /// Return BDs that fit no queued buffer.
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
            bad_frames,
            entries: plan.returns,
            consumer: 0,
            told: 0,
            nonsense: 0,
            buffers: plan.buffers(),
        }
    }

    /// The card begins anew: all rings are empty.
    pub fn restart(&mut self) -> Result<(), DmaError> {
        (self.consumer, self.told, self.nonsense) = (0, 0, 0);
        for ring in &mut self.rings {
            ring.restart()?;
        }
        self.returns.clear()?;
        self.producer.clear()
    }

    /// Addresses of the return ring and of its producer index, as the card sees them.
    pub fn return_addresses(&self) -> Result<(u64, u64), DmaError> {
        Ok((self.returns.address()?, self.producer.address()?))
    }

    /// Address of a ring of buffers as the card sees it; None if there is none.
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

    /// Queues the buffers of these rings that are not with the card.
    pub fn fill(&mut self, wanted: impl Fn(Ring) -> bool) -> Result<(), NicError> {
        for ring in self.rings.iter_mut().filter(|ring| wanted(ring.kind())) {
            ring.fill()?;
        }
        Ok(())
    }

    /// The card has forgotten a ring and its buffers.
    pub fn forget(&mut self, kind: Ring) {
        for ring in self.rings.iter_mut().filter(|ring| ring.kind() == kind) {
            ring.forget();
        }
    }

    /// Mailboxes and producer indices to ring with.
    pub fn rings_due(&mut self, all: bool) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.rings
            .iter_mut()
            .filter_map(move |ring| ring.ring_due(all))
    }

    /// The return consumer index to tell the card, once it has moved far enough (or
    /// at all, if `all`).
    pub fn tell_due(&mut self, all: bool) -> Option<u32> {
        let moved = ring::used(self.consumer, self.told, self.entries);
        let enough = if all { 1 } else { self.entries / 16 };
        (moved >= enough).then(|| {
            self.told = self.consumer;
            self.consumer
        })
    }

    /// Return BDs that the card has filled and nobody has taken, by its producer index,
    /// which is read and checked here.
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

    /// Takes the next return BD: hands its frame to `deliver` if it is good, counts
    /// why not otherwise, and queues the buffer again.
    pub fn take(
        &mut self,
        counts: &Counts,
        deliver: &mut impl FnMut(ReceivedFrame<'_>) -> Result<(), NicError>,
    ) -> Result<usize, NicError> {
        // A copy: the card may change the ring while this one is looked at.
        let words = self.returns.read(self.consumer)?;
        self.consumer = ring::advance(self.consumer, 1, self.entries);
        let bd = ReceiveBd::from_words(words);
        let (at, buffer) = match buffers::judge(&self.rings, &bd) {
            Ok(found) => found,
            Err(reason) => {
                counts.drop_frames(reason, 1);
                return self.tolerate();
            }
        };
        let Some(ring) = self.rings.get_mut(at) else {
            return Ok(0);
        };
        let result = match judge_frame(&bd, ring.capacity(), self.bad_frames) {
            Ok(bytes) => {
                let places = ring.pieces(buffer);
                deliver(ReceivedFrame::new(ring.memory(), places, bd, ring.kind())).map(|()| bytes)
            }
            Err(reason) => {
                counts.drop_frames(reason, 1);
                Ok(0)
            }
        };
        // Also when the taker failed: the buffer is the card's again.
        ring.queue(buffer)?;
        result
    }

    /// A buffer is lost with each return BD that names none: a few are counted, but
    /// when there are more of them than buffers nothing is left to receive into.
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

fn judge_frame(bd: &ReceiveBd, capacity: usize, bad_frames: bool) -> Result<usize, DropReason> {
    let bytes = usize::from(bd.length());
    if bd.flags().error() && !bad_frames {
        return Err(DropReason::FrameError);
    }
    if bytes > capacity {
        return Err(DropReason::TooLong);
    }
    // A frame that is known to be bad may be a scrap.
    let shortest = if bd.flags().error() { 1 } else { MIN_FRAME };
    if bytes < shortest {
        return Err(DropReason::TooShort);
    }
    Ok(bytes)
}
