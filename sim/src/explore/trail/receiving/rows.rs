//! The rows that a run takes: what has come, and which conditions hold.

use super::jobs::Ended;
use super::{RECV, Walk, Walked, World};
use frame_pipeline::{Definition, rdma, recv};

impl Walked for World {
    fn walk(&self) -> &Walk {
        &self.walk
    }

    fn walk_mut(&mut self) -> &mut Walk {
        &mut self.walk
    }

    fn act(&mut self, machine: usize, action: u8) {
        let action = usize::from(action);
        match machine {
            RECV => self.follow_side(recv::Recv::ACTIONS[action]),
            _ => self.write_side(rdma::Rdma::ACTIONS[action]),
        }
    }

    fn is_pending(&self, machine: usize, event: u8) -> bool {
        let is = |of: u8| of == event;
        if machine == RECV {
            // What has ended is looked at before what comes in behind it.
            let comes_in = self.coming.is_some() && self.ended.is_empty();
            return is(recv::Event::GaveUp as u8) && self.gave_up
                || is(recv::Event::Ended as u8) && !self.ended.is_empty()
                || is(recv::Event::Grown as u8) && comes_in && self.followed && self.grown
                || is(recv::Event::Begun as u8) && comes_in && !self.followed;
        }
        is(rdma::Event::Written as u8) && self.wrote != 0
            || is(rdma::Event::Failed as u8) && self.write_failed
            || is(rdma::Event::Waiting as u8) && !self.whole_frames.is_empty()
            || is(rdma::Event::Closed as u8) && self.closing.is_some()
    }

    fn acknowledge(&mut self, machine: usize, event: u8) {
        let is = |of: u8| of == event;
        if machine == RECV {
            if is(recv::Event::GaveUp as u8) {
                self.gave_up = false;
                self.chip.clear_gave_up();
            } else if is(recv::Event::Ended as u8) {
                let descriptor = self.chip.take();
                let frame = self.ended.pop_front();
                self.ended_frame = frame.map(|frame| Ended::new(frame, &descriptor));
            } else if is(recv::Event::Grown as u8) {
                self.grown = false;
            } else if is(recv::Event::Begun as u8) {
                self.followed = true;
            }
        } else if is(rdma::Event::Written as u8) {
            self.wrote -= 1;
        } else if is(rdma::Event::Failed as u8) {
            self.write_failed = false;
        } else if is(rdma::Event::Waiting as u8) {
            self.newest = self.whole_frames.pop_front();
        }
    }

    fn conditions(&self, machine: usize) -> u8 {
        let bit = |of: u8, holds: bool| u8::from(holds) << of;
        if machine == RECV {
            let has_buffer = self.coming.is_some_and(|frame| self.has_buffer(frame));
            let rests = self.walk.is_idle(super::RDMA) && self.whole_frames.is_empty();
            let good = self.ended_frame.is_some_and(|ended| ended.good);
            return bit(recv::Condition::MayCut as u8, has_buffer && rests)
                | bit(recv::Condition::Good as u8, good);
        }
        let oldest = self.jobs.front();
        let plan = |frame: usize| &self.frame(frame).plan;
        let has_buffer = self.newest.is_some_and(|it| self.has_buffer(it.frame));
        let enough = oldest.is_some_and(|job| self.here(job.frame) > job.written);
        let done = rdma::State::FineGrainedRdmaDone as u8;
        let sumless = if self.walk.state(machine) == done {
            oldest.is_some_and(|job| !plan(job.frame).is_summed())
        } else {
            self.newest.is_some_and(|it| !plan(it.frame).is_summed()) && self.all_ahead()
        };
        bit(rdma::Condition::BufferPosted as u8, has_buffer)
            | bit(rdma::Condition::EnoughHere as u8, enough)
            | bit(rdma::Condition::Sumless as u8, sumless)
            | bit(
                rdma::Condition::Completed as u8,
                oldest.is_some_and(|job| job.ahead),
            )
            | bit(
                rdma::Condition::SumRight as u8,
                oldest.is_some_and(|job| plan(job.frame).is_right()),
            )
            | bit(rdma::Condition::MoreQueued as u8, self.jobs.len() > 1)
    }
}
