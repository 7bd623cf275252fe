//! Loadable handlers: rows of the event table that dispatch through a word in SRAM.
//!
//! [`host_interface::loadable`] defines how the host loads and rings them; the rows are in
//! [`events`](crate::events). Only firmware that was built with memory for them
//! ([`LOADABLE_BYTES`]) contains this code.
//!
//! ```text
//! host: code, argument, entry --> SRAM        mailbox 30 + row --> rung --> event pending
//!                                    \                                          |
//!                                     '--> entry(argument) <--------- run <-----'
//! ```

use crate::memory::layout::{LOADABLE, LOADABLE_BYTES};
use host_interface::extension::Extension;
use host_interface::loadable::{BLOCK_BYTES, FIRST_MAILBOX, Header, ROWS, RowWord, row_word};
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Whether this firmware has room for handlers that come later.
pub const HAS_ROOM: bool = LOADABLE_BYTES != 0;

/// The events of the rows.
pub const EVENTS: [EventBit; ROWS as usize] = [EventBit::Loaded, EventBit::LoadedUrgent];

/// The mailboxes of the rows, as bits of the mailbox event register.
const MAILBOXES: u32 = ((1 << ROWS) - 1) << FIRST_MAILBOX;

const _: () = assert!(!HAS_ROOM || LOADABLE_BYTES > BLOCK_BYTES);

/// Empties the rows, and says where they are.
pub(crate) fn prepare<B: Dispatch>(bus: &mut B) {
    if !HAS_ROOM {
        return;
    }
    for offset in (0..BLOCK_BYTES).step_by(4) {
        bus.store(LOADABLE + offset, 0);
    }
    for (word, value) in [
        (Header::Rows, ROWS),
        (Header::Mailbox, FIRST_MAILBOX),
        (Header::Room, LOADABLE + BLOCK_BYTES),
        (Header::RoomBytes, LOADABLE_BYTES - BLOCK_BYTES),
    ] {
        bus.store(LOADABLE + word as u32, value);
    }
    bus.store(Extension::Loadable.nic_address(), LOADABLE);
}

/// The host has written mailboxes, these of the event register: makes the rows' events
/// pending.
#[inline(always)]
pub(crate) fn rung<B: Dispatch>(bus: &mut B, mailboxes: u32) {
    if HAS_ROOM && mailboxes & MAILBOXES != 0 {
        ring(bus, mailboxes);
    }
}

#[inline(never)]
fn ring<B: Dispatch>(bus: &mut B, mailboxes: u32) {
    for (row, event) in EVENTS.into_iter().enumerate() {
        if mailboxes & 1 << (FIRST_MAILBOX as usize + row) != 0 {
            bus.set(event);
        }
    }
}

/// Runs the handler of a row, if there is one, and accounts for it.
#[inline(always)]
pub(crate) fn run<B: Dispatch>(bus: &mut B, row: u32) {
    let word = |word| LOADABLE + row_word(row, word);
    let event = EVENTS.get(row as usize).copied();
    if let Some(event) = event {
        bus.clear(event);
    }
    let entry = bus.load(word(RowWord::Entry));
    if entry == 0 {
        return;
    }
    let argument = bus.load(word(RowWord::Argument));
    let begin = timer::now(bus);
    let again = bus.call(entry, argument);
    let took = timer::now(bus).wrapping_sub(begin);
    for (word, more) in [
        (word(RowWord::Runs), 1),
        (word(RowWord::Microseconds), took),
    ] {
        let sum = bus.load(word).wrapping_add(more);
        bus.store(word, sum);
    }
    if let Some(event) = event.filter(|_| again != 0) {
        bus.set(event);
    }
}
