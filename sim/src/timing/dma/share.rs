//! A card's channels on a PCI bus that they share with other cards.
//!
//! The arbiter is the [fabric](crate::fabric)'s: it looks at what each card asks for and gives one of
//! them the grant, for a window of time in which no other one can ask.

use super::{Direction, DmaEngine, Fine, Parameters, Phase};

/// Clocks of a transaction before its first data beat, by the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Of a read.
    pub read: u64,
    /// Of a write.
    pub write: u64,
}

/// What a shared bus adds to a card's own.
#[derive(Clone, Debug)]
pub(super) struct Share {
    shared: bool,
    granted: bool,
    /// When this card's last transaction was over.
    used: Fine,
    /// Of each channel's transfer, if its target has one of its own.
    latency: [Option<Fine>; 2],
    /// A clock of the bus.
    clock: Fine,
}

impl Share {
    pub(super) fn new(clock: Fine) -> Share {
        Share {
            shared: false,
            granted: false,
            used: Fine::default(),
            latency: [None; 2],
            clock,
        }
    }

    #[inline]
    pub(super) fn may_take(&self) -> bool {
        self.granted | !self.shared
    }

    #[inline]
    pub(super) fn used(&mut self, until: Fine) {
        self.used = until;
    }

    #[inline]
    pub(super) fn latency(&self, direction: Direction) -> Option<Fine> {
        self.latency[direction.index()]
    }
}

/// A card as the arbiter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusRequest {
    /// It has the bus, not before this cycle for the last time.
    Has(u64),
    /// It moves the last beat of its transaction in this cycle, and would go on or not.
    Ends {
        /// The bus is free from this time on.
        free: Fine,
        /// Whether it has more.
        more: bool,
    },
    /// It asks for it.
    Asks,
    /// It does not ask before this cycle.
    Not(u64),
}

impl DmaEngine {
    /// The bus is one of several cards from now on.
    pub(crate) fn share_bus(&mut self) {
        self.share.shared = true;
    }

    /// Gives the card the grant, or takes it; as far as others use it the bus is free from a time
    /// on.
    pub(crate) fn grant_bus(&mut self, granted: bool, free: Fine) {
        if granted && !self.share.granted {
            self.wake = 0;
        }
        self.share.granted = granted;
        self.bus_free = self.share.used.max(free);
    }

    /// When the bus is free, as far as this card has used it; for another one a clock later, in
    /// which nobody drives it.
    pub(crate) fn bus_free_for_others(&self) -> Fine {
        self.share.used.plus(self.share.clock)
    }

    /// The target of the transfer that a channel has begun has a latency of its own, or not.
    pub(crate) fn set_latency(&mut self, direction: Direction, latency: Option<Latency>) {
        let clocks = latency.map(|latency| match direction {
            Direction::Read => latency.read,
            Direction::Write => latency.write,
        });
        let clock = self.share.clock;
        self.share.latency[direction.index()] = clocks.map(|clocks| clock.times(clocks));
    }

    /// What the card wants of the bus in `cycle`, before it has had its turn in it; it does nothing
    /// by itself before cycle `rests`.
    pub(crate) fn request(&self, cycle: u64, rests: u64, parameters: &Parameters) -> BusRequest {
        if let Some(transaction) = &self.bus {
            let left = u64::from(transaction.beats.saturating_sub(1));
            let last = transaction.next.plus(self.beat.times(left));
            if last > Fine::cycle(cycle) {
                return BusRequest::Has(last.ceil());
            }
            let Phase::Live(live) = self.phases[transaction.owner.index()] else {
                return BusRequest::Has(cycle + 1);
            };
            let moves = match transaction.owner {
                Direction::Read => live.fifo + transaction.beats <= parameters.fifo,
                Direction::Write => live.fifo >= transaction.beats,
            };
            if !moves {
                return BusRequest::Has(cycle + 1);
            }
            return BusRequest::Ends {
                free: last.plus(self.beat).plus(self.share.clock),
                more: live.bus > transaction.beats
                    || self.asks(transaction.owner.other(), parameters),
            };
        }
        if Direction::ALL
            .into_iter()
            .any(|one| self.asks(one, parameters))
        {
            return BusRequest::Asks;
        }
        // The shortest way to begin one.
        let soonest = parameters.dma_dir.min(parameters.dma_start).max(1);
        let asks = |direction: Direction| match self.phases[direction.index()] {
            Phase::Live(_) => cycle + 1,
            Phase::Start(at) => at,
            Phase::Descriptor(left) => cycle + u64::from(left) + parameters.dma_start,
            Phase::End(at) => at + soonest,
            Phase::Idle if self.look[direction.index()] => cycle + soonest,
            Phase::Idle => rests.max(cycle).saturating_add(soonest),
        };
        let first = asks(Direction::Read).min(asks(Direction::Write));
        BusRequest::Not(first.max(cycle + 1))
    }

    /// The cycle in which the write channel's transfer may end, if it is under way.
    pub(crate) fn write_ends(&self, cycle: u64, parameters: &Parameters) -> Option<u64> {
        match self.phases[Direction::Write.index()] {
            Phase::Live(live) => {
                let time = self.beat.times(u64::from(live.bus).saturating_sub(1));
                Some(cycle + (time.ceil()).max(1) + parameters.dma_end)
            }
            Phase::End(at) => Some(at),
            _ => None,
        }
    }
}
