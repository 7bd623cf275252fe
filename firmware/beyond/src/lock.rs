//! A lock between the CPUs of a group, without an atomic read-modify-write.
//!
//! It is the one-bit algorithm of Burns and Lamport: each CPU has a word that only it writes.
//!
//! ```text
//! I want it           my word = 1, and no word before mine is: else 0, and again
//! nobody else does    each word behind mine is 0
//! I let it go         my word = 0
//! ```
//!
//! It takes two loads and two stores without contention. CPUs of higher priority go first; each
//! lets the others in between two handlers. The chip's semaphore would work for CPU A and CPU B
//! alone.

use core::sync::atomic::{AtomicU32, Ordering};
use tigon2_hal::schedule::{barrier, fence};

/// Waits until another CPU's word is 0. It leaves the SRAM port to the lock's holder in between.
#[inline(always)]
fn wait_for(word: &AtomicU32) {
    while word.load(Ordering::Relaxed) != 0 {
        let mut turns = 4;
        while turns != 0 {
            turns = barrier(turns - 1);
        }
    }
}

/// The words, one for each CPU of a group.
#[derive(Debug, Default)]
pub struct Lock([AtomicU32; 3]);

impl Lock {
    /// A free lock.
    pub const fn new() -> Lock {
        Lock([const { AtomicU32::new(0) }; 3])
    }

    /// Acquires the lock for CPU `me` of the group. A CPU's loads wait for its stores, and its
    /// stores take effect in order.
    #[inline(always)]
    pub fn acquire(&self, me: u32) {
        let words = &self.0;
        let Some(mine) = words.get(me as usize) else {
            return;
        };
        'again: loop {
            mine.store(1, Ordering::Relaxed);
            fence();
            for (cpu, word) in words.iter().enumerate() {
                if cpu == me as usize || word.load(Ordering::Relaxed) == 0 {
                    continue;
                }
                if cpu < me as usize {
                    mine.store(0, Ordering::Relaxed);
                    wait_for(word);
                    continue 'again;
                }
                wait_for(word);
            }
            break;
        }
        fence();
    }

    /// Releases the lock of CPU `me`.
    #[inline(always)]
    pub fn release(&self, me: u32) {
        fence();
        if let Some(mine) = self.0.get(me as usize) {
            mine.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_writes_its_own_word() {
        let lock = Lock::new();
        let words = || lock.0.each_ref().map(|word| word.load(Ordering::Relaxed));
        lock.acquire(1);
        assert_eq!(words(), [0, 1, 0]);
        lock.release(1);
        lock.acquire(2);
        assert_eq!(words(), [0, 0, 1]);
        lock.release(2);
        assert_eq!(words(), [0; 3]);
    }
}
