//! Two completions in one transfer.
//!
//! Each transfer costs the write channel 32 cycles of its own, in which nothing is on the bus. A bus of
//! 32 bits and 33 MHz takes longer for a long datagram than the wire, so several of them wait in the
//! channel's queue, and that time is missing. There the completion of one waits for the next one's:
//!
//! ```text
//! row   | completion, held | the next one |   rows are used in turn
//!              \________________/
//!               one transfer, if they are neighbours in the endpoint's queue
//! ```
//!
//! Only the completion of a long datagram is held, and only if the next one in the channel is long,
//! whole, and for the same endpoint. Whatever becomes of that one, the held completion is queued then.

use super::completion::{Completions, Entry};
use super::flight::{Flight, Flights};
use super::lead;
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::memory::layout::{EUDP_PAIRS, PAIR_ROWS};
use host_interface::eudp::{COMPLETION_BYTES, CompletionWord};
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// Bytes of data of a long datagram.
pub(super) const LONG: u32 = 1024;
/// Write descriptors for a completion that is held and the next one.
pub(super) const DESCRIPTORS: u32 = 2;
/// Bytes of a row.
const ROW: u32 = 2 * COMPLETION_BYTES;

// When a row's turn comes again, the channel has written what was in it: with four datagrams in its
// queue, at most two pairs are there, too.
const _: () =
    assert!(PAIR_ROWS > 2 && PAIR_ROWS.is_power_of_two() && EUDP_PAIRS.is_multiple_of(ROW));

/// The completion that is held.
#[derive(Debug)]
pub struct Pairs {
    /// Rows that were begun, modulo 2^32.
    row: u32,
    /// The endpoint of the completion that is held.
    held: Option<u32>,
    /// Whether it is to be queued before anything else is completed.
    is_due: bool,
    /// Whether completions are held at all.
    is_wanted: bool,
}

impl Pairs {
    /// None is held.
    pub const NONE: Pairs = Pairs {
        row: 0,
        held: None,
        is_due: false,
        is_wanted: false,
    };

    /// Before an endpoint is opened: completions are held if the bus is slower than the wire. On others
    /// the channel rests between two long datagrams, and CPU A would only have more to do.
    pub(super) fn choose<B: Bus>(&mut self, bus: &mut B) {
        self.is_wanted = lead::is_slower_than_wire(bus);
    }

    /// Whether the completion of a datagram of so many bytes may be held, or wait for one.
    #[inline(always)]
    pub(super) const fn are_for(&self, length: u32) -> bool {
        length >= LONG && self.is_wanted
    }

    /// The endpoint of the completion that is held.
    pub(super) const fn held(&self) -> Option<u32> {
        self.held
    }

    /// The completion that is held is to be queued before anything else is completed. Whether there is
    /// one.
    pub(super) const fn must_complete(&mut self) -> bool {
        self.is_due = self.held.is_some();
        self.is_due
    }

    /// Whether only that was to be queued.
    pub(super) const fn was_due(&mut self) -> bool {
        core::mem::replace(&mut self.is_due, false)
    }

    /// Whether a completion of an endpoint is held.
    pub(super) fn hold_for(&self, endpoint: u32) -> bool {
        self.held == Some(endpoint)
    }

    /// NIC address of the row.
    const fn row(&self) -> u32 {
        EUDP_PAIRS + (self.row & (PAIR_ROWS - 1)) * ROW
    }

    /// Holds a completion.
    pub(super) fn hold<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32, entry: &Entry) {
        self.row = self.row.wrapping_add(1);
        self.held = Some(endpoint);
        // Its number is known when it is queued: others may be queued before.
        store(io, self.row(), &entry.words(0));
    }

    /// Queues the completion that is held. There is room.
    pub(super) fn complete<B: Dispatch>(&mut self, queue: &mut Completions, io: &mut IoA<B>) {
        self.held = None;
        let row = self.row();
        let (host, number) = queue.next();
        io.bus.store(row + CompletionWord::Number as u32, number);
        put(io, host, row, COMPLETION_BYTES);
    }

    /// Queues the completion that is held, and this one. There is room.
    pub(super) fn complete_both<B: Dispatch>(
        &mut self,
        queue: &mut Completions,
        io: &mut IoA<B>,
        entry: &Entry,
    ) {
        if queue.is_at_end() {
            self.complete(queue, io);
            return queue.complete(io, entry, WriteNote::QUIET);
        }
        self.held = None;
        let row = self.row();
        let (host, number) = queue.next();
        io.bus.store(row + CompletionWord::Number as u32, number);
        let (_, number) = queue.next();
        store(io, row + COMPLETION_BYTES, &entry.words(number));
        put(io, host, row, ROW);
    }
}

/// Stores words at a NIC address.
fn store<B: Dispatch>(io: &mut IoA<B>, mut at: u32, words: &[u32]) {
    for word in words {
        io.bus.store(at, *word);
        at += 4;
    }
}

/// Queues completions that lie at `local`.
fn put<B: Dispatch>(io: &mut IoA<B>, host: HostAddress, local: u32, length: u32) {
    let transfer = Transfer {
        host,
        local,
        length,
        state: io.states.words,
        note: WriteNote::QUIET.word(),
    };
    io.write_ring.put(&mut io.bus, &transfer);
}

impl Flights {
    /// Whether the datagram behind the oldest one can have its completion with the one of this
    /// endpoint's in front of it.
    pub(super) fn has_another_long(&mut self, endpoint: u32) -> bool {
        self.second().is_some_and(|Flight { datagram, .. }| {
            // A fragment has another endpoint's number.
            datagram.endpoint == endpoint && datagram.length >= LONG
        })
    }
}
