//! One receive queue, as CPU A has it: its BDs, its return ring, and what its thread was told.
//!
//! ```text
//!   buffer ring:  next        arrived        shared           host's producer
//!                  v             v              v                   v
//!               ---+=============+==============+===================+---
//!                  | in NIC      | being        | beyond the window |
//!                  | memory      | fetched      |                   |
//!
//!   return ring:  consumer    reported       queued         producer
//!                  v             v              v               v
//!               ---+=============+==============+===============+---
//!                  | the thread  | on their way | made          |
//!                  | has to see  | to the host  |               |
//! ```

use super::super::returns::MANY;
use crate::io::bd_ring::{OutOfRange, judge};
use crate::io::note::WriteNote;
use crate::memory::layout::{QUEUE_BLOCK, QUEUE_RINGS, QUEUE_SHIFT, QUEUE_SLOTS, QUEUE_WINDOW};
use crate::memory::shared::{OfA, QUEUE_ARRIVED, QUEUE_PRODUCERS};
use host_interface::queue::{QueueCounter, RearmWord, block};
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};

/// Bytes of a BD, as a shift.
const BD_SHIFT: u32 = 5;
/// Where in a window a BD or a slot is.
const PLACES: u32 = QUEUE_WINDOW - 1;

/// One queue. 64 bytes, so that its number becomes its place by a shift. What is counted of it
/// stands in the queue block.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Queue {
    /// Frames that can be taken without another look: BDs are there, and room in the return
    /// ring.
    pub(super) quick: u32,
    /// The next BD.
    next: u32,
    /// The next entry of the return ring.
    producer: u32,
    /// Return BDs that the host was not told of.
    pub(super) unreported: u32,
    /// Where the copies of the BDs are; the slots lie [`QUEUE_SLOTS`] behind.
    rings: u32,
    /// Its bit among the queues'.
    bit: u32,
    /// Entries of the buffer ring minus one.
    buffer_mask: u32,
    /// Those of the return ring.
    return_mask: u32,
    /// Bytes of those frames.
    octets: u32,
    /// The next return BD that is not on its way.
    queued: u32,
    /// The first entry that the thread has not taken.
    consumer: u32,
    /// What the host was told of the return ring.
    reported: u32,
    /// How far CPU B may fetch.
    shared: u32,
    /// The host's producer of the buffer ring.
    host_producer: u32,
    /// Slots, the next ones, that have words which the fast path does not write.
    untidy: u16,
    /// Whether frames raise no interrupt: the thread polls.
    pub(super) polled: bool,
}

impl Queue {
    /// Not open.
    pub const UNUSED: Queue = Queue {
        quick: 0,
        next: 0,
        producer: 0,
        unreported: 0,
        rings: 0,
        bit: 0,
        buffer_mask: 0,
        return_mask: 0,
        octets: 0,
        queued: 0,
        consumer: 0,
        reported: 0,
        shared: 0,
        host_producer: 0,
        untidy: 0,
        polled: false,
    };

    /// Queue `number` with rings of so many entries.
    pub fn open<B: Bus>(bus: &mut B, number: u32, buffers: u32, returns: u32) -> Queue {
        let rings = QUEUE_RINGS + (number << QUEUE_SHIFT);
        // What is not written for each frame is 0.
        for word in (QUEUE_SLOTS..QUEUE_SLOTS * 2).step_by(4) {
            bus.store(rings + word, 0);
        }
        let counters = QUEUE_BLOCK + block::FIRST_COUNTERS + (number << 6);
        for word in (0..block::COUNTERS_BYTES).step_by(4) {
            bus.store(counters + word, 0);
        }
        Queue {
            rings,
            bit: 1 << number,
            buffer_mask: buffers.wrapping_sub(1),
            return_mask: returns.wrapping_sub(1),
            ..Queue::UNUSED
        }
    }

    /// Its number.
    #[inline(always)]
    fn number(&self) -> u32 {
        (self.rings - QUEUE_RINGS) >> QUEUE_SHIFT
    }

    /// Counts one more, in the queue block.
    #[inline(never)]
    pub fn count<B: Bus>(&self, bus: &mut B, counter: QueueCounter) {
        add(bus, self.counters() + counter as u32, 1);
    }

    /// NIC address of its counters.
    #[inline(always)]
    fn counters(&self) -> u32 {
        const { assert!(block::COUNTERS_BYTES == 1 << 6) };
        QUEUE_BLOCK + block::FIRST_COUNTERS + (self.number() << 6)
    }

    /// Its bit among the queues'.
    #[inline(always)]
    pub fn bit(&self) -> u32 {
        self.bit
    }

    /// NIC address of the next BD.
    #[inline(always)]
    pub fn bd(&self) -> u32 {
        self.rings + ((self.next & PLACES) << BD_SHIFT)
    }

    /// NIC address of the slot in which the next return BD is made.
    #[inline(always)]
    pub fn slot(&self) -> u32 {
        self.slot_of(self.producer)
    }

    #[inline(always)]
    fn slot_of(&self, entry: u32) -> u32 {
        self.rings + QUEUE_SLOTS + ((entry & PLACES) << BD_SHIFT)
    }

    /// A frame takes the next BD and the next slot.
    #[inline(always)]
    pub fn advance(&mut self, bytes: u32) {
        self.next = (self.next + 1) & self.buffer_mask;
        self.producer = (self.producer + 1) & self.return_mask;
        self.quick = self.quick.wrapping_sub(1);
        self.unreported += 1;
        self.octets += bytes;
    }

    /// BDs that are there, as far as CPU B has said.
    fn ready<B: Bus>(&self, bus: &mut B) -> u32 {
        let arrived = QUEUE_ARRIVED.of(self.number() as usize).get(bus);
        arrived.wrapping_sub(self.next) & self.buffer_mask
    }

    /// Free entries of the return ring.
    fn room(&self) -> u32 {
        self.consumer.wrapping_sub(self.producer + 1) & self.return_mask
    }

    /// Looks how many frames can be taken. Slots that need more than the fast path writes
    /// make it none.
    #[inline(never)]
    pub fn look<B: Bus>(&mut self, bus: &mut B) -> bool {
        self.quick = if self.untidy == 0 {
            self.ready(bus).min(self.room())
        } else {
            0
        };
        self.quick != 0
    }

    /// Whether a frame finds a BD and an entry of the return ring.
    ///
    /// # Errors
    /// What is wanting.
    pub fn has_place<B: Bus>(&mut self, bus: &mut B) -> Result<(), Wanting> {
        if self.ready(bus) == 0 {
            Err(Wanting::Buffer)
        } else if self.room() == 0 {
            Err(Wanting::ReturnEntry)
        } else {
            Ok(())
        }
    }

    /// The next return BD has words that the fast path does not write.
    pub fn is_untidy(&mut self) {
        self.untidy = QUEUE_WINDOW as u16;
        self.quick = 0;
    }

    /// A return BD with all its words was made.
    pub fn tidied(&mut self) {
        self.untidy = self.untidy.saturating_sub(1);
    }

    /// Takes the host's producer of the buffer ring.
    ///
    /// # Errors
    /// [`OutOfRange`] for an index that cannot be.
    pub fn produced(&mut self, producer: u32) -> Result<(), OutOfRange> {
        judge(self.buffer_mask, self.host_producer, producer, self.next)?;
        self.host_producer = producer;
        Ok(())
    }

    /// Lets CPU B fetch what there is room for. Returns whether that is more than before.
    #[inline(always)]
    pub fn share<B: Bus>(&mut self, me: &OfA, bus: &mut B) -> bool {
        if self.shared == self.host_producer {
            return false;
        }
        let given = self.host_producer.wrapping_sub(self.next) & self.buffer_mask;
        let producer = (self.next + given.min(QUEUE_WINDOW)) & self.buffer_mask;
        let moved = producer != self.shared;
        self.shared = producer;
        QUEUE_PRODUCERS
            .of(self.number() as usize)
            .set(me, bus, producer);
        moved
    }

    /// Takes a re-arm word. Returns whether the queue holds frames that its thread has not
    /// taken.
    ///
    /// # Errors
    /// [`OutOfRange`] for an index that the host was never told, or that goes back.
    pub fn rearm<B: Bus>(&mut self, bus: &mut B, word: RearmWord) -> Result<bool, OutOfRange> {
        let consumer = u32::from(word.consumer());
        let ahead = |index: u32| index.wrapping_sub(self.consumer) & self.return_mask;
        if consumer > self.return_mask || ahead(consumer) > ahead(self.reported) {
            self.count(bus, QueueCounter::BadIndices);
            return Err(OutOfRange);
        }
        self.consumer = consumer;
        self.polled = word.stay_polled();
        self.count(bus, QueueCounter::Rearms);
        Ok(consumer != self.producer)
    }

    /// Return BDs that are made and not on their way.
    #[inline(always)]
    pub fn waiting(&self) -> u32 {
        self.producer.wrapping_sub(self.queued) & self.return_mask
    }

    /// The transfer of some of them, up to the end of the slots or of the host's ring, of
    /// which `host` is the first entry.
    pub fn next_run(&mut self, host: HostAddress, state: u32) -> Transfer {
        let first = self.queued;
        let to_end = (self.return_mask + 1 - first).min(QUEUE_WINDOW - (first & PLACES));
        let count = self.waiting().min(to_end).min(MANY * 2);
        self.queued = (first + count) & self.return_mask;
        Transfer {
            host: host.plus(first << BD_SHIFT),
            local: self.slot_of(first),
            length: count << BD_SHIFT,
            state,
            note: WriteNote::QUIET.word(),
        }
    }

    /// The host is being told of all return BDs. Returns the status line, and whether it comes
    /// with an interrupt: the queue is polled then.
    #[inline(always)]
    pub fn report<B: Bus>(&mut self, bus: &mut B) -> ([u32; 4], bool) {
        let counters = self.counters();
        let interrupts = !self.polled;
        let counter = if interrupts {
            QueueCounter::Interrupts
        } else {
            QueueCounter::InterruptsAvoided
        };
        add(bus, counters + counter as u32, 1);
        add(bus, counters + QueueCounter::Frames as u32, self.unreported);
        add(bus, counters + QueueCounter::Bytes as u32, self.octets);
        self.polled = true;
        self.reported = self.producer;
        (self.unreported, self.octets) = (0, 0);
        let count = bus.load(counters + QueueCounter::Interrupts as u32);
        ([self.producer, count, 0, 0], interrupts)
    }
}

/// Adds to a word.
#[inline(always)]
fn add<B: Bus>(bus: &mut B, address: u32, more: u32) {
    let value = bus.load(address).wrapping_add(more);
    bus.store(address, value);
}

/// Why a frame finds no place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanting {
    /// No BD is there.
    Buffer,
    /// The return ring is full.
    ReturnEntry,
}

const _: () = assert!(size_of::<Queue>() == 64);
