//! The rows that a run takes: whether they can be taken now, and what follows.

use super::{Followed, Frame, SDMA, SEND, SUM, SUM_AT, Walk, Walked, World};
use frame_pipeline::{Definition, Row, sdma, send};

impl World {
    pub(super) fn is_late(&self) -> bool {
        let part = (self.seen as usize).checked_sub(1);
        part.and_then(|part| self.late.get(part))
            .is_some_and(|late| *late)
    }
}

impl Walked for World {
    fn walk(&self) -> &Walk {
        &self.walk
    }

    fn walk_mut(&mut self) -> &mut Walk {
        &mut self.walk
    }

    fn choose(&mut self, machine: usize, row: Row) -> Followed {
        let in_time = 1 << send::Condition::InTime as u8;
        if machine == SEND && row.mask & in_time != 0 {
            // The clock errs in one direction only.
            self.in_time = row.value & in_time != 0;
            if self.in_time && self.is_late() {
                return Err("the part is late");
            }
        }
        Ok(())
    }

    fn act(&mut self, machine: usize, action: u8) {
        let action = usize::from(action);
        match machine {
            SDMA => self.fetch_side(sdma::Sdma::ACTIONS[action]),
            _ => self.send_side(send::Send::ACTIONS[action]),
        }
    }

    fn is_served(&self, machine: usize, event: u8) -> bool {
        machine != SEND || event != send::Event::Deadline as u8 || self.is_overdue()
    }

    fn is_pending(&self, machine: usize, event: u8) -> bool {
        let is = |of: u8| of == event;
        if machine == SEND {
            return is(send::Event::Deadline as u8) && self.armed && !self.fired
                || is(send::Event::Sent as u8) && self.sent != 0;
        }
        let open = |frame: &Frame| !self.closed[frame.endpoint] && self.knows_next(frame.endpoint);
        is(sdma::Event::Failed as u8) && self.failed && self.arrived == 0
            || is(sdma::Event::Arrived as u8) && self.arrived != 0
            || is(sdma::Event::SumStored as u8) && self.sum_queued
            || is(sdma::Event::Closed as u8) && self.closing.is_some()
            || is(sdma::Event::Posted as u8) && self.frames.get(self.next).is_some_and(open)
    }

    fn acknowledge(&mut self, machine: usize, event: u8) {
        let is = |of: u8| of == event;
        if machine == SEND {
            if is(send::Event::Deadline as u8) {
                self.fired = true;
            } else {
                self.sent -= 1;
            }
        } else if is(sdma::Event::Failed as u8) {
            self.failed = false;
        } else if is(sdma::Event::Arrived as u8) {
            self.arrived -= 1;
            self.seen += 1;
            self.in_time = !self.is_late();
        } else if is(sdma::Event::SumStored as u8) {
            self.sum_queued = false;
            let at = self.frames[self.fetching].start + SUM_AT as u32;
            self.chip.machine.load_image(at, &SUM);
        } else if is(sdma::Event::Posted as u8) {
            self.fetching = self.next;
            self.next += 1;
            self.seen = 0;
        }
    }

    fn conditions(&self, machine: usize) -> u8 {
        let bit = |of: u8, holds: bool| u8::from(holds) << of;
        if machine == SEND {
            let more = !self.at_the_mac.is_empty() || self.sent != 0;
            return bit(send::Condition::InTime as u8, self.in_time)
                | bit(send::Condition::MacHasMore as u8, more);
        }
        let frame = self.frames.get(self.fetching);
        let (long, summed) = frame.map_or((false, false), |it| (it.long, it.summed));
        let idle = self.mac_is_idle() && self.walk.is_idle(SEND);
        bit(sdma::Condition::MayCut as u8, long && !summed && idle)
            | bit(sdma::Condition::SumWanted as u8, summed)
            | bit(sdma::Condition::MoreParts as u8, self.seen < self.transfers)
    }
}
