//! The memory region of a domain: an extension's statics.
//!
//! Paper, section 3.4: there is no allocation; an application has one memory region of a size
//! that it declares. Here its statics are the region, and the linker sums them up. A handler
//! that is cut off may leave them as they are at that instruction: nobody else sees them.

use crate::imports;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A word of the region.
#[derive(Debug, Default)]
pub struct Word(AtomicU32);

impl Word {
    /// With a first value.
    pub const fn new(value: u32) -> Word {
        Word(AtomicU32::new(value))
    }

    /// Its value.
    #[inline(always)]
    pub fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Gives it a value.
    #[inline(always)]
    pub fn set(&self, value: u32) {
        self.0.store(value, Relaxed);
    }

    /// Gives it a value that the host reads in the region. What only [`set`](Self::set) has stored
    /// and no handler reads need not be there. What is reported is stored in the order of the calls,
    /// wherever a handler is cut off.
    #[inline(always)]
    pub fn report(&self, value: u32) {
        imports::to_host(&self.0, value);
    }

    /// Adds; wraps.
    #[inline(always)]
    pub fn add(&self, value: u32) {
        self.set(self.get().wrapping_add(value));
    }
}

/// Several words of the region.
#[derive(Debug)]
pub struct Words<const COUNT: usize>([Word; COUNT]);

impl<const COUNT: usize> Words<COUNT> {
    /// All 0.
    pub const fn new() -> Self {
        Words([const { Word::new(0) }; COUNT])
    }

    /// One of them, if there is such a one.
    #[inline(always)]
    pub fn at(&self, index: usize) -> Option<&Word> {
        self.0.get(index)
    }
}

impl<const COUNT: usize> Default for Words<COUNT> {
    fn default() -> Self {
        Words::new()
    }
}

/// Words of a [`Table`] whose size is chosen when its extension is compiled, by `cargo xtask extension
/// build --table`: `words` if it is not.
pub const fn table_words(words: usize) -> usize {
    match option_env!("SPINE_TABLE") {
        Some(text) => number(text),
        None => words,
    }
}

/// A decimal number.
const fn number(text: &str) -> usize {
    let mut digits = text.as_bytes();
    let mut value = 0;
    while let [digit, rest @ ..] = digits {
        assert!(digit.is_ascii_digit(), "a number of words");
        value = 10 * value + (*digit - b'0') as usize;
        digits = rest;
    }
    value
}

/// Words of the region that the host writes while handlers run, such as a table: handlers read
/// them. Each word is as it was or as the host has written it.
#[derive(Debug)]
pub struct Table<const COUNT: usize>([Word; COUNT]);

impl<const COUNT: usize> Table<COUNT> {
    /// All 0, until the host writes them.
    pub const fn new() -> Self {
        Table([const { Word::new(0) }; COUNT])
    }

    /// One of them, if there is such a one.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<u32> {
        self.0.get(index).map(|word| imports::of_host(&word.0))
    }

    /// What the host does on the card; `false` if there is no such word.
    #[cfg(not(target_arch = "mips"))]
    pub fn set(&self, index: usize, value: u32) -> bool {
        self.0.get(index).map(|word| word.set(value)).is_some()
    }
}

impl<const COUNT: usize> Default for Table<COUNT> {
    fn default() -> Self {
        Table::new()
    }
}
