//! Events for the host, queued until its ring has room.
//!
//! Host/NIC software interface, "Events". Every module posts its events here;
//! `control::host_events` writes them to the host.

use crate::memory::statistics::count;
use heapless::Deque;
use tigon2_hal::Bus;

/// The capacity.
const WAITING: usize = 8;

/// A short queue of event words.
#[derive(Debug)]
pub struct Outbox {
    waiting: Deque<u32, WAITING>,
}

impl Outbox {
    /// An empty queue.
    pub const fn new() -> Outbox {
        Outbox {
            waiting: Deque::new(),
        }
    }

    /// Appends an event. If the queue is full, the event is lost and counted: the host has not read
    /// its ring for a long time.
    pub fn post<B: Bus>(&mut self, bus: &mut B, word: u32) {
        if self.waiting.push_back(word).is_err() {
            count!(*bus, event_ring_full);
        }
    }

    /// Whether the queue is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number of queued events.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The oldest event.
    pub fn oldest(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// Removes the oldest event, which is on its way.
    pub fn sent(&mut self) {
        let _ = self.waiting.pop_front();
    }
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox::new()
    }
}
