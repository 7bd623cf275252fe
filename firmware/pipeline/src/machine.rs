//! A machine that runs: the only way from one state to another is a row of its table.

use crate::table::Table;

/// A machine's types and its table, as [`machine!`](crate::machine) makes them.
pub trait Definition: 'static {
    /// Its states.
    type State: Copy;
    /// Its events.
    type Event: Copy;
    /// Its conditions.
    type Condition: Copy;
    /// Its actions.
    type Action: Copy + PartialEq;
    /// Its table.
    const TABLE: &'static Table;
    /// Its states by number.
    const STATES: &'static [Self::State];
    /// Its conditions by number.
    const CONDITIONS: &'static [Self::Condition];
    /// Its actions by number.
    const ACTIONS: &'static [Self::Action];
    /// An event's number.
    fn number(event: Self::Event) -> u8;
    /// A state's number.
    fn place(state: Self::State) -> u32;
    /// A condition's number.
    fn bit(condition: Self::Condition) -> u32;
    /// The row that an event takes in a state: the table, written out as comparisons, so that of an
    /// event which the compiler knows only its own rows are left, and no table is looked up.
    ///
    /// # Errors
    /// [`Step::Deferred`] or [`Step::Impossible`] where no row is.
    fn select(
        state: u32,
        event: Self::Event,
        holds: impl FnMut(Self::Condition) -> bool,
    ) -> Result<Selected<Self::Action>, Step>;
}

/// The row that an event takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected<A> {
    /// Its number.
    pub row: u8,
    /// What it does.
    pub action: A,
    /// The state that it leads to, by number.
    pub to: u32,
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

    /// Whether it is in this state. In a branch that asks, a compiler leaves only that state's rows.
    #[inline(always)]
    pub fn is_in(&self, state: D::State) -> bool {
        self.state == D::place(state)
    }

    /// Whether an event has to wait now.
    #[inline(always)]
    pub fn defers(&self, event: D::Event) -> bool {
        D::select(self.state, event, |_| false) == Err(Step::Deferred)
    }

    /// An event comes: takes the one row that the table has for it, if any. Each condition is
    /// looked at once, so that a condition which changes meanwhile cannot select two rows or none.
    /// The state has changed when the action is done.
    #[inline(always)]
    pub fn step<W: World<D>>(&mut self, event: D::Event, world: &mut W) -> Step {
        let (mut asked, mut held) = (0u32, 0u32);
        let selected = D::select(self.state, event, |condition| {
            let bit = 1 << D::bit(condition);
            if asked & bit == 0 {
                asked |= bit;
                if world.holds(condition) {
                    held |= bit;
                }
            }
            held & bit != 0
        });
        match selected {
            Ok(Selected { row, action, to }) => {
                self.state = to;
                world.act(action);
                Step::Taken(row)
            }
            Err(step) => step,
        }
    }
}
