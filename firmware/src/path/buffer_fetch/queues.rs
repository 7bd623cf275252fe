//! Fetching the BDs of the receive queues, and the queue control block.
//!
//! A queue's ring may be longer than its window in NIC memory, [`QUEUE_WINDOW`] BDs. CPU A shares
//! no producer beyond the window, so a fetch never overwrites a BD that is still to be taken:
//!
//! ```text
//!   host's ring, 64 to 512 BDs     taken      arrived    requested    producer (A's)
//!                                    v           v           v           v
//!                                 ---+===========+===========+===========+------
//!                                    |<----- 128 BDs at most: the window ---->|
//!   NIC memory                   one behind the other, modulo 128
//! ```
//!
//! A transfer reads the control block after all earlier transfers: when it has arrived, none of
//! the other mode is in flight.

use super::BufferFetch;
use crate::io::IoB;
use crate::io::note::{ReadKind, ReadNote};
use crate::memory::layout::{
    QUEUE_BLOCK, QUEUE_CONTROL, QUEUE_RINGS, QUEUE_SHIFT, QUEUE_WINDOW, QUEUES,
};
use crate::memory::shared::{ANSWER, CONTROL_READ, QUEUE_ARRIVED, QUEUE_MOVES, QUEUE_PRODUCERS};
use host_interface::queue::BlockWord;
use host_interface::queue::control::{CLASSIFIER_BYTES, CONTROL_BYTES};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;

/// Bytes of a BD, as a shift.
const BD_SHIFT: u32 = 5;

/// One buffer ring.
#[derive(Clone, Copy, Debug)]
struct Ring {
    /// The ring in host memory.
    host: HostAddress,
    /// Its entries minus one.
    mask: u32,
    /// CPU A's limit for fetching.
    producer: u32,
    /// The next BD to fetch.
    requested: u32,
    /// Its place in the window: BDs follow each other there whatever the size of the ring.
    place: u32,
}

impl Ring {
    const UNUSED: Ring = Ring {
        host: HostAddress { high: 0, low: 0 },
        mask: 0,
        producer: 0,
        requested: 0,
        place: 0,
    };

    /// The transfer of the next BDs of queue `number`, up to the end of the ring or of the
    /// window, and how many they are.
    fn next(&self, number: u32, state: u32) -> Option<(Transfer, u32)> {
        let wanted = self.producer.wrapping_sub(self.requested) & self.mask;
        if wanted == 0 {
            return None;
        }
        let to_end = (self.mask + 1 - self.requested).min(QUEUE_WINDOW - self.place);
        let count = wanted.min(to_end);
        let after = (self.requested + count) & self.mask;
        let transfer = Transfer {
            host: self.host.plus(self.requested << BD_SHIFT),
            local: copies(number) + (self.place << BD_SHIFT),
            length: count << BD_SHIFT,
            state,
            note: ReadNote::queue_bds(number, after).word(),
        };
        Some((transfer, count))
    }

    /// So many BDs are being fetched.
    fn advance(&mut self, count: u32) {
        self.requested = (self.requested + count) & self.mask;
        self.place = (self.place + count) & (QUEUE_WINDOW - 1);
    }
}

/// NIC address of a queue's copies of BDs.
const fn copies(number: u32) -> u32 {
    QUEUE_RINGS + (number << QUEUE_SHIFT)
}

/// CPU B's view of the queues.
#[derive(Debug)]
pub struct QueueFetch {
    rings: [Ring; QUEUES],
    /// The number of open queues; 0 in classic mode.
    open: u32,
    /// The value of [`QUEUE_MOVES`] at the last check.
    moves: u32,
    /// The call to answer when the control block has arrived; 0 for none.
    asked: u32,
    /// Requested bytes of the control block.
    bytes: u32,
    /// Whether its transfer is queued.
    reading: bool,
}

impl QueueFetch {
    /// No queue is open.
    pub const fn new() -> QueueFetch {
        QueueFetch {
            rings: [Ring::UNUSED; QUEUES],
            open: 0,
            moves: 0,
            asked: 0,
            bytes: 0,
            reading: false,
        }
    }

    /// Whether queues are open.
    #[inline(always)]
    pub const fn is_open(&self) -> bool {
        QUEUES != 0 && self.open != 0
    }
}

impl Default for QueueFetch {
    fn default() -> QueueFetch {
        QueueFetch::new()
    }
}

/// CPU A has rung while queues are open: its limits may have moved.
#[inline(never)]
pub fn producers_moved<B: Dispatch>(fetch: &mut QueueFetch, io: &mut IoB<B>) {
    let moves = QUEUE_MOVES.get(&mut io.bus);
    io.bus.set(EventBit::ClassifyAhead);
    read_control(fetch, io);
    if moves == fetch.moves || fetch.open == 0 {
        return;
    }
    fetch.moves = moves;
    for (number, ring) in open_rings(fetch) {
        ring.producer = QUEUE_PRODUCERS.of(number as usize).get(&mut io.bus) & ring.mask;
    }
    fetch_some(fetch, io);
}

/// The open queues with their numbers.
fn open_rings(fetch: &mut QueueFetch) -> impl Iterator<Item = (u32, &mut Ring)> {
    (0..fetch.open).zip(&mut fetch.rings)
}

/// Queues fetches for all queues. The event, which is the mini ring's in classic mode, stays set
/// while there are no descriptors.
#[inline(never)]
pub fn fetch_some<B: Dispatch>(fetch: &mut QueueFetch, io: &mut IoB<B>) {
    let state = io.states.words;
    for (number, ring) in open_rings(fetch) {
        while let Some((transfer, count)) = ring.next(number, state) {
            if io.read_ring.push(&mut io.bus, &transfer).is_err() {
                io.bus.set(EventBit::MiniReceiveBdReady);
                // As for send BDs.
                return io.bus.set(EventBit::DmaReadComplete);
            }
            ring.advance(count);
        }
    }
    io.bus.clear(EventBit::MiniReceiveBdReady);
}

/// BDs of a queue or the control block have arrived.
#[inline(never)]
pub fn arrived<B: Dispatch>(fetch: &mut QueueFetch, io: &mut IoB<B>, note: ReadNote) {
    if note.kind() == ReadKind::QueueControl {
        return answer(fetch, io, READ);
    }
    let word = QUEUE_ARRIVED.of(note.queue() as usize);
    word.set(&io.me, &mut io.bus, note.after());
}

/// BDs of a queue could not be fetched from `local` on: CPU B fetches them again when CPU A moves
/// its limit.
pub fn given_up(fetch: &mut QueueFetch, number: u32, local: u32) {
    if let Some(ring) = fetch.rings.get_mut(number as usize) {
        let place = local.wrapping_sub(copies(number)) >> BD_SHIFT;
        // At least one BD was requested from there on, and no more than the window has.
        let last = ring.place.wrapping_sub(place + 1) & (QUEUE_WINDOW - 1);
        ring.requested = ring.requested.wrapping_sub(last + 1) & ring.mask;
        ring.place = place & (QUEUE_WINDOW - 1);
    }
}

/// Reads `bytes` of the control block for a call of CPU A, which is answered when they have
/// arrived. Stops fetching BDs of queues that CPU A has closed.
pub fn ask<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>, call: u32, bytes: u32) {
    let open = io.bus.load(QUEUE_BLOCK + BlockWord::Open as u32);
    fetch.queues.open = fetch.queues.open.min(open);
    (fetch.queues.asked, fetch.queues.bytes) = (call, bytes);
    fetch.queues.reading = false;
    read_control(&mut fetch.queues, io);
}

/// Queues the transfer, now or when a descriptor is free.
#[inline(never)]
pub fn read_control<B: Dispatch>(fetch: &mut QueueFetch, io: &mut IoB<B>) {
    if fetch.asked == 0 || fetch.reading {
        return;
    }
    let mut word = |word: BlockWord| io.bus.load(QUEUE_BLOCK + word as u32);
    let host = HostAddress {
        high: word(BlockWord::ControlHigh),
        low: word(BlockWord::ControlLow),
    };
    if host.is_null() || host.low & 7 != 0 {
        return answer(fetch, io, UNREADABLE);
    }
    let transfer = Transfer {
        host,
        local: QUEUE_CONTROL,
        length: fetch.bytes,
        state: io.states.words,
        note: ReadNote::CONTROL.word(),
    };
    // Housekeeping tries again.
    fetch.reading = io.read_ring.push(&mut io.bus, &transfer).is_ok();
}

/// The control block has arrived.
pub const READ: u32 = 1;
/// Its address is 0, misaligned, or not in the host's memory.
pub const UNREADABLE: u32 = 2;
/// Its bytes for a call that opens the queues.
pub const WHOLE: u32 = CONTROL_BYTES as u32;
/// Its bytes for a call that changes the classifier.
pub const CLASSIFIER: u32 = CLASSIFIER_BYTES as u32;

/// Answers the call for which the control block was read.
pub fn answer<B: Dispatch>(fetch: &mut QueueFetch, io: &mut IoB<B>, came: u32) {
    fetch.reading = false;
    let call = core::mem::take(&mut fetch.asked);
    if call == 0 {
        return;
    }
    CONTROL_READ.set(&io.me, &mut io.bus, came);
    ANSWER.set(&io.me, &mut io.bus, call);
    io.ring_a();
}

/// CPU A has validated the control block: takes the number of open queues from the queue block. If
/// it is 0, fetches BDs of classic mode again, from where CPU A had taken them.
pub fn opened<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    let open = io.bus.load(QUEUE_BLOCK + BlockWord::Open as u32);
    let queues = &mut fetch.queues;
    queues.open = open.min(QUEUES as u32);
    queues.moves = QUEUE_MOVES.get(&mut io.bus);
    for (number, ring) in open_rings(queues) {
        *ring = configured(&mut io.bus, number);
        let arrived = QUEUE_ARRIVED.of(number as usize);
        arrived.set(&io.me, &mut io.bus, 0);
    }
    io.bus.clear(EventBit::MiniReceiveBdReady);
    if open == 0 {
        super::resume(fetch, io);
    }
}

/// A ring from its control block.
fn configured<B: Bus>(bus: &mut B, number: u32) -> Ring {
    use core::mem::offset_of;
    use host_interface::queue::{QueueControl, QueueControlBlock};
    const FIRST: u32 = QUEUE_CONTROL + offset_of!(QueueControlBlock, queue) as u32;
    const { assert!(size_of::<QueueControl>() == 1 << 6 && offset_of!(QueueControl, buffers) == 0) };
    let rcb = FIRST + (number << 6);
    let entries = bus.load(rcb + 8) >> 16;
    Ring {
        host: bus.load_host_address(rcb),
        mask: entries.wrapping_sub(1),
        producer: 0,
        requested: 0,
        place: 0,
    }
}
