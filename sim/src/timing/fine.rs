//! Times that are not a whole number of cycles.

/// Bits behind the point of a [`Fine`] time.
pub(super) const FRACTION: u32 = 20;

/// A time since power-on in 2^-20 core cycles: byte times and PCI clocks are no whole
/// number of cycles, and their rounding must not add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fine(pub(super) u64);

impl Fine {
    /// The start of a cycle.
    #[inline]
    pub const fn cycle(cycle: u64) -> Fine {
        Fine(cycle << FRACTION)
    }

    /// `count` periods of `numerator / denominator` cycles.
    pub fn periods(count: u64, numerator: u64, denominator: u64) -> Fine {
        let product = (u128::from(count) * u128::from(numerator)) << FRACTION;
        Fine((product / u128::from(denominator.max(1))) as u64)
    }

    /// This time in units of which there are `units` where there are `core_hz` cycles.
    pub fn at_rate(self, core_hz: u64, units: u64) -> u64 {
        let product = u128::from(self.0) * u128::from(units);
        ((product / u128::from(core_hz.max(1))) >> FRACTION) as u64
    }

    /// The first cycle that does not start before this time.
    #[inline]
    pub const fn ceil(self) -> u64 {
        (self.0 + ((1 << FRACTION) - 1)) >> FRACTION
    }

    /// This, or the start of `cycle` if that is more than a cycle later.
    #[inline]
    pub const fn no_earlier_than(self, cycle: u64) -> Fine {
        if self.ceil() >= cycle {
            self
        } else {
            Fine::cycle(cycle)
        }
    }

    /// Later by `other`.
    #[inline]
    pub const fn plus(self, other: Fine) -> Fine {
        Fine(self.0 + other.0)
    }

    /// `count` times this.
    #[inline]
    pub const fn times(self, count: u64) -> Fine {
        Fine(self.0 * count)
    }

    /// This times `factor` / 2^20.
    #[inline]
    pub const fn scaled(self, factor: u64) -> Fine {
        Fine(((self.0 as u128 * factor as u128) >> FRACTION) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gigabit byte takes 0.704 cycles of 88 MHz, a 66 MHz clock 4/3.
    #[test]
    fn fractions_of_cycles_do_not_add_up_to_errors() {
        let byte = Fine::periods(1, 88, 125);
        assert_eq!(byte.times(125_000).ceil(), 88_000);
        assert_eq!(Fine::periods(3, 4, 3), Fine::cycle(4));
        assert_eq!(Fine::cycle(7).plus(Fine::periods(1, 1, 3)).ceil(), 8);
        assert_eq!(Fine::cycle(100).scaled(3 << 19), Fine::cycle(150));
    }
}
