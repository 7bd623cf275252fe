//! A machine whose wire leads to another one, and runs in windows of time beside it.

use super::{Environment, Machine, environment};
use crate::timing::mac::MacEngine;
use crate::wire::Departure;
use tigon2_chip::mac::RxError;

impl Machine {
    /// Another machine is at the far end of the wire from now on.
    pub(crate) fn connect(&mut self) {
        self.wire.connect();
    }

    /// Whether another machine is there.
    pub(crate) fn is_connected(&self) -> bool {
        self.wire.is_line()
    }

    /// Whether the wire may give the card a frame: a line cannot hold any.
    #[inline]
    pub(super) fn takes_frames(&self) -> bool {
        self.wire.is_line() || self.card.inspect().can_receive()
    }

    /// Whether the frame that the card has just put on the wire is the one that has left, and not
    /// a pause frame of the MAC's own.
    pub(super) fn has_just_sent(&self) -> bool {
        self.wire.under_way().is_some() && !self.card.inspect().is_sending()
    }

    /// The transmitter has begun a frame.
    #[inline]
    pub(super) fn note_departure(&mut self, mac: &MacEngine, length: usize) {
        if self.wire.is_line()
            && self.card.inspect().sending(self.now()).is_some()
            && let Some(start) = mac.sending_since()
        {
            self.wire.begin(start, length);
        }
    }

    /// The MAC gets the pause frames that have arrived.
    pub(super) fn take_controls(&mut self) {
        let now = self.now();
        while let Some(frame) = self.wire.take_control(now) {
            let none = RxError::NONE;
            self.card
                .device(&mut environment!(self))
                .receive_unheld(&frame, none);
        }
    }

    /// Lets time pass up to cycle `limit`, or until an interrupt if that matters; returns whether
    /// it came. [`Machine::gather`] must follow before anybody looks.
    pub(crate) fn run_window(&mut self, limit: u64, watched: bool) -> bool {
        self.run_towards(limit, |machine| watched && machine.interrupt)
    }

    /// The first cycle in which the card may do anything that another one could see.
    pub(crate) fn rests_until(&self) -> u64 {
        let Some(timed) = &self.timed else {
            return self.cycle;
        };
        if self.recheck || self.changed || timed.port.wanted() {
            return self.cycle;
        }
        let running = |cpu: &&tigon2_chip::Cpu| self.cpus.core(**cpu).running();
        let cpus = self.cpus.all().iter().filter(running);
        let cpus = cpus.map(|cpu| timed.pipelines[cpu.index()].attention());
        let engines = timed.dma.wake.min(timed.mac.wake).min(self.deadline);
        cpus.fold(engines, u64::min).max(self.cycle)
    }

    /// What has left the card since this was last asked, and the bytes of the frame that leaves
    /// now, as far as they are known.
    pub(crate) fn departures(&mut self) -> Vec<Departure> {
        self.follow_sent();
        let mut departures: Vec<_> = self.wire.departures().collect();
        if let Some(number) = self.wire.under_way()
            && let Some(bytes) = self
                .card
                .inspect()
                .sending(self.clock.nanoseconds(self.cycle))
        {
            let bytes = bytes.to_vec();
            departures.push(Departure::Bytes { number, bytes });
        }
        departures
    }

    /// A departure of the other card reaches this one, `delay` nanoseconds later.
    pub(crate) fn arrive(&mut self, departure: Departure, delay: u64) {
        let cut = match &departure {
            Departure::Bytes { .. } => return self.wire.arrive(departure, delay),
            Departure::Cut { number, at } => Some((*number, at + delay)),
            _ => None,
        };
        self.wire
            .set_speed(self.card.inspect().link_megabits(self.now()));
        self.wire.arrive(departure, delay);
        if let Some((number, end)) = cut
            && self.wire.is_next(number)
            && let Some(timed) = &mut self.timed
        {
            let end = timed.mac.at(end);
            timed.mac.cut_received(end);
        }
        // An idle receiver has looked at an empty wire and sleeps.
        self.recheck = true;
        self.plan();
    }
}
