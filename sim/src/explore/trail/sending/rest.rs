//! How a run ends, and what was wrong with it.

use super::{Finding, REST, Walked, World};

/// How a run ends.
impl World {
    /// Goes on until nothing can happen any more: events as they come, the most urgent first.
    pub(super) fn rest(&mut self) {
        for _ in 0..REST {
            if !self.signal() && !self.answer() && !self.serve() && !self.go_on() {
                return;
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
    pub(super) fn findings(mut self) -> Vec<Finding> {
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
                None => self.walk.find(Finding::WrongFrame),
            }
        }
        for (number, (frame, left)) in self.frames.iter().zip(left).enumerate() {
            let open = !self.closed[frame.endpoint];
            let is_sent = left.is_none();
            if frame.completed > 1 || open && frame.completed != 1 {
                self.walk.find(Finding::Completed(number, frame.completed));
            }
            if frame.given_up && is_sent {
                self.walk.find(Finding::SentAfterError(number));
            } else if !frame.given_up && !is_sent && (open || frame.completed != 0) {
                self.walk.find(Finding::Lost(number));
            }
        }
        self.walk.findings()
    }
}
