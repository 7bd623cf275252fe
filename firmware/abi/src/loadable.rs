//! Handlers that are loaded while the firmware runs.
//!
//! A firmware that was built with room for them ([`Extension::Loadable`] is not 0 then) has
//! rows in its event table that dispatch through a word here. The host writes code into the
//! room by its window, then a row's argument, and last its entry; a write of any value to the
//! row's mailbox has it run.
//!
//! ```text
//! block +0   rows
//!       +4   mailbox of row 0; row n has the n-th behind it
//!       +8   NIC address of the room for code
//!       +12  bytes of it
//!       +16  row 0: entry, argument, runs, microseconds
//!       +32  row 1: ...
//! ```
//!
//! A handler is a function of the O32 calling convention: its argument is in `a0`, and what it
//! returns in `v0` says whether it wants to run again (not 0) before the host rings. It runs
//! to its end, as all do. `runs` and `microseconds` are the firmware's account of it: the time
//! is the chip's timer behind the run less that in front of it, in units of 1 microsecond, so
//! that many short runs add up to their time on average.
//!
//! [`Extension::Loadable`]: crate::extension::Extension::Loadable

/// Words of the block, in front of the rows.
pub const HEADER_BYTES: u32 = 16;
/// Bytes of a row.
pub const ROW_BYTES: u32 = 16;
/// Handlers that can be loaded at the same time.
pub const ROWS: u32 = 2;
/// Mailbox of row 0. The host reads it from the block.
pub const FIRST_MAILBOX: u32 = 30;
/// Bytes of the block.
pub const BLOCK_BYTES: u32 = HEADER_BYTES + ROWS * ROW_BYTES;

/// A word in front of the rows, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Header {
    /// How many rows.
    Rows = 0,
    /// The mailbox of row 0.
    Mailbox = 4,
    /// NIC address of the room for code.
    Room = 8,
    /// Bytes of it.
    RoomBytes = 12,
}

/// A word of a row, by its offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RowWord {
    /// Where the handler begins; 0 for none.
    Entry = 0,
    /// What it gets.
    Argument = 4,
    /// How often it ran; the firmware counts.
    Runs = 8,
    /// For how long, in all, in microseconds.
    Microseconds = 12,
}

/// Where a word of a row is, from the block on.
#[inline(always)]
pub const fn row_word(row: u32, word: RowWord) -> u32 {
    HEADER_BYTES + (row << ROW_BYTES.trailing_zeros()) + word as u32
}

const _: () = {
    assert!(ROW_BYTES.is_power_of_two());
    assert!(row_word(ROWS, RowWord::Entry) == BLOCK_BYTES);
};
