//! How many connections a server accepts, and when.
//!
//! "Scalable networking for next-generation computing platforms", section V: a server that accepts
//! too seldom leaves its clients in the backlog, one that accepts too often spends its time on
//! connections that it cannot serve before their clients give up.

use std::str::FromStr;
use std::time::{Duration, Instant};

use thiserror::Error;

/// Connections without a first reply that an adaptive server begins with, and its bounds.
const FIRST: f64 = 16.0;
const FEWEST: f64 = 4.0;
const MOST: f64 = 4096.0;
/// How long an adaptive server lets a connection wait for its first reply.
const TARGET: Duration = Duration::from_millis(10);
/// How often it takes back at most.
const PAUSE: Duration = Duration::from_millis(20);

/// A policy, as text `every=4,limit=16`, each part by itself, or `adaptive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptPolicy {
    /// At most `limit` connections in every `every`th step.
    Fixed {
        /// Steps from one look at the accept queue to the next.
        every: u32,
        /// Connections accepted at a look.
        limit: u32,
    },
    /// As many as get their first reply in time.
    Adaptive,
}

impl Default for AcceptPolicy {
    fn default() -> Self {
        Self::Fixed {
            every: 1,
            limit: 16,
        }
    }
}

/// A text that is no policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an accept policy is every=N, limit=N, both with a comma, or adaptive")]
pub struct NoPolicy;

impl FromStr for AcceptPolicy {
    type Err = NoPolicy;

    fn from_str(text: &str) -> Result<Self, NoPolicy> {
        if text == "adaptive" {
            return Ok(Self::Adaptive);
        }
        let (mut every, mut limit) = (1, 16);
        for part in text.split(',') {
            let (name, number) = part.split_once('=').ok_or(NoPolicy)?;
            let number: u32 = number.parse().map_err(|_| NoPolicy)?;
            let place = match name {
                "every" => &mut every,
                "limit" => &mut limit,
                _ => return Err(NoPolicy),
            };
            if number == 0 {
                return Err(NoPolicy);
            }
            *place = number;
        }
        Ok(Self::Fixed { every, limit })
    }
}

/// A policy, and what it has learned.
#[derive(Debug)]
pub(crate) struct Accepts {
    policy: AcceptPolicy,
    steps: u32,
    /// Connections without a first reply that an adaptive server allows.
    window: f64,
    reduced: Option<Instant>,
}

impl Accepts {
    pub(crate) fn new(policy: AcceptPolicy) -> Self {
        Self {
            policy,
            steps: 0,
            window: FIRST,
            reduced: None,
        }
    }

    /// Connections to accept in this step; call it once in each. So many have no reply yet; as a
    /// client may never ask for one, an adaptive server always takes one more.
    pub(crate) fn allowance(&mut self, fresh: usize) -> usize {
        match self.policy {
            AcceptPolicy::Fixed { every, limit } => {
                self.steps = (self.steps + 1) % every;
                if self.steps == 0 { limit as usize } else { 0 }
            }
            AcceptPolicy::Adaptive => (self.window as usize).saturating_sub(fresh).max(1),
        }
    }

    /// A connection had its first reply after a time: what is served in time makes room for more,
    /// what is late for fewer.
    pub(crate) fn served(&mut self, took: Duration, now: Instant) {
        if took <= TARGET {
            self.window = (self.window + 1.0 / self.window).min(MOST);
        } else if self.reduced.is_none_or(|last| now - last >= PAUSE) {
            self.reduced = Some(now);
            self.window = (self.window * 0.8).max(FEWEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_policy_or_an_error() {
        let fixed = |every, limit| Ok(AcceptPolicy::Fixed { every, limit });
        assert_eq!("every=4".parse(), fixed(4, 16));
        assert_eq!("limit=2".parse(), fixed(1, 2));
        assert_eq!("every=3,limit=7".parse(), fixed(3, 7));
        assert_eq!("adaptive".parse(), Ok(AcceptPolicy::Adaptive));
        for wrong in ["", "every", "every=0", "limit=x", "often=1", "every=2,"] {
            assert_eq!(wrong.parse::<AcceptPolicy>(), Err(NoPolicy), "{wrong}");
        }
    }

    #[test]
    fn a_fixed_policy_looks_in_every_nth_step() {
        let mut accepts = Accepts::new(AcceptPolicy::Fixed { every: 3, limit: 5 });
        let taken: Vec<_> = (0..7).map(|_| accepts.allowance(100)).collect();
        assert_eq!(taken, [0, 0, 5, 0, 0, 5, 0]);
    }

    #[test]
    fn an_adaptive_policy_allows_fewer_when_they_are_late_and_more_when_not() {
        let mut accepts = Accepts::new(AcceptPolicy::Adaptive);
        let start = Instant::now();
        assert_eq!((accepts.allowance(0), accepts.allowance(12)), (16, 4));
        // Many late ones at once count once.
        for _ in 0..10 {
            accepts.served(TARGET * 2, start);
        }
        assert_eq!(accepts.allowance(0), 12);
        for number in 1..100 {
            accepts.served(TARGET * 2, start + PAUSE * number);
        }
        assert_eq!((accepts.allowance(0), accepts.allowance(4)), (4, 1));
        for _ in 0..1000 {
            accepts.served(TARGET, start);
        }
        assert_eq!(accepts.allowance(0), 44);
    }
}
