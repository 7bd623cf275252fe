//! The descriptor of an endpoint that a datagram in the pool has taken.

use super::{Assembly, Row};
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
    /// The descriptor that it has taken, if it has one.
    #[inline(never)]
    pub(in crate::sides::eudp) fn claim<B: Bus>(self, bus: &mut B) -> Option<Claim> {
        let endpoint = self.get(bus, Row::Claim).checked_sub(1)?;
        Some(Claim {
            endpoint,
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
        self.set(bus, Row::Claim, claim.endpoint + 1);
    }

    /// It has none: what it had is completed, or its endpoint is closed.
    pub(in crate::sides::eudp) fn unclaim<B: Bus>(self, bus: &mut B) {
        self.set(bus, Row::Claim, 0);
    }

    /// Its memory is no more, and what it has taken is all that is to be given back.
    pub(in crate::sides::eudp) fn leave_memory<B: Bus>(self, bus: &mut B, claim: &Claim) {
        self.set(bus, Row::Endpoint, claim.endpoint);
        self.set(bus, Row::Cookie, claim.cookie);
        self.unclaim(bus);
    }
}
