//! The trace ring in NIC memory.
//!
//! Hardware reference, section 12 (C): gencom's trace start, length and pointer describe a
//! ring of 32-byte entries that vendor firmware fills downwards; after a fatal error the
//! label "*PANIC*" stands there with file and line.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 32;

/// The label of the entry that a fatal error leaves.
pub const PANIC_LABEL: [u8; 8] = *b"*PANIC*\0";

/// An entry of the trace ring, in words.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TraceEntry {
    /// Eight characters, the first in bits 31:24 of the first word.
    pub label: [u32; 2],
    /// What happened.
    pub code: u32,
    /// When, in microseconds of the card's timer.
    pub time: u32,
    /// Four numbers that depend on the code.
    pub arguments: [u32; 4],
}

impl TraceEntry {
    /// The label's characters.
    pub const fn label(&self) -> [u8; 8] {
        let [a, b, c, d] = self.label[0].to_be_bytes();
        let [e, f, g, h] = self.label[1].to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Whether it is what a fatal error leaves.
    pub fn is_panic(&self) -> bool {
        self.label() == PANIC_LABEL
    }
}

const _: () = {
    assert!(size_of::<TraceEntry>() == ENTRY_BYTES);
    assert!(core::mem::offset_of!(TraceEntry, code) == 8);
    assert!(core::mem::offset_of!(TraceEntry, arguments) == 16);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Hardware reference 12: entries are {label8, code, time, 4 args} (C).
    #[test]
    fn a_label_is_eight_characters_in_two_big_endian_words() {
        let label = [0x2A50_414E, 0x4943_2A00];
        let entry = TraceEntry {
            label,
            ..TraceEntry::default()
        };
        assert!(entry.is_panic());
        assert!(!TraceEntry::default().is_panic());
    }
}
