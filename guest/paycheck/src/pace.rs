//! Computes when the next message is due.

use std::time::{Duration, Instant};

use crate::Plan;

/// Decides when to send, and when to stop.
#[derive(Debug)]
pub struct Pace {
    start: Instant,
    interval: Option<Duration>,
    duration: Duration,
    count: u64,
    sent: u64,
}

impl Pace {
    /// The pace of a plan, from now on.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let bits = plan.size as f64 * 8.0;
        let interval = plan.rate.map(|rate| {
            // A rate of nothing is one message in the whole time.
            Duration::try_from_secs_f64(bits / (rate * 1e6)).unwrap_or(plan.duration)
        });
        Self {
            start: Instant::now(),
            interval,
            duration: plan.duration,
            count: if plan.send {
                plan.count.unwrap_or(u64::MAX)
            } else {
                0
            },
            sent: 0,
        }
    }

    /// Waits until the next message is due and gives its number; None at the end.
    pub fn next_number(&mut self) -> Option<u64> {
        if self.sent >= self.count || self.start.elapsed() >= self.duration {
            return None;
        }
        if let Some(interval) = self.interval {
            let due = interval.as_secs_f64() * self.sent as f64;
            let due = Duration::try_from_secs_f64(due).unwrap_or(self.duration);
            if due >= self.duration {
                return None;
            }
            let early = due.saturating_sub(self.start.elapsed());
            if !early.is_zero() {
                std::thread::sleep(early);
            }
        }
        self.sent += 1;
        Some(self.sent - 1)
    }

    /// How many numbers were given.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_keeps_its_count_its_time_and_its_rate() {
        let mut plan = Plan::new(([127, 0, 0, 1], 1).into(), false, true);
        plan.count = Some(3);
        let mut pace = Pace::new(&plan);
        let numbers: Vec<u64> = std::iter::from_fn(|| pace.next_number()).collect();
        assert_eq!(numbers, [0, 1, 2]);
        // 1000 bytes at 0.8 Mb/s: one each 10 ms.
        plan.count = None;
        plan.size = 1000;
        plan.rate = Some(0.8);
        plan.duration = Duration::from_millis(50);
        let mut pace = Pace::new(&plan);
        assert_eq!(std::iter::from_fn(|| pace.next_number()).count(), 5);
        plan.send = false;
        assert_eq!(Pace::new(&plan).next_number(), None);
    }
}
