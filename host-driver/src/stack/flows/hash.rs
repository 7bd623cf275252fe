//! The hash of the flow table: Toeplitz over addresses and ports, as a card's receive queues do it
//! ([`flow_classify`]). With the same key a card would put all frames of a flow in the queue of
//! the stack that has its connection.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use flow_classify::Key;
use host_interface::queue::KEY_BYTES;

/// Source and destination address, source and destination port.
const INPUT_BYTES: usize = 12;

/// The contribution of each value of each byte of the input.
type Rows = [[u32; 256]; INPUT_BYTES];

/// The hash of a key.
#[derive(Clone)]
pub(super) struct Toeplitz(Arc<Rows>);

impl Toeplitz {
    /// The hash of a key.
    pub(super) fn new(key: &Key) -> Self {
        let of = |byte: usize, value: u32| {
            let bits = (0..8).filter(|bit| value & (0x80 >> bit) != 0);
            bits.fold(0, |sum, bit| sum ^ key.window((byte * 8) as u32 + bit))
        };
        let row = |byte| std::array::from_fn(|value| of(byte, value as u32));
        Self(Arc::new(std::array::from_fn(row)))
    }

    /// The hash of a key that nobody can guess who does not know the seed: else one could choose
    /// ports whose flows all meet in one place of the table.
    pub(super) fn of_seed(seed: u64) -> Self {
        let mut state = seed;
        let mut key = [0; KEY_BYTES];
        for part in key.chunks_mut(8) {
            // SplitMix64.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = state;
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            part.copy_from_slice(&(word ^ (word >> 31)).to_be_bytes()[..part.len()]);
        }
        Self::new(&Key(key))
    }
}

impl BuildHasher for Toeplitz {
    type Hasher = ToeplitzHasher;

    fn build_hasher(&self) -> ToeplitzHasher {
        ToeplitzHasher {
            rows: self.0.clone(),
            at: 0,
            sum: 0,
        }
    }
}

/// The hash of one flow, as far as it was written.
pub(super) struct ToeplitzHasher {
    rows: Arc<Rows>,
    at: usize,
    sum: u32,
}

impl Hasher for ToeplitzHasher {
    fn write(&mut self, bytes: &[u8]) {
        for (row, byte) in self.rows[self.at..].iter().zip(bytes) {
            self.sum ^= row[usize::from(*byte)];
        }
        self.at += bytes.len();
    }

    fn finish(&self) -> u64 {
        // A table looks at the upper bits, too.
        u64::from(self.sum) << 32 | u64::from(self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published verification suite, IPv4 with ports.
    #[test]
    fn it_is_the_hash_of_the_cards_queues() {
        let cases: [([u8; 12], u32); 2] = [
            (
                [66, 9, 149, 187, 161, 142, 100, 80, 0x0A, 0xEA, 0x06, 0xE6],
                0x51CC_C178,
            ),
            (
                [199, 92, 111, 2, 65, 69, 140, 83, 0x37, 0x96, 0x12, 0x83],
                0xC626_B0EA,
            ),
        ];
        let toeplitz = Toeplitz::new(&Key::PUBLISHED);
        for (input, hash) in cases {
            let mut hasher = toeplitz.build_hasher();
            hasher.write(&input);
            assert_eq!(hasher.finish() as u32, hash);
        }
    }
}
