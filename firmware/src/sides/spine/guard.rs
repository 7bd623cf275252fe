//! Which frames go to which handler.
//!
//! A guard is up to three comparisons of a word of the frame under a mask, so that the host makes
//! "UDP to this port" of them and the card knows nothing of protocols. Guards are tried in their
//! order. The host writes them into the SPINE block; they count when they were taken over.
//!
//! Most frames are for no guard. So a [`Key`] is made of all guards: a halfword of the frame whose
//! lowest five bits each of them judges, and a bit for each value of these that any of them takes.
//! One look at it passes frames by, whatever the number of guards; only what it lets through is
//! held against the guards themselves.
//!
//! ```text
//! halfword of a frame  15 .. 5 │ 4 .. 0 │ ──► bit of `wanted`: 0 for nobody's
//! ```

use crate::memory::layout::{SPINE_BLOCK, SPINE_GUARDS};
use crate::path::receive::frame::wrapped;
use crate::path::receive::guarded;
use host_interface::spine::{
    self, GUARD_BYTES, GUARD_TERMS, GUARDS, GUARDS_TRANSFERS, TERM_BYTES, TERMS,
};
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;

/// A comparison.
#[derive(Clone, Copy, Debug)]
struct Term {
    offset: u32,
    mask: u32,
    value: u32,
}

/// A guard.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    terms: [Term; TERMS as usize],
    /// Whose handler.
    pub domain: u32,
    /// Which of its handlers.
    pub handler: u32,
    /// Bytes that a frame needs for it.
    bytes: u32,
}

impl Guard {
    /// All frames, to nobody.
    pub const NONE: Guard = Guard {
        terms: [Term {
            offset: 0,
            mask: 0,
            value: 0,
        }; TERMS as usize],
        domain: 0,
        handler: 0,
        bytes: 0,
    };

    /// As the host wrote it.
    pub fn load<B: Bus>(bus: &mut B, number: u32) -> Guard {
        Guard::at(bus, SPINE_BLOCK + spine::guard(number))
    }

    /// From its row.
    fn at<B: Bus>(bus: &mut B, row: u32) -> Guard {
        let whose = bus.load(row);
        let mut guard = Guard {
            domain: whose >> 8 & 0xFF,
            handler: whose & 0xFF,
            ..Guard::NONE
        };
        let mut at = row + GUARD_TERMS;
        for term in &mut guard.terms {
            let mask = bus.load(at + 4);
            if mask == 0 {
                break;
            }
            // A word that is aligned, within what the pool holds.
            let offset = bus.load(at) & 0x7FC;
            *term = Term {
                offset,
                mask,
                value: bus.load(at + 8),
            };
            guard.bytes = guard.bytes.max(offset + 4);
            at += TERM_BYTES;
        }
        guard
    }

    /// Its comparison of the word at an offset.
    fn term_at(&self, offset: u32) -> Option<&Term> {
        let mut terms = self.terms.iter();
        terms.find(|term| term.mask != 0 && term.offset == offset)
    }
}

/// What tells most frames from those that guards want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Offset of a halfword of the frame.
    offset: u32,
    /// A bit for each value of its lowest five bits: whether a guard may take it.
    wanted: u32,
}

/// The values of five bits.
const VALUES: u32 = 0x1F;

impl Key {
    /// Passes no frame by.
    const ALL: Key = Key {
        offset: 0,
        wanted: u32::MAX,
    };

    /// Passes all frames by, but those round the end of the buffer.
    const NONE: Key = Key {
        offset: 0,
        wanted: 0,
    };

    /// Of guards: of the halfwords whose lowest bits all of them judge the last one, as a port
    /// says more than a protocol.
    fn of(guards: &[Guard]) -> Key {
        let mut best = Key::ALL;
        let Some(first) = guards.first() else {
            return Key::NONE;
        };
        for term in &first.terms {
            for half in [0, 2] {
                let shift = 16 - 8 * half;
                let mut wanted = 0u32;
                for guard in guards {
                    wanted |= match guard.term_at(term.offset) {
                        Some(term) if term.mask >> shift & VALUES == VALUES => {
                            1 << (term.value >> shift & VALUES)
                        }
                        _ => u32::MAX,
                    };
                }
                if wanted != u32::MAX && term.offset + half >= best.offset {
                    best = Key {
                        offset: term.offset + half,
                        wanted,
                    };
                }
            }
        }
        best
    }
}

/// All guards, in their order. They lie in SRAM: few frames are held against them.
///
/// ```text
/// +0   bytes that a frame needs (16), domain (8), handler (8)
/// +4   terms: offset, mask, value; behind the last one mask 0
/// ```
#[derive(Debug)]
pub struct Guards {
    key: Key,
    count: u32,
}

impl Guards {
    /// None.
    pub const NONE: Guards = Guards {
        key: Key::NONE,
        count: 0,
    };

    /// How many there are.
    #[inline(always)]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Whether there are none.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// These count from now on.
    pub fn set<B: Bus>(&mut self, bus: &mut B, guards: &[Guard]) {
        let mut row = SPINE_GUARDS;
        for guard in guards {
            bus.store(row, guard.bytes << 16 | guard.domain << 8 | guard.handler);
            let mut at = row + GUARD_TERMS;
            for term in &guard.terms {
                bus.store(at, term.offset);
                bus.store(at + 4, term.mask);
                bus.store(at + 8, term.value);
                at += TERM_BYTES;
            }
            row += GUARD_BYTES;
        }
        self.count = guards.len() as u32;
        self.key = Key::of(guards);
    }

    /// Notes in those of a domain whether it has a lease.
    pub fn mark<B: Bus>(&mut self, bus: &mut B, domain: u32, has_lease: bool) {
        for number in 0..self.count {
            let row = SPINE_GUARDS + (number << 4) + (number << 5);
            let whose = bus.load(row);
            if whose >> 8 & 0xFF == domain {
                let marked = if has_lease { GUARDS_TRANSFERS } else { 0 };
                bus.store(row, whose & !GUARDS_TRANSFERS | marked);
            }
        }
    }

    /// Those of a domain count no more; the others keep their order.
    pub fn forget<B: Bus>(&mut self, bus: &mut B, domain: u32) {
        let mut left = [Guard::NONE; GUARDS as usize];
        let mut count = 0;
        for number in 0..self.count {
            let guard = Guard::at(bus, SPINE_GUARDS + (number << 4) + (number << 5));
            if guard.domain != domain
                && let Some(place) = left.get_mut(count)
            {
                *place = guard;
                count += 1;
            }
        }
        self.set(bus, left.get(..count).unwrap_or_default());
    }

    /// Domain in bits 15:8 and handler in bits 7:0 of the first guard that wants a frame, or
    /// [`NOBODY`]: in a register.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
    #[inline(never)]
    fn first<B: Bus>(&self, bus: &mut B, start: u32, length: u32, base: u32) -> u32 {
        let mut row = SPINE_GUARDS;
        for _ in 0..self.count {
            let whose = bus.load(row);
            if length >= whose >> 16 && holds(bus, row + GUARD_TERMS, start, base) {
                return whose & 0xFFFF;
            }
            row += GUARD_BYTES;
        }
        NOBODY
    }
}

/// Whether the terms at an address hold for the frame at `start`.
#[inline(always)]
fn holds<B: Bus>(bus: &mut B, mut at: u32, start: u32, base: u32) -> bool {
    let end = at + TERMS * TERM_BYTES;
    while at != end {
        let mask = bus.load(at + 4);
        if mask == 0 {
            break;
        }
        let offset = bus.load(at);
        let word = bus.load(wrapped(base, start + offset));
        if word & mask != bus.load(at + 8) {
            return false;
        }
        at += TERM_BYTES;
    }
    true
}

impl guarded::Key for Key {
    #[inline(always)]
    fn may_want<B: Bus>(self, bus: &mut B, start: u32) -> u32 {
        let at = start + self.offset;
        // The shift goes by the lowest five bits. Behind the end of the buffer, from where on
        // SRAM begins anew, the word is not the frame's.
        let wanted = self.wanted.wrapping_shr(bus.load_half(at).into());
        wanted | (at / PACKET_MEMORY_END)
    }
}

impl guarded::Guard for Guards {
    type Key = Key;
    /// Domain in bits 15:8, handler in bits 7:0.
    type Who = u32;

    #[inline(always)]
    fn key(&self) -> Key {
        self.key
    }

    #[inline(always)]
    fn find<B: Bus>(&self, bus: &mut B, start: u32, length: u32, base: u32) -> Option<u32> {
        match self.first(bus, start, length, base) {
            NOBODY => None,
            whose => Some(whose),
        }
    }
}

/// No domain and handler.
const NOBODY: u32 = u32::MAX;

#[cfg(test)]
mod tests;
