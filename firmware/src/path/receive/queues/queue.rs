//! One receive queue on CPU A's side: its BDs, its return ring, and its reported state.
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
use crate::memory::layout::{
    EUDP, QUEUE_BLOCK, QUEUE_RINGS, QUEUE_SHIFT, QUEUE_SLOTS, QUEUE_WINDOW, SPINE,
};
use crate::memory::shared::{OfA, QUEUE_ARRIVED, QUEUE_PRODUCERS};
use host_interface::queue::{QueueCounter, RearmWord, block};
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};

/// Bytes of a BD, as a shift.
const BD_SHIFT: u32 = 5;
/// Mask of a BD's or slot's place in a window.
const PLACES: u32 = QUEUE_WINDOW - 1;

/// One queue. 64 bytes, so that its number becomes its place by a shift. What is counted of it
/// stands in the queue block.
///
/// A frame takes one BD and one slot, so both have the same place in their windows, and the
/// fast path moves nothing but the address of the BD; [`Queue::settle`] says what that means for
/// the indices of the rings.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Queue {
    /// NIC address of the next BD; the next slot lies [`QUEUE_SLOTS`] behind.
    bd: u32,
    /// Up to here BDs can be taken without another look: they are there, and so is room in the
    /// return ring.
    quick: u32,
    /// Bytes of the frames that were not reported to the host.
    octets: u32,
    /// The next BD, but for those that were taken since [`Queue::settle`].
    next: u32,
    /// The next entry of the return ring, as of then.
    producer: u32,
    /// Return BDs that were not reported to the host, as of then.
    pub(super) unreported: u32,
    /// NIC address of the BD that was the next one then.
    settled: u32,
    /// NIC address of the slot of the next return BD that is not on its way.
    queued_slot: u32,
    /// The next return BD that is not on its way.
    queued: u32,
    /// The first entry that the thread has not taken.
    consumer: u32,
    /// The last reported return ring index.
    reported: u32,
    /// CPU B's limit for fetching.
    shared: u32,
    /// The host's producer of the buffer ring.
    host_producer: u32,
    /// Entries of the buffer ring minus one, and of the return ring.
    buffer_mask: u16,
    return_mask: u16,
    /// Its number.
    number: u8,
    /// Slots, the next ones, that have words which the fast path does not write.
    untidy: u8,
    /// Whether frames raise no interrupt: the thread polls.
    pub(super) polled: bool,
}

impl Queue {
    /// Not open.
    pub const UNUSED: Queue = Queue {
        bd: 0,
        quick: 0,
        octets: 0,
        next: 0,
        producer: 0,
        unreported: 0,
        settled: 0,
        queued_slot: 0,
        queued: 0,
        consumer: 0,
        reported: 0,
        shared: 0,
        host_producer: 0,
        buffer_mask: 0,
        return_mask: 0,
        number: 0,
        untidy: 0,
        polled: false,
    };

    /// Queue `number` with rings of so many entries.
    pub fn open<B: Bus>(bus: &mut B, number: u32, buffers: u32, returns: u32) -> Queue {
        let rings = QUEUE_RINGS + (number << QUEUE_SHIFT);
        // Words that are not written for each frame are 0.
        for word in (QUEUE_SLOTS..QUEUE_SLOTS * 2).step_by(4) {
            bus.store(rings + word, 0);
        }
        let counters = QUEUE_BLOCK + block::FIRST_COUNTERS + (number << 6);
        for word in (0..block::COUNTERS_BYTES).step_by(4) {
            bus.store(counters + word, 0);
        }
        Queue {
            bd: rings,
            quick: rings,
            settled: rings,
            queued_slot: rings + QUEUE_SLOTS,
            number: number as u8,
            buffer_mask: buffers.wrapping_sub(1) as u16,
            return_mask: returns.wrapping_sub(1) as u16,
            ..Queue::UNUSED
        }
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
        QUEUE_BLOCK + block::FIRST_COUNTERS + (u32::from(self.number) << 6)
    }

    #[inline(always)]
    const fn buffer_mask(&self) -> u32 {
        self.buffer_mask as u32
    }

    #[inline(always)]
    const fn return_mask(&self) -> u32 {
        self.return_mask as u32
    }

    /// Its bit among the queues'.
    #[inline(always)]
    pub fn bit(&self) -> u32 {
        1 << self.number
    }

    /// NIC address of the next BD; the next return BD is made [`QUEUE_SLOTS`] behind it.
    #[inline(always)]
    pub fn bd(&self) -> u32 {
        self.bd
    }

    /// Whether the next BD needs a look before it is taken.
    #[inline(always)]
    pub fn needs_look(&self) -> bool {
        self.bd == self.quick
    }

    /// A frame takes the next BD and the next slot.
    #[inline(always)]
    pub fn advance(&mut self, bytes: u32) {
        self.bd = after(self.bd);
        self.octets += bytes;
    }

    /// The same where it is not done for each run.
    #[inline(never)]
    pub fn settle_now(&mut self) {
        self.settle();
    }

    /// Frames that were taken since the queue was settled, fewer than the window.
    #[inline(always)]
    pub fn unsettled(&self) -> u32 {
        self.bd.wrapping_sub(self.settled) >> BD_SHIFT & PLACES
    }

    /// Brings the indices of the rings to what was taken.
    #[inline(always)]
    pub fn settle(&mut self) {
        let taken = self.unsettled();
        self.settled = self.bd;
        self.next = (self.next + taken) & self.buffer_mask();
        self.producer = (self.producer + taken) & self.return_mask();
        self.unreported += taken;
    }

    /// BDs that are there, as far as CPU B has said. The queue is settled.
    fn ready<B: Bus>(&self, bus: &mut B) -> u32 {
        let arrived = QUEUE_ARRIVED.of(self.number.into()).get(bus);
        arrived.wrapping_sub(self.next) & self.buffer_mask()
    }

    /// Free entries of the return ring. The queue is settled.
    fn room(&self) -> u32 {
        self.consumer.wrapping_sub(self.producer + 1) & self.return_mask()
    }

    /// Updates the number of frames that need no further check. Slots that need more than the fast
    /// path writes make it 0.
    #[inline(never)]
    pub fn look<B: Bus>(&mut self, bus: &mut B) -> bool {
        self.settle_now();
        let quick = if self.untidy == 0 {
            // One fewer than all, or it would look like none.
            self.ready(bus).min(self.room()).min(PLACES)
        } else {
            0
        };
        let window = self.bd & !(QUEUE_SLOTS - 1);
        self.quick = window | (self.bd + (quick << BD_SHIFT)) & (QUEUE_SLOTS - 1);
        quick != 0
    }

    /// Whether a frame finds a BD and an entry of the return ring. The queue is settled.
    ///
    /// # Errors
    /// Which of them is missing.
    pub fn has_place<B: Bus>(&mut self, bus: &mut B) -> Result<(), Wanting> {
        self.settle_now();
        if self.ready(bus) == 0 {
            Err(Wanting::Buffer)
        } else if self.room() == 0 {
            Err(Wanting::ReturnEntry)
        } else {
            Ok(())
        }
    }

    /// Marks the next return BD as having words that the fast path does not write.
    pub fn is_untidy(&mut self) {
        self.untidy = QUEUE_WINDOW as u8;
        self.quick = self.bd;
    }

    /// A return BD with all its words was made: the next frame needs a look.
    pub fn tidied(&mut self) {
        self.untidy = self.untidy.saturating_sub(1);
        self.quick = self.bd;
    }

    /// Takes the host's producer of the buffer ring.
    ///
    /// # Errors
    /// [`OutOfRange`] for an invalid index.
    pub fn produced(&mut self, producer: u32) -> Result<(), OutOfRange> {
        self.settle_now();
        judge(self.buffer_mask(), self.host_producer, producer, self.next)?;
        self.host_producer = producer;
        Ok(())
    }

    /// Lets CPU B fetch what there is room for. Returns whether that is more than before. The
    /// queue is settled.
    #[inline(always)]
    pub fn share<B: Bus>(&mut self, me: &OfA, bus: &mut B) -> bool {
        /// BDs that are fetched together, unless fewer are left than that.
        const FETCHED: u32 = 32;
        let mask = self.buffer_mask();
        let left = self.shared.wrapping_sub(self.next) & mask;
        if left > QUEUE_WINDOW - FETCHED {
            return false;
        }
        let given = self.host_producer.wrapping_sub(self.next) & mask;
        let more = given.min(QUEUE_WINDOW).wrapping_sub(left);
        if more == 0 || more < FETCHED && left >= FETCHED {
            return false;
        }
        let producer = (self.next + left + more) & mask;
        self.shared = producer;
        QUEUE_PRODUCERS
            .of(self.number.into())
            .set(me, bus, producer);
        true
    }

    /// Takes a re-arm word. Returns whether frames that the host's thread has not taken were
    /// reported to it; the queue's count or time reports other frames as usual.
    ///
    /// # Errors
    /// [`OutOfRange`] for an index that was never reported to the host, or one that moves
    /// backwards.
    pub fn rearm<B: Bus>(&mut self, bus: &mut B, word: RearmWord) -> Result<bool, OutOfRange> {
        let consumer = u32::from(word.consumer());
        let ahead = |index: u32| index.wrapping_sub(self.consumer) & self.return_mask();
        if consumer > self.return_mask() || ahead(consumer) > ahead(self.reported) {
            self.count(bus, QueueCounter::BadIndices);
            return Err(OutOfRange);
        }
        self.settle_now();
        self.consumer = consumer;
        self.polled = word.stay_polled();
        self.count(bus, QueueCounter::Rearms);
        Ok(consumer != self.reported)
    }

    /// Return BDs that are made and not on their way. The queue is settled.
    #[inline(always)]
    pub fn waiting(&self) -> u32 {
        self.producer.wrapping_sub(self.queued) & self.return_mask()
    }

    /// The transfer of some of them, up to the end of the slots or of the host's ring; `host` is
    /// the address of the first entry.
    #[inline(always)]
    pub fn next_run(&mut self, host: HostAddress, state: u32) -> Transfer {
        let (first, local) = (self.queued, self.queued_slot);
        let to_end = (QUEUE_SLOTS - (local & (QUEUE_SLOTS - 1))) >> BD_SHIFT;
        let to_end = to_end.min(self.return_mask() + 1 - first);
        let count = self.waiting().min(to_end).min(MANY * 2);
        self.queued = (first + count) & self.return_mask();
        let window = local & !(QUEUE_SLOTS - 1);
        self.queued_slot = window | (local + (count << BD_SHIFT)) & (QUEUE_SLOTS - 1);
        Transfer {
            host: host.plus(first << BD_SHIFT),
            local,
            length: count << BD_SHIFT,
            state,
            note: WriteNote::QUIET.word(),
        }
    }

    /// Reports all return BDs to the host. Returns the status line's first words, and whether it comes with an
    /// interrupt: the queue is polled then.
    #[inline(always)]
    pub fn report<B: Bus>(&mut self, bus: &mut B) -> ([u32; 2], bool) {
        let counters = self.counters();
        let interrupts = !self.polled;
        let mut count = bus.load(counters + QueueCounter::Interrupts as u32);
        if interrupts {
            count = count.wrapping_add(1);
            bus.store(counters + QueueCounter::Interrupts as u32, count);
        } else {
            add(bus, counters + QueueCounter::InterruptsAvoided as u32, 1);
        }
        add(bus, counters + QueueCounter::Frames as u32, self.unreported);
        add(bus, counters + QueueCounter::Bytes as u32, self.octets);
        self.polled = true;
        self.reported = self.producer;
        (self.unreported, self.octets) = (0, 0);
        ([self.producer, count], interrupts)
    }
}

/// The place behind one of a window, which begins at a multiple of twice its size.
#[inline(always)]
const fn after(address: u32) -> u32 {
    (address + (1 << BD_SHIFT)) & !QUEUE_SLOTS
}

/// Adds to a word.
#[inline(always)]
fn add<B: Bus>(bus: &mut B, address: u32, more: u32) {
    let value = bus.load(address).wrapping_add(more);
    bus.store(address, value);
}

/// Why there is no room for a frame in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanting {
    /// No BD is there.
    Buffer,
    /// The return ring is full.
    ReturnEntry,
}

const _: () = {
    assert!(size_of::<Queue>() == 64);
    assert!(QUEUE_SLOTS.is_power_of_two() && QUEUE_SLOTS == QUEUE_WINDOW << BD_SHIFT);
    // Firmware with extensions or endpoints has no receive queues.
    let is_aligned = QUEUE_RINGS.is_multiple_of(QUEUE_SLOTS * 2);
    assert!(SPINE != 0 || EUDP != 0 || is_aligned && QUEUE_SHIFT == 13);
    assert!(QUEUE_WINDOW <= u8::MAX as u32);
};
