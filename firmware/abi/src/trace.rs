//! The trace ring in NIC memory.
//!
//! Hardware reference, section 12 (C): gencom's trace start, length and pointer describe a ring of
//! 32-byte entries that vendor firmware fills downwards. After a fatal error the label "*PANIC*"
//! stands there with file and line.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 32;

/// The label of a fatal error's entry.
pub const PANIC_LABEL: [u8; 8] = *b"*PANIC*\0";

/// A label as the two words of an entry.
pub const fn label_words(label: [u8; 8]) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = label;
    [
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([e, f, g, h]),
    ]
}

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

    /// Whether it records a fatal error.
    pub fn is_panic(&self) -> bool {
        self.label() == PANIC_LABEL
    }
}

tigon2_chip::table! {
    /// The topic of an entry: its label, and its bit in gencom's trace mask. The bits of vendor
    /// firmware are unknown; these are this project's.
    pub enum Topic: u32 {
        /// Bit 0: start. Always traced. Code 0; the version of the extension, bytes of SRAM,
        /// base of the block, end of the transmit buffer.
        Boot = 0,
        /// Bit 1: link. Code: that of the event; the state word, `R[200]`, `R[220]`, the
        /// partner's abilities.
        Link = 1,
        /// Bit 2: commands. Code: the command; its word and the two entries behind it.
        Command = 2,
        /// Bit 3: events. Code: the event; its word, the producer index.
        Event = 3,
        /// Bit 4: drops, at most once a hundredth of a second for each reason. Code: the reason; how
        /// many there were before, how many there are now.
        Drop = 4,
        /// Bit 5: DMA errors. Always traced. Code: 0 read, 1 write; the channel's state, host
        /// address, kind of transfer.
        Dma = 5,
    }
}

impl Topic {
    /// Topics that are traced regardless of the mask.
    pub const ALWAYS: u32 = Topic::Boot.mask() | Topic::Dma.mask();

    /// The topic's bit.
    pub const fn mask(self) -> u32 {
        1 << self as u32
    }

    /// The topic's label, in words: the chip's CPUs cannot load unaligned data.
    pub const fn label(self) -> [u32; 2] {
        const BOOT: [u32; 2] = label_words(*b"BOOT\0\0\0\0");
        const LINK: [u32; 2] = label_words(*b"LINK\0\0\0\0");
        const COMMAND: [u32; 2] = label_words(*b"COMMAND\0");
        const EVENT: [u32; 2] = label_words(*b"EVENT\0\0\0");
        const DROP: [u32; 2] = label_words(*b"DROP\0\0\0\0");
        const DMA: [u32; 2] = label_words(*b"DMA\0\0\0\0\0");
        match self {
            Topic::Boot => BOOT,
            Topic::Link => LINK,
            Topic::Command => COMMAND,
            Topic::Event => EVENT,
            Topic::Drop => DROP,
            Topic::Dma => DMA,
        }
    }
}

/// The addresses of a ring's entries, newest first, from gencom's trace start, length and pointer.
/// Empty if these describe no valid ring.
pub fn newest_first(start: u32, length: u32, pointer: u32) -> impl Iterator<Item = u32> {
    const ENTRY: u32 = ENTRY_BYTES as u32;
    let entries = length / ENTRY;
    let at = pointer.wrapping_sub(start) / ENTRY;
    let valid = at < entries && start.checked_add(length).is_some();
    // Entries go downwards, so the newest is behind the pointer.
    (1..=if valid { entries } else { 0 }).map(move |n| start + (at + n) % entries * ENTRY)
}

const _: () = {
    assert!(size_of::<TraceEntry>() == ENTRY_BYTES);
    assert!(core::mem::offset_of!(TraceEntry, code) == 8);
    assert!(core::mem::offset_of!(TraceEntry, arguments) == 16);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 12: written downwards (C).
    #[test]
    fn the_newest_entry_is_behind_the_pointer() {
        let order: Vec<_> = newest_first(0x1000, 0x80, 0x1020).collect();
        assert_eq!(order, [0x1040, 0x1060, 0x1000, 0x1020]);
        assert_eq!(newest_first(0x1000, 0x80, 0x1060).next(), Some(0x1000));
        assert_eq!(newest_first(0x1000, 0x80, 0x2000).count(), 0);
        assert_eq!(newest_first(0x1000, 0, 0x1000).count(), 0);
        assert_eq!(newest_first(u32::MAX, 0x80, u32::MAX).count(), 0);
    }

    #[test]
    fn topics_have_their_own_bits_and_labels() {
        for (bit, topic) in Topic::ALL.iter().enumerate() {
            assert_eq!(topic.mask(), 1 << bit);
            assert_ne!(topic.label(), label_words(PANIC_LABEL));
        }
    }

    /// Reference 12: entries are {label8, code, time, 4 args} (C).
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
