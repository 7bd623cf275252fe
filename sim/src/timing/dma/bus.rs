//! Who has the PCI bus: one of the channels, or the host.

use super::stall::Stall;
use super::{DmaEngine, Phase};
use crate::timing::fine::{FRACTION, Fine};
use crate::timing::parameters::Parameters;
use rand_xoshiro::rand_core::Rng;
use tigon2_model::Direction;

/// Who has the bus, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusUse {
    /// The channel.
    pub owner: Direction,
    /// When it got the bus.
    pub begin: Fine,
    /// When its first beat is due.
    pub data: Fine,
}

/// The transaction on the bus.
#[derive(Clone, Copy, Debug)]
pub(in crate::timing) struct Transaction {
    pub(in crate::timing) owner: Direction,
    /// When it got the bus, and when its first beat was due.
    begin: Fine,
    data: Fine,
    /// Data beats left.
    pub(in crate::timing) beats: u32,
    /// When the next one is due.
    pub(in crate::timing) next: Fine,
    /// What it waits for in front of a later one.
    pub(in crate::timing) stall: Stall,
}

impl Transaction {
    /// It waits, if its stall comes in front of the next beat.
    #[inline]
    pub(super) fn stall_if_due(&mut self) {
        if self.beats == self.stall.at {
            self.next = self.next.plus(self.stall.length);
            self.stall = Stall::default();
        }
    }
}

/// An access of the host to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAccess {
    /// A posted write.
    Write,
    /// A read.
    Read,
}

/// The host's share of the bus.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostOnBus {
    /// How long a write has the bus, and a read.
    times: [Fine; 2],
    /// An access that waits for the bus: how long it will have it.
    pub(super) waits: Option<Fine>,
    /// When the last one leaves the bus.
    end: Fine,
    /// Whether it was the last to have the bus.
    had: bool,
}

impl HostOnBus {
    /// Its accesses take so many clocks of the bus as the parameters say.
    pub(super) fn new(parameters: &Parameters, clock: Fine) -> HostOnBus {
        HostOnBus {
            times: [parameters.pio_wr, parameters.pio_rd].map(|clocks| clock.times(clocks)),
            ..HostOnBus::default()
        }
    }
}

impl DmaEngine {
    /// Cycles in which a transaction was on the bus, latencies included.
    pub fn bus_busy(&self) -> u64 {
        self.busy.0 >> FRACTION
    }

    /// Stalls of transactions so far, and their cycles.
    pub fn stalls(&self) -> (u64, u64) {
        self.stalling.seen()
    }

    /// Who has the bus, and the cycle from which on it was free last.
    pub fn bus_use(&self) -> (Option<BusUse>, u64) {
        let now = self.bus.map(|transaction| BusUse {
            owner: transaction.owner,
            begin: transaction.begin,
            data: transaction.data,
        });
        (now, self.bus_free.ceil())
    }

    /// The host asks for the bus. Returns whether its access takes any time there.
    pub fn host_asks(&mut self, access: HostAccess) -> bool {
        let time = self.host.times[access as usize];
        if time == Fine::default() {
            return false;
        }
        self.host.waits = Some(time);
        self.wake = 0;
        true
    }

    /// Whether the host's access has left the bus.
    pub fn host_is_done(&self, cycle: u64) -> bool {
        self.host.waits.is_none() && self.host.end <= Fine::cycle(cycle)
    }

    /// Whether a channel wants the bus for a transaction.
    #[inline]
    pub(super) fn asks(&self, direction: Direction, parameters: &Parameters) -> bool {
        match self.phases[direction.index()] {
            Phase::Live(live) if live.bus != 0 => match direction {
                Direction::Read => true,
                Direction::Write => live.fifo >= parameters.thresh.min(live.bus),
            },
            _ => false,
        }
    }

    /// Grants the bus in `cycle`, if it is free and a channel requests it.
    #[inline]
    pub fn arbitrate(&mut self, cycle: u64, parameters: &Parameters) {
        let now = Fine::cycle(cycle);
        if self.bus.is_some() || self.bus_free > now.plus(self.beat) || !self.share.may_take() {
            return;
        }
        let other = self.bus_last.other();
        let owner = [other, self.bus_last]
            .into_iter()
            .find(|direction| self.asks(*direction, parameters));
        if let Some(time) = self.host.waits
            && !(self.host.had && owner.is_some())
        {
            self.bus_free = self.bus_free.max(now).plus(time);
            self.busy = self.busy.plus(time);
            self.host.end = self.bus_free;
            self.host.waits = None;
            self.host.had = true;
            return;
        }
        let Some(owner) = owner else {
            return;
        };
        self.host.had = false;
        let Phase::Live(live) = self.phases[owner.index()] else {
            return;
        };
        let begin = self.bus_free.max(now);
        let latency = self.latency(owner);
        let beats = live.bus.min(parameters.burst / 8);
        let stall = self.stalling.of(beats);
        let time = latency.plus(self.beat.times(beats.into()));
        self.busy = self.busy.plus(time).plus(stall.length);
        self.bus_last = owner;
        let data = begin.plus(latency);
        let mut transaction = Transaction {
            owner,
            begin,
            data,
            beats,
            next: data,
            stall,
        };
        transaction.stall_if_due();
        self.bus = Some(transaction);
    }

    /// The latency of a transaction: uniform in [1 - jitter, 1 + jitter] times its figure.
    fn latency(&mut self, owner: Direction) -> Fine {
        const ONE: u64 = 1 << FRACTION;
        let part = u64::from(self.random.next_u32() & (ONE as u32 - 1));
        let factor = ONE - self.jitter + ((2 * self.jitter * part) >> FRACTION);
        let latency = self
            .share
            .latency(owner)
            .unwrap_or(self.latency[owner.index()]);
        latency.scaled(factor)
    }
}
