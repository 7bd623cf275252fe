//! What a domain did: counts of its handlers, and of the domain, in the [SPINE block](super).
//!
//! ```text
//!   +0x00  handler 0, 16 bytes                         HandlerCount
//!   +0x10  handler 1 ...
//!   +0x80  its procedures, which others call           PROCEDURES in place of a handler
//!   +0x90  time of handler 0, 1 ..., a word each       HandlerTime
//!   +0xC0  the domain                                  DomainCount
//! ```
//!
//! All counts wrap.

use super::{COUNTERS, DOMAIN_COUNTS, HANDLERS};
use tigon2_chip::table;

/// Bytes of a domain's counts.
pub const BYTES: u32 = 256;
/// In place of a handler: the domain's procedures that others call.
pub const PROCEDURES: u32 = HANDLERS;
/// Offset of the times.
const TIMES: u32 = (PROCEDURES + 1) << 4;
/// Offset of the domain's own counts.
const OF_DOMAIN: u32 = 0xC0;

table! {
    /// What a handler did, by the offset.
    pub enum HandlerCount: u32 {
        /// Runs of it; of procedures calls.
        Runs = 0x00,
        /// Runs that took too long.
        Overruns = 0x04,
        /// Runs that panicked.
        Panics = 0x08,
        /// Runs that met a fault of the CPU.
        Faults = 0x0C,
    }
}

table! {
    /// What a domain did, by the offset.
    pub enum DomainCount: u32 {
        /// Not a count: 1 while it is suspended.
        Suspended = 0x00,
        /// Not a count: the handlers that are installed, a bit for each.
        Handlers = 0x04,
        /// Frames, and messages of the wire, that it consumed, or that were passed on to the driver.
        Consumed = 0x08,
        /// Frames, and messages of the wire or of its own, that it dropped, or that were dropped as
        /// their runs were cut off.
        Dropped = 0x0C,
        /// Frames that it had transmitted.
        Transmitted = 0x10,
        /// [`COUNTERS`] words of its own.
        Counters = 0x20,
    }
}

/// Offset of a domain's counts.
const fn of(domain: u32) -> u32 {
    DOMAIN_COUNTS + (domain << 8)
}

/// Offset of a count of a handler, or of [`PROCEDURES`].
pub const fn handler_count(domain: u32, handler: u32, count: HandlerCount) -> u32 {
    of(domain) + (handler << 4) + count as u32
}

/// Offset of a handler's [`HandlerTime`].
pub const fn handler_time(domain: u32, handler: u32) -> u32 {
    of(domain) + TIMES + (handler << 2)
}

/// Offset of a count of a domain.
pub const fn domain_count(domain: u32, count: DomainCount) -> u32 {
    of(domain) + OF_DOMAIN + count as u32
}

const _: () = {
    assert!(BYTES == 1 << 8);
    assert!(HandlerCount::Faults as u32 + 4 == 1 << 4);
    assert!(TIMES + (HANDLERS << 2) <= OF_DOMAIN);
    assert!(HandlerTime::RUNS * HandlerTime::MOST <= u32::MAX >> HandlerTime::SHIFT);
    assert!(OF_DOMAIN + DomainCount::Counters as u32 + COUNTERS * 4 == BYTES);
};

/// How long a handler runs: of the runs that were timed, the sum of their microseconds in bits 31:12,
/// and how many they were in bits 11:0. When these are full, both are halved: older runs count less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerTime(pub u32);

impl HandlerTime {
    const SHIFT: u32 = 12;
    const RUNS: u32 = (1 << HandlerTime::SHIFT) - 1;
    /// Microseconds of a run that count, at most.
    const MOST: u32 = 0xFF;

    /// The runs that were timed and count.
    pub const fn runs(self) -> u32 {
        self.0 & HandlerTime::RUNS
    }

    /// The sum of their microseconds.
    pub const fn microseconds(self) -> u32 {
        self.0 >> HandlerTime::SHIFT
    }

    /// One run more, which took so many microseconds.
    pub const fn with(self, took: u32) -> HandlerTime {
        let (mut runs, mut sum) = (self.runs(), self.microseconds());
        if runs == HandlerTime::RUNS {
            (runs, sum) = (runs / 2, sum / 2);
        }
        let took = if took < HandlerTime::MOST {
            took
        } else {
            HandlerTime::MOST
        };
        HandlerTime((sum + took) << HandlerTime::SHIFT | (runs + 1))
    }
}

/// A count that stands for a whole domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The domain's own.
    Domain(DomainCount),
    /// That of all its handlers and its procedures.
    Handlers(HandlerCount),
}

impl From<DomainCount> for Count {
    fn from(count: DomainCount) -> Count {
        Count::Domain(count)
    }
}

impl From<HandlerCount> for Count {
    fn from(count: HandlerCount) -> Count {
        Count::Handlers(count)
    }
}

/// Words of a domain's counts.
pub const WORDS: usize = BYTES as usize / 4;

/// A domain's counts, as they were read from the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts(pub [u32; WORDS]);

impl Counts {
    /// The word at an offset of the block, where those of domain 0 begin with [`DOMAIN_COUNTS`].
    fn at(&self, offset: u32) -> u32 {
        let index = (offset - DOMAIN_COUNTS) as usize / 4;
        self.0.get(index).copied().unwrap_or_default()
    }

    /// A count.
    pub fn of(&self, count: impl Into<Count>) -> u32 {
        match count.into() {
            Count::Domain(count) => self.at(domain_count(0, count)),
            Count::Handlers(count) => (0..=PROCEDURES).fold(0u32, |sum, handler| {
                sum.wrapping_add(self.of_handler(handler, count))
            }),
        }
    }

    /// A count of a handler, or of [`PROCEDURES`].
    pub fn of_handler(&self, handler: u32, count: HandlerCount) -> u32 {
        self.at(handler_count(0, handler, count))
    }

    /// How long a handler runs.
    pub fn time(&self, handler: u32) -> HandlerTime {
        HandlerTime(self.at(handler_time(0, handler)))
    }

    /// The handlers that are installed.
    pub fn handlers(&self) -> impl Iterator<Item = u32> {
        let installed = self.of(DomainCount::Handlers);
        (0..HANDLERS).filter(move |handler| installed >> handler & 1 != 0)
    }

    /// The domain's own counters.
    pub fn counters(&self) -> [u32; COUNTERS as usize] {
        core::array::from_fn(|index| {
            self.at(domain_count(0, DomainCount::Counters) + 4 * index as u32)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_stays_a_mean_when_it_is_full() {
        let mut time = HandlerTime::default();
        for run in 0..100_000 {
            time = time.with(if run % 4 == 0 { 1000 } else { 1 });
            assert!(time.runs() <= 4095 && time.microseconds() <= 4095 * 255);
        }
        let mean = f64::from(time.microseconds()) / f64::from(time.runs());
        assert!((mean - 64.5).abs() < 0.5, "{mean}");
    }
}
