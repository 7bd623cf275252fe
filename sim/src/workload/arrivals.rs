//! The arrival times and lengths of frames for the card.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SECOND: f64 = 1e9;

/// The distance between frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// All the same.
    Constant,
    /// So many as close together as the wire allows, then a pause.
    Bursts(u32),
    /// Exponentially distributed.
    Poisson,
}

/// The times at which frames of a source begin.
#[derive(Clone, Debug)]
pub struct Arrivals {
    pattern: Pattern,
    per_second: f64,
    /// Frames so far, and the time of the last one in a Poisson process.
    count: u64,
    start: f64,
    last: f64,
    random: SplitMix64,
}

impl Arrivals {
    /// `per_second` frames a second from `start` nanoseconds on.
    pub fn new(pattern: Pattern, per_second: f64, start: u64, seed: u64) -> Arrivals {
        Arrivals {
            pattern,
            per_second: per_second.max(1e-3),
            count: 0,
            start: start as f64,
            last: start as f64,
            random: SplitMix64::seed_from_u64(seed),
        }
    }

    /// When the next frame begins, in nanoseconds since power-on.
    pub fn next_start(&mut self) -> u64 {
        let number = self.count;
        self.count += 1;
        let at = match self.pattern {
            Pattern::Constant => self.start + number as f64 * SECOND / self.per_second,
            Pattern::Bursts(frames) => {
                let burst = number / u64::from(frames.max(1));
                self.start + burst as f64 * f64::from(frames.max(1)) * SECOND / self.per_second
            }
            Pattern::Poisson => {
                // In (0, 1], so that the logarithm exists.
                let part = (self.random.next_u64() >> 11) as f64 + 1.0;
                let uniform = part / (1u64 << 53) as f64;
                self.last -= libm::log(uniform) * SECOND / self.per_second;
                self.last
            }
        };
        at as u64
    }
}

/// The mix of frame lengths of the Internet, as IP packets of 40, 576 and 1500 bytes in
/// the relation 7 : 4 : 1, as datagram sizes.
pub const IMIX: [(usize, u32); 3] = [(12, 7), (548, 4), (1472, 1)];

/// Sizes of a flow's datagrams: each datagram's follows from its number, so that whoever
/// receives it can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Sizes with their weights.
    sizes: Vec<(usize, u32)>,
}

impl From<usize> for Mix {
    fn from(bytes: usize) -> Mix {
        Mix::only(bytes)
    }
}

impl From<&Mix> for Mix {
    fn from(mix: &Mix) -> Mix {
        mix.clone()
    }
}

impl Mix {
    /// A mix of (size, weight).
    pub fn new(sizes: &[(usize, u32)]) -> Mix {
        Mix {
            sizes: sizes.to_vec(),
        }
    }

    /// All of one size.
    pub fn only(bytes: usize) -> Mix {
        Mix::new(&[(bytes, 1)])
    }

    fn weight(&self) -> u32 {
        let all: u32 = self.sizes.iter().map(|(_, weight)| weight).sum();
        all.max(1)
    }

    /// The size of datagram `number`; 0 from an empty mix.
    pub fn size(&self, number: u64) -> usize {
        let mut pick = match self.sizes.len() {
            0 | 1 => 0,
            _ => SplitMix64::seed_from_u64(number).next_u32() % self.weight(),
        };
        for (size, weight) in &self.sizes {
            if pick < *weight {
                return *size;
            }
            pick -= weight;
        }
        0
    }

    /// The sizes.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.sizes.iter().map(|(size, _)| *size)
    }

    /// The largest size.
    pub fn largest(&self) -> usize {
        self.sizes().max().unwrap_or(0)
    }

    /// The smallest size.
    pub fn smallest(&self) -> usize {
        self.sizes().min().unwrap_or(0)
    }

    /// The mean of a figure of the sizes.
    pub fn mean(&self, figure: impl Fn(usize) -> f64) -> f64 {
        let sum: f64 = self
            .sizes
            .iter()
            .map(|(size, weight)| figure(*size) * f64::from(*weight))
            .sum();
        sum / f64::from(self.weight())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(pattern: Pattern, count: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(pattern, 1e6, 5000, 1);
        (0..count).map(|_| arrivals.next_start()).collect()
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        assert_eq!(starts(Pattern::Constant, 3), [5000, 6000, 7000]);
        let mut third = Arrivals::new(Pattern::Constant, 3.0, 0, 1);
        let last = (0..=3_000_000).map(|_| third.next_start()).last();
        assert_eq!(last, Some(1_000_000_000_000_000));
    }

    #[test]
    fn bursts_keep_the_mean_rate() {
        let starts = starts(Pattern::Bursts(4), 9);
        assert_eq!(starts[..5], [5000, 5000, 5000, 5000, 9000]);
        assert_eq!(starts[8], 13_000);
    }

    #[test]
    fn poisson_has_the_mean_rate_and_the_same_times_each_run() {
        let first = starts(Pattern::Poisson, 20_000);
        assert_eq!(first, starts(Pattern::Poisson, 20_000));
        let mean = (first[19_999] - 5000) as f64 / 20_000.0;
        assert!((980.0..1020.0).contains(&mean), "{mean}");
        assert!(first.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn imix_is_seven_four_one() {
        let mix = Mix::new(&IMIX);
        let drawn: Vec<usize> = (0..12_000).map(|number| mix.size(number)).collect();
        let count = |size| drawn.iter().filter(|drawn| **drawn == size).count();
        assert!((6700..7300).contains(&count(12)));
        assert!((3700..4300).contains(&count(548)));
        assert!((900..1100).contains(&count(1472)));
        assert_eq!((mix.smallest(), mix.largest()), (12, 1472));
        assert!((mix.mean(|size| size as f64) - 312.3).abs() < 0.1);
        assert_eq!(Mix::new(&[]).size(7), 0);
        assert_eq!(Mix::only(400).size(7), 400);
    }
}
