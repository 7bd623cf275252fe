//! Puts idle CPUs to sleep without any effect that software could notice.
//!
//! The firmware's dispatch loop reads its event register, and the instruction PRI finds the most
//! urgent enabled event (hardware reference, 3.2 and 5); the loop repeats until there is one.
//! Emulating every turn would occupy a host core for each CPU and take the card's lock a few
//! million times a second. So a CPU that has only polled for many turns in a row sleeps until an
//! event arrives that it has enabled.
//!
//! ```text
//!   event register   1 1 1 0 1 1 0 1   hardware's levels and software's bits, all of them
//!   other operand    0 0 0 1 0 0 1 0   what this CPU wants
//!   PRI              . . . . . . . .   nothing: an idle turn
//! ```
//!
//! Software that reads the register without PRI is woken by every event.
//!
//! Each sleep also has a time limit: firmware may be waiting for a word in SRAM, and changes of
//! SRAM are not reported.
//!
//! No wake-up is lost: the register read, the note that the CPU sleeps and the raising of an event
//! happen under one lock, and this module is notified after everything that may raise an event.

use tigon2_model::Cpu;

/// Idle turns in a row before a CPU sleeps. They take about as long as falling asleep and
/// waking up.
pub const PATIENCE: u32 = 32;

/// Idle turns before a CPU sleeps again if it has woken for nothing: enough for a loop
/// that reads something else in between.
const RELAPSE: u32 = 4;

/// Longest sleep in nanoseconds. Short for a person, long beside the time that
/// [`PATIENCE`] turns take.
pub const LONGEST: u64 = 2_000_000;

/// Both operands of a PRI that was not executed.
pub const NO_PRI: [u32; 2] = [u32::MAX; 2];

/// What ends a sleep: one of these events, or this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sleep {
    wanted: u32,
    until: u64,
}

/// What one CPU does.
#[derive(Clone, Copy, Debug, Default)]
struct Sleeper {
    /// What it has read last.
    seen: u32,
    /// Idle turns in a row.
    idle: u32,
    sleep: Option<Sleep>,
    /// Its sleep has ended, but its thread is not notified yet.
    alarm: bool,
}

impl Sleeper {
    fn wake(&mut self) {
        self.alarm |= self.sleep.take().is_some();
    }
}

/// Which CPUs are idle, and which of them sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parking {
    sleepers: [Sleeper; 2],
}

impl Parking {
    /// `cpu` reads `value` from its own event register, after a PRI with these operands.
    /// If it has nothing to do for long enough: the events that it wants.
    pub fn polled(&mut self, cpu: Cpu, value: u32, operands: [u32; 2]) -> Option<u32> {
        let sleeper = &mut self.sleepers[cpu.index()];
        let before = std::mem::replace(&mut sleeper.seen, value);
        let wanted = match operands {
            [a, b] if a & b == 0 && a == before => b,
            [a, b] if a & b == 0 && b == before => a,
            // It has found an event, or looks in another way.
            _ => u32::MAX,
        };
        if value & wanted != 0 {
            sleeper.idle = 0;
            return None;
        }
        sleeper.idle += 1;
        (sleeper.idle >= PATIENCE).then_some(wanted)
    }

    /// `cpu` is put to sleep, until one of these events or this time comes.
    pub fn sleep(&mut self, cpu: Cpu, wanted: u32, until: u64) {
        self.sleepers[cpu.index()].sleep = Some(Sleep { wanted, until });
    }

    /// Whether `cpu` is to sleep.
    pub fn sleeps(&self, cpu: Cpu) -> bool {
        self.sleepers[cpu.index()].sleep.is_some()
    }

    /// `cpu` has slept, and reads `value` from its event register now.
    pub fn awake(&mut self, cpu: Cpu, value: u32) {
        let woken = !self.sleeps(cpu);
        self.sleepers[cpu.index()] = Sleeper {
            seen: value,
            idle: if woken { 0 } else { PATIENCE - RELAPSE },
            ..Sleeper::default()
        };
    }

    /// `cpu` does something else than polling, or is made to.
    pub fn busy(&mut self, cpu: Cpu) {
        let sleeper = &mut self.sleepers[cpu.index()];
        sleeper.idle = 0;
        sleeper.wake();
    }

    /// Something has happened: the event register of `cpu` is `events` now, its next change
    /// by itself is at `timer`. Ends a sleep that is to end, or is to end sooner.
    pub fn look(&mut self, cpu: Cpu, events: u32, timer: Option<u64>) {
        let sleeper = &mut self.sleepers[cpu.index()];
        if let Some(sleep) = sleeper.sleep
            && (events & sleep.wanted != 0 || timer.is_some_and(|timer| timer < sleep.until))
        {
            sleeper.wake();
        }
    }

    /// Whether the sleep of `cpu` was ended and its thread must be notified, once.
    pub fn take_alarm(&mut self, cpu: Cpu) -> bool {
        std::mem::take(&mut self.sleepers[cpu.index()].alarm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idle turns of a loop without PRI.
    fn idle(parking: &mut Parking, cpu: Cpu) -> u32 {
        (1..=2 * PATIENCE)
            .find(|_| parking.polled(cpu, 0, NO_PRI).is_some())
            .unwrap_or(0)
    }

    #[test]
    fn only_patience_idle_turns_in_a_row_put_a_cpu_to_sleep() {
        let mut parking = Parking::default();
        for _ in 0..PATIENCE - 1 {
            assert_eq!(parking.polled(Cpu::A, 0, NO_PRI), None);
        }
        assert_eq!(parking.polled(Cpu::A, 4, NO_PRI), None);
        for _ in 0..PATIENCE - 1 {
            assert_eq!(parking.polled(Cpu::A, 0, NO_PRI), None);
        }
        parking.busy(Cpu::A);
        assert_eq!(idle(&mut parking, Cpu::A), PATIENCE);
    }

    /// Reference 5: a software bit that is always on, and a level that nobody wants, are
    /// held back by the mask.
    #[test]
    fn a_turn_is_idle_if_pri_finds_nothing_whatever_the_register_shows() {
        let (register, mask) = (0x8000_4081, 0x1040_0040);
        let mut parking = Parking::default();
        parking.polled(Cpu::B, register, NO_PRI);
        let operands = [[register, mask], [mask, register]];
        for turn in 1..PATIENCE {
            let found = parking.polled(Cpu::B, register, operands[turn as usize % 2]);
            assert_eq!(found, None);
        }
        let wanted = parking.polled(Cpu::B, register, operands[0]);
        assert_eq!(wanted, Some(mask));
    }

    #[test]
    fn a_turn_that_found_something_is_not_idle() {
        let mut parking = Parking::default();
        for _ in 0..4 * PATIENCE {
            // A handler that could not finish: its event stays.
            assert_eq!(parking.polled(Cpu::A, 0x48, [0x48, 0x40]), None);
        }
        for _ in 0..4 * PATIENCE {
            // A PRI of something else than the register.
            assert_eq!(parking.polled(Cpu::A, 0x48, [0x1, 0x2]), None);
        }
        for _ in 0..4 * PATIENCE {
            assert_eq!(parking.polled(Cpu::A, 0x48, NO_PRI), None, "no PRI at all");
        }
    }

    #[test]
    fn an_event_wakes_only_the_cpu_that_wants_it() {
        let mut parking = Parking::default();
        parking.sleep(Cpu::A, 1 << 22, 1000);
        parking.sleep(Cpu::B, 1 << 7, 1000);
        for cpu in [Cpu::A, Cpu::B] {
            parking.look(cpu, 1 << 7 | 1 << 30, None);
        }
        assert!(parking.sleeps(Cpu::A) && !parking.sleeps(Cpu::B));
        assert!(!parking.take_alarm(Cpu::A));
        assert!(parking.take_alarm(Cpu::B));
        assert!(!parking.take_alarm(Cpu::B), "told once");
    }

    #[test]
    fn a_timer_that_comes_sooner_wakes_the_cpu_to_sleep_anew() {
        let mut parking = Parking::default();
        parking.sleep(Cpu::A, u32::MAX, 1000);
        parking.look(Cpu::A, 0, Some(1000));
        assert!(parking.sleeps(Cpu::A));
        parking.look(Cpu::A, 0, Some(999));
        assert!(!parking.sleeps(Cpu::A) && parking.take_alarm(Cpu::A));
    }

    #[test]
    fn a_cpu_that_woke_for_nothing_soon_sleeps_again() {
        let mut parking = Parking::default();
        assert_eq!(idle(&mut parking, Cpu::B), PATIENCE);
        parking.sleep(Cpu::B, u32::MAX, 1000);
        parking.awake(Cpu::B, 0);
        assert!(!parking.sleeps(Cpu::B) && !parking.take_alarm(Cpu::B));
        assert_eq!(idle(&mut parking, Cpu::B), RELAPSE);
        parking.sleep(Cpu::B, u32::MAX, 1000);
        parking.busy(Cpu::B);
        assert!(parking.take_alarm(Cpu::B));
        parking.awake(Cpu::B, 0);
        assert_eq!(idle(&mut parking, Cpu::B), PATIENCE, "it was woken");
    }
}
