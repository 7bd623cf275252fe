//! One's-complement sums, RFC 1071.

/// The sum of a word's halves.
#[inline(always)]
pub const fn halves(word: u32) -> u32 {
    (word >> 16) + (word & 0xFFFF)
}

/// A one's-complement sum in 16 bits.
#[inline(always)]
pub const fn folded(sum: u32) -> u32 {
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (sum & 0xFFFF) + (sum >> 16)
}
