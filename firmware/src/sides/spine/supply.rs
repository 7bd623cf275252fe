//! Frames from CPU A to the wire: a pool that CPU B empties.
//!
//! The receive buffer is freed in order, so a frame that is to go out again cannot wait there: it
//! is copied into a slot of the pool, with the words that the handler has changed, and CPU B
//! copies it into the transmit buffer, which is its own.
//!
//! ```text
//! slot  +0 bytes of the frame   +8 the frame
//!         taken          queued
//!           v              v
//! ----------+==============+-------   indices that wrap, modulo 8
//!           | for CPU B    |
//! ```

use crate::io::deadline::SlotB;
use crate::io::{IoA, IoB};
use crate::memory::layout::{ARENA, POOL, POOL_FRAME, POOL_SLOT, POOL_SLOTS};
use crate::memory::shared::{SPINE_QUEUED, SPINE_TAKEN};
use crate::path::copy;
use crate::path::send::SendPath;
use crate::path::send::own::{self, Wait};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Where the frame begins in its slot.
const FRAME: u32 = 8;
/// Where a frame lies that went round the end of the receive buffer.
const BOUNCE: u32 = POOL + POOL_SLOTS * POOL_SLOT + FRAME;
/// Microseconds until a frame is tried again that the wire had no room for.
const AGAIN: u32 = 10;

const fn slot(index: u32) -> u32 {
    POOL + ((index & (POOL_SLOTS - 1)) << POOL_SLOT.trailing_zeros())
}

const _: () = assert!(POOL_SLOTS.is_power_of_two() && slot(POOL_SLOTS - 1) + POOL_SLOT < ARENA);

/// CPU A's end of the pool.
#[derive(Debug)]
pub struct Pool {
    queued: u32,
    /// CPU B's index when it was last read.
    taken: u32,
}

impl Pool {
    /// Empty.
    pub const fn new() -> Pool {
        Pool {
            queued: 0,
            taken: 0,
        }
    }

    /// Whether a frame finds room.
    #[inline(always)]
    pub fn has_room<B: Bus>(&mut self, bus: &mut B) -> bool {
        if self.queued.wrapping_sub(self.taken) < POOL_SLOTS {
            return true;
        }
        self.taken = SPINE_TAKEN.get(bus);
        self.queued.wrapping_sub(self.taken) < POOL_SLOTS
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

    /// Queues a frame of `length` bytes whose words lie at `at`, with changed words. There is
    /// room.
    pub fn put<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        at: u32,
        length: u32,
        patches: &[(u32, u32)],
    ) {
        let slot = slot(self.queued);
        copy(&mut io.bus, at, slot + FRAME, length);
        for (index, value) in patches {
            io.bus.store(slot + FRAME + (index << 2), *value);
        }
        io.bus.store(slot, length);
        self.queued = self.queued.wrapping_add(1);
        SPINE_QUEUED.set(&io.me, &mut io.bus, self.queued);
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
        let slot = slot(taker.taken);
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
            Err(Wait::Later) => return io.arm(SlotB::Watch, AGAIN),
        }
        taker.taken = taker.taken.wrapping_add(1);
        SPINE_TAKEN.set(&io.me, &mut io.bus, taker.taken);
    }
}
