//! Receive descriptors as CPU A knows them: which slots are filled, what CPU A wants CPU B to fetch.
//!
//! ```text
//!      finished     received         filled        produced
//!   ------+############+================+##############+----   modulo 2^16; slot: modulo SLOTS
//!         | in RDMA    | in their slots | to be looked for
//! ```
//!
//! A slot is free when its datagram is written: until then the descriptor may be posted again.
//!
//! While more than [`FEW`] are in their slots, a ring of the process's changes nothing: CPU A reads
//! the mailbox when only few are left.

use super::completion::{Completions, Reporter};
use super::pulls::{in_one_piece, pushed};
use super::{EudpA, each, mailbox_word, room, word};
use crate::io::IoA;
use crate::memory::layout::EUDP_BLOCK;
use crate::memory::shared::{EUDP_PULLED, EUDP_WANTED};
use host_interface::eudp::{
    BlockWord, COMMAND_MAILBOX, EndpointWord, FEW, MAILBOX, SLOTS, endpoint_word, receive_slot,
};
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// The producer of an endpoint with enough descriptors, which is no number of one.
const UNKNOWN: u32 = u32::MAX;

/// Whether CPU A has to see to mailboxes that were rung, of commands or endpoints.
#[inline(always)]
pub fn is_concerned(eudp: &mut EudpA, pending: u32) -> bool {
    let enough = eudp.parts().map_or(0, |(reporter, _)| reporter.enough);
    (pending & !(enough << MAILBOX)) >> COMMAND_MAILBOX != 0
}

impl Completions {
    /// Whether more than few descriptors to receive are in their slots.
    #[inline(always)]
    const fn has_enough(&self) -> bool {
        self.filled.wrapping_sub(self.received) & 0xFFFF > FEW
    }

    /// The bit of an endpoint that has enough: its producer is not kept up to date from now on.
    #[inline(always)]
    const fn settle(&mut self, endpoint: u32) -> u32 {
        if !self.has_enough() {
            return 0;
        }
        self.produced = UNKNOWN;
        1 << endpoint
    }
}

impl Reporter {
    /// Whether the next descriptor to receive has its slot, or there is none.
    #[inline(always)]
    pub fn has_next<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> bool {
        let Some(queue) = self.queues.get(endpoint as usize) else {
            return true;
        };
        // Nothing is to be seen to where all that there are have their slots, or CPU B brings more. If
        // none is in its slot, the process may have rung, and this event comes before that of the
        // mailbox.
        let is_asked = self.asked >> endpoint & 1 != 0;
        let is_seen_to = queue.filled == queue.produced || is_asked;
        queue.has_enough()
            || is_seen_to && queue.filled != queue.received
            || self.look(io, endpoint)
    }

    /// Looks after the descriptors to receive of endpoints whose mailboxes were rung.
    #[inline(always)]
    pub fn rung<B: Dispatch>(&mut self, io: &mut IoA<B>, rung: u32) {
        for endpoint in each(rung & self.open & !self.enough) {
            self.look(io, endpoint);
        }
    }

    /// Looks after an endpoint's descriptors to receive: takes their producer, sees which are in
    /// their slots, and asks CPU B for more. Returns whether the next one has its slot, or there is
    /// none.
    #[inline(never)]
    pub fn look<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> bool {
        let Reporter {
            queues,
            asked,
            wanted,
            enough,
            follows,
            ..
        } = self;
        let Some(queue) = queues.get_mut(endpoint as usize) else {
            return true;
        };
        let (next, oldest) = (queue.received, queue.finished);
        // No more than there is room for, whatever the process writes.
        let waiting = io.bus.load(mailbox_word(endpoint)).wrapping_sub(next) & 0xFFFF;
        let waiting = waiting.min(room(&mut io.bus, endpoint));
        let producer = next.wrapping_add(waiting) & 0xFFFF;
        queue.produced = producer;
        if waiting != 0 {
            *follows = io.bus.load(word(BlockWord::Lead)) != 0;
            io.bus.set_to(EventBit::FollowFrame, *follows);
        }
        let bit = 1 << endpoint;
        if queue.filled != producer && *asked & bit == 0 {
            let from = pushed(
                &mut io.bus,
                receive_slot,
                endpoint,
                (oldest, queue.filled, producer),
            );
            queue.filled = from;
            let here = from.wrapping_sub(next) & 0xFFFF;
            if from != producer && here <= FEW {
                let more = producer.wrapping_sub(from) & 0xFFFF;
                let used = from.wrapping_sub(oldest) & 0xFFFF;
                let count = more.min(SLOTS - used).min(in_one_piece(from));
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
        *enough = *enough & !bit | queue.settle(endpoint);
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
                self.enough |= queue.settle(endpoint);
            }
        }
        self.asked &= !here;
        // A frame may have waited for it.
        io.bus.set(EventBit::ReceiveComplete);
    }
}
