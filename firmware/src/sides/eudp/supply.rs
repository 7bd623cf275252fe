//! Receive descriptors as CPU A knows them: which slots are filled, what CPU A wants CPU B to fetch.

use super::completion::Reporter;
use super::each;
use super::pulls::{in_one_piece, pushed};
use crate::io::IoA;
use crate::memory::layout::EUDP_BLOCK;
use crate::memory::shared::{EUDP_PULLED, EUDP_WANTED};
use host_interface::eudp::{EndpointWord, FEW, SLOTS, endpoint_word, receive_slot};
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

impl Reporter {
    /// Whether the next descriptor to receive has its slot, or there is none.
    #[inline(always)]
    pub fn has_next<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> bool {
        let Some(queue) = self.queues.get(endpoint as usize) else {
            return true;
        };
        let left = queue.filled.wrapping_sub(queue.received) & 0xFFFF;
        // Nothing is to be seen to where all that there are have their slots.
        left > FEW || queue.filled == queue.produced || self.look(io, endpoint)
    }

    /// Looks after an endpoint's descriptors to receive, and asks CPU B for more. Returns whether
    /// the next one has its slot, or there is none.
    #[inline(never)]
    pub fn look<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> bool {
        let Reporter {
            queues,
            asked,
            wanted,
            ..
        } = self;
        let Some(queue) = queues.get_mut(endpoint as usize) else {
            return true;
        };
        let (next, producer) = (queue.received, queue.produced);
        let bit = 1 << endpoint;
        if queue.filled != producer && *asked & bit == 0 {
            let from = pushed(
                &mut io.bus,
                receive_slot,
                endpoint,
                (next, queue.filled, producer),
            );
            queue.filled = from;
            let here = from.wrapping_sub(next) & 0xFFFF;
            if from != producer && here <= FEW {
                let more = producer.wrapping_sub(from) & 0xFFFF;
                let count = more.min(SLOTS - here).min(in_one_piece(from));
                let row = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Address);
                if io.bus.load(row + EndpointWord::Descriptors as u32) == 0 {
                    // All that there are were to be pushed: they are judged as they are.
                    queue.filled = producer;
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
        next == producer || queue.filled != next
    }

    /// CPU B has rung: sees which descriptors are in their slots.
    #[inline(never)]
    pub fn supplied<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        let missing = self.wanted ^ EUDP_PULLED.get(&mut io.bus);
        let here = self.asked & !missing;
        for endpoint in each(here) {
            let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Wanted);
            let count = io.bus.load(at) >> 16;
            if let Some(queue) = self.queues.get_mut(endpoint as usize) {
                queue.filled = queue.filled.wrapping_add(count) & 0xFFFF;
            }
        }
        self.asked &= !here;
        // A frame may have waited for it.
        io.bus.set(EventBit::ReceiveComplete);
    }
}
