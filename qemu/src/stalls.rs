//! Counts that explain a stall: which thread waited for which, how often, and for how long at
//! most. The monitor's property `counts` shows them after those of [`crate::counts`].
//!
//! | name | meaning |
//! | --- | --- |
//! | `signals` | interrupts signalled to the client |
//! | `repeats` | of these, signals repeated after an unmask, because the pin was still high |
//! | `spurious` | interrupts for which a client read `R[40]` and found none pending |
//! | `waiting` | 1: the pin is high, and the client has been signalled and has not unmasked it |
//! | `contended` | times that a thread found the machine's lock taken |
//! | `lock_wait_us` | longest wait for the machine's lock |
//! | `lock_held_us` | longest time that it was held, measured every 64th time |
//! | `deferred` | times that errands were left to QEMU's main loop |
//! | `big_lock_waits` | times that a thread waited for QEMU's big lock |
//! | `big_lock_wait_us` | longest of these waits |
//! | `delivery_us` | longest time that a thread delivered errands under it |
//! | `undefined` | undefined accesses by CPUs and host |
//!
//! They cost almost nothing: the clock is read only where a thread waits anyway, where frames are
//! sent, and at every 64th hold of the machine's lock.

use crate::counts::Count;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many holds of the machine's lock share one measurement, less one.
const SAMPLE: u64 = 63;

/// The longest of some times.
#[derive(Debug, Default)]
pub struct Longest(AtomicU64);

impl Longest {
    /// One more of them.
    pub fn note(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_max(micros, Ordering::Relaxed);
    }

    fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A count that is kept elsewhere, as it was last.
#[derive(Debug, Default)]
pub struct Latest(AtomicU64);

impl Latest {
    /// It is so many by now.
    pub fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All of one machine. A reader may find one a moment before another.
#[derive(Debug, Default)]
pub struct Stalls {
    /// A client read the interrupt register and found none pending.
    pub spurious: Count,
    /// The machine's lock was taken.
    pub contended: Count,
    /// How long it was waited for.
    pub lock_wait: Longest,
    /// How long it was held.
    pub lock_held: Longest,
    /// Errands were left to the main loop.
    pub deferred: Count,
    /// The big lock was waited for.
    pub big_lock_waits: Count,
    /// How long it was waited for.
    pub big_lock_wait: Longest,
    /// How long errands took.
    pub delivery: Longest,
    /// Accesses that meant nothing.
    pub undefined: Latest,
    holds: AtomicU64,
}

impl Stalls {
    /// The machine's lock was just taken: when, if this time is one that is measured.
    pub fn hold(&self) -> Option<Instant> {
        // Under the lock, so no other thread counts meanwhile.
        let holds = self.holds.load(Ordering::Relaxed);
        self.holds.store(holds.wrapping_add(1), Ordering::Relaxed);
        (holds & SAMPLE == 0).then(Instant::now)
    }
}

impl fmt::Display for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("spurious", self.spurious.get()),
            ("contended", self.contended.get()),
            ("lock_wait_us", self.lock_wait.micros()),
            ("lock_held_us", self.lock_held.micros()),
            ("deferred", self.deferred.get()),
            ("big_lock_waits", self.big_lock_waits.get()),
            ("big_lock_wait_us", self.big_lock_wait.micros()),
            ("delivery_us", self.delivery.micros()),
            ("undefined", self.undefined.get()),
        ];
        let text: Vec<_> = named.map(|(name, value)| format!("{name}={value}")).into();
        f.write_str(&text.join(" "))
    }
}
