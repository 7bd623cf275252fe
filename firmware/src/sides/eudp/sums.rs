//! One's-complement sums, RFC 1071.

use tigon2_hal::schedule::barrier;

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

/// The sum of the halves of up to 2^15 words. A word costs three instructions: what all words and
/// their upper halves amount to says what the lower ones do.
#[derive(Clone, Copy, Debug, Default)]
pub struct HalvesSum {
    words: u32,
    upper: u32,
}

impl HalvesSum {
    /// Adds a word's.
    #[inline(always)]
    pub const fn add(&mut self, word: u32) {
        self.words = self.words.wrapping_add(word);
        self.upper += word >> 16;
    }

    /// The sum, which is not folded.
    #[inline(always)]
    pub fn get(self) -> u32 {
        // A compiler would multiply by 65535, which the chip cannot.
        self.upper + self.words.wrapping_sub(barrier(self.upper << 16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_summed_as_each_word_s() {
        let mut sum = HalvesSum::default();
        let mut expected = 0;
        for number in 0..1000_u32 {
            let word = number.wrapping_mul(0x9E37_79B9) ^ (number << 31);
            sum.add(word);
            expected += halves(word);
            assert_eq!(sum.get(), expected);
        }
    }
}
