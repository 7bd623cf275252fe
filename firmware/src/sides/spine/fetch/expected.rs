//! The message that is expected next.
//!
//! An application that waits for an answer has one message at a time on the card. CPU B knows beforehand
//! where its next one will lie, and asks for it before it searches the mailboxes:
//!
//! ```text
//!  doorbell ──► expected, and CPU A has no other? ── no ──► search, look at the row, ask
//!                         │ yes
//!                         ▼
//!                        ask ──► expect the one behind it ──► search, for others
//! ```
//!
//! Nothing is expected any more when an endpoint is opened or closed. What is asked for until CPU B
//! has seen that its endpoint is closed is under way by then, and CPU A's answer waits for it.

use super::{Fetcher, MESSAGE_SHIFT, in_slot};
use crate::io::IoB;
use crate::memory::shared::SPINE_MESSAGES_RUN;
use crate::sides::spine::endpoint::{bell, memory, row};
use host_interface::spine::rings::{EndpointWord, HEAD_BYTES, MESSAGE_BYTES, PER_MAILBOX};
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Of so many endpoints at once.
const EXPECTED: u32 = 2 * PER_MAILBOX;

/// Those of a mailbox with an even number, and of one with an odd number.
pub type ByMailbox = [[Expected; PER_MAILBOX as usize]; 2];

/// The mailboxes with even numbers, from bit 0 on.
const EVEN: u32 = 0x5555;

/// The next message of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The endpoint.
    pub endpoint: u32,
    /// NIC address of its row, or 0.
    pub row: u32,
    /// NIC address of its doorbell.
    bell: u32,
    /// Messages before this one.
    pub fetched: u32,
    /// Where it will lie.
    pub host: HostAddress,
}

impl Expected {
    /// None is.
    const NONE: Expected = Expected {
        endpoint: 0,
        row: 0,
        bell: 0,
        fetched: 0,
        host: HostAddress { high: 0, low: 0 },
    };

    /// None is, of all endpoints.
    pub const NONE_OF_ALL: ByMailbox = [[Expected::NONE; PER_MAILBOX as usize]; 2];

    /// The message behind so many others, at an index of the ring of the endpoint with this row.
    #[inline(always)]
    pub fn at<B: Bus>(bus: &mut B, endpoint: u32, row: u32, fetched: u32, index: u32) -> Expected {
        Expected {
            endpoint,
            row,
            bell: bell(endpoint),
            fetched,
            host: memory(bus, row).plus(HEAD_BYTES + (index << MESSAGE_SHIFT)),
        }
    }

    /// Whether it is there, and no other one behind it.
    #[inline(always)]
    fn is_there<B: Bus>(&self, bus: &mut B) -> bool {
        if self.row == 0 {
            return false;
        }
        let written = u32::from(bus.load_half(self.bell));
        written.wrapping_sub(self.fetched) & 0xFF == 1
    }
}

impl Fetcher {
    /// The host has written these mailboxes, from that of the first endpoints on. Asks for a message
    /// that is [expected](Expected), if it is there and CPU A has no other one. If so
    /// [`has_asked`](Self::has_asked) follows.
    #[inline(always)]
    pub fn ask_expected<B: Dispatch>(&mut self, io: &mut IoB<B>, boxes: u32) -> bool {
        if SPINE_MESSAGES_RUN.get(&mut io.bus) != self.requested {
            return false;
        }
        let [even, odd] = &self.expected;
        let mut expected = if boxes & EVEN != 0 { even } else { odd }.iter();
        let Some(next) = expected.find(|next| next.is_there(&mut io.bus)) else {
            return false;
        };
        // As none is under way there is room for a request: all were reported.
        if !io.read_ring.has_room(1) {
            return false;
        }
        let next = *next;
        self.served = next.endpoint;
        self.request(io, &next, 1, true);
        true
    }

    /// The expected message was asked for: notes that for CPU A, and expects the next one.
    #[inline(always)]
    pub fn has_asked<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        self.note_request(io, in_slot(self.requested.wrapping_sub(1)), MESSAGE_BYTES);
        self.expect_next(io);
    }

    /// Expects nothing of anybody. Row by row: a compiler would clear all of it by `memset`, which
    /// takes CPU B 11 us.
    pub(super) fn expect_nothing(&mut self) {
        for expected in self.expected.as_flattened_mut() {
            expected.row = barrier(0);
        }
    }

    /// Expects one more message of the endpoint whose messages were asked for last.
    #[inline(never)]
    pub(super) fn expect_next<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        let row = row(self.served);
        let fetched = io.bus.load(row + EndpointWord::Fetched as u32);
        let slots = io.bus.load(row + EndpointWord::Slots as u32);
        let index = fetched & slots.wrapping_sub(1);
        let next = Expected::at(&mut io.bus, self.served, row, fetched, index);
        let expected = self.expected.as_flattened_mut();
        if let Some(expected) = expected.get_mut((self.served % EXPECTED) as usize) {
            *expected = next;
        }
    }
}
