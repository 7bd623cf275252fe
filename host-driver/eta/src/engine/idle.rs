//! What an engine does when it has nothing to do.

use std::time::{Duration, Instant};

/// Longest and shortest time that an adaptive engine spins before it sleeps.
const LONGEST: Duration = Duration::from_micros(200);
const SHORTEST: Duration = Duration::from_micros(2);

/// How often a spinning engine lets others run.
const YIELD_PERIOD: Duration = Duration::from_micros(50);

/// How an engine waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdleMode {
    /// It never sleeps: the lowest latency, and a whole processor.
    Spin,
    /// It spins as long as that pays, and then sleeps.
    #[default]
    Adaptive,
    /// It sleeps at once.
    Sleep,
}

/// The mode and what it has learned.
#[derive(Debug)]
pub(super) struct Idle {
    mode: IdleMode,
    /// How long spinning is worth trying.
    patience: Duration,
    /// Since when it spins.
    since: Option<Instant>,
    /// Since when it had nothing to do, if it has slept since.
    slept: Option<Instant>,
    /// When it last let others run.
    yielded: Option<Instant>,
}

impl Idle {
    pub(super) fn new(mode: IdleMode) -> Self {
        Self {
            mode,
            patience: LONGEST,
            since: None,
            slept: None,
            yielded: None,
        }
    }

    /// There was work. If it came while spinning, spinning paid; if it came soon after, a little
    /// more spinning would have: each sleep costs who has the work a doorbell.
    pub(super) fn worked(&mut self, now: Instant) {
        let slept = self.slept.take();
        let soon = slept.is_some_and(|since| now.saturating_duration_since(since) < LONGEST);
        if self.since.take().is_some() || soon {
            self.patience = (self.patience * 2).min(LONGEST);
        }
        if soon {
            // What that sleep took back, too.
            self.patience = (self.patience * 2).min(LONGEST);
        }
    }

    /// Whether to sleep now, at a turn without work.
    pub(super) fn must_sleep(&mut self, now: Instant) -> bool {
        match self.mode {
            IdleMode::Spin => false,
            IdleMode::Sleep => true,
            IdleMode::Adaptive => {
                let since = *self.since.get_or_insert(now);
                let over = now.saturating_duration_since(since) >= self.patience;
                if over {
                    self.patience = (self.patience / 2).max(SHORTEST);
                    self.since = None;
                    self.slept.get_or_insert(since);
                }
                over
            }
        }
    }

    /// Whether to let others run now, at a turn without work and without sleep.
    pub(super) fn must_yield(&mut self, now: Instant) -> bool {
        if self.mode != IdleMode::Adaptive {
            return false;
        }
        let yields = self
            .yielded
            .is_none_or(|last| now.saturating_duration_since(last) >= YIELD_PERIOD);
        if yields {
            self.yielded = Some(now);
        }
        yields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adaptive_engine_spins_less_the_less_it_pays() {
        let mut idle = Idle::new(IdleMode::Adaptive);
        let mut now = Instant::now();
        let spins = |idle: &mut Idle, now: &mut Instant| {
            let start = *now;
            while !idle.must_sleep(*now) {
                *now += Duration::from_micros(1);
            }
            *now - start
        };
        assert_eq!(spins(&mut idle, &mut now), LONGEST);
        assert_eq!(spins(&mut idle, &mut now), LONGEST / 2);
        for _ in 0..20 {
            spins(&mut idle, &mut now);
        }
        assert_eq!(spins(&mut idle, &mut now), SHORTEST);
        // Work that comes while it spins.
        assert!(!idle.must_sleep(now));
        idle.worked(now);
        assert_eq!(spins(&mut idle, &mut now), SHORTEST * 2);
        // Work that comes soon after: spinning twice as long is tried.
        let before = idle.patience;
        now += LONGEST / 4;
        idle.worked(now);
        assert_eq!(idle.patience, before * 4);
        // And long after.
        spins(&mut idle, &mut now);
        let before = idle.patience;
        now += LONGEST;
        idle.worked(now);
        assert_eq!(idle.patience, before);
    }

    #[test]
    fn only_an_adaptive_engine_lets_others_run_and_not_each_time() {
        let mut idle = Idle::new(IdleMode::Adaptive);
        let start = Instant::now();
        let times =
            (0..100).filter(|micros| idle.must_yield(start + Duration::from_micros(*micros)));
        assert_eq!(times.collect::<Vec<_>>(), [0, 50]);
        assert!(!Idle::new(IdleMode::Spin).must_yield(start));
    }

    #[test]
    fn the_other_modes_do_not_learn() {
        let now = Instant::now();
        assert!(!Idle::new(IdleMode::Spin).must_sleep(now + LONGEST));
        assert!(Idle::new(IdleMode::Sleep).must_sleep(now));
    }
}
