//! Spin locks in simulated time.

/// A lock that CPUs spin for, first come, first served.
///
/// The scheduler lets CPUs act in the order of their clocks, so whoever asks first here also
/// asks first in simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    free: u64,
    waited: u64,
    taken: u64,
}

impl Lock {
    /// A CPU wants it at `now` and will hold it for `hold` nanoseconds. Returns how long the
    /// CPU has to wait for it.
    pub fn acquire(&mut self, now: u64, hold: u64) -> u64 {
        let start = self.free.max(now);
        self.free = start + hold;
        self.waited += start - now;
        self.taken += 1;
        start - now
    }

    /// Nanoseconds that CPUs have waited for it.
    pub fn waited(&self) -> u64 {
        self.waited
    }

    /// How many times it was taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_later_waits_for_all_before() {
        let mut lock = Lock::default();
        assert_eq!(lock.acquire(100, 50), 0);
        assert_eq!(lock.acquire(120, 50), 30);
        assert_eq!(lock.acquire(130, 5), 70);
        assert_eq!(lock.acquire(205, 1), 0, "it is free again from 205 on");
        assert_eq!((lock.waited(), lock.taken()), (100, 4));
    }
}
