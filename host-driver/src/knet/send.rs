//! The one send ring, shared by several threads in turns.
//!
//! A thread draws a ticket and waits until it is served, so turns are taken in the order of the
//! requests, and a thread waits at most for one turn of each other thread. A turn is short: frames
//! that are ready are copied into their slots, and the mailbox is written once.
//!
//! ```text
//!   next    ──► 7     thread 2 holds ticket 6
//!   serving ──► 5     thread 0 has its turn; thread 1 drew nothing: it only receives
//! ```
//!
//! Receiving takes no part in this. What turns cost is counted ([`SendCosts`]).

use std::hint;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::nic::SendQueue;

/// Looks at the counter before the CPU is given to others: the holder may need it.
const SPINS: u32 = 64;

/// A value that threads use in turns.
#[derive(Debug)]
pub struct InTurns<T> {
    value: Mutex<T>,
    next: AtomicU64,
    serving: AtomicU64,
    waited: AtomicU64,
    waited_ns: AtomicU64,
    held_ns: AtomicU64,
}

/// The send queue of a card, for several threads.
pub type SharedSend = InTurns<SendQueue>;

/// What turns have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendCosts {
    /// Turns taken.
    pub turns: u64,
    /// Turns that had to be waited for.
    pub waited: u64,
    /// Time waited, in nanoseconds.
    pub waited_ns: u64,
    /// Time of the turns themselves, in nanoseconds.
    pub held_ns: u64,
}

impl SendCosts {
    /// Those of two runs together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns + other.turns,
            waited: self.waited + other.waited,
            waited_ns: self.waited_ns + other.waited_ns,
            held_ns: self.held_ns + other.held_ns,
        }
    }
}

impl<T> InTurns<T> {
    /// Shares a value.
    pub fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            next: AtomicU64::new(0),
            serving: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            held_ns: AtomicU64::new(0),
        }
    }

    /// Waits for a turn.
    pub fn turn(&self) -> Turn<'_, T> {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let asked = Instant::now();
        let mut spins = 0;
        while self.serving.load(Ordering::Acquire) != ticket {
            if spins < SPINS {
                spins += 1;
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        let began = if spins == 0 { asked } else { Instant::now() };
        if spins > 0 {
            self.waited.fetch_add(1, Ordering::Relaxed);
            let waited = began.saturating_duration_since(asked).as_nanos() as u64;
            self.waited_ns.fetch_add(waited, Ordering::Relaxed);
        }
        Turn {
            shared: self,
            // Whoever panicked in a turn has queued a frame or not: both are whole.
            value: self.value.lock().unwrap_or_else(PoisonError::into_inner),
            began,
        }
    }

    /// What turns have cost so far.
    pub fn costs(&self) -> SendCosts {
        SendCosts {
            turns: self.serving.load(Ordering::Relaxed),
            waited: self.waited.load(Ordering::Relaxed),
            waited_ns: self.waited_ns.load(Ordering::Relaxed),
            held_ns: self.held_ns.load(Ordering::Relaxed),
        }
    }

    /// The value, when nobody shares it any more.
    pub fn into_inner(self) -> T {
        self.value
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread's turn; it ends when this is dropped.
#[derive(Debug)]
pub struct Turn<'a, T> {
    shared: &'a InTurns<T>,
    value: MutexGuard<'a, T>,
    began: Instant,
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let held = self.began.elapsed().as_nanos() as u64;
        self.shared.held_ns.fetch_add(held, Ordering::Relaxed);
        // The next one may find the mutex locked for a moment more.
        self.shared.serving.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn nobody_has_a_turn_beside_another() {
        let shared = InTurns::new((0_u64, false));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let mut turn = shared.turn();
                        assert!(!std::mem::replace(&mut turn.1, true));
                        turn.0 += 1;
                        turn.1 = false;
                    }
                });
            }
        });
        assert_eq!(shared.costs().turns, 8000);
        assert_eq!(shared.into_inner().0, 8000);
    }

    /// Who asks first is served first, however many turns the others want.
    #[test]
    fn turns_are_taken_in_the_order_of_their_tickets() {
        let shared = InTurns::new(Vec::new());
        let first = shared.turn();
        thread::scope(|scope| {
            let drawn = |count| {
                while shared.next.load(Ordering::Relaxed) < count {
                    thread::yield_now();
                }
            };
            let shared = &shared;
            for number in 1..4_u64 {
                drawn(number);
                scope.spawn(move || shared.turn().push(number));
            }
            drawn(4);
            drop(first);
        });
        assert_eq!(shared.costs().waited, 3);
        assert_eq!(shared.into_inner(), [1, 2, 3]);
    }

    #[test]
    fn a_thread_that_dies_in_its_turn_leaves_the_others_theirs() {
        let shared = InTurns::new(0);
        let died = catch_unwind(AssertUnwindSafe(|| {
            let _turn = shared.turn();
            panic!("as this test wants");
        }));
        assert!(died.is_err());
        *shared.turn() += 1;
        assert_eq!(shared.into_inner(), 1);
    }
}
