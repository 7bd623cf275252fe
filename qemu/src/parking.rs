//! Idle CPUs sleep, and software cannot notice.
//!
//! The firmware's dispatch loop polls its event register for as long as it is
//! zero. Executing that faithfully takes a core of the host for each CPU, and
//! the card's lock a few million times a second. So a CPU that has read zero many
//! times in a row, and touched no other register meanwhile, is put to sleep
//! until its event register is no longer zero.
//!
//! A sleep has an end of its own too: firmware may also wait for a word in
//! SRAM, which nobody reports.
//!
//! There is no lost wake-up: the zero is read, the CPU put to sleep and any
//! event raised under one lock, and after everything that may raise an event
//! the register is looked at.

use tigon2_model::Cpu;

/// Empty reads in a row before a CPU sleeps.
pub const PATIENCE: u32 = 64;

/// Longest sleep in nanoseconds. Short for a person, long beside the time that
/// [`PATIENCE`] reads take.
pub const LONGEST: u64 = 2_000_000;

/// What one CPU does.
#[derive(Clone, Copy, Debug, Default)]
struct Sleeper {
    /// Empty reads in a row.
    empty: u32,
    /// Asleep until then, if nothing happens before.
    until: Option<u64>,
}

/// Which CPUs are idle, and which of them sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parking {
    sleepers: [Sleeper; 2],
}

impl Parking {
    /// `cpu` has read `value` from its own event register; whether it is to
    /// be put to sleep now.
    pub fn polled(&mut self, cpu: Cpu, value: u32, now: u64) -> bool {
        let sleeper = &mut self.sleepers[cpu.index()];
        // Whoever reads is awake.
        sleeper.until = None;
        if value != 0 {
            sleeper.empty = 0;
            return false;
        }
        sleeper.empty += 1;
        if sleeper.empty < PATIENCE {
            return false;
        }
        *sleeper = Sleeper {
            empty: 0,
            until: Some(now + LONGEST),
        };
        true
    }

    /// `cpu` does something else than polling.
    pub fn busy(&mut self, cpu: Cpu) {
        self.sleepers[cpu.index()] = Sleeper::default();
    }

    /// Whether `cpu` sleeps and must wake: it has events, or slept long enough.
    pub fn wake(&mut self, cpu: Cpu, now: u64, events: impl FnOnce() -> u32) -> bool {
        let sleeper = &mut self.sleepers[cpu.index()];
        let wake = sleeper
            .until
            .is_some_and(|until| until <= now || events() != 0);
        if wake {
            *sleeper = Sleeper::default();
        }
        wake
    }

    /// Whether any CPU sleeps.
    pub fn any(&self) -> bool {
        self.sleepers.iter().any(|sleeper| sleeper.until.is_some())
    }

    /// When the first sleep ends by itself.
    pub fn deadline(&self) -> Option<u64> {
        self.sleepers
            .iter()
            .filter_map(|sleeper| sleeper.until)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(parking: &mut Parking, cpu: Cpu, now: u64) -> u32 {
        (1..=2 * PATIENCE)
            .find(|_| parking.polled(cpu, 0, now))
            .unwrap_or(0)
    }

    #[test]
    fn only_patience_empty_reads_in_a_row_put_a_cpu_to_sleep() {
        let mut parking = Parking::default();
        for _ in 0..PATIENCE - 1 {
            assert!(!parking.polled(Cpu::A, 0, 5));
        }
        assert!(!parking.polled(Cpu::A, 4, 5));
        for _ in 0..PATIENCE - 1 {
            assert!(!parking.polled(Cpu::A, 0, 5));
        }
        parking.busy(Cpu::A);
        assert_eq!(idle(&mut parking, Cpu::A, 5), PATIENCE);
        assert!(parking.any());
        assert_eq!(parking.deadline(), Some(5 + LONGEST));
    }

    #[test]
    fn an_event_wakes_only_the_cpu_that_has_it() {
        let mut parking = Parking::default();
        idle(&mut parking, Cpu::A, 0);
        idle(&mut parking, Cpu::B, 7);
        assert!(!parking.wake(Cpu::A, 8, || 0));
        assert!(parking.wake(Cpu::B, 8, || 1 << 28));
        assert!(!parking.wake(Cpu::B, 8, || 1 << 28), "it is awake already");
        assert_eq!(parking.deadline(), Some(LONGEST));
    }

    #[test]
    fn a_sleep_ends_by_itself() {
        let mut parking = Parking::default();
        idle(&mut parking, Cpu::B, 100);
        assert!(!parking.wake(Cpu::B, 99 + LONGEST, || 0));
        assert!(parking.wake(Cpu::B, 100 + LONGEST, || 0));
        assert!(!parking.any());
        assert_eq!(idle(&mut parking, Cpu::B, 100), PATIENCE);
    }

    #[test]
    fn a_cpu_that_reads_is_awake() {
        let mut parking = Parking::default();
        idle(&mut parking, Cpu::A, 0);
        assert!(!parking.polled(Cpu::A, 0, 1));
        assert!(!parking.any());
    }
}
