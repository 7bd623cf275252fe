//! How long a network thread polls before it arms its queue and sleeps.
//!
//! - **Budget.** Frames taken at a time. One that was used up is doubled, one of which less
//!   than a quarter was used is halved: a busy thread turns to its other work rarely, an idle
//!   one soon.
//! - **Deferral**, as Linux' `napi_defer_hard_irqs`. A queue that was found empty is armed
//!   only after so many further empty polls, or after a time, whatever comes first. With
//!   neither it is armed at once.
//! - **Busy polling**: it is never armed, so the card never interrupts for it.

use std::time::{Duration, Instant};

/// How a thread polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceSettings {
    /// Least frames at a time.
    pub least: u32,
    /// Most frames at a time.
    pub most: u32,
    /// Empty polls, after the first one, before the queue is armed; 0 for none.
    pub empty_polls: u32,
    /// Time from the first empty poll until the queue is armed; none for "by polls only".
    pub defer: Option<Duration>,
    /// The queue is never armed.
    pub busy: bool,
}

impl Default for PaceSettings {
    /// 16 to 128 frames, no deferral.
    fn default() -> Self {
        Self {
            least: 16,
            most: 128,
            empty_polls: 0,
            defer: None,
            busy: false,
        }
    }
}

/// What to do after a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Poll again: there was something.
    Poll,
    /// Poll again although there was nothing.
    PollIdle,
    /// Arm the queue and sleep.
    Arm,
}

/// A thread's polling.
#[derive(Debug, Clone)]
pub struct Pace {
    settings: PaceSettings,
    budget: u32,
    empty: u32,
    since: Option<Instant>,
}

impl Pace {
    /// Of a thread that begins.
    pub fn new(settings: PaceSettings) -> Self {
        Self {
            budget: settings.least.max(1),
            settings,
            empty: 0,
            since: None,
        }
    }

    /// Frames to take next.
    pub fn budget(&self) -> u32 {
        self.budget
    }

    /// A poll with the budget took `taken` frames, and `busy` says whether there was other
    /// work.
    pub fn polled(&mut self, taken: u32, busy: bool, now: Instant) -> Next {
        let PaceSettings { least, most, .. } = self.settings;
        if taken >= self.budget {
            self.budget = self.budget.saturating_mul(2).min(most.max(1));
        } else if taken < self.budget / 4 {
            self.budget = (self.budget / 2).max(least).max(1);
        }
        if taken > 0 || busy {
            (self.empty, self.since) = (0, None);
            return Next::Poll;
        }
        if self.settings.busy {
            return Next::PollIdle;
        }
        let since = *self.since.get_or_insert(now);
        let polls_over = self.empty >= self.settings.empty_polls;
        let over = match (self.settings.defer, self.settings.empty_polls) {
            (None, _) => polls_over,
            (Some(time), 0) => now.saturating_duration_since(since) >= time,
            (Some(time), _) => polls_over || now.saturating_duration_since(since) >= time,
        };
        if over {
            (self.empty, self.since) = (0, None);
            return Next::Arm;
        }
        self.empty += 1;
        Next::PollIdle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(change: impl FnOnce(&mut PaceSettings)) -> Pace {
        let mut settings = PaceSettings::default();
        change(&mut settings);
        Pace::new(settings)
    }

    #[test]
    fn the_budget_follows_the_load() {
        let now = Instant::now();
        let mut pace = pace(|_| ());
        assert_eq!(pace.budget(), 16);
        for budget in [32, 64, 128, 128] {
            assert_eq!(pace.polled(pace.budget(), false, now), Next::Poll);
            assert_eq!(pace.budget(), budget);
        }
        pace.polled(40, false, now);
        assert_eq!(pace.budget(), 128, "a third is used");
        for budget in [64, 32, 16, 16] {
            pace.polled(1, false, now);
            assert_eq!(pace.budget(), budget);
        }
    }

    #[test]
    fn without_deferral_an_empty_queue_is_armed_at_once() {
        let now = Instant::now();
        let mut pace = pace(|_| ());
        assert_eq!(pace.polled(0, true, now), Next::Poll, "other work");
        assert_eq!(pace.polled(0, false, now), Next::Arm);
    }

    #[test]
    fn deferral_ends_by_polls_or_by_time() {
        let now = Instant::now();
        let later = now + Duration::from_micros(50);
        let mut by_polls = pace(|settings| settings.empty_polls = 2);
        for _ in 0..2 {
            let next = [0, 0, 0].map(|taken| by_polls.polled(taken, false, now));
            assert_eq!(next, [Next::PollIdle, Next::PollIdle, Next::Arm]);
        }
        by_polls.polled(0, false, now);
        by_polls.polled(3, false, now);
        assert_eq!(by_polls.polled(0, false, now), Next::PollIdle, "anew");

        let mut by_time = pace(|settings| settings.defer = Some(Duration::from_micros(50)));
        for _ in 0..9 {
            assert_eq!(by_time.polled(0, false, now), Next::PollIdle);
        }
        assert_eq!(by_time.polled(0, false, later), Next::Arm);

        let mut by_both = pace(|settings| {
            settings.empty_polls = 9;
            settings.defer = Some(Duration::from_micros(50));
        });
        assert_eq!(by_both.polled(0, false, now), Next::PollIdle);
        assert_eq!(by_both.polled(0, false, later), Next::Arm);
    }

    #[test]
    fn who_polls_all_the_time_never_arms() {
        let mut pace = pace(|settings| settings.busy = true);
        let mut now = Instant::now();
        for _ in 0..1000 {
            assert_eq!(pace.polled(0, false, now), Next::PollIdle);
            now += Duration::from_secs(1);
        }
    }
}
