//! Serialises accesses to the card, including nested ones.
//!
//! QEMU's big lock serialises threads. But while an access waits for the card, the card's DMA
//! requests are served from the guest's memory, and that can call this device again. QEMU prevents
//! this for the card's BAR, but not for other accesses. Nested accesses are handled as follows:
//!
//! | access | handling |
//! | --- | --- |
//! | a write, a map, an unmap, a reset | deferred until the outer access ends, in order |
//! | a read | cannot be deferred or answered: reads as an empty slot |
//!
//! Both are counted and reported once.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Something that is done to the card when it is its turn.
pub type Later<C> = Box<dyn FnOnce(&mut C) + Send>;

/// A card, and what waits for its turn.
pub struct Turns<C> {
    card: Mutex<C>,
    later: Mutex<VecDeque<Later<C>>>,
    /// How many wait.
    waiting: AtomicU64,
    deferred: AtomicU64,
    dropped: AtomicU64,
}

impl<C> Turns<C> {
    /// A card that is not in use.
    pub fn new(card: C) -> Self {
        Turns {
            card: Mutex::new(card),
            later: Mutex::default(),
            waiting: AtomicU64::new(0),
            deferred: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// The card, unless an outer access holds it.
    fn card(&self) -> Option<MutexGuard<'_, C>> {
        match self.card.try_lock() {
            Ok(card) => Some(card),
            // A panic is dealt with by who lets it happen.
            Err(TryLockError::Poisoned(card)) => Some(card.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn later(&self) -> MutexGuard<'_, VecDeque<Later<C>>> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `f` now, or not at all if an access further out is under way.
    pub fn if_free<R>(&self, f: impl FnOnce(&mut C) -> R) -> Option<R> {
        let mut card = self.card()?;
        let result = f(&mut card);
        self.done(card);
        Some(result)
    }

    /// The same, but `None` is counted: the caller needed an answer.
    pub fn now<R>(&self, f: impl FnOnce(&mut C) -> R) -> Option<R> {
        let result = self.if_free(f);
        if result.is_none() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Does `f` now; if an access further out is under way, does what `later` makes at its
    /// end and says `None`.
    pub fn in_turn<R>(
        &self,
        f: impl FnOnce(&mut C) -> R,
        later: impl FnOnce() -> Later<C>,
    ) -> Option<R> {
        let Some(mut card) = self.card() else {
            self.deferred.fetch_add(1, Ordering::Relaxed);
            self.note(later());
            return None;
        };
        let result = f(&mut card);
        self.done(card);
        Some(result)
    }

    /// Has something done at the end of the access that is under way.
    pub fn note(&self, later: Later<C>) {
        self.later().push_back(later);
        self.waiting.fetch_add(1, Ordering::Release);
    }

    /// Does what has come meanwhile, and gives the card back.
    fn done(&self, mut card: MutexGuard<'_, C>) {
        while self.waiting.load(Ordering::Acquire) > 0 {
            let Some(next) = self.later().pop_front() else {
                break;
            };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            next(&mut card);
        }
    }

    /// How many accesses had to wait, and how many got no answer.
    pub fn counts(&self) -> Counts {
        Counts {
            deferred: self.deferred.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    /// The card itself; it is no longer in use.
    pub fn into_inner(self) -> C {
        self.card
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accesses that came from within others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Had to wait.
    pub deferred: u64,
    /// Got no answer.
    pub dropped: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deferred={} dropped={}", self.deferred, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn note(turns: &Turns<Vec<u32>>, n: u32) -> bool {
        let write = move |card: &mut Vec<u32>| card.push(n);
        turns.in_turn(write, || Box::new(write)).is_some()
    }

    #[test]
    fn writes_from_within_an_access_follow_it_in_their_order() {
        let turns = Turns::new(Vec::new());
        let seen = turns.now(|card| {
            card.push(1);
            assert!(!note(&turns, 2) && !note(&turns, 3));
            card.push(10);
            card.clone()
        });
        assert_eq!(seen, Some(vec![1, 10]), "nothing comes in between");
        assert!(note(&turns, 4));
        assert_eq!(turns.counts().to_string(), "deferred=2 dropped=0");
        assert_eq!(turns.into_inner(), [1, 10, 2, 3, 4]);
    }

    #[test]
    fn what_a_deferred_write_leads_to_comes_after_it() {
        let turns = Arc::new(Turns::new(Vec::new()));
        let inner = turns.clone();
        turns.now(|_| {
            let write = move |card: &mut Vec<u32>| {
                note(&inner, 2);
                card.push(1);
            };
            turns.in_turn(|_| unreachable!("it waits"), || Box::new(write))
        });
        assert_eq!(turns.now(|card| card.clone()), Some(vec![1, 2]));
    }

    #[test]
    fn a_read_from_within_an_access_is_not_answered_and_counted() {
        let turns = Turns::new(7);
        assert_eq!(turns.now(|_| turns.now(|card| *card)), Some(None));
        assert_eq!(turns.now(|card| *card), Some(7));
        assert_eq!(turns.counts().to_string(), "deferred=0 dropped=1");
    }
}
