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

use super::completion::Reporter;
use super::sender::Sender;
use super::{ALL, EudpB, bump, each, has_more, word};
use crate::io::note::ReadNote;
use crate::io::{IoA, IoB};
use crate::memory::layout::EUDP_BLOCK;
use crate::memory::shared::{EUDP_PULLED, EUDP_WANTED};
use crate::path::send::SendPath;
use host_interface::eudp::{
    BlockWord, DESCRIPTOR_BYTES, DescriptorWord, EndpointWord, HALF, SLOTS, endpoint_word, posted,
    receive_slot, send_slot,
};
use tigon2_chip::dma::DmaDescriptorAt;
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, HostAddress};
use tigon2_hal::Bus;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// A queue's number is twice its endpoint's, and one more for descriptors to receive.
const RECEIVE: u32 = 1;
/// Bits of it in a transfer's note; the number of descriptors stands above.
const QUEUE_BITS: u32 = 5;
/// A descriptor that names too many pieces.
const NONSENSE: u32 = 0xFF << 24;

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

    /// Looks at the slots behind those that have their descriptors; returns whether descriptor
    /// `next` has its own.
    #[inline(always)]
    pub fn look<B: Bus>(&mut self, bus: &mut B, endpoint: u32, next: u32, producer: u32) -> bool {
        let mut filled = filled(bus, endpoint);
        if filled != producer && self.under_way & 1 << (endpoint << 1) == 0 {
            filled = pushed(bus, send_slot, endpoint, (next, filled, producer));
            bus.store(filled_at(endpoint), filled);
        }
        filled != next
    }

    /// Pulls descriptors to send if few are in slots.
    #[inline(never)]
    pub fn refill<B: Dispatch>(
        &mut self,
        io: &mut IoB<B>,
        endpoint: u32,
        next: u32,
        producer: u32,
    ) {
        self.look(&mut io.bus, endpoint, next, producer);
        let filled = filled(&mut io.bus, endpoint);
        let left = filled.wrapping_sub(next) & 0xFFFF;
        let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Reported);
        let free = (io.bus.load(at) + SLOTS).wrapping_sub(filled) & 0xFFFF;
        // What is pulled with one transfer is to be worth it.
        let enough = left <= HALF && free >= HALF;
        if filled != producer && enough && has_more(&mut io.bus, endpoint) {
            self.pull_to_send(io, endpoint, producer);
        }
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
        let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Reported);
        // What was not reported still has its slot.
        let behind = io.bus.load(at) + SLOTS;
        let free = behind.wrapping_sub(from) & 0xFFFF;
        let count = (producer.wrapping_sub(from) & 0xFFFF).min(free);
        self.pull(io, endpoint << 1, from, count)
    }

    /// Pulls `count` descriptors of a queue, or as many as lie in one piece. Returns whether some
    /// come.
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
        let (low, carry) = base.low.overflowing_add(bytes(entry));
        let transfer = Transfer {
            host: HostAddress {
                high: base.high.wrapping_add(u32::from(carry)),
                low,
            },
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
    fn arrived<B: Dispatch>(&mut self, io: &mut IoB<B>, what: u32) -> Option<u32> {
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

impl Default for Pulls {
    fn default() -> Pulls {
        Pulls::new()
    }
}

/// DMA Read Complete: descriptors are in their slots.
#[inline(never)]
pub fn arrived<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>, what: u32) {
    if let Some(sender) = eudp.0.first_mut() {
        let to_send = sender.pulls.arrived(io, what);
        sender.refilled(to_send, send, io);
    }
}

/// DMA read attention: the transfer at `descriptor` has failed. What its slots would have had is
/// refused when its turn comes.
#[inline(never)]
pub fn failed<B: Dispatch>(
    eudp: &mut EudpB,
    send: &mut SendPath,
    io: &mut IoB<B>,
    descriptor: u32,
    what: u32,
) {
    let at = DmaDescriptorAt(descriptor);
    let bus = &mut io.bus;
    let mut slot = bus.load(at.local());
    let end = slot + (bus.load(at.length()) & 0xFFFF);
    while slot < end {
        bus.store(slot + DescriptorWord::Cookie as u32, 0);
        bus.store(slot + DescriptorWord::Shape as u32, NONSENSE);
        // A compiler would divide, which the chip cannot.
        slot = barrier(slot + DESCRIPTOR_BYTES);
    }
    io.read_ring.set_note(descriptor, ReadNote::NOTHING.word());
    arrived(eudp, send, io, what);
}

impl Sender {
    /// Descriptors have arrived: those to send are sent, and an endpoint that was waited for is
    /// closed.
    fn refilled<B: Dispatch>(
        &mut self,
        to_send: Option<u32>,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) {
        if let Some(endpoint) = to_send {
            self.is_supplied_again(endpoint, io);
        }
        self.close_if_asked(send, io);
        self.go_on(send, io);
    }
}

impl Reporter {
    /// Whether the next descriptor to receive has its slot, or there is none.
    #[inline(always)]
    pub fn has_next<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> bool {
        let queue = self.queues.get(endpoint as usize);
        let filled = self.filled.get(endpoint as usize);
        let (Some(queue), Some(filled)) = (queue, filled) else {
            return true;
        };
        let left = u32::from(*filled).wrapping_sub(queue.received) & 0xFFFF;
        left > HALF || self.look(io, endpoint)
    }

    /// Looks after an endpoint's descriptors to receive, and asks CPU B for more. Returns whether
    /// the next one has its slot, or there is none.
    #[inline(never)]
    pub fn look<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> bool {
        let Reporter {
            queues,
            filled,
            asked,
            wanted,
            ..
        } = self;
        let (Some(queue), Some(filled)) = (
            queues.get(endpoint as usize),
            filled.get_mut(endpoint as usize),
        ) else {
            return true;
        };
        let (next, producer) = (queue.received, queue.produced);
        let bit = 1 << endpoint;
        if u32::from(*filled) != producer && *asked & bit == 0 {
            let from = pushed(
                &mut io.bus,
                receive_slot,
                endpoint,
                (next, u32::from(*filled), producer),
            );
            *filled = from as u16;
            let here = from.wrapping_sub(next) & 0xFFFF;
            if from != producer && here <= HALF {
                let more = producer.wrapping_sub(from) & 0xFFFF;
                let count = more.min(SLOTS - here).min(in_one_piece(from));
                let row = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Address);
                if io.bus.load(row + EndpointWord::Descriptors as u32) == 0 {
                    // All that there are were to be pushed: they are judged as they are.
                    *filled = producer as u16;
                } else {
                    io.bus
                        .store(row + EndpointWord::Wanted as u32, count << 16 | from);
                    *asked |= bit;
                    *wanted ^= bit;
                    EUDP_WANTED.set(&io.me, &mut io.bus, *wanted);
                    io.ring_b();
                }
            }
        }
        next == producer || u32::from(*filled) != next
    }

    /// CPU B has rung: sees which descriptors are in their slots.
    #[inline(never)]
    pub fn supplied<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        let missing = self.wanted ^ EUDP_PULLED.get(&mut io.bus);
        let here = self.asked & !missing;
        for endpoint in each(here) {
            let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Wanted);
            let count = io.bus.load(at) >> 16;
            if let Some(filled) = self.filled.get_mut(endpoint as usize) {
                *filled = filled.wrapping_add(count as u16);
            }
        }
        self.asked &= !here;
        // A frame may have waited for it.
        io.bus.set(EventBit::ReceiveComplete);
    }
}

/// How many descriptors from this one on lie in one piece, in slots as in L1.
#[inline(always)]
const fn in_one_piece(from: u32) -> u32 {
    SLOTS - (from & (SLOTS - 1))
}

/// Bytes of some descriptors; the chip cannot multiply.
#[inline(always)]
const fn bytes(descriptors: u32) -> u32 {
    (descriptors << 6) + (descriptors << 4)
}

/// Up to where the slots have their descriptors, from `filled` on.
#[inline(always)]
fn pushed<B: Bus>(
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
