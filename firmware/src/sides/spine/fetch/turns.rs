//! Whose turn it is, of endpoints that wait.

use tigon2_hal::schedule::barrier;

/// The first bit of two words behind a bit, or else the first of all.
pub fn behind_last(words: [u32; 2], last: u32) -> Option<u32> {
    let [low, high] = words;
    let mask = |from: u32| if from < 32 { u32::MAX << from } else { 0 };
    let next = last + 1;
    let above = if next < 32 {
        [low & mask(next), high]
    } else {
        [0, high & mask(next - 32)]
    };
    first_bit(above).or_else(|| first_bit(words))
}

/// The number of the first bit of two words, by steps: the chip cannot count zeros.
fn first_bit([low, high]: [u32; 2]) -> Option<u32> {
    let (mut word, mut number) = if low != 0 { (low, 0) } else { (high, 32) };
    if word == 0 {
        return None;
    }
    while word & 0xFF == 0 {
        word = barrier(word >> 8);
        number += 8;
    }
    while word & 1 == 0 {
        word = barrier(word >> 1);
        number += 1;
    }
    Some(number)
}
