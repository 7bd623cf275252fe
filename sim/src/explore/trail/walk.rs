//! Both machines of a CPU, by their tables.
//!
//! A run names the rows that are taken. When it is over, what has come is served by the same tables.

use super::{Finding, Followed};
use frame_pipeline::{Class, Row, Table};
use std::collections::{HashSet, VecDeque};

/// Where both machines stand, and what was found.
pub(super) struct Walk {
    tables: [Table; 2],
    states: [u8; 2],
    /// A machine that serves its least urgent event first.
    reversed: Option<usize>,
    /// What the first machine has told the second one, which has not heard it yet.
    raised: VecDeque<u8>,
    findings: Vec<Finding>,
}

impl Walk {
    pub fn new(tables: [Table; 2], reversed: Option<usize>) -> Walk {
        Walk {
            tables,
            states: [0; 2],
            reversed,
            raised: VecDeque::new(),
            findings: Vec::new(),
        }
    }

    pub const fn state(&self, machine: usize) -> u8 {
        self.states[machine]
    }

    pub const fn is_idle(&self, machine: usize) -> bool {
        self.states[machine] == 0
    }

    pub fn raise(&mut self, signal: u8) {
        self.raised.push_back(signal);
    }

    /// A signal is taken back.
    pub fn lower(&mut self, signal: u8) {
        self.raised.retain(|raised| *raised != signal);
    }

    pub fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Everything that was found, once, and the machines that have not come to rest.
    pub fn findings(mut self) -> Vec<Finding> {
        for (table, state) in self.tables.iter().zip(self.states) {
            if state != 0 {
                self.findings.push(Finding::Restless(table.name));
            }
        }
        let mut seen = HashSet::new();
        self.findings.retain(|finding| seen.insert(finding.clone()));
        self.findings
    }
}

/// Machines, and the card, host and wire round them.
pub(super) trait Walked {
    fn walk(&self) -> &Walk;
    fn walk_mut(&mut self) -> &mut Walk;
    fn is_pending(&self, machine: usize, event: u8) -> bool;
    /// The event is taken: what said that it has come says so no more.
    fn acknowledge(&mut self, machine: usize, event: u8);
    /// A bit for each condition that holds.
    fn conditions(&self, machine: usize) -> u8;
    fn act(&mut self, machine: usize, action: u8);

    /// What the run has chosen, by naming this row.
    fn choose(&mut self, _machine: usize, _row: Row) -> Followed {
        Ok(())
    }

    /// Whether an event that has come is served when the run is over.
    fn is_served(&self, _machine: usize, _event: u8) -> bool {
        true
    }

    /// A machine takes the row that the run names.
    fn row(&mut self, machine: usize, row: usize) -> Followed {
        let table = self.walk().tables[machine];
        let row = *table.rows.get(row).ok_or("the table has no such row")?;
        if self.walk().state(machine) != row.from {
            return Err("the machine is in another state");
        }
        match table.classes[usize::from(row.event)] {
            Class::External if !self.is_pending(machine, row.event) => {
                return Err("the event has not come");
            }
            Class::External => self.acknowledge(machine, row.event),
            Class::Signal => {
                let raised = &mut self.walk_mut().raised;
                let at = raised.iter().position(|event| *event == row.event);
                raised.remove(at.ok_or("the machine was told nothing of it")?);
            }
        }
        self.choose(machine, row)?;
        if self.conditions(machine) & row.mask != row.value {
            return Err("its conditions do not hold");
        }
        self.take(machine, row);
        Ok(())
    }

    fn take(&mut self, machine: usize, row: Row) {
        self.walk_mut().states[machine] = row.to;
        self.act(machine, row.action);
    }

    /// The second machine hears what the first one has told it, if anything.
    fn signal(&mut self) -> bool {
        let walk = self.walk_mut();
        let (table, state) = (walk.tables[1], walk.states[1]);
        let mut raised = walk.raised.iter();
        let next = raised.position(|event| !table.defers(state, *event));
        let Some(event) = next.and_then(|at| walk.raised.remove(at)) else {
            return false;
        };
        self.bring(1, event)
    }

    /// The most urgent event that has come is served, if there is one.
    fn serve(&mut self) -> bool {
        for machine in 0..2 {
            let walk = self.walk();
            let (table, reversed) = (walk.tables[machine], walk.reversed == Some(machine));
            let mut events: Vec<u8> = (0..table.events.len() as u8).collect();
            if reversed {
                events.reverse();
            }
            for event in events {
                if table.classes[usize::from(event)] == Class::External
                    && self.is_pending(machine, event)
                    && !table.defers(self.walk().state(machine), event)
                    && self.is_served(machine, event)
                {
                    self.acknowledge(machine, event);
                    return self.bring(machine, event);
                }
            }
        }
        false
    }

    /// An event comes to a machine.
    fn bring(&mut self, machine: usize, event: u8) -> bool {
        let table = self.walk().tables[machine];
        let (state, conditions) = (self.walk().state(machine), self.conditions(machine));
        let mut rows = table.rows.iter();
        match rows.find(|row| row.matches(state, event, conditions)) {
            Some(row) => {
                self.take(machine, *row);
                true
            }
            None => {
                let name = table.events[usize::from(event)].name;
                self.walk_mut().find(Finding::Impossible(table.name, name));
                false
            }
        }
    }
}
