//! Tables of transitions in plain numbers, and what the compiler checks of them.

/// An event's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The hardware or the host makes it.
    External,
    /// Another machine of the same CPU raises it; it is delivered before the handler ends.
    Signal,
}

/// A name and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// As in the sources.
    pub name: &'static str,
    /// Its documentation.
    pub text: &'static str,
}

/// One transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The state in which it may be taken.
    pub from: u8,
    /// The event that takes it.
    pub event: u8,
    /// The conditions that it looks at, a bit each.
    pub mask: u8,
    /// Those of them that have to hold; the others must not.
    pub value: u8,
    /// What is done.
    pub action: u8,
    /// The state after it.
    pub to: u8,
}

/// A state and an event for which there is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The state.
    pub state: u8,
    /// The event.
    pub event: u8,
}

/// A machine's table. State 0 is the first one. Events stand in the order of their urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// The machine's name.
    pub name: &'static str,
    /// Its states.
    pub states: &'static [Named],
    /// Its events.
    pub events: &'static [Named],
    /// The class of each event.
    pub classes: &'static [Class],
    /// Its conditions.
    pub conditions: &'static [Named],
    /// Its actions.
    pub actions: &'static [Named],
    /// Its transitions; those of one state and event stand together.
    pub rows: &'static [Row],
    /// Events that have to wait in a state: they stay pending.
    pub deferred: &'static [Pair],
    /// Events that cannot come in a state: a fault of the firmware if one does.
    pub impossible: &'static [Pair],
}

/// The most states of a table, and the most conditions.
const MOST_STATES: usize = 16;
const MOST_CONDITIONS: usize = 6;

impl Row {
    /// Whether it is taken in a state by an event under conditions, a bit each.
    #[inline]
    pub const fn matches(&self, state: u8, event: u8, conditions: u8) -> bool {
        self.from == state && self.event == event && conditions & self.mask == self.value
    }
}

const fn contains(pairs: &[Pair], state: u8, event: u8) -> bool {
    let mut at = 0;
    while at < pairs.len() {
        if pairs[at].state == state && pairs[at].event == event {
            return true;
        }
        at += 1;
    }
    false
}

impl Table {
    /// Whether an event has to wait in a state.
    pub const fn defers(&self, state: u8, event: u8) -> bool {
        contains(self.deferred, state, event)
    }

    /// Whether an event cannot come in a state.
    pub const fn excludes(&self, state: u8, event: u8) -> bool {
        contains(self.impossible, state, event)
    }

    /// The rows that decide about an event in a state: the first one, and how many.
    pub const fn span(&self, state: u8, event: u8) -> (usize, usize) {
        let mut first = 0;
        while first < self.rows.len() {
            if self.rows[first].from == state && self.rows[first].event == event {
                break;
            }
            first += 1;
        }
        let mut end = first;
        while end < self.rows.len() && self.rows[end].from == state && self.rows[end].event == event
        {
            end += 1;
        }
        (first, end - first)
    }

    /// Fails the build of a table that leaves a transition open, decides one twice, or has a
    /// state that is never entered or never left for the first one again.
    pub const fn check(&self) {
        self.check_transitions();
        self.check_use();
    }

    /// What [`Table::check`] does, but for conditions and actions that stand in no row.
    pub const fn check_transitions(&self) {
        assert!(self.states.len() <= MOST_STATES, "too many states");
        assert!(
            self.conditions.len() <= MOST_CONDITIONS,
            "too many conditions"
        );
        let mut state = 0;
        while state < self.states.len() as u8 {
            let mut event = 0;
            while event < self.events.len() as u8 {
                self.check_pair(state, event);
                event += 1;
            }
            state += 1;
        }
        let all = (1u32 << self.states.len()) - 1;
        assert!(
            self.closure(1, false) == all,
            "a state is not reached from the first one"
        );
        assert!(
            self.closure(1, true) == all,
            "a state does not lead back to the first one"
        );
    }

    /// For each set of conditions exactly one row, or none for all of them if the table names
    /// the pair as one that waits or cannot come.
    const fn check_pair(&self, state: u8, event: u8) {
        let (first, count) = self.span(state, event);
        let mut at = 0;
        while at < self.rows.len() {
            let row = &self.rows[at];
            let of_pair = row.from == state && row.event == event;
            assert!(
                !of_pair || at >= first && at < first + count,
                "the rows of a state and an event do not stand together"
            );
            at += 1;
        }
        let defers = self.defers(state, event);
        let excludes = self.excludes(state, event);
        assert!(
            !(defers && excludes),
            "an event both waits and cannot come in a state"
        );
        if defers || excludes {
            assert!(count == 0, "an event waits or cannot come, and has a row");
            return;
        }
        assert!(count != 0, "no row decides about an event in a state");
        let mut conditions = 0;
        while conditions < 1 << self.conditions.len() {
            let mut decide = 0;
            let mut at = first;
            while at < first + count {
                if self.rows[at].matches(state, event, conditions) {
                    decide += 1;
                }
                at += 1;
            }
            assert!(decide != 0, "no row decides under some conditions");
            assert!(decide == 1, "two rows decide under the same conditions");
            conditions += 1;
        }
    }

    /// The states that are reached from a set of states, or from which the set is reached.
    const fn closure(&self, from: u32, backward: bool) -> u32 {
        let mut set = from;
        loop {
            let mut next = set;
            let mut at = 0;
            while at < self.rows.len() {
                let row = &self.rows[at];
                let (here, there) = if backward {
                    (row.to, row.from)
                } else {
                    (row.from, row.to)
                };
                if set >> here & 1 == 1 {
                    next |= 1 << there;
                }
                at += 1;
            }
            if next == set {
                return set;
            }
            set = next;
        }
    }

    /// Each condition and each action stands in a row.
    const fn check_use(&self) {
        let mut conditions = 0u32;
        let mut actions = 0u32;
        let mut at = 0;
        while at < self.rows.len() {
            conditions |= self.rows[at].mask as u32;
            actions |= 1 << self.rows[at].action;
            at += 1;
        }
        assert!(
            conditions == (1 << self.conditions.len()) - 1,
            "a condition stands in no row"
        );
        assert!(
            actions == (1 << self.actions.len()) - 1,
            "an action stands in no row"
        );
    }
}
