//! The descriptor of an endpoint that a datagram in the pool has taken.

use super::{Assembly, CLAIMED, Row};
use tigon2_hal::Bus;

/// A descriptor to receive, of one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sides::eudp) struct Claim {
    /// Whose it is.
    pub endpoint: u32,
    /// Its word.
    pub cookie: u32,
    /// Its piece of memory, as it says it.
    pub segment: [u32; 2],
}

impl Assembly {
    /// Whether it has taken one.
    #[inline(always)]
    pub(in crate::sides::eudp) fn is_claimed<B: Bus>(self, bus: &mut B) -> bool {
        self.get(bus, Row::From) & CLAIMED != 0
    }

    /// The descriptor that it has taken, if it has one.
    #[inline(never)]
    pub(in crate::sides::eudp) fn claim<B: Bus>(self, bus: &mut B) -> Option<Claim> {
        if !self.is_claimed(bus) {
            return None;
        }
        Some(Claim {
            endpoint: self.get(bus, Row::Claim),
            cookie: self.get(bus, Row::ClaimCookie),
            segment: [
                self.get(bus, Row::ClaimWhat),
                self.get(bus, Row::ClaimOffset),
            ],
        })
    }

    /// It has taken this one.
    pub(in crate::sides::eudp) fn set_claim<B: Bus>(self, bus: &mut B, claim: &Claim) {
        let [what, offset] = claim.segment;
        self.set(bus, Row::ClaimCookie, claim.cookie);
        self.set(bus, Row::ClaimWhat, what);
        self.set(bus, Row::ClaimOffset, offset);
        self.set(bus, Row::Claim, claim.endpoint);
        let from = self.get(bus, Row::From);
        self.set(bus, Row::From, from | CLAIMED);
    }

    /// It has none: what it had is completed, or its endpoint is closed.
    pub(in crate::sides::eudp) fn unclaim<B: Bus>(self, bus: &mut B) {
        let from = self.get(bus, Row::From);
        self.set(bus, Row::From, from & !CLAIMED);
    }

    /// Its memory is no more, and what it has taken is all that is to be given back.
    pub(in crate::sides::eudp) fn leave_memory<B: Bus>(self, bus: &mut B, claim: &Claim) {
        self.set(bus, Row::Endpoint, claim.endpoint);
        self.set(bus, Row::Cookie, claim.cookie);
        self.unclaim(bus);
    }
}
