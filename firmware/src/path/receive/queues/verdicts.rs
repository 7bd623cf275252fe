//! Provides the verdicts on the next frames, as far as they exist.
//!
//! CPU B leaves them in their ring when it has nothing to send ([`crate::path::ahead`]). If there
//! are few, CPU A classifies some frames itself and announces this before, so that CPU B continues
//! after them:
//!
//! ```text
//!   released       classified        from (B's)            ahead (B's)
//!      v               v                v                     v
//!   ---+===============+----------------+=====================+----
//!      | CPU A's       | CPU A's next   | CPU B's             |
//! ```

use super::Receive;
use super::classify::Classify;
use crate::io::IoA;
use crate::memory::layout::{CLAIMED, VERDICT_SLOTS};
use crate::memory::shared::{
    QUEUE_AHEAD, QUEUE_AHEAD_FROM, QUEUE_EPOCH, QUEUE_HASHES, QUEUE_RELEASED,
};
use tigon2_chip::mac::{DESCRIPTOR_BYTES, RX_RING_BYTES};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// Descriptors of the MAC.
const DESCRIPTORS: u32 = RX_RING_BYTES / DESCRIPTOR_BYTES;

/// Where verdicts stand. Positions count frames, modulo 512 the numbers of their descriptors.
#[derive(Debug)]
pub struct Verdicts {
    /// The oldest frame that was not released.
    released: u32,
    /// The frames in front of this position have CPU A's own verdicts.
    classified: u32,
    /// The last number of a classifier by which CPU B was to classify.
    epoch: u32,
    /// Whether there is room for verdicts.
    pub(super) is_open: bool,
    /// Whether CPU B classifies, too.
    beside_b: bool,
}

impl Verdicts {
    /// Without a ring.
    pub const CLOSED: Verdicts = Verdicts {
        released: 0,
        classified: 0,
        epoch: 0,
        is_open: false,
        beside_b: false,
    };

    /// Frames are classified from now on, by another classifier than before; `by_b` by CPU B as
    /// well, whose rows are made. `oldest` is the number of the oldest descriptor.
    pub fn begin<B: Dispatch>(&mut self, io: &mut IoA<B>, oldest: u32, hashes: u32, by_b: bool) {
        // Turns of the ring further than anything that CPU B knows of.
        const TURNS: u32 = 2 * DESCRIPTORS;
        let behind = self.released & !(DESCRIPTORS - 1);
        self.released = behind.wrapping_add(TURNS) | oldest;
        self.classified = self.released;
        (self.is_open, self.beside_b) = (true, by_b);
        if by_b {
            self.epoch = self.epoch.wrapping_add(2) | 1;
            let (me, bus) = (&io.me, &mut io.bus);
            QUEUE_RELEASED.set(me, bus, self.released);
            QUEUE_HASHES.set(me, bus, hashes);
            QUEUE_EPOCH.set(me, bus, self.epoch);
            io.ring_b();
        }
    }

    /// No frame is classified until [`begin`](Self::begin).
    pub fn end<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        (self.is_open, self.beside_b) = (false, false);
        QUEUE_EPOCH.set(&io.me, &mut io.bus, 0);
    }

    /// So many frames were released.
    #[inline(always)]
    pub fn released(&mut self, count: u32) {
        self.released = self.released.wrapping_add(count);
    }

    /// A run is over: CPU B learns how far CPU A is.
    #[inline(always)]
    pub fn share<B: Dispatch>(&self, io: &mut IoA<B>) {
        if self.beside_b {
            QUEUE_RELEASED.set(&io.me, &mut io.bus, self.released);
            io.ring_b();
        }
    }

    /// How many of the next `most` frames have verdicts, after some were made if there were none;
    /// and whether no more frames are there.
    #[inline(never)]
    pub(super) fn look<B: Dispatch>(
        &mut self,
        receive: &Receive,
        classify: &mut Classify,
        io: &mut IoA<B>,
        most: u32,
    ) -> (u32, bool) {
        let ahead = |position: u32| {
            let distance = position.wrapping_sub(self.released);
            if distance <= VERDICT_SLOTS {
                distance
            } else {
                0
            }
        };
        let own = ahead(self.classified);
        if own != 0 {
            return (own.min(most), own >= most);
        }
        // Never in front of the MAC: CPU B would take the ring for full.
        let frames = receive.ring.view();
        let arrived = frames.arrived(self.released, frames.producer(&mut io.bus));
        let mut known = 0;
        let mut most_claimed = CLAIMED;
        let mut from_b = false;
        if self.beside_b {
            // In this order: CPU B writes them the other way round.
            let to = QUEUE_AHEAD.get(&mut io.bus);
            let from = ahead(QUEUE_AHEAD_FROM.get(&mut io.bus));
            if from != 0 {
                most_claimed = CLAIMED.min(from);
            } else {
                known = ahead(to);
                if known >= CLAIMED || known >= arrived {
                    return (known.min(most), known >= most || known >= arrived);
                }
                from_b = true;
            }
        }
        let claimed = arrived.saturating_sub(known).min(most_claimed);
        if from_b {
            let next = self.released.wrapping_add(known + claimed);
            QUEUE_RELEASED.set(&io.me, &mut io.bus, next);
        }
        self.classified = self.released.wrapping_add(known);
        self.make(receive, classify, &mut io.bus, claimed);
        let verdicts = known + claimed;
        (verdicts.min(most), verdicts >= arrived || verdicts >= most)
    }

    /// Makes verdicts on the next `count` frames, which have arrived.
    #[inline(always)]
    fn make<B: Bus>(
        &mut self,
        receive: &Receive,
        classify: &mut Classify,
        bus: &mut B,
        count: u32,
    ) {
        let frames = receive.ring.view();
        let by_hash = classify.makes_hashes();
        for _ in 0..count {
            let position = self.classified;
            if !(by_hash && classify.is_known(&frames, position, bus)) {
                classify.leave(&frames, position, receive.base, bus);
            }
            self.classified = position.wrapping_add(1);
        }
    }
}
