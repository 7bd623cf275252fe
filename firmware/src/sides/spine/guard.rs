//! Which frames go to which handler.
//!
//! A guard is up to three comparisons of a word of the frame under a mask, so that the host makes
//! "UDP to this port" of them and the card knows nothing of protocols. Guards are tried in their
//! order. The host writes them into the SPINE block; they count when they were taken over.

use crate::memory::layout::SPINE_BLOCK;
use host_interface::spine::{self, GUARD_TERMS, GUARDS, TERM_BYTES, TERMS};
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
    const NONE: Guard = Guard {
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
        let row = SPINE_BLOCK + spine::guard(number);
        let whose = bus.load(row);
        let mut guard = Guard {
            domain: whose >> 8 & 0xFF,
            handler: whose & 0xFF,
            ..Guard::NONE
        };
        let mut at = row + GUARD_TERMS;
        for term in &mut guard.terms {
            let mask = bus.load(at + 4);
            // A word that is aligned, within what the pool holds.
            let offset = bus.load(at) & 0x7FC;
            *term = Term {
                offset,
                mask,
                value: bus.load(at + 8),
            };
            if mask != 0 && offset + 4 > guard.bytes {
                guard.bytes = offset + 4;
            }
            at += TERM_BYTES;
        }
        guard
    }

    /// Whether it wants a frame of `length` bytes that begins at `start`; the receive buffer
    /// begins at `base`.
    #[inline(always)]
    fn wants<B: Bus>(&self, bus: &mut B, start: u32, length: u32, base: u32) -> bool {
        if length < self.bytes {
            return false;
        }
        for term in &self.terms {
            if term.mask == 0 {
                break;
            }
            let mut at = start + term.offset;
            if at >= PACKET_MEMORY_END {
                at -= PACKET_MEMORY_END - base;
            }
            if bus.load(at) & term.mask != term.value {
                return false;
            }
        }
        true
    }
}

/// All guards, in their order.
#[derive(Debug)]
pub struct Guards {
    table: [Guard; GUARDS as usize],
    count: usize,
}

impl Guards {
    /// None.
    pub const NONE: Guards = Guards {
        table: [Guard::NONE; GUARDS as usize],
        count: 0,
    };

    /// Those that count.
    #[inline(always)]
    pub fn all(&self) -> &[Guard] {
        self.table.get(..self.count).unwrap_or_default()
    }

    /// One more counts.
    pub fn push(&mut self, guard: Guard) {
        if let Some(place) = self.table.get_mut(self.count) {
            *place = guard;
            self.count += 1;
        }
    }

    /// Those of a domain count no more; the others keep their order.
    pub fn forget(&mut self, domain: u32) {
        let old = core::mem::replace(self, Guards::NONE);
        for guard in old.all() {
            if guard.domain != domain {
                self.push(*guard);
            }
        }
    }

    /// Domain and handler of the first guard that wants a frame of `length` bytes that begins at
    /// `start` of the receive buffer, which begins at `base`.
    #[inline(always)]
    pub fn find<B: Bus>(
        &self,
        bus: &mut B,
        start: u32,
        length: u32,
        base: u32,
    ) -> Option<(u32, u32)> {
        for guard in self.all() {
            if guard.wants(bus, start, length, base) {
                return Some((guard.domain, guard.handler));
            }
        }
        None
    }
}
