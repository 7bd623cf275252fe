//! Events that the host is to get, until there is room in its ring.
//!
//! Host/NIC software interface, "Events". Whoever has something to report posts it here;
//! `control::host_events` writes it to the host.

use crate::memory::statistics::count;
use heapless::Deque;
use tigon2_hal::Bus;

/// Events that can wait.
const WAITING: usize = 8;

/// A short queue of event words.
#[derive(Debug)]
pub struct Outbox {
    waiting: Deque<u32, WAITING>,
}

impl Outbox {
    /// Nothing waits.
    pub const fn new() -> Outbox {
        Outbox {
            waiting: Deque::new(),
        }
    }

    /// Puts an event behind the others. With the queue full the event is lost and counted:
    /// the host has not read its ring for long.
    pub fn post<B: Bus>(&mut self, bus: &mut B, word: u32) {
        if self.waiting.push_back(word).is_err() {
            count!(*bus, event_ring_full);
        }
    }

    /// Whether nothing waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The oldest event.
    pub fn oldest(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// The oldest event is on its way.
    pub fn sent(&mut self) {
        let _ = self.waiting.pop_front();
    }
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox::new()
    }
}
