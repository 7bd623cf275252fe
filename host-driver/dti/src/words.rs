//! Shared memory as a row of 64-bit words.

use std::sync::atomic::Ordering;

/// Memory that another process may write at any time. Every access is atomic, so no value can
/// be torn and no race is undefined. Models of the rings bring their own implementation.
///
/// An index beyond [`Words::len`] panics: callers derive indices from their own constants and
/// from checked values, never from the other side.
pub trait Words {
    /// Number of words.
    fn len(&self) -> usize;
    /// True if there are no words.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Loads a word.
    fn load(&self, index: usize, order: Ordering) -> u64;
    /// Stores a word.
    fn store(&self, index: usize, value: u64, order: Ordering);
    /// Stores a word and gives what stood there.
    fn swap(&self, index: usize, value: u64, order: Ordering) -> u64;
    /// A sequentially consistent fence.
    fn fence(&self);
}

/// Reads bytes that start at a word.
pub fn read_bytes<W: Words + ?Sized>(words: &W, start: usize, bytes: &mut [u8]) {
    for (index, part) in bytes.chunks_mut(8).enumerate() {
        let word = words.load(start + index, Ordering::Relaxed).to_le_bytes();
        part.copy_from_slice(&word[..part.len()]);
    }
}

/// Writes bytes that start at a word; the rest of the last word becomes 0.
pub fn write_bytes<W: Words + ?Sized>(words: &W, start: usize, bytes: &[u8]) {
    for (index, part) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        words.store(start + index, u64::from_le_bytes(word), Ordering::Relaxed);
    }
}

/// Reads bytes that start anywhere.
pub fn read_bytes_at<W: Words + ?Sized>(words: &W, start: usize, bytes: &mut [u8]) {
    let into = start % 8;
    let head = bytes.len().min((8 - into) % 8);
    let (front, rest) = bytes.split_at_mut(head);
    if !front.is_empty() {
        let word = words.load(start / 8, Ordering::Relaxed).to_le_bytes();
        front.copy_from_slice(&word[into..into + head]);
    }
    read_bytes(words, (start + head) / 8, rest);
}
