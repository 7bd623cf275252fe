//! Limits repeated messages: the first few are printed, the rest are counted.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines of a kind that may come at once.
const AT_ONCE: u32 = 10;
/// How often there may be another one after that.
const EVERY: Duration = Duration::from_secs(1);

/// The kinds of lines that clients and firmware can bring about at will.
#[derive(Debug)]
pub struct Lines {
    /// CPUs that stopped by themselves.
    pub faults: Limiter,
    /// Clients that were cut off.
    pub clients: Limiter,
    /// Writing the EEPROM's file, which happens when a client goes.
    pub eeprom: Limiter,
}

impl Default for Lines {
    fn default() -> Self {
        Lines {
            faults: Limiter::new("faults of CPUs"),
            clients: Limiter::new("clients that were cut off"),
            eeprom: Limiter::new("errors of the EEPROM's file"),
        }
    }
}

impl Lines {
    /// Tells what was left out so far.
    pub fn finish(&self) {
        for limiter in [&self.faults, &self.clients, &self.eeprom] {
            limiter.finish();
        }
    }
}

/// Says lines of one kind on standard error.
#[derive(Debug)]
pub struct Limiter {
    what: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Lines that were said and still count.
    said: u32,
    /// When one of them is forgotten.
    forget: Option<Instant>,
    left_out: u64,
}

impl Limiter {
    /// For lines about `what`, a plural.
    pub fn new(what: &'static str) -> Self {
        Limiter {
            what,
            state: Mutex::default(),
        }
    }

    /// Says a line, or counts it.
    pub fn say(&self, line: impl FnOnce() -> String) {
        if let Some(left_out) = self.admit(Instant::now()) {
            self.report(left_out);
            eprintln!("tigon2: {}", line());
        }
    }

    /// Tells what was left out so far.
    pub fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = std::mem::take(&mut state.left_out);
        drop(state);
        self.report(left_out);
    }

    fn report(&self, left_out: u64) {
        if left_out > 0 {
            eprintln!("tigon2: {left_out} more {} were left out", self.what);
        }
    }

    /// Whether a line may be said at this time; with the number of those left out before.
    fn admit(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(forget) = state.forget
            && forget <= now
        {
            state.said -= 1;
            state.forget = (state.said > 0).then(|| forget + EVERY);
        }
        if state.said >= AT_ONCE {
            state.left_out += 1;
            return None;
        }
        state.said += 1;
        state.forget.get_or_insert(now + EVERY);
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_few_lines_and_a_count() {
        let limiter = Limiter::new("drops");
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let said = (0..16_000).filter_map(|ms| limiter.admit(at(ms)));
        let counts: Vec<u64> = said.collect();
        assert_eq!(counts.len(), 25, "ten at once, then one a second");
        assert_eq!(counts[..10], [0; 10]);
        assert_eq!(counts[10..12], [990, 999]);
        assert_eq!(limiter.admit(at(17_000)), Some(999));
    }

    #[test]
    fn after_a_while_all_is_as_at_first() {
        let limiter = Limiter::new("drops");
        let start = Instant::now();
        for hour in 0..3 {
            let now = start + Duration::from_secs(3600 * hour);
            let said = (0..20).filter(|_| limiter.admit(now).is_some()).count();
            assert_eq!(said, 10);
        }
    }
}
