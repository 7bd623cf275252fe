//! How a run ends, and what was wrong with it.

use super::plan::Ending;
use super::{Account, Finding, Frame, REST, Walked, World};
use tigon2_chip::mac::{CRC_BYTES, FRAME_ALIGNMENT};

/// RxCon may stand so far before the end of what is free: a transfer leaves it behind the last byte.
const REMAINDER: u32 = CRC_BYTES as u32 + FRAME_ALIGNMENT;

impl World {
    /// Goes on until nothing can happen any more: events as they come, the most urgent first.
    pub(super) fn rest(&mut self) {
        for _ in 0..REST {
            if !self.signal() && !self.serve() && !self.go_on() {
                return;
            }
        }
    }

    /// The bus or the wire goes on.
    fn go_on(&mut self) -> bool {
        if !self.queued.is_empty() && !self.write_failed {
            return self.write().is_ok();
        }
        let coming = self.coming.map(|number| self.frame(number).plan.ending);
        coming.is_some_and(|ending| match ending {
            Ending::Received { .. } => self.end().is_ok(),
            Ending::GivenUp => self.give_up().is_ok(),
        })
    }

    /// What is wrong, once.
    pub(super) fn findings(mut self) -> Vec<Finding> {
        for (number, frame) in self.frames.iter().enumerate() {
            let delivered = self.process.was_delivered(number);
            if let Some(finding) = judge(number, frame, delivered) {
                self.walk.find(finding);
            }
        }
        if self.chip.machine.card().moved_back() != 0 {
            self.walk.find(Finding::MovedBack);
        }
        // A number below 0 is a large one.
        if self.chip.filled().wrapping_sub(self.chip.freed()) >= REMAINDER {
            self.walk.find(Finding::RoomLost);
        }
        let posted: Vec<usize> = self.buffers.iter().flatten().copied().collect();
        for finding in self.process.findings(&posted) {
            self.walk.find(finding);
        }
        self.walk.findings()
    }
}

/// What is wrong with the account of a frame.
fn judge(number: usize, frame: &Frame, delivered: bool) -> Option<Finding> {
    let accounts = &frame.accounts;
    let refused = accounts.contains(&Account::Refused);
    let (good, right) = (frame.plan.is_good(), frame.plan.is_right());
    if refused && !(frame.ended && good && !right) {
        return Some(Finding::Miscounted(number));
    }
    if frame.ended && good && usize::from(delivered) + accounts.len() != 1 {
        return Some(match right && accounts.is_empty() {
            true => Finding::Lost(number),
            false => Finding::Miscounted(number),
        });
    }
    None
}
