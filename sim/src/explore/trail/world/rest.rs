//! How a run ends, and what was wrong with it.

use super::{Finding, REST, SDMA, SEND, World};
use frame_pipeline::{Class, send};

/// How a run ends.
impl World {
    /// Goes on until nothing can happen any more: events as they come, the most urgent first.
    pub(in crate::explore::trail) fn rest(&mut self) {
        for _ in 0..REST {
            if !self.signal() && !self.answer() && !self.serve() && !self.go_on() {
                return;
            }
        }
    }

    fn signal(&mut self) -> bool {
        let table = self.tables[SEND];
        let state = self.states[SEND];
        let next = self
            .raised
            .iter()
            .position(|event| !table.defers(state, *event));
        let Some(event) = next.and_then(|at| self.raised.remove(at)) else {
            return false;
        };
        self.bring(SEND, event)
    }

    fn serve(&mut self) -> bool {
        for machine in [SDMA, SEND] {
            let table = self.tables[machine];
            for event in 0..table.events.len() as u8 {
                let deadline = machine == SEND && event == send::Event::Deadline as u8;
                if table.classes[usize::from(event)] == Class::External
                    && self.is_pending(machine, event)
                    && !table.defers(self.states[machine], event)
                    && (!deadline || self.is_overdue())
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
        let table = self.tables[machine];
        let (state, conditions) = (self.states[machine], self.conditions(machine));
        let mut rows = table.rows.iter();
        match rows.find(|row| row.matches(state, event, conditions)) {
            Some(row) => {
                self.take(machine, *row);
                true
            }
            None => {
                let name = table.events[usize::from(event)].name;
                self.findings.push(Finding::Impossible(table.name, name));
                false
            }
        }
    }

    /// The MAC has a frame that is not whole, and no deadline looks after it: a bus that stalls shows
    /// what leaves then.
    fn is_unguarded(&self) -> bool {
        let at_the_mac = self.at_the_mac.contains(&self.fetching);
        let whole = self.here == self.parts_of(self.fetching);
        at_the_mac && !whole && !self.armed && !self.stopped
    }

    /// The bus, the wire or the host goes on.
    fn go_on(&mut self) -> bool {
        if self
            .frames
            .get(self.next)
            .is_some_and(|it| self.closed[it.endpoint])
        {
            self.next += 1;
            return true;
        }
        let moved = if !self.queued.is_empty() && !self.failed && !self.is_unguarded() {
            self.arrive()
        } else if self.plain {
            self.end_plain()
        } else if self.position == 0 {
            self.begin()
        } else {
            self.advance().or_else(|_| self.end())
        };
        moved.is_ok()
    }

    /// What is wrong, once.
    pub(in crate::explore::trail) fn findings(mut self) -> Vec<Finding> {
        let mut left: Vec<Option<Vec<u8>>> = (0..self.frames.len())
            .map(|number| Some(self.whole(number)))
            .collect();
        while let Some(sent) = self.chip.machine.take_frame() {
            if sent.bytes.iter().all(|byte| *byte == 0x11) {
                continue;
            }
            let one = left
                .iter_mut()
                .find(|frame| frame.as_ref() == Some(&sent.bytes));
            match one {
                Some(frame) => *frame = None,
                None => self.findings.push(Finding::WrongFrame),
            }
        }
        for (number, (frame, left)) in self.frames.iter().zip(left).enumerate() {
            let open = !self.closed[frame.endpoint];
            let is_sent = left.is_none();
            if frame.completed > 1 || open && frame.completed != 1 {
                self.findings
                    .push(Finding::Completed(number, frame.completed));
            }
            if frame.given_up && is_sent {
                self.findings.push(Finding::SentAfterError(number));
            } else if !frame.given_up && !is_sent && (open || frame.completed != 0) {
                self.findings.push(Finding::Lost(number));
            }
        }
        for machine in [SDMA, SEND] {
            if !self.is_idle(machine) {
                let name = self.tables[machine].name;
                self.findings.push(Finding::Restless(name));
            }
        }
        let mut seen = std::collections::HashSet::new();
        self.findings.retain(|finding| seen.insert(finding.clone()));
        self.findings
    }
}
