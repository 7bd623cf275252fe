//! What the rows do: to the card's registers, and to the processes' buffers.

use super::jobs::Job;
use super::process::STALE;
use super::{Account, Finding, TAIL, World};
use frame_pipeline::{rdma, recv};

impl World {
    /// The endpoint's next buffer.
    fn take_buffer(&mut self, frame: usize) -> usize {
        let endpoint = self.frame(frame).plan.endpoint;
        self.buffers[endpoint].pop_front().unwrap_or(STALE)
    }

    fn raise(&mut self, event: rdma::Event) {
        self.walk.lower(event as u8);
        self.walk.raise(event as u8);
    }

    pub(super) fn follow_side(&mut self, action: recv::Action) {
        use recv::Action;
        match action {
            Action::Nothing => {}
            Action::Follow => self.grown = true,
            Action::Open => {
                let Some(frame) = self.coming else { return };
                let job = Job {
                    frame,
                    slot: self.take_buffer(frame),
                    start: self.frame(frame).start,
                    written: 0,
                    length: 0,
                    has_room: false,
                    ahead: false,
                    spoiled: false,
                };
                self.jobs.push_back(job);
                self.raise(rdma::Event::Opened);
            }
            Action::TellMore => self.raise(rdma::Event::More),
            Action::TellLast => {
                self.cut_ends();
                self.raise(rdma::Event::LastGood);
            }
            Action::TellBad => {
                self.cut_ends();
                self.raise(rdma::Event::Gone);
            }
            Action::TellGone => {
                self.walk.lower(rdma::Event::More as u8);
                self.raise(rdma::Event::Gone);
            }
            Action::QueueWhole => self.whole_frames.extend(self.ended_frame),
            Action::Discard => {
                if let Some(ended) = self.ended_frame {
                    self.free(ended.frame);
                }
            }
        }
    }

    /// RDMA's frame ends as the last descriptor says.
    fn cut_ends(&mut self) {
        self.walk.lower(rdma::Event::More as u8);
        let here = self.jobs.front().map_or(0, |job| self.here(job.frame));
        let Some(job) = self.jobs.front_mut() else {
            return;
        };
        job.length = here + TAIL;
        if let Some(ended) = self.ended_frame {
            job.length = ended.length;
            job.has_room = true;
        }
    }

    pub(super) fn write_side(&mut self, action: rdma::Action) {
        use rdma::Action;
        match action {
            Action::Nothing => {}
            Action::WriteWhole => self.write_whole(false),
            Action::WriteWholeAndComplete => self.write_whole(true),
            Action::WriteChunk => {
                let end = self.jobs.front().map_or(0, |job| self.here(job.frame));
                self.write_on(end, false, false);
            }
            Action::WriteRest => self.write_rest(false),
            Action::WriteRestAndComplete => self.write_rest(true),
            Action::Complete => {
                if let Some(job) = self.done() {
                    self.process.complete(job.slot, Some(job.length));
                }
            }
            Action::Finish => {
                self.done();
            }
            Action::Fail => {
                if let Some(job) = self.done() {
                    self.account(job.frame, Account::Failed);
                    self.process.complete(job.slot, None);
                }
            }
            Action::Leave => {
                if let Some(job) = self.done() {
                    self.account(job.frame, Account::Refused);
                    if job.spoiled {
                        self.walk.find(Finding::Miscounted(job.frame));
                    }
                    self.give_back(&job);
                }
            }
            Action::Forget => {
                if let Some(job) = self.done() {
                    self.give_back(&job);
                }
            }
            Action::Drop => {
                if let Some(newest) = self.newest {
                    self.account(newest.frame, Account::NoBuffer);
                    self.free(newest.frame);
                }
            }
            Action::Close => {
                if let Some(endpoint) = self.closing.take() {
                    self.closed[endpoint] = true;
                    self.buffers[endpoint].clear();
                    self.process.close(endpoint);
                }
            }
        }
    }

    fn write_whole(&mut self, ahead: bool) {
        let Some(newest) = self.newest else { return };
        let job = Job {
            frame: newest.frame,
            slot: self.take_buffer(newest.frame),
            start: newest.start,
            written: 0,
            length: newest.length,
            has_room: true,
            ahead,
            spoiled: false,
        };
        self.jobs.push_back(job);
        self.queue(job.length, true, ahead.then_some(job.length));
    }

    fn write_rest(&mut self, ahead: bool) {
        let length = self.jobs.front().map_or(0, |job| job.length);
        self.write_on(length, true, ahead);
    }

    /// More of a frame that is cut through, when what was in front of it is written.
    fn write_on(&mut self, end: u32, is_rest: bool, ahead: bool) {
        if !self.queued.is_empty() || self.wrote != 0 || self.write_failed {
            self.walk.find(Finding::TwoMasters);
        }
        if let Some(job) = self.jobs.front_mut() {
            job.ahead = ahead;
            let end = end.max(job.written);
            self.queue(end, is_rest, ahead.then_some(end));
        }
    }

    /// The oldest frame is done with, and its room is free. If there is none, the variables still say
    /// what they said of the last one.
    fn done(&mut self) -> Option<Job> {
        self.last_job = self.jobs.pop_front().or(self.last_job);
        let job = self.last_job?;
        if job.has_room {
            self.free(job.frame);
        }
        Some(job)
    }

    /// The buffer is the endpoint's next one again.
    fn give_back(&mut self, job: &Job) {
        let endpoint = self.frame(job.frame).plan.endpoint;
        self.buffers[endpoint].push_front(job.slot);
    }

    fn account(&mut self, frame: usize, account: Account) {
        self.frames[frame].accounts.push(account);
    }
}
