//! Keys of the hash.

use host_interface::queue::KEY_BYTES;

/// A key of 40 bytes: each bit of the input selects the 32 bits of the key that begin with the bit
/// of the same number. Aligned, so that the chip can read its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(align(4))]
pub struct Key(pub [u8; KEY_BYTES]);

/// After how many bits a key repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Period {
    /// 16: the hash is that of the XOR of the input's halfwords.
    Halfword,
    /// 32: the hash is that of the XOR of the input's words.
    Word,
    /// Not within 32 bits.
    None,
}

impl Period {
    /// The period with this number; any but those of the others' is [`Period::None`]'s.
    pub const fn from_number(number: u32) -> Period {
        match number {
            0 => Period::Halfword,
            1 => Period::Word,
            _ => Period::None,
        }
    }
}

impl Key {
    /// The key of the published verification suite, which most drivers use as well.
    pub const PUBLISHED: Key = Key([
        0x6D, 0x5A, 0x56, 0xDA, 0x25, 0x5B, 0x0E, 0xC2, 0x41, 0x67, 0x25, 0x3D, 0x43, 0xA3, 0x8F,
        0xB0, 0xD0, 0xCA, 0x2B, 0xCB, 0xAE, 0x7B, 0x30, 0xB4, 0x77, 0xCB, 0x2D, 0xA3, 0x80, 0x30,
        0xF2, 0x0C, 0x6A, 0x42, 0xB7, 0x3B, 0xBE, 0xAC, 0x01, 0xFA,
    ]);
    /// A key of period 16: both directions of a flow have the same hash (Woo and Park, "Scalable
    /// TCP session monitoring with symmetric receive-side scaling"). Both halves of a hash are
    /// equal, so there are only 65536 different hashes.
    pub const SYMMETRIC: Key = Key(repeated([0x6D, 0x5A]));

    /// The 32 bits from bit `bit` on; zeros follow the key.
    pub const fn window(&self, bit: u32) -> u32 {
        let first = (bit / 32) as usize;
        let shift = bit % 32;
        if shift == 0 {
            self.word(first)
        } else {
            self.word(first) << shift | self.word(first + 1) >> (32 - shift)
        }
    }

    const fn word(&self, index: usize) -> u32 {
        match self.0.as_chunks().0 {
            words if index < words.len() => u32::from_be_bytes(words[index]),
            _ => 0,
        }
    }

    /// The key's period.
    pub const fn period(&self) -> Period {
        if self.repeats_after(2) {
            Period::Halfword
        } else if self.repeats_after(4) {
            Period::Word
        } else {
            Period::None
        }
    }

    /// Whether both directions of any flow have the same hash.
    pub const fn is_symmetric(&self) -> bool {
        self.repeats_after(2)
    }

    const fn repeats_after(&self, bytes: usize) -> bool {
        let mut at = bytes;
        while at < KEY_BYTES {
            if self.0[at] != self.0[at - bytes] {
                return false;
            }
            at += 1;
        }
        true
    }
}

const fn repeated(pair: [u8; 2]) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let mut at = 0;
    while at < KEY_BYTES {
        key[at] = pair[at & 1];
        at += 1;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_begins_at_its_bit() {
        let key = Key::PUBLISHED;
        assert_eq!(key.window(0), 0x6D5A_56DA);
        assert_eq!(key.window(4), 0xD5A5_6DA2);
        assert_eq!(key.window(31), 0x255B_0EC2 >> 1);
        assert_eq!(key.window(288), 0xBEAC_01FA);
        assert_eq!(key.window(312), 0xFA00_0000, "zeros behind the key");
    }

    #[test]
    fn periods_are_found() {
        assert_eq!(Key::PUBLISHED.period(), Period::None);
        assert_eq!(Key::SYMMETRIC.period(), Period::Halfword);
        assert!(Key::SYMMETRIC.is_symmetric() && !Key::PUBLISHED.is_symmetric());
        let mut words = Key::SYMMETRIC;
        for at in (0..KEY_BYTES).step_by(4) {
            words.0[at] = 1;
        }
        assert_eq!(words.period(), Period::Word);
        words.0[KEY_BYTES - 1] ^= 1;
        assert_eq!(words.period(), Period::None);
    }
}
