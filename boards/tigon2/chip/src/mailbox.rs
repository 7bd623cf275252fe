//! The mailboxes: the host's doorbells to the NIC.
//!
//! Hardware reference, section 8: 32 mailboxes of 8 bytes, of which only the low word
//! carries a value. A host write stores the word in SRAM and sets the mailbox's bit in the
//! mailbox event registers `R[64]` and `R[74]`, which raises event bit 22.

use crate::memory::MAILBOXES;

/// Number of mailboxes (8, C).
pub const COUNT: u32 = 32;
/// Bytes of a mailbox: high word, low word (8, C).
pub const BYTES: u32 = 8;
/// BAR offset of the first mailbox (8, C).
pub const BAR_BASE: u32 = 0x500;

crate::table! {
    /// The mailboxes in use; the value of a variant is the mailbox's number (8, C).
    pub enum Mailbox: u8 {
        /// 0: any write clears the pending interrupt; 1 holds further ones back, 0 allows them.
        HostInterrupt = 0,
        /// 1: command ring producer index.
        CommandProducer = 1,
        /// 2: send ring producer index.
        SendProducer = 2,
        /// 3: standard receive ring producer index.
        StandardProducer = 3,
        /// 4: jumbo receive ring producer index.
        JumboProducer = 4,
        /// 5: mini receive ring producer index.
        MiniProducer = 5,
    }
}

impl Mailbox {
    /// The mailbox's bit in `R[64]` and `R[74]`.
    #[inline]
    pub const fn mask(self) -> u32 {
        1 << self as u32
    }

    /// NIC address of the low word.
    #[inline]
    pub const fn nic_address(self) -> u32 {
        MAILBOXES + BYTES * self as u32 + 4
    }

    /// BAR offset of the low word.
    #[inline]
    pub const fn bar_offset(self) -> u32 {
        BAR_BASE + BYTES * self as u32 + 4
    }
}

/// The number (0..32) of the mailbox whose low word is at a BAR offset; writes elsewhere raise no
/// event (8, C).
#[inline]
pub const fn number_at(bar_offset: u32) -> Option<u32> {
    if bar_offset >= BAR_BASE && bar_offset < BAR_BASE + COUNT * BYTES && bar_offset % BYTES == 4 {
        Some((bar_offset - BAR_BASE) / BYTES)
    } else {
        None
    }
}

const _: () = assert!(MAILBOXES + 0x400 == BAR_BASE);

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 8, table (C).
    #[test]
    fn low_words_are_where_drivers_write() {
        let offsets: Vec<_> = Mailbox::ALL.iter().map(|one| one.bar_offset()).collect();
        assert_eq!(offsets, [0x504, 0x50C, 0x514, 0x51C, 0x524, 0x52C]);
        assert_eq!(Mailbox::SendProducer.nic_address(), 0x114);
        assert_eq!(Mailbox::MiniProducer.mask(), 0x20);
    }

    /// Reference 8: only the low word (8n + 4) is used (C).
    #[test]
    fn only_low_words_have_a_number() {
        for mailbox in Mailbox::ALL {
            assert_eq!(number_at(mailbox.bar_offset()), Some(mailbox.number()));
            assert_eq!(number_at(mailbox.bar_offset() - 4), None);
        }
        assert_eq!(number_at(0x5FC), Some(31));
        assert_eq!(number_at(0x4FC), None);
        assert_eq!(number_at(0x604), None);
    }
}
