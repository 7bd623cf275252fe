//! Descriptors from the process's memory: the lower level of the queues.
//!
//! [`host_interface::eudp`], two-level queues. What the process has not pushed into the slots is
//! pulled there, up to [`SLOTS`] descriptors by one transfer, when no more than [`HALF`] are left:
//! the card clocks itself, without an interrupt. The read channel is CPU B's; CPU A asks it for
//! descriptors to receive.
//!
//! ```text
//!           next       filled           producer
//!   ...done | in slots | in L1, or slots | not posted
//! ```
//!
//! `filled` moves over descriptors that were pushed when it is looked at, and over those that were
//! pulled when they have arrived; in between, a slot may have a head without its pieces.

use super::job::Next;
use super::{ALL, bump, each, has_more, word};
use crate::io::IoB;
use crate::io::note::ReadNote;
use crate::memory::layout::EUDP_BLOCK;
use crate::memory::shared::{EUDP_PULLED, EUDP_WANTED};
use host_interface::eudp::{
    BlockWord, DESCRIPTOR_BYTES, DescriptorWord, EndpointWord, HALF, SLOTS, endpoint_word, posted,
    receive_slot, send_slot,
};
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, HostAddress};
use tigon2_hal::Bus;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// A queue's number is twice its endpoint's, and one more for descriptors to receive.
const RECEIVE: u32 = 1;
/// Bits of it in a transfer's note; the number of descriptors stands above.
const QUEUE_BITS: u32 = 5;
/// CPU B's view of the slots.
#[derive(Debug)]
pub struct Pulls {
    /// The queues of which descriptors are on their way.
    under_way: u32,
    /// CPU A's wishes that were taken up, and those that are fulfilled: bits that change.
    taken: u32,
    fulfilled: u32,
}

impl Pulls {
    /// Nothing was pulled.
    pub const fn new() -> Pulls {
        Pulls {
            under_way: 0,
            taken: 0,
            fulfilled: 0,
        }
    }

    /// Whether descriptors of an endpoint are on their way.
    pub const fn works_for(&self, endpoints: u32) -> bool {
        let mut left = self.under_way;
        let mut of = endpoints;
        while left != 0 {
            if left & 3 != 0 && of & 1 != 0 {
                return true;
            }
            left >>= 2;
            of >>= 1;
        }
        false
    }

    /// Whether descriptors of an endpoint to send are on their way.
    #[inline(always)]
    pub const fn are_under_way(&self, endpoint: u32) -> bool {
        self.under_way >> (endpoint << 1) & 1 != 0
    }

    /// Whether the slot of this descriptor, the first that is not known to be filled, has it.
    #[inline(always)]
    pub(super) fn sees_pushed<B: Bus>(&mut self, bus: &mut B, next: Next) -> bool {
        let Next {
            endpoint, number, ..
        } = next;
        let status = next.descriptor + DescriptorWord::Status as u32;
        let here = !self.are_under_way(endpoint) && bus.load(status) == posted(number);
        if here {
            bus.store(filled_at(endpoint), number.wrapping_add(1) & 0xFFFF);
        }
        here
    }

    /// Looks at the slots behind those that have their descriptors. Returns up to where they have them
    /// now.
    #[inline(always)]
    pub(super) fn look<B: Bus>(
        &mut self,
        bus: &mut B,
        endpoint: u32,
        next: u32,
        producer: u32,
    ) -> u32 {
        let mut filled = filled(bus, endpoint);
        if filled != producer && !self.are_under_way(endpoint) {
            filled = pushed(bus, send_slot, endpoint, (next, filled, producer));
            bus.store(filled_at(endpoint), filled);
        }
        filled
    }

    /// Pulls descriptors to send if few are in slots. Returns up to where slots have theirs.
    #[inline(always)]
    pub fn fetch<B: Dispatch>(
        &mut self,
        io: &mut IoB<B>,
        endpoint: u32,
        next: u32,
        producer: u32,
    ) -> u32 {
        let filled = self.look(&mut io.bus, endpoint, next, producer);
        let left = filled.wrapping_sub(next) & 0xFFFF;
        let free = free(&mut io.bus, endpoint, filled);
        // What is pulled with one transfer is to be worth it.
        let enough = left <= HALF && free >= HALF;
        if filled != producer && enough && has_more(&mut io.bus, endpoint) {
            let count = (producer.wrapping_sub(filled) & 0xFFFF).min(free);
            self.pull(io, endpoint << 1, filled, count);
        }
        filled
    }

    /// Pulls descriptors to send behind those that are in slots. Returns whether some come.
    #[inline(never)]
    pub fn pull_to_send<B: Dispatch>(
        &mut self,
        io: &mut IoB<B>,
        endpoint: u32,
        producer: u32,
    ) -> bool {
        let from = filled(&mut io.bus, endpoint);
        let free = free(&mut io.bus, endpoint, from);
        let count = (producer.wrapping_sub(from) & 0xFFFF).min(free);
        self.pull(io, endpoint << 1, from, count)
    }

    /// Pulls `count` descriptors of a queue, or as many as lie in one piece. Returns whether some
    /// come.
    #[inline(never)]
    fn pull<B: Dispatch>(&mut self, io: &mut IoB<B>, queue: u32, from: u32, count: u32) -> bool {
        if self.under_way & 1 << queue != 0 {
            return true;
        }
        let count = count.min(in_one_piece(from));
        if count == 0 || !io.read_ring.has_room(1) {
            return false;
        }
        let endpoint = queue >> 1;
        let row = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Address);
        let mut of = |word: EndpointWord| io.bus.load(row + word as u32);
        let entries = of(EndpointWord::Descriptors);
        let base = HostAddress {
            high: of(EndpointWord::QueuesHigh),
            low: of(EndpointWord::QueuesLow),
        };
        let mut entry = from & entries.wrapping_sub(1);
        let mut slot = send_slot(endpoint, from);
        if queue & RECEIVE != 0 {
            entry += entries;
            slot = receive_slot(endpoint, from);
        }
        let transfer = Transfer {
            host: base.plus(bytes(entry)),
            local: EUDP_BLOCK + slot,
            length: bytes(count),
            state: io.states.words,
            note: ReadNote::pull(queue | count << QUEUE_BITS).word(),
        };
        io.read_ring.put(&mut io.bus, &transfer);
        self.under_way |= 1 << queue;
        bump(&mut io.bus, word(BlockWord::Pulls));
        true
    }

    /// What CPU A wishes for.
    #[inline(always)]
    pub fn wished<B: Dispatch>(&mut self, io: &mut IoB<B>, open: u32) {
        let wished = (EUDP_WANTED.get(&mut io.bus) ^ self.taken) & ALL;
        if wished != 0 {
            self.take_up(io, wished, open);
        }
    }

    #[inline(never)]
    fn take_up<B: Dispatch>(&mut self, io: &mut IoB<B>, wished: u32, open: u32) {
        for endpoint in each(wished) {
            let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Wanted);
            let wanted = io.bus.load(at);
            if open & 1 << endpoint == 0 {
                self.fulfil(io, endpoint);
            } else if !self.pull(io, endpoint << 1 | RECEIVE, wanted & 0xFFFF, wanted >> 16) {
                // The channel has no room. What sees its reads done goes first.
                io.bus.set(EventBit::DmaReadComplete);
                io.bus.ring(Cpu::B);
                return;
            }
            self.taken ^= 1 << endpoint;
        }
    }

    fn fulfil<B: Dispatch>(&mut self, io: &mut IoB<B>, endpoint: u32) {
        self.fulfilled ^= 1 << endpoint;
        EUDP_PULLED.set(&io.me, &mut io.bus, self.fulfilled);
        io.ring_a();
    }

    /// Descriptors have arrived. Returns the endpoint that they are to be sent for.
    pub(super) fn arrived<B: Dispatch>(&mut self, io: &mut IoB<B>, what: u32) -> Option<u32> {
        let queue = what & ((1 << QUEUE_BITS) - 1);
        let (endpoint, count) = (queue >> 1, what >> QUEUE_BITS);
        self.under_way &= !(1 << queue);
        if queue & RECEIVE != 0 {
            self.fulfil(io, endpoint);
            return None;
        }
        let filled = filled(&mut io.bus, endpoint) + count;
        io.bus.store(filled_at(endpoint), filled & 0xFFFF);
        Some(endpoint)
    }
}

const fn filled_at(endpoint: u32) -> u32 {
    EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Filled)
}

/// Up to where the slots of an endpoint's queue to send have their descriptors.
#[inline(always)]
pub fn filled<B: Bus>(bus: &mut B, endpoint: u32) -> u32 {
    bus.load(filled_at(endpoint))
}

/// How many slots of an endpoint's queue to send are free behind `filled`: what was not reported still
/// has its slot.
#[inline(always)]
fn free<B: Bus>(bus: &mut B, endpoint: u32, filled: u32) -> u32 {
    let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Reported);
    (bus.load(at) + SLOTS).wrapping_sub(filled) & 0xFFFF
}

impl Default for Pulls {
    fn default() -> Pulls {
        Pulls::new()
    }
}

/// How many descriptors from this one on lie in one piece, in slots as in L1.
#[inline(always)]
pub(super) const fn in_one_piece(from: u32) -> u32 {
    SLOTS - (from & (SLOTS - 1))
}

/// Bytes of some descriptors; the chip cannot multiply.
#[inline(always)]
const fn bytes(descriptors: u32) -> u32 {
    (descriptors << 6) + (descriptors << 4)
}

/// Up to where the slots have their descriptors, from `filled` on.
#[inline(always)]
pub(super) fn pushed<B: Bus>(
    bus: &mut B,
    slot: fn(u32, u32) -> u32,
    endpoint: u32,
    (next, mut filled, producer): (u32, u32, u32),
) -> u32 {
    while filled != producer && filled.wrapping_sub(next) & 0xFFFF < SLOTS {
        let at = EUDP_BLOCK + slot(endpoint, filled) + DescriptorWord::Status as u32;
        if bus.load(at) != posted(filled) {
            break;
        }
        filled = filled.wrapping_add(1) & 0xFFFF;
    }
    filled
}

const _: () = assert!(bytes(1) == DESCRIPTOR_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_waits_for_its_own_descriptors() {
        let mut pulls = Pulls::new();
        pulls.under_way = 1 << 7 | 1 << 20;
        for endpoint in 0..16 {
            let waits = pulls.works_for(1 << endpoint);
            assert_eq!(waits, [3, 10].contains(&endpoint), "{endpoint}");
        }
        assert!(!Pulls::new().works_for(ALL));
    }
}
