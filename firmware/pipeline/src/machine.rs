//! A machine that runs: the only way from one state to another is a row of its table.

use crate::table::{Index, Table};

/// A machine's types and its table, as [`machine!`](crate::machine) makes them.
pub trait Definition: 'static {
    /// Its states.
    type State: Copy;
    /// Its events.
    type Event: Copy;
    /// Its conditions.
    type Condition: Copy;
    /// Its actions.
    type Action: Copy;
    /// Its table.
    const TABLE: &'static Table;
    /// Where its rows are found.
    const INDEX: &'static Index;
    /// Its states by number.
    const STATES: &'static [Self::State];
    /// Its conditions by number.
    const CONDITIONS: &'static [Self::Condition];
    /// Its actions by number.
    const ACTIONS: &'static [Self::Action];
    /// An event's number.
    fn number(event: Self::Event) -> u8;
}

/// What a machine acts upon.
pub trait World<D: Definition> {
    /// Whether a condition holds now.
    fn holds(&mut self, condition: D::Condition) -> bool;
    /// Does a row's action.
    fn act(&mut self, action: D::Action);
}

/// What an event did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The row of this number was taken.
    Taken(u8),
    /// The event has to wait: it stays pending.
    Deferred,
    /// The table says that it cannot come here: a fault. Nothing was done.
    Impossible,
}

/// A machine of definition `D` in one of its states.
#[derive(Clone, Copy, Debug)]
pub struct Machine<D: Definition> {
    /// A word: a chip without unaligned stores keeps no bytes beside each other.
    state: u32,
    definition: core::marker::PhantomData<D>,
}

impl<D: Definition> Default for Machine<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Definition> Machine<D> {
    /// In its first state.
    pub const fn new() -> Self {
        Machine {
            state: 0,
            definition: core::marker::PhantomData,
        }
    }

    /// The state that it is in.
    pub fn state(&self) -> D::State {
        match D::STATES.get(self.state as usize) {
            Some(state) => *state,
            // No row leads out of the table.
            None => D::STATES[0],
        }
    }

    /// Whether an event has to wait now.
    #[inline]
    pub fn defers(&self, event: D::Event) -> bool {
        D::TABLE.defers(self.state as u8, D::number(event))
    }

    /// An event comes: takes the one row that the table has for it, if any. Each condition is
    /// looked at once, so that a condition which changes meanwhile cannot select two rows or none.
    /// The state has changed when the action is done.
    #[inline]
    pub fn step<W: World<D>>(&mut self, event: D::Event, world: &mut W) -> Step {
        let (state, number) = (self.state as u8, D::number(event));
        let (first, count) = D::INDEX.span(state, number);
        if count == 0 {
            return if D::TABLE.defers(state, number) {
                Step::Deferred
            } else {
                Step::Impossible
            };
        }
        let rows = D::TABLE.rows.get(first..first + count).unwrap_or_default();
        let asked = rows.iter().fold(0, |mask, row| mask | row.mask);
        let mut conditions = 0;
        for (bit, condition) in D::CONDITIONS.iter().enumerate() {
            if asked >> bit & 1 == 1 && world.holds(*condition) {
                conditions |= 1 << bit;
            }
        }
        for (at, row) in rows.iter().enumerate() {
            if conditions & row.mask == row.value {
                self.state = u32::from(row.to);
                if let Some(action) = D::ACTIONS.get(usize::from(row.action)) {
                    world.act(*action);
                }
                return Step::Taken((first + at) as u8);
            }
        }
        // `Table::check` has shown that a row matches.
        Step::Impossible
    }
}
