//! What the rows do: to the card's registers, and to the process's memory.

use super::{Finding, HOST, PART, SLOT, TURN, World};
use frame_pipeline::{sdma, send};

impl World {
    pub(super) fn report(&mut self, event: send::Event) {
        self.walk.raise(event as u8);
    }

    pub(super) fn fetch_side(&mut self, action: sdma::Action) {
        use sdma::Action;
        match action {
            Action::Nothing => {}
            Action::FetchWhole => self.fetch(true),
            Action::FetchParts => self.fetch(false),
            Action::Offer => {
                self.report(send::Event::OfferedWhole);
                self.complete();
            }
            Action::OfferEarly => self.report(send::Event::OfferedEarly),
            Action::Pass => self.report(send::Event::PartArrived),
            Action::PassLast => {
                self.report(send::Event::LastArrived);
                self.complete();
            }
            Action::FetchAgain => self.report(send::Event::PartFailed),
            Action::StoreSum => self.sum_queued = true,
            Action::Fail => {
                self.queued.clear();
                self.frames[self.fetching].given_up = true;
                self.complete();
            }
            Action::Close => {
                if let Some(endpoint) = self.closing.take() {
                    self.closed[endpoint] = true;
                    let of = |number: &usize| self.frames[*number].endpoint == endpoint;
                    (0..self.frames.len())
                        .filter(of)
                        .for_each(|number| self.reuse(number));
                }
            }
        }
    }

    pub(super) fn fetch(&mut self, whole: bool) {
        if !self.queued.is_empty() || self.arrived != 0 || self.failed {
            self.walk.find(Finding::TwoMasters);
        }
        let number = self.fetching;
        let length = self.bytes(&self.frames[number]);
        let start = self.chip.place(length);
        self.frames[number].start = start;
        let part = if whole { length } else { length.min(PART) };
        let host = HOST + (number * SLOT) as u64;
        let parts = (0..length).step_by(part as usize);
        let parts = parts.map(|at| (host + u64::from(at), start + at, part));
        self.queued.extend(parts);
        self.transfers = length / part;
        self.here = 0;
        self.late.clear();
    }

    pub(super) fn complete(&mut self) {
        let number = self.fetching;
        let frame = &mut self.frames[number];
        frame.completed += 1;
        if self.closed[frame.endpoint] {
            self.walk.find(Finding::AfterClose(number));
        }
        self.reuse(number);
    }

    pub(super) fn send_side(&mut self, action: send::Action) {
        use send::Action;
        match action {
            Action::Nothing | Action::Free => {}
            Action::Queue | Action::QueueEarly => {
                let frame = &self.frames[self.fetching];
                let (start, length) = (frame.start, self.bytes(frame));
                if action == Action::QueueEarly && !(self.mac_is_idle() && self.sent == 0) {
                    self.walk.find(Finding::EarlyBehind(self.fetching));
                }
                self.at_the_mac.push_back(self.fetching);
                self.chip.give(start, length);
                if action == Action::QueueEarly {
                    (self.armed, self.fired, self.certified) = (true, false, 1);
                }
            }
            Action::Certify => {
                self.certified += 1;
                self.fired = false;
            }
            Action::CertifyLast => self.armed = false,
            Action::Abort => self.reset(true),
            Action::Repeat => self.reset(false),
            Action::Resume => {
                self.stopped = false;
                self.chip.resume();
            }
        }
    }

    pub(super) fn reset(&mut self, stop: bool) {
        self.chip.reset(stop);
        self.stopped |= stop;
        self.armed = false;
        self.position = 0;
        // What was on the wire ends cut.
        self.chip.machine.run(TURN);
    }
}
