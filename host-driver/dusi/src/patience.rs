//! How long a waiter looks at its queues before it sleeps: as long as that has paid.

use std::time::Duration;

/// Longest and shortest time.
const LONGEST: Duration = Duration::from_micros(50);
const SHORTEST: Duration = Duration::from_micros(1);

/// The time.
#[derive(Debug)]
pub(crate) struct Patience(Duration);

impl Patience {
    pub(crate) fn new() -> Self {
        Self(LONGEST)
    }

    /// How long to look.
    pub(crate) fn time(&self) -> Duration {
        self.0
    }

    /// An event came meanwhile.
    pub(crate) fn paid(&mut self) {
        self.0 = (self.0 * 2).min(LONGEST);
    }

    /// None came: perhaps who would bring it waits for this processor.
    pub(crate) fn in_vain(&mut self) {
        self.0 = (self.0 / 2).max(SHORTEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_looks_less_the_less_it_pays() {
        let mut patience = Patience::new();
        assert_eq!(patience.time(), LONGEST);
        patience.in_vain();
        assert_eq!(patience.time(), LONGEST / 2);
        for _ in 0..20 {
            patience.in_vain();
        }
        assert_eq!(patience.time(), SHORTEST);
        patience.paid();
        assert_eq!(patience.time(), SHORTEST * 2);
        for _ in 0..20 {
            patience.paid();
        }
        assert_eq!(patience.time(), LONGEST);
    }
}
