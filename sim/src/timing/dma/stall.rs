//! BusStalls of the bus within a transaction: a target that disconnects, a bridge that is full.
//!
//! ```text
//!   latency   beats
//!   [........|======          stall           =========]
//!                   ▲ the beat in front of which it comes
//! ```
//!
//! A chosen part of the transactions has one, of random length in front of a random beat. They have
//! random numbers of their own: with them and without, latencies are the same.

use crate::timing::fine::Fine;
use crate::timing::parameters::BusStalls;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The stall of a transaction that has not come to it yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::timing) struct Stall {
    /// Beats that are left when it comes, itself included; 0 if there is none.
    pub(in crate::timing) at: u32,
    pub(super) length: Fine,
}

/// Who says which transactions stall.
#[derive(Clone, Debug)]
pub(super) struct Stalling {
    stalls: BusStalls,
    random: SplitMix64,
    count: u64,
    cycles: u64,
}

impl Stalling {
    pub(super) fn new(stalls: BusStalls, seed: u64) -> Stalling {
        Stalling {
            stalls,
            // Others have the seed itself.
            random: SplitMix64::seed_from_u64(!seed),
            count: 0,
            cycles: 0,
        }
    }

    /// The stall of a transaction of so many beats.
    #[inline]
    pub(super) fn of(&mut self, beats: u32) -> Stall {
        if self.stalls.every == 0 {
            return Stall::default();
        }
        self.draw(beats)
    }

    fn draw(&mut self, beats: u32) -> Stall {
        let BusStalls { every, least, most } = self.stalls;
        if !self.random.next_u32().is_multiple_of(every) || beats == 0 {
            return Stall::default();
        }
        let cycles = least + self.random.next_u64() % (most.saturating_sub(least) + 1);
        self.count += 1;
        self.cycles += cycles;
        Stall {
            at: 1 + self.random.next_u32() % beats,
            length: Fine::cycle(cycles),
        }
    }

    /// How many there were, and their cycles.
    pub(super) const fn seen(&self) -> (u64, u64) {
        (self.count, self.cycles)
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::SramBytes;
    use crate::timing::BusStalls;
    use crate::timing::dma::Phase;
    use crate::timing::{Parameters, Timed};
    use tigon2_chip::bits::DmaState;
    use tigon2_model::dma::Transfer;
    use tigon2_model::{Board, Direction};

    const TRANSFER: Transfer = Transfer {
        host: 0x1000,
        local: 0x2000,
        length: 512,
        state: DmaState::new(),
        assist: false,
    };

    /// Moves one transaction of 64 beats: in which cycle it has ended, how many bytes of a read had
    /// come in each cycle, and in front of which beat the stall came.
    fn moved(direction: Direction, stalls: BusStalls, seed: u64) -> (u64, Vec<u32>, Option<u32>) {
        let parameters = Parameters {
            stalls,
            ..Parameters::default()
        };
        let sram = SramBytes::new(1 << 19);
        let mut timed = Timed::new(parameters, &Board::default(), seed);
        let Timed {
            parameters,
            port,
            dma,
            ..
        } = &mut timed;
        for way in Direction::ALL {
            dma.looks(way);
        }
        dma.begun(0, direction, Some(TRANSFER), parameters, port);
        let (mut arrived, mut stall) = (Vec::new(), None);
        for cycle in 1..100_000 {
            let Timed {
                parameters,
                port,
                dma,
                ..
            } = &mut timed;
            if let Phase::End(at) = dma.phases[direction.index()] {
                return (at, arrived, stall);
            }
            let idle = dma.bus.is_none();
            assert!(dma.only_moves(cycle, parameters, port));
            if idle
                && let Some(transaction) = &dma.bus
                && let (Some(now), _) = dma.bus_use()
            {
                let waits = transaction.next != now.data;
                let at = if waits { 64 } else { transaction.stall.at };
                stall = (at != 0).then_some(64 - at);
            }
            timed.grant(cycle, &sram);
            arrived.push(timed.dma.arrived(&TRANSFER));
        }
        panic!("it does not end");
    }

    /// With a stall of 700 cycles the transfer takes 700 more, whichever beat it comes in front of. What
    /// a read has brought before is there meanwhile, and nothing else.
    #[test]
    fn a_transaction_takes_its_stall_longer() {
        let stalls = BusStalls {
            every: 1,
            least: 700,
            most: 700,
        };
        let mut places = [false; 64];
        for (seed, direction) in (0..400).flat_map(|seed| Direction::ALL.map(|way| (seed, way))) {
            let (usual, ..) = moved(direction, BusStalls::default(), seed);
            let (end, arrived, place) = moved(direction, stalls, seed);
            assert_eq!(end, usual + 700, "{direction:?}, seed {seed}");
            let place = place.expect("each has one");
            places[place as usize] = true;
            if direction == Direction::Read {
                let there = arrived.iter().filter(|bytes| **bytes == 8 * place);
                assert!(there.count() >= 700, "seed {seed}: in front of {place}");
            }
        }
        assert!(places.iter().all(|seen| *seen), "{places:?}");
    }

    #[test]
    fn stalls_are_as_frequent_and_as_long_as_asked() {
        let stalls = BusStalls {
            every: 10,
            least: 5,
            most: 50_000,
        };
        let mut stalling = super::Stalling::new(stalls, 3);
        let (mut count, mut least, mut most) = (0, u64::MAX, 0);
        for _ in 0..20_000 {
            let before = stalling.seen().1;
            let stall = stalling.of(64);
            assert!(stall.at <= 64);
            if stall.at != 0 {
                let cycles = stalling.seen().1 - before;
                assert_eq!(super::Fine::cycle(cycles), stall.length);
                (least, most) = (least.min(cycles), most.max(cycles));
                count += 1;
            }
        }
        assert_eq!(stalling.seen().0, count);
        assert!((1800..2200).contains(&count), "{count}");
        assert!((5..300).contains(&least) && (49_700..=50_000).contains(&most));
    }
}
