//! A DMA channel whose descriptors several CPUs fill, each at its own pace.
//!
//! A CPU *claims* descriptors of the ring and fills them later, while others queue more after
//! them. No descriptor after an unfilled one is passed to the channel:
//!
//! ```text
//!            producer register          ring's producer
//!                  v                          v
//! ring  ###########+-----------+######+-------+###
//!                  | CPU A's   |      | CPU C's
//!                  | claim     |      | claim
//! ```
//!
//! Each claim has a mark. The CPU that has filled the claim writes its findings there; the holder
//! of the side's lock advances the channel.

use core::sync::atomic::{AtomicU32, Ordering};
use tigon2_chip::Register;
use tigon2_hal::Bus;
use tigon2_hal::assist::Direction;
use tigon2_hal::schedule::fence;

/// Claims at a time, a power of two.
pub const CLAIMS: usize = 4;

/// For each claim its findings when filled; 0 until then.
#[derive(Debug, Default)]
pub struct Marks([AtomicU32; CLAIMS]);

impl Marks {
    /// Nothing is filled.
    pub const fn new() -> Marks {
        Marks([const { AtomicU32::new(0) }; CLAIMS])
    }

    /// Marks claim `number` as filled, after the stores of its descriptors; `found` is not 0.
    #[inline(always)]
    pub fn filled(&self, number: u32, found: u32) {
        fence();
        if let Some(mark) = self.0.get(number as usize % CLAIMS) {
            mark.store(found, Ordering::Relaxed);
        }
    }
}

/// The channel, and the claims that are not filled yet, in the ring's order.
#[derive(Debug)]
pub struct Ordered<D> {
    channel: D,
    /// Claims so far.
    claims: u32,
    /// Claims that are filled and settled.
    seen: u32,
    /// Where the channel has to stop: at the oldest claim.
    stop: u32,
    /// Where each begins in the ring.
    begins: [u32; CLAIMS],
}

impl<D> Ordered<D> {
    /// The channel, nothing claimed.
    pub const fn new(channel: D) -> Ordered<D> {
        Ordered {
            channel,
            claims: 0,
            seen: 0,
            stop: NOWHERE,
            begins: [0; CLAIMS],
        }
    }

    /// Whether nothing is claimed.
    #[inline(always)]
    pub const fn is_whole(&self) -> bool {
        self.stop == NOWHERE
    }

    /// Claims the descriptors that are queued from now on, from offset `begin` of the ring, until
    /// they are [filled](Marks::filled). Returns the claim's number, or `None` at the limit of
    /// claims.
    #[inline(always)]
    pub fn claim(&mut self, begin: u32) -> Option<u32> {
        let number = self.claims;
        if number.wrapping_sub(self.seen) as usize == CLAIMS {
            return None;
        }
        *self.begins.get_mut(number as usize % CLAIMS)? = begin;
        self.claims = number.wrapping_add(1);
        if self.is_whole() {
            self.stop = begin;
        }
        Some(number)
    }

    /// Withdraws the newest claim: nothing was queued.
    #[inline(always)]
    pub const fn take_back(&mut self) {
        self.claims = self.claims.wrapping_sub(1);
        if self.claims == self.seen {
            self.stop = NOWHERE;
        }
    }

    /// Advances past the oldest claim if it is filled. Returns its findings.
    #[inline(always)]
    pub fn settle(&mut self, marks: &Marks) -> Option<u32> {
        if self.is_whole() {
            return None;
        }
        let mark = marks.0.get(self.seen as usize % CLAIMS)?;
        let found = mark.load(Ordering::Relaxed);
        if found == 0 {
            return None;
        }
        mark.store(0, Ordering::Relaxed);
        self.seen = self.seen.wrapping_add(1);
        self.stop = if self.seen == self.claims {
            NOWHERE
        } else {
            *self.begins.get(self.seen as usize % CLAIMS)?
        };
        Some(found)
    }
}

/// No offset of a ring.
const NOWHERE: u32 = u32::MAX;

impl<D: Direction> Direction for Ordered<D> {
    const PRODUCER: Register = D::PRODUCER;
    const CONSUMER: Register = D::CONSUMER;
    const REFERENCE: Register = D::REFERENCE;
    const UNKNOWN: [Register; 3] = D::UNKNOWN;

    #[inline(always)]
    fn notify<B: Bus>(&self, bus: &mut B, end: u32) {
        let end = if self.is_whole() { end } else { self.stop };
        self.channel.notify(bus, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The channel stops in front of the oldest claim that is not filled, in whatever order
    /// they are.
    #[test]
    fn claims_are_let_go_in_order() {
        let (mut channel, marks) = (Ordered::new(()), Marks::new());
        assert_eq!(channel.claim(0x20), Some(0));
        assert_eq!(channel.claim(0x100), Some(1));
        assert_eq!(channel.claim(0x180), Some(2));
        assert_eq!(channel.stop, 0x20);
        marks.filled(1, 7);
        assert_eq!(channel.settle(&marks), None);
        marks.filled(0, 5);
        assert_eq!(channel.settle(&marks), Some(5));
        assert_eq!(channel.stop, 0x100);
        assert_eq!(channel.settle(&marks), Some(7));
        assert_eq!((channel.settle(&marks), channel.stop), (None, 0x180));
        assert_eq!(channel.claim(0x200), Some(3));
        channel.take_back();
        assert!(!channel.is_whole());
        for number in 3..=5 {
            assert_eq!(channel.claim(0x200), Some(number));
        }
        assert_eq!(channel.claim(0x200), None, "as many as there are marks");
        for number in 2..=5 {
            marks.filled(number, number);
        }
        for number in 2..=5 {
            assert_eq!(channel.settle(&marks), Some(number));
        }
        assert!(channel.is_whole());
        assert_eq!(channel.claim(0x40), Some(6));
        channel.take_back();
        assert!(channel.is_whole());
    }
}
