//! Random skews and stalls of the CPUs, the DMA channels and the transmitter.
//!
//! With the functional clock, both CPUs execute one instruction a cycle and DMA takes no time;
//! this is only one of all possible schedules. A disturbance selects another one: a CPU may have
//! to wait before each instruction, and each transfer and each frame takes a random time. One seed
//! determines all of it.

use crate::cpu::Access;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fmt;
use tigon2_chip::Cpu;
use tigon2_model::Direction;

/// Longest time of a DMA transfer or of a frame in the transmitter, in cycles: one of these.
const ENGINE_CYCLES: [u64; 4] = [1, 60, 600, 6000];
/// Longest stalls of a CPU, in cycles: one of these.
const STALL_CYCLES: [u64; 4] = [20, 300, 3000, 30_000];

/// The most that a poll in vain takes, in cycles.
const IDLE_CYCLES: u64 = 120;

/// The delays of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// An instruction a cycle.
    Steady,
    /// Each instruction takes 1 to `most` cycles.
    Jitter {
        /// The most that one takes.
        most: u64,
    },
    /// One of `rarity` instructions takes up to `most` cycles.
    Stalls {
        /// One of so many.
        rarity: u64,
        /// The most that it takes.
        most: u64,
    },
    /// One of `rarity` accesses to what the CPUs share is followed by up to `most` cycles
    /// of nothing: between reading and writing, between writing and telling.
    AtShared {
        /// One of so many.
        rarity: u64,
        /// The most that it takes.
        most: u64,
    },
    /// Only in every other turn of `cycles`.
    Turns {
        /// Cycles of a turn.
        cycles: u64,
        /// 0 or 1: which of two turns.
        phase: u64,
    },
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Steady => write!(f, "steady"),
            Pace::Jitter { most } => write!(f, "jitter up to {most}"),
            Pace::Stalls { rarity, most } => write!(f, "stalls up to {most}, 1 of {rarity}"),
            Pace::AtShared { rarity, most } => {
                write!(f, "at shared words up to {most}, 1 of {rarity}")
            }
            Pace::Turns { cycles, .. } => write!(f, "turns of {cycles}"),
        }
    }
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct Disturbance {
    random: SplitMix64,
    paces: [Pace; Cpu::MOST],
    /// The longest time of a transfer by channel, and of a frame that leaves.
    engines: [u64; 3],
    /// When a transfer, or the frame in the transmitter, is done.
    due: [Option<u64>; 3],
}

/// The transmitter's place behind the channels'.
const TRANSMITTER: usize = 2;

impl Disturbance {
    /// The schedule of a seed.
    pub fn new(seed: u64) -> Disturbance {
        let mut random = SplitMix64::seed_from_u64(seed);
        let alternate = below(&mut random, 8) == 0;
        let cycles = 1 + below(&mut random, 2000);
        let paces = if alternate {
            [0, 1].map(|phase| Pace::Turns { cycles, phase })
        } else {
            [(); 2].map(|()| pace(&mut random))
        };
        // Those of further CPUs leave the numbers of a schedule of two what they are.
        let mut others = SplitMix64::seed_from_u64(!seed);
        let paces = Cpu::EVERY.map(|cpu| match (paces.get(cpu.index()), alternate) {
            (Some(pace), _) => *pace,
            (None, true) => paces[cpu.index() % 2],
            (None, false) => pace(&mut others),
        });
        let engines = [(); 3].map(|()| choose(&mut random, ENGINE_CYCLES));
        Disturbance {
            random,
            paces,
            engines,
            due: [None; 3],
        }
    }

    /// The delays of a CPU.
    pub fn pace(&self, cpu: Cpu) -> Pace {
        self.paces[cpu.index()]
    }

    /// The longest times of DMA reads, DMA writes and frames that leave, in cycles.
    pub fn engines(&self) -> [u64; 3] {
        self.engines
    }

    /// Cycles from an instruction to the next one of its CPU.
    pub(crate) fn cycles(&mut self, cpu: Cpu, cycle: u64, access: &Access) -> u64 {
        let shared = matches!(
            access,
            Access::LoadSram
                | Access::StoreSram
                | Access::ReadRegister { .. }
                | Access::WriteRegister { .. }
        );
        match self.paces[cpu.index()] {
            Pace::Steady => 1,
            Pace::Jitter { most } => 1 + below(&mut self.random, most),
            Pace::AtShared { .. } if !shared => 1,
            Pace::Stalls { rarity, most } | Pace::AtShared { rarity, most } => {
                if below(&mut self.random, rarity) == 0 {
                    1 + below(&mut self.random, most)
                } else {
                    1
                }
            }
            Pace::Turns { cycles, phase } => {
                let next = cycle + 1;
                if next / cycles % 2 == phase {
                    1
                } else {
                    cycles - next % cycles + 1
                }
            }
        }
    }

    /// Cycles that a CPU spends besides when it finds nothing to do: a schedule like others,
    /// in which less is executed for nothing.
    pub(crate) fn idle(&mut self) -> u64 {
        below(&mut self.random, IDLE_CYCLES)
    }

    /// Whether a channel has begun a transfer that is not done.
    pub(crate) fn moves(&self, direction: Direction) -> bool {
        self.due[direction.index()].is_some()
    }

    /// A channel begins a transfer in `cycle`.
    pub(crate) fn begin(&mut self, direction: Direction, cycle: u64) {
        self.start(direction.index(), cycle);
    }

    /// The transmitter begins with a frame in `cycle`.
    pub(crate) fn send(&mut self, cycle: u64) {
        self.start(TRANSMITTER, cycle);
    }

    fn start(&mut self, engine: usize, cycle: u64) {
        let takes = below(&mut self.random, self.engines[engine]);
        self.due[engine] = Some(cycle + takes);
    }

    /// Whether a channel's transfer is done by `cycle`; it is done once.
    pub(crate) fn moved(&mut self, direction: Direction, cycle: u64) -> bool {
        self.take(direction.index(), cycle)
    }

    /// Whether the transmitter's frame has left by `cycle`; it leaves once.
    pub(crate) fn sent(&mut self, cycle: u64) -> bool {
        self.take(TRANSMITTER, cycle)
    }

    fn take(&mut self, engine: usize, cycle: u64) -> bool {
        self.due[engine].take_if(|due| *due <= cycle).is_some()
    }

    /// When the next of them is done.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.iter().flatten().copied().min()
    }
}

fn pace(random: &mut SplitMix64) -> Pace {
    let most = choose(random, STALL_CYCLES);
    match below(random, 8) {
        0 => Pace::Steady,
        1 | 2 => Pace::Jitter {
            most: 2 + below(random, 30),
        },
        // Long stalls are rare, so that every schedule makes progress.
        3 | 4 => Pace::Stalls {
            rarity: most / 4 + 4 + below(random, most),
            most,
        },
        _ => Pace::AtShared {
            rarity: most / 40 + 2 + below(random, 1 + most / 10),
            most,
        },
    }
}

/// Below a limit above 0.
pub(super) fn below(random: &mut SplitMix64, limit: u64) -> u64 {
    random.next_u64() % limit.max(1)
}

/// One of several.
pub(super) fn choose<T: Copy, const N: usize>(random: &mut SplitMix64, from: [T; N]) -> T {
    from[below(random, N as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_schedule() {
        let draw = |seed| {
            let mut disturbance = Disturbance::new(seed);
            let cycles: Vec<u64> = (0..200)
                .map(|n| disturbance.cycles(Cpu::A, n, &Access::LoadSram))
                .collect();
            (disturbance.paces, disturbance.engines, cycles)
        };
        assert_eq!(draw(3), draw(3));
        let different = (1..50).filter(|seed| draw(*seed) != draw(0)).count();
        assert_eq!(different, 49);
    }

    #[test]
    fn every_pace_is_drawn_and_none_stands_still() {
        let mut drawn = [0; 5];
        for seed in 0..300 {
            let mut disturbance = Disturbance::new(seed);
            drawn[match disturbance.pace(Cpu::B) {
                Pace::Steady => 0,
                Pace::Jitter { .. } => 1,
                Pace::Stalls { .. } => 2,
                Pace::AtShared { .. } => 3,
                Pace::Turns { .. } => 4,
            }] += 1;
            let mut cycle = 0;
            for _ in 0..2000 {
                cycle += disturbance.cycles(Cpu::B, cycle, &Access::StoreSram);
            }
            assert!((2000..2000 * 100).contains(&cycle), "seed {seed}: {cycle}");
        }
        assert!(drawn.iter().all(|count| *count > 10), "{drawn:?}");
    }

    #[test]
    fn turns_exclude_each_other() {
        let paces = Cpu::EVERY.map(|cpu| Pace::Turns {
            cycles: 7,
            phase: cpu.index() as u64 % 2,
        });
        let mut disturbance = Disturbance {
            paces,
            ..Disturbance::new(0)
        };
        for cpu in Cpu::ALL {
            let mut cycle = 0;
            for _ in 0..100 {
                cycle += disturbance.cycles(cpu, cycle, &Access::None);
                assert_eq!(cycle / 7 % 2, cpu.index() as u64, "{cpu:?} in {cycle}");
            }
        }
    }
}
