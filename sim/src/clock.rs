//! Cycles and nanoseconds.
//!
//! The engine counts cycles of the core clock; the card's model counts nanoseconds.

const NANOSECONDS: u64 = 1_000_000_000;

/// Converts between cycles of a core clock and nanoseconds, without rounding errors that
/// add up: both are counted from power-on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    hertz: u64,
}

impl Clock {
    /// A clock of `hertz` (1 MHz to 4 GHz: the board file was checked).
    pub fn new(hertz: u32) -> Self {
        Clock {
            hertz: hertz.max(1).into(),
        }
    }

    /// The time at the start of a cycle, rounded down.
    #[inline]
    pub fn nanoseconds(self, cycle: u64) -> u64 {
        let (seconds, rest) = (cycle / self.hertz, cycle % self.hertz);
        seconds * NANOSECONDS + rest * NANOSECONDS / self.hertz
    }

    /// The first cycle that starts at a time or later, saturating.
    #[inline]
    pub fn cycle_at(self, nanoseconds: u64) -> u64 {
        let (seconds, rest) = (nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS);
        let cycles = (rest * self.hertz).div_ceil(NANOSECONDS);
        seconds.saturating_mul(self.hertz).saturating_add(cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Board: 88 MHz, so 11 cycles are 125 ns.
    #[test]
    fn eleven_cycles_are_125_nanoseconds() {
        let clock = Clock::new(88_000_000);
        assert_eq!(clock.nanoseconds(11), 125);
        assert_eq!(clock.nanoseconds(1), 11);
        assert_eq!(clock.cycle_at(125), 11);
        assert_eq!(clock.cycle_at(126), 12);
        assert_eq!(clock.nanoseconds(88_000_000 * 3600), 3_600_000_000_000);
        let last = (u128::from(u64::MAX) * 88).div_ceil(1000);
        assert_eq!(u128::from(clock.cycle_at(u64::MAX)), last);
    }

    /// A deadline's cycle is the first one whose start is not before it, also for clocks
    /// whose cycle is no whole number of nanoseconds.
    #[test]
    fn the_cycle_of_a_time_is_the_first_that_is_not_before_it() {
        for hertz in [1_000_000, 87_999_999, 88_000_000, 4_000_000_000] {
            let clock = Clock::new(hertz);
            for time in (0..5_000_000_000).step_by(33_333_331) {
                let cycle = clock.cycle_at(time);
                let exact = |cycle: u64| u128::from(cycle) * 1_000_000_000 / u128::from(hertz);
                assert!(exact(cycle) >= u128::from(time));
                assert!(cycle == 0 || u128::from(clock.nanoseconds(cycle - 1)) < u128::from(time));
            }
        }
    }
}
