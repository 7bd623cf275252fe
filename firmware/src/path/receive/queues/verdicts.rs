//! Provides the verdicts on the next frames, as far as they exist.
//!
//! CPU B leaves them in their ring when it has nothing to send ([`crate::path::ahead`]). If there
//! are few, CPU A claims some frames and announces this before, so that CPU B continues after them:
//!
//! ```text
//!   released       classified        claimed = from (B's)       ahead (B's)
//!      v               v                v                          v
//!   ---+===============+----------------+==========================+----
//!      | CPU A's       | CPU A's,       | CPU B's verdicts         |
//!      | verdicts      | without        |
//! ```
//!
//! CPU A delivers claimed frames while it finds their flows in its cache; they need no verdict in
//! the ring then. From the first one on that is not there, it leaves verdicts on all that are left.
//!
//! After a run of few frames CPU B sleeps. The first few frames of the next run go by the cache and
//! are not claimed. If CPU B looks at them nevertheless, nobody takes its verdicts, and if CPU A
//! has to leave a verdict on such a frame, both leave the same one, or CPU B leaves the frame to
//! CPU A.

use super::classify::Classify;
use crate::io::IoA;
use crate::memory::layout::{CLAIMED, CLAIMED_MOST, VERDICT_SLOTS};
use crate::memory::shared::{
    QUEUE_AHEAD, QUEUE_AHEAD_FROM, QUEUE_EPOCH, QUEUE_HASHES, QUEUE_RELEASED,
};
use crate::path::receive::state::Receive;
use flow_classify::fields::Version;
use tigon2_chip::mac::{DESCRIPTOR_BYTES, RX_RING_BYTES};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// Descriptors of the MAC.
const DESCRIPTORS: u32 = RX_RING_BYTES / DESCRIPTOR_BYTES;

/// Runs of fewer frames do not ask for CPU B's help.
const FEW: u32 = 4;

/// Where verdicts stand. Positions count frames, modulo 512 the numbers of their descriptors.
#[derive(Debug)]
pub struct Verdicts {
    /// The oldest frame that was not released.
    released: u32,
    /// The frames in front of this position have CPU A's own verdicts.
    classified: u32,
    /// The frames in front of this position are CPU A's.
    claimed: u32,
    /// Whether most of the last frames were of flows in CPU A's cache.
    hits: bool,
    /// The version of IP that the last frame without a verdict was of.
    usual: Version,
    /// The last number of a classifier by which CPU B was to classify.
    epoch: u32,
    /// Whether there is room for verdicts.
    pub(super) is_open: bool,
    /// Whether CPU B classifies, too.
    beside_b: bool,
    /// Whether the last run had few frames.
    few: bool,
}

impl Verdicts {
    /// Without a ring.
    pub const CLOSED: Verdicts = Verdicts {
        released: 0,
        classified: 0,
        claimed: 0,
        hits: true,
        usual: Version::V4,
        epoch: 0,
        is_open: false,
        beside_b: false,
        few: false,
    };

    /// Frames are classified from now on, by another classifier than before; `by_b` by CPU B as
    /// well, whose rows are made. `oldest` is the number of the oldest descriptor.
    pub fn begin<B: Dispatch>(&mut self, io: &mut IoA<B>, oldest: u32, hashes: u32, by_b: bool) {
        // Turns of the ring further than anything that CPU B knows of.
        const TURNS: u32 = 2 * DESCRIPTORS;
        let behind = self.released & !(DESCRIPTORS - 1);
        self.released = behind.wrapping_add(TURNS) | oldest;
        self.classified = self.released;
        self.claimed = self.released;
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

    /// See [`count_frames`](super::state::Queues::count_frames).
    #[cfg(not(target_arch = "mips"))]
    pub const fn count_frames(&mut self, count: u32) {
        self.released = self.released.wrapping_add(count & !(DESCRIPTORS - 1));
    }

    /// A run of `count` frames is over: CPU B learns how far CPU A is. Few frames are not worth its
    /// while: CPU A classifies the next ones itself.
    #[inline(always)]
    pub fn share<B: Dispatch>(&mut self, io: &mut IoA<B>, count: u32) {
        self.few = count < FEW;
        if self.beside_b {
            // What it has claimed stays its own.
            let released = if self.has_claimed() {
                self.claimed
            } else {
                self.released
            };
            QUEUE_RELEASED.set(&io.me, &mut io.bus, released);
            if count >= FEW {
                io.ring_b();
            }
        }
    }

    /// What the next run goes by where the last one had few frames: the cache, and no frame is
    /// claimed. `None` for a [`look`](Self::look).
    #[inline(always)]
    pub(super) fn look_at_few(&mut self, classify: &Classify) -> Option<Next> {
        if !self.few || self.has_claimed() || !self.uses_cache(classify) {
            return None;
        }
        self.claim_nothing();
        Some(Next {
            by: By::Cache(self.usual),
            count: FEW,
            done: false,
        })
    }

    /// The claims end at the next frame. If they stayed behind, they would be ahead again 2^32
    /// frames later.
    #[inline(always)]
    const fn claim_nothing(&mut self) {
        (self.classified, self.claimed) = (self.released, self.released);
    }

    /// Whether frames are claimed that were not released.
    #[inline(always)]
    fn has_claimed(&self) -> bool {
        (self.claimed.wrapping_sub(self.released) as i32) > 0
    }

    /// What the next run of up to `most` frames goes by. If there are no verdicts, CPU A claims some
    /// frames; where few are of flows in its cache, it makes verdicts on them.
    #[inline(never)]
    pub(super) fn look<B: Dispatch>(
        &mut self,
        receive: &Receive,
        classify: &mut Classify,
        io: &mut IoA<B>,
        most: u32,
    ) -> Next {
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
            return Next::verdicts(own.min(most), own >= most);
        }
        let claimed = ahead(self.claimed);
        if claimed != 0 {
            if self.uses_cache(classify) {
                return self.of_claimed(claimed, most, false);
            }
            self.classified = self.released;
            self.make(receive, classify, &mut io.bus);
            let own = self.classified.wrapping_sub(self.released);
            return Next::verdicts(own.min(most), own >= most);
        }
        // Never in front of the MAC: CPU B would take the ring for full.
        let frames = receive.ring.view();
        let arrived = frames.arrived(self.released, frames.producer(&mut io.bus));
        let cached = self.uses_cache(classify);
        let mut known = 0;
        let mut most_claimed = CLAIMED_MOST;
        let mut from_b = false;
        if self.beside_b {
            // In this order: CPU B writes them the other way round.
            let to = QUEUE_AHEAD.get(&mut io.bus);
            let from = ahead(QUEUE_AHEAD_FROM.get(&mut io.bus));
            if from != 0 {
                most_claimed = CLAIMED_MOST.min(from);
            } else {
                known = ahead(to);
                if known >= CLAIMED || known != 0 && known >= arrived {
                    self.claim_nothing();
                    return Next::verdicts(known.min(most), known >= most || known >= arrived);
                }
                from_b = true;
                if cached {
                    // A run for a few of CPU B's verdicts costs more than they spare.
                    known = 0;
                }
                most_claimed -= known;
            }
        }
        let claimed = arrived.saturating_sub(known).min(most_claimed);
        let end = self.released.wrapping_add(known + claimed);
        if from_b {
            QUEUE_RELEASED.set(&io.me, &mut io.bus, end);
        }
        self.classified = self.released.wrapping_add(known);
        self.claimed = end;
        if cached {
            return self.of_claimed(claimed, most, claimed >= arrived);
        }
        self.make(receive, classify, &mut io.bus);
        let verdicts = self.classified.wrapping_sub(self.released);
        Next::verdicts(verdicts.min(most), verdicts >= arrived || verdicts >= most)
    }

    /// A run over claimed frames.
    fn of_claimed(&self, claimed: u32, most: u32, all: bool) -> Next {
        Next {
            by: By::Cache(self.usual),
            count: claimed.min(most),
            done: all || claimed >= most,
        }
    }

    /// The next frame is not of a flow in CPU A's cache, or not for the fast path: makes verdicts
    /// on this one and the other claimed frames.
    #[inline(never)]
    pub(super) fn missed<B: Dispatch>(
        &mut self,
        receive: &Receive,
        classify: &mut Classify,
        io: &mut IoA<B>,
    ) {
        if !self.has_claimed() {
            self.claimed = self.released.wrapping_add(1);
            if self.beside_b {
                QUEUE_RELEASED.set(&io.me, &mut io.bus, self.claimed);
            }
        }
        self.classified = self.released;
        let frames = receive.ring.view();
        self.usual = classify.version(&frames, self.released, receive.base, &mut io.bus);
        self.make(receive, classify, &mut io.bus);
    }

    /// Makes verdicts on the frames that are claimed and have none, some at a time.
    #[inline(never)]
    fn make<B: Bus>(&mut self, receive: &Receive, classify: &mut Classify, bus: &mut B) {
        let frames = receive.ring.view();
        let by_hash = classify.makes_hashes();
        let mut new = 0;
        for _ in 0..CLAIMED {
            let position = self.classified;
            if position == self.claimed {
                break;
            }
            if !(by_hash && classify.is_known(&frames, position, bus)) {
                new += classify.leave(&frames, position, receive.base, bus);
            }
            self.classified = position.wrapping_add(1);
        }
        self.hits = new < CLAIMED / 4;
    }

    /// Whether claimed frames are delivered by the cache: flows were found there lately.
    fn uses_cache(&self, classify: &Classify) -> bool {
        self.hits && classify.has_cache()
    }
}

/// What the next run goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    /// How the frames get their verdicts.
    pub by: By,
    /// Frames.
    pub count: u32,
    /// Whether there are no more, or as many as were asked for.
    pub done: bool,
}

impl Next {
    const fn verdicts(count: u32, done: bool) -> Next {
        Next {
            by: By::Verdicts,
            count,
            done,
        }
    }
}

/// How the frames of a run get their verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// They have them.
    Verdicts,
    /// From CPU A's cache of flows, in which flows of this version are looked for.
    Cache(Version),
}
