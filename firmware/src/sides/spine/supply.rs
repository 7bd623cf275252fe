//! Frames from CPU A to the wire: a pool, and a queue that CPU B empties.
//!
//! The receive buffer is freed in order, so a frame that is to go out again or to be kept cannot
//! wait there: it is copied into a [slot](super::slots) of the pool, with the words that the
//! handler has changed, and CPU B copies it into the transmit buffer, which is its own.
//!
//! ```text
//! slot   +0 bytes of the frame   +8 the frame
//!
//!          taken          queued
//!            v              v
//! queue  ----+==============+-------   slots; indices that wrap, modulo 8
//!            | for CPU B    |
//! ```

use super::Runtime;
use super::slots::{NONE, Slots};
use crate::io::deadline::SlotB;
use crate::io::{IoA, IoB};
use crate::memory::copy;
use crate::memory::layout::{
    PEER_PAGE, POOL, POOL_FRAME, POOL_QUEUE, POOL_SLOT, POOL_SLOTS, SPINE_BLOCK, SPINE_QUEUE,
};
use crate::memory::shared::{SPINE_QUEUED, SPINE_TAKEN};
use crate::path::send::SendPath;
use crate::path::send::own::{self, Wait};
use host_interface::spine::{BlockWord, DomainCount};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Where the frame begins in its slot.
pub const FRAME: u32 = 8;
/// Where a frame lies that went round the end of the receive buffer.
const BOUNCE: u32 = POOL + POOL_SLOTS * POOL_SLOT + FRAME;
/// Microseconds until something is tried again that had no room.
pub const AGAIN: u32 = 10;

/// Whether a frame lies where it came in.
#[inline(always)]
pub const fn is_in_place(at: u32) -> bool {
    at != BOUNCE
}

/// NIC address of a slot.
pub const fn slot(number: u32) -> u32 {
    POOL + (number << POOL_SLOT.trailing_zeros())
}

/// NIC address of an entry of the queue.
const fn entry(index: u32) -> u32 {
    SPINE_QUEUE + ((index & (POOL_QUEUE - 1)) << 2)
}

const _: () = assert!(POOL_QUEUE.is_power_of_two() && slot(POOL_SLOTS) + POOL_SLOT <= PEER_PAGE);

/// CPU A's end of the pool.
#[derive(Debug)]
pub struct Pool {
    /// Who refers to which slot.
    pub slots: Slots,
}

impl Pool {
    /// Empty.
    pub const fn new() -> Pool {
        Pool {
            slots: Slots::new(),
        }
    }

    /// Takes back what CPU B has transmitted, if there is no room; CPU B's word is read only then.
    #[inline(always)]
    pub fn make_room<B: Bus>(&mut self, bus: &mut B) {
        if self.slots.room() <= 1 || self.slots.next() == NONE {
            self.take_back(bus);
        }
    }

    #[inline(always)]
    fn take_back<B: Bus>(&mut self, bus: &mut B) {
        let taken = SPINE_TAKEN.get(bus);
        let slot_of = |index| (bus.load(entry(index)) - POOL) >> POOL_SLOT.trailing_zeros();
        self.slots.taken(taken, slot_of);
    }

    /// Where a frame's words lie one behind the other; none for one that goes round the end of
    /// the receive buffer, which begins at `base`, and is longer than a slot.
    #[inline(always)]
    pub fn in_one_piece<B: Bus>(
        &self,
        bus: &mut B,
        frame: &ReceivedFrame,
        base: u32,
    ) -> Option<u32> {
        if frame.start + frame.length <= PACKET_MEMORY_END {
            return Some(frame.start);
        }
        bounce(bus, frame, base)
    }

    /// Takes the next slot for a frame of `length` bytes whose words lie at `at`, with changed
    /// words; returns it.
    #[inline(always)]
    pub fn put<B: Bus>(
        &mut self,
        bus: &mut B,
        at: u32,
        length: u32,
        patches: &[(u32, u32)],
    ) -> u32 {
        let number = self.slots.next();
        self.slots.take();
        let to = slot(number);
        copy(bus, at, to + FRAME, length);
        for (index, value) in patches {
            bus.store(to + FRAME + (index << 2), *value);
        }
        bus.store(to, length);
        number
    }

    /// Queues a slot for CPU B.
    #[inline(always)]
    fn queue<B: Dispatch>(&mut self, io: &mut IoA<B>, number: u32) {
        let queued = self.slots.queue(number);
        io.bus.store(entry(queued.wrapping_sub(1)), slot(number));
        SPINE_QUEUED.set(&io.me, &mut io.bus, queued);
    }

    /// Has CPU B transmit a slot for a domain, and counts it. There is room.
    #[inline(always)]
    pub fn transmit<B: Dispatch>(&mut self, io: &mut IoA<B>, domain: u32, number: u32) {
        self.queue(io, number);
        Runtime::count(&mut io.bus, domain, DomainCount::Transmitted);
    }

    /// A domain keeps nothing any more.
    pub fn release_all<B: Bus>(&mut self, bus: &mut B, domain: u32) {
        self.slots.release_all(domain);
        self.report_ledger(bus, domain);
    }

    /// Writes the ledger of a domain for the host.
    pub fn report_ledger<B: Bus>(&mut self, bus: &mut B, domain: u32) {
        self.take_back(bus);
        let word = SPINE_BLOCK + BlockWord::Kept as u32 + (domain << 2);
        bus.store(word, self.slots.kept(domain));
        let free = SPINE_BLOCK + BlockWord::FreeSlots as u32;
        bus.store(free, self.slots.free_count());
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new()
    }
}

#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.low"))]
#[inline(never)]
fn copy<B: Bus>(bus: &mut B, from: u32, to: u32, bytes: u32) {
    copy::words(bus, from, to, bytes);
}

#[inline(never)]
fn bounce<B: Bus>(bus: &mut B, frame: &ReceivedFrame, base: u32) -> Option<u32> {
    if frame.length > POOL_FRAME {
        return None;
    }
    let front = PACKET_MEMORY_END - frame.start;
    copy(bus, frame.start, BOUNCE, front);
    copy(bus, base, BOUNCE + front, frame.length - front);
    Some(BOUNCE)
}

/// CPU B's end.
#[derive(Debug)]
pub struct Taker {
    taken: u32,
}

impl Taker {
    /// Nothing was taken.
    pub const fn new() -> Taker {
        Taker { taken: 0 }
    }
}

impl Default for Taker {
    fn default() -> Taker {
        Taker::new()
    }
}

/// Whether frames wait.
#[inline(always)]
pub fn waits<B: Dispatch>(taker: &Taker, io: &mut IoB<B>) -> bool {
    SPINE_QUEUED.get(&mut io.bus) != taker.taken
}

/// Transmits what is in the pool, as far as there is room.
pub fn transmit<B: Dispatch>(taker: &mut Taker, send: &mut SendPath, io: &mut IoB<B>) {
    while waits(taker, io) {
        let slot = io.bus.load(entry(taker.taken));
        let length = io.bus.load(slot);
        match own::transmit(send, io, slot + FRAME, length) {
            Ok(()) => {}
            Err(Wait::Reads) => {
                // The doorbell goes in front of the host's next frames, and what sees the reads
                // done goes in front of the doorbell.
                io.bus.set(EventBit::DmaReadComplete);
                io.bus.ring(Cpu::B);
                return;
            }
            Err(Wait::Later) => return io.arm_within(SlotB::Watch, AGAIN),
        }
        taker.taken = taker.taken.wrapping_add(1);
        SPINE_TAKEN.set(&io.me, &mut io.bus, taker.taken);
    }
}
