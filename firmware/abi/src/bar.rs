//! The map of BAR 0.
//!
//! Host/NIC software interface, "BAR0 layout". All accesses are aligned 32-bit words.
//!
//! ```text
//! 0x000  copy of the PCI configuration header
//! 0x040  chip registers, at the offsets that the NIC's CPUs use
//! 0x400  NIC memory 0x000-0x3FF: statistics 0x480, mailboxes 0x500, gencom 0x600,
//!        command ring 0x700
//! 0x800  2 KB window into NIC memory at the window base register
//! 0x1000 nothing: reads 0, writes ignored
//! ```

use tigon2_chip::mailbox::{self, Mailbox};
use tigon2_chip::memory;
use tigon2_chip::registers::PCI_CONFIGURATION_BYTES;

/// Size of BAR 0 in bytes.
pub const BYTES: u32 = crate::pci::BAR0_BYTES;
/// First chip register.
pub const REGISTERS: u32 = PCI_CONFIGURATION_BYTES;
/// Lowest NIC memory seen directly; NIC address = offset - this.
pub const DIRECT: u32 = memory::REGISTERS_BYTES;
/// Bytes of NIC memory that the host sees directly.
pub const DIRECT_BYTES: u32 = memory::DIRECT_BYTES;
/// MAC statistics: 32 words that the MAC counts.
pub const MAC_STATISTICS: u32 = DIRECT + memory::MAC_STATISTICS;
/// 32 mailboxes of two words.
pub const MAILBOXES: u32 = mailbox::BAR_BASE;
/// General communication block.
pub const GENCOM: u32 = DIRECT + memory::GENCOM;
/// Command ring.
pub const COMMAND_RING: u32 = DIRECT + memory::COMMAND_RING;
/// Memory window.
pub const WINDOW: u32 = 0x800;
/// Bytes of the memory window.
pub const WINDOW_BYTES: u32 = 0x800;
/// First offset after the window; reads there return 0.
pub const UNUSED: u32 = 0x1000;

/// Host interrupt mailbox: any write deasserts INTA#. 0 permits further interrupts; any other
/// value holds them back until 0 is written.
pub const MAILBOX_HOST_INTERRUPT: u32 = Mailbox::HostInterrupt.bar_offset();
/// Command producer mailbox.
pub const MAILBOX_COMMAND_PRODUCER: u32 = Mailbox::CommandProducer.bar_offset();
/// Send producer mailbox.
pub const MAILBOX_SEND_PRODUCER: u32 = Mailbox::SendProducer.bar_offset();
/// Standard receive producer mailbox.
pub const MAILBOX_STANDARD_PRODUCER: u32 = Mailbox::StandardProducer.bar_offset();
/// Jumbo receive producer mailbox.
pub const MAILBOX_JUMBO_PRODUCER: u32 = Mailbox::JumboProducer.bar_offset();
/// Mini receive producer mailbox.
pub const MAILBOX_MINI_PRODUCER: u32 = Mailbox::MiniProducer.bar_offset();

/// BAR offset of a word of directly visible NIC memory; `None` if the host sees the address only
/// through the window.
pub const fn direct_offset(nic_address: u32) -> Option<u32> {
    if nic_address < DIRECT_BYTES {
        Some(DIRECT + nic_address)
    } else {
        None
    }
}

/// The window base for a NIC address, and the BAR offset of its word with that base.
pub const fn window(nic_address: u32) -> (u32, u32) {
    (
        nic_address & !(WINDOW_BYTES - 1),
        WINDOW + nic_address % WINDOW_BYTES,
    )
}

const _: () = {
    assert!(REGISTERS == 0x040 && DIRECT == 0x400 && MAC_STATISTICS == 0x480);
    assert!(MAILBOXES == 0x500 && GENCOM == 0x600 && COMMAND_RING == 0x700);
    assert!(DIRECT + DIRECT_BYTES == WINDOW);
    assert!(WINDOW + WINDOW_BYTES == UNUSED);
    assert!(COMMAND_RING + 4 * crate::ring::COMMAND_ENTRIES == WINDOW);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// "400-7FF: NIC local memory 000-3FF seen from the host: address = offset - 400".
    #[test]
    fn low_nic_memory_is_seen_directly() {
        assert_eq!(direct_offset(0x000), Some(0x400));
        assert_eq!(direct_offset(0x3FC), Some(0x7FC));
        assert_eq!(direct_offset(0x400), None);
    }

    /// "Mailboxes": where drivers write.
    #[test]
    fn mailboxes_are_where_drivers_write() {
        assert_eq!(MAILBOX_HOST_INTERRUPT, 0x504);
        assert_eq!(MAILBOX_COMMAND_PRODUCER, 0x50C);
        assert_eq!(MAILBOX_SEND_PRODUCER, 0x514);
        assert_eq!(MAILBOX_STANDARD_PRODUCER, 0x51C);
        assert_eq!(MAILBOX_JUMBO_PRODUCER, 0x524);
        assert_eq!(MAILBOX_MINI_PRODUCER, 0x52C);
    }

    /// "host address 800 + (a mod 800) reads NIC address WinBase + (a mod 800)".
    #[test]
    fn the_window_is_2_kb_aligned() {
        assert_eq!(window(0x4000), (0x4000, 0x800));
        assert_eq!(window(0x47FC), (0x4000, 0xFFC));
        assert_eq!(window(0x4800), (0x4800, 0x800));
    }
}
