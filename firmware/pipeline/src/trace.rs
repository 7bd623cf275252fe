//! The transitions that firmware took, a byte each, and the checker that follows them.
//!
//! ```text
//!   bit  7 6 | 5 4 3 2 1 0
//!        machine | row of its table
//! ```

use crate::TABLES;

/// One transition in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u8);

const ROW_BITS: u32 = 6;

const _: () = {
    let mut at = 0;
    while at < TABLES.len() {
        assert!(TABLES[at].rows.len() <= 1 << ROW_BITS);
        at += 1;
    }
};

impl Entry {
    /// Row `row` of the machine that is number `machine` in [`TABLES`].
    pub const fn new(machine: usize, row: u8) -> Entry {
        Entry((machine as u8) << ROW_BITS | row & ((1 << ROW_BITS) - 1))
    }

    /// As it is recorded.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// As it was recorded.
    pub const fn from_byte(byte: u8) -> Entry {
        Entry(byte)
    }

    /// The machine's number in [`TABLES`].
    pub const fn machine(self) -> usize {
        (self.0 >> ROW_BITS) as usize
    }

    /// The row's number.
    pub const fn row(self) -> usize {
        (self.0 & ((1 << ROW_BITS) - 1)) as usize
    }
}

/// A transition that no table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The machine's table has no such row.
    NoRow(Entry),
    /// The row begins in another state than this one, which the machine was in.
    NotFrom(Entry, u8),
}

/// Follows a trace of all machines from their first states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checker {
    states: [u8; 4],
    taken: [u64; 4],
}

impl Checker {
    /// The next transition.
    ///
    /// # Errors
    /// When it is not one of the table in the state that the trace has led to.
    pub fn follow(&mut self, entry: Entry) -> Result<(), Fault> {
        let (machine, number) = (entry.machine(), entry.row());
        let row = TABLES[machine]
            .rows
            .get(number)
            .ok_or(Fault::NoRow(entry))?;
        let state = &mut self.states[machine];
        if row.from != *state {
            return Err(Fault::NotFrom(entry, *state));
        }
        *state = row.to;
        self.taken[machine] |= 1 << number;
        Ok(())
    }

    /// The rows of a machine that were taken, a bit each.
    pub fn taken(&self, machine: usize) -> u64 {
        self.taken[machine]
    }

    /// The state that a machine is in.
    pub fn state(&self, machine: usize) -> u8 {
        self.states[machine]
    }
}
