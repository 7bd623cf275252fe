//! A ring of entries with one producer and one consumer.
//!
//! ```text
//!   word  0         8         16
//!         │ tail    │ head    │ entry 0 │ entry 1 │ ... │ entry CAPACITY-1 │
//!           producer  consumer  4 words each
//! ```
//!
//! Indices count without end and stand on cache lines of their own. Each side believes only its
//! own index: what the other has written is checked against it.

use std::sync::atomic::Ordering;

use thiserror::Error;

use crate::words::Words;

/// Words of an entry.
pub const ENTRY_WORDS: usize = 4;
const TAIL: usize = 0;
const HEAD: usize = 8;
const ENTRIES: usize = 16;

/// An entry of any ring: a descriptor or an event.
pub type Entry = [u64; ENTRY_WORDS];

/// Words of a ring of so many entries.
pub const fn ring_words(capacity: usize) -> usize {
    ENTRIES + capacity * ENTRY_WORDS
}

/// Why a ring's end refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RingError {
    /// No free entry.
    #[error("the queue is full")]
    Full,
    /// The other side wrote an index that no run of the protocol gives.
    #[error("the other side wrote an impossible index")]
    Nonsense,
}

/// Where a ring stands in its memory.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// First word.
    pub start: usize,
    /// Entries.
    pub capacity: usize,
}

impl Place {
    fn entry(self, index: u64) -> usize {
        let slot = (index % self.capacity as u64) as usize;
        self.start + ENTRIES + slot * ENTRY_WORDS
    }
}

/// The writing end.
#[derive(Debug)]
pub struct Producer {
    place: Place,
    tail: u64,
}

impl Producer {
    /// The writing end of a fresh ring.
    pub fn new(place: Place) -> Self {
        Self { place, tail: 0 }
    }

    /// Free entries.
    ///
    /// # Errors
    /// [`RingError::Nonsense`].
    pub fn room<W: Words + ?Sized>(&self, words: &W) -> Result<usize, RingError> {
        let head = words.load(self.place.start + HEAD, Ordering::Acquire);
        let used = self.tail.wrapping_sub(head);
        let capacity = self.place.capacity as u64;
        let room = capacity.checked_sub(used).ok_or(RingError::Nonsense)?;
        Ok(room as usize)
    }

    /// Writes and publishes an entry.
    ///
    /// # Errors
    /// [`RingError`]; nothing was written.
    pub fn push<W: Words + ?Sized>(&mut self, words: &W, entry: Entry) -> Result<(), RingError> {
        if self.room(words)? == 0 {
            return Err(RingError::Full);
        }
        let start = self.place.entry(self.tail);
        for (index, word) in entry.into_iter().enumerate() {
            words.store(start + index, word, Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(1);
        words.store(self.place.start + TAIL, self.tail, Ordering::Release);
        Ok(())
    }
}

/// The reading end.
#[derive(Debug)]
pub struct Consumer {
    place: Place,
    head: u64,
}

impl Consumer {
    /// The reading end of a fresh ring.
    pub fn new(place: Place) -> Self {
        Self { place, head: 0 }
    }

    /// Entries that wait.
    ///
    /// # Errors
    /// [`RingError::Nonsense`].
    pub fn waiting<W: Words + ?Sized>(&self, words: &W) -> Result<usize, RingError> {
        let tail = words.load(self.place.start + TAIL, Ordering::Acquire);
        let used = tail.wrapping_sub(self.head);
        if used > self.place.capacity as u64 {
            return Err(RingError::Nonsense);
        }
        Ok(used as usize)
    }

    /// Copies the oldest entry once and frees its place.
    ///
    /// # Errors
    /// [`RingError::Nonsense`].
    pub fn pop<W: Words + ?Sized>(&mut self, words: &W) -> Result<Option<Entry>, RingError> {
        if self.waiting(words)? == 0 {
            return Ok(None);
        }
        let start = self.place.entry(self.head);
        let entry = std::array::from_fn(|index| words.load(start + index, Ordering::Relaxed));
        self.head = self.head.wrapping_add(1);
        words.store(self.place.start + HEAD, self.head, Ordering::Release);
        Ok(Some(entry))
    }
}
