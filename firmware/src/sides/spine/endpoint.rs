//! Endpoints: where their doorbells and their memory are, and which are open.
//!
//! CPU A opens and closes them, see [`rings`](super::rings); CPU B [fetches](super::fetch) for those
//! that are open. What has changed is in one word, [`SPINE_ENDPOINTS`]:
//!
//! ```text
//!  31            16 15             8 7            0
//! +----------------+----------------+--------------+
//! | changes; wraps | the last one's | how many are |
//! |                | number         | open         |
//! +----------------+----------------+--------------+
//! ```

use super::{bump, call_b};
use crate::io::IoA;
use crate::memory::layout::SPINE_BLOCK;
use crate::memory::shared::{SPINE_ENDPOINTS, SPINE_WANTED};
use host_interface::spine::endpoint_word;
use host_interface::spine::rings::{Dropped, EndpointWord, FIRST_MAILBOX};
use tigon2_chip::memory::MAILBOXES;
use tigon2_chip::{HostAddress, mailbox};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// NIC address of the endpoints' mailboxes.
pub const BELLS: u32 = MAILBOXES + mailbox::BYTES * FIRST_MAILBOX;

/// NIC address of an endpoint's doorbell: two halfwords in each of two words, so they follow each other.
#[inline(always)]
pub const fn bell(endpoint: u32) -> u32 {
    BELLS + (endpoint << 1)
}

/// An endpoint's doorbell: messages that it has taken in bits 15:8, that it has
/// written in bits 7:0.
#[inline(always)]
pub fn doorbell<B: Bus>(bus: &mut B, endpoint: u32) -> u32 {
    bus.load_half(bell(endpoint)).into()
}

/// NIC address of an endpoint's row. In a register: else a compiler makes the address of each of its
/// words anew.
#[inline(always)]
pub fn row(endpoint: u32) -> u32 {
    barrier(SPINE_BLOCK + endpoint_word(endpoint, EndpointWord::High))
}

/// Where the memory of the endpoint with this row is.
#[inline(always)]
pub fn memory<B: Bus>(bus: &mut B, row: u32) -> HostAddress {
    HostAddress {
        high: bus.load(row),
        low: bus.load(row + 4),
    }
}

/// [`SPINE_ENDPOINTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open(u32);

impl Open {
    const OPEN: u32 = 0xFF;
    const LAST_SHIFT: u32 = 8;
    const CHANGES_SHIFT: u32 = 16;

    /// No endpoint was opened yet.
    pub const NONE: Open = Open(0);

    /// Those that are open now.
    #[inline(always)]
    pub fn now<B: Bus>(bus: &mut B) -> Open {
        Open(SPINE_ENDPOINTS.get(bus))
    }

    /// The word.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Whether any is.
    pub const fn any(self) -> bool {
        self.0 & Open::OPEN != 0
    }

    /// The endpoint that was opened or closed since, if it is one.
    pub const fn only_change(self, since: Open) -> Option<u32> {
        let changes = (self.0 >> Open::CHANGES_SHIFT).wrapping_sub(since.0 >> Open::CHANGES_SHIFT);
        if changes == 1 {
            Some(self.0 >> Open::LAST_SHIFT & 0xFF)
        } else {
            None
        }
    }

    /// With one more, or less.
    const fn with(self, endpoint: u32, is_open: bool) -> Open {
        let change = if is_open { 1 } else { u32::MAX };
        let open = self.0.wrapping_add(change) & Open::OPEN;
        let changes = (self.0 >> Open::CHANGES_SHIFT).wrapping_add(1);
        Open(changes << Open::CHANGES_SHIFT | endpoint << Open::LAST_SHIFT | open)
    }
}

/// An endpoint is open from now on, or closed: CPU B learns that something has changed.
pub fn set_open<B: Dispatch>(io: &mut IoA<B>, endpoint: u32, is_open: bool) {
    io.bus
        .store(row(endpoint) + EndpointWord::Open as u32, is_open.into());
    let open = Open::now(&mut io.bus).with(endpoint, is_open);
    SPINE_ENDPOINTS.set(&io.me, &mut io.bus, open.word());
    want(io);
}

/// Has CPU B look at which endpoints are open, and at what data are wanted.
pub fn want<B: Dispatch>(io: &mut IoA<B>) {
    let wanted = SPINE_WANTED.get(&mut io.bus).wrapping_add(1);
    SPINE_WANTED.set(&io.me, &mut io.bus, wanted);
    call_b(io);
}

/// Counts a message of an endpoint that is dropped.
pub fn count_dropped<B: Bus>(bus: &mut B, endpoint: u32, why: Dropped) {
    let first = row(endpoint) + EndpointWord::Dropped as u32;
    bump(bus, first + ((why as u32) << 2));
}
