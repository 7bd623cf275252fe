//! How long clients may take.

use std::time::{Duration, Instant};

/// How often connections are looked at.
const PERIOD: Duration = Duration::from_millis(250);
/// The slowest client that gets its reply whole, in bytes per second.
const SLOWEST: u64 = 16 * 1024;

/// The times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Between two requests of a connection.
    pub idle: Duration,
    /// From a connection's beginning, or a request's first byte, to the end of the request's
    /// header; for a reply, beside the time that its bytes have at 16 kB/s.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            patience: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// When a reply of so many bytes must have gone.
    pub(crate) fn reply(&self, now: Instant, bytes: u64) -> Instant {
        now + self.patience + Duration::from_millis(bytes.saturating_mul(1000) / SLOWEST)
    }
}

/// Whether it is time to look again.
#[derive(Debug)]
pub(crate) struct Watch(Instant);

impl Watch {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn is_time(&mut self, now: Instant, limits: &Limits) -> bool {
        let period = PERIOD.min(limits.idle / 4).min(limits.patience / 4);
        let due = now.saturating_duration_since(self.0) >= period;
        if due {
            self.0 = now;
        }
        due
    }
}
