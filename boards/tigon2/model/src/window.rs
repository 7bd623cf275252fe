//! The host's view of NIC memory: BAR 400-7FF and the 2 KB window at BAR 800-FFF.
//!
//! Hardware reference, sections 2.1 and 9 (`R[40]` bits 4 and 5, `R[68]`, `R[6C]`).
//!
//! ```text
//! BAR 0x000-0x3FF  registers
//! BAR 0x400-0x7FF  NIC 0x000-0x3FF  (0x500-0x5FF: mailboxes)
//! BAR 0x800-0xFFF  NIC R[68] + 0x000-0x7FF
//! ```
//!
//! This module handles word and byte swap: with `R[40]` bit 5 clear the two words of each 64-bit
//! pair of NIC memory are exchanged; with bit 4 set the bytes of every access are reversed.
//! Registers stay at their offsets, so that `R[40]` is always accessible.

use crate::control::HostControl;
use tigon2_chip::memory::{DIRECT_BYTES, REGISTERS_BYTES};

/// Bytes of the window.
pub const WINDOW_BYTES: u32 = 0x800;
/// BAR offset of the window.
pub const WINDOW_OFFSET: u32 = 0x800;

/// The target of an aligned BAR offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A register, or a hole between registers, at this offset.
    Register(u32),
    /// NIC memory seen directly, at this NIC address; writes to mailboxes ring.
    Direct(u32),
    /// NIC memory through the window, at this NIC address.
    Window(u32),
    /// Nothing.
    Nothing,
}

/// `R[68]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    base: u32,
}

impl Window {
    /// `R[68]`.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// A write to `R[68]`: the base is 2 KB aligned (9, C).
    pub fn set_base(&mut self, base: u32) {
        self.base = base & !(WINDOW_BYTES - 1);
    }

    /// The target of an aligned BAR offset.
    pub fn target(&self, control: &HostControl, offset: u32) -> Target {
        let exchanged = if control.word_swap() {
            offset
        } else {
            offset ^ 4
        };
        match offset {
            0..REGISTERS_BYTES => Target::Register(offset),
            REGISTERS_BYTES..WINDOW_OFFSET => Target::Direct(exchanged - REGISTERS_BYTES),
            WINDOW_OFFSET..0x1000 => {
                Target::Window(self.base.wrapping_add(exchanged - WINDOW_OFFSET))
            }
            _ => Target::Nothing,
        }
    }
}

const _: () = assert!(REGISTERS_BYTES + DIRECT_BYTES == WINDOW_OFFSET);

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use crate::{Cpu, UndefinedLog};
    use tigon2_chip::{Register, mailbox::Mailbox};

    /// Reference 2.1: BAR offset X (0x400 <= X < 0x800) is NIC address X - 0x400 (C); a 32-bit
    /// access carries the value of the NIC word after 0x22000022 (19, C!).
    #[test]
    fn the_first_kilobyte_is_seen_directly() {
        let mut bench = Bench::default();
        bench.bar_write(0x618, 0x0400_021C);
        assert_eq!(bench.word(0x218), 0x0400_021C);
        assert_eq!(bench.bar_read(0x618), 0x0400_021C);
        bench.set_word(0x3FC, 0x1122_3344);
        assert_eq!(bench.bar_read(0x7FC), 0x1122_3344);
    }

    /// Reference 9: BAR 0x800+x accesses NIC memory at R[68]+x, R[68] is 2 KB aligned (C);
    /// R[6C] is the word at R[68] (I).
    #[test]
    fn the_window_moves_in_steps_of_two_kilobytes() {
        let mut bench = Bench::default();
        bench.bar_write(0x68, 0x4FFF);
        assert_eq!(bench.bar_read(0x68), 0x4800);
        bench.bar_write(0x804, 0xDEAD_BEEF);
        bench.bar_write(0xFFC, 7);
        assert_eq!(bench.word(0x4804), 0xDEAD_BEEF);
        assert_eq!(bench.word(0x4FFC), 7);
        bench.bar_write(0x6C, 9);
        assert_eq!(bench.word(0x4800), 9);
        assert_eq!(bench.bar_read(0x6C), 9);
        bench.bar_write(0x68, 0x10_4800);
        assert_eq!(
            bench.bar_read(0x804),
            0xDEAD_BEEF,
            "the window sees aliases too"
        );
    }

    /// Reference 9: without R[40] bit 5 the words of each pair are exchanged (I); bit 4 swaps
    /// bytes (I). R[40] stays where it is, and a mirrored write works in either order.
    #[test]
    fn word_and_byte_swap() {
        let mut bench = Bench::default();
        bench.set_word(0x200, 1);
        bench.set_word(0x204, 2);
        bench.bar_write(0x40, 0);
        assert_eq!((bench.bar_read(0x600), bench.bar_read(0x604)), (2, 1));
        bench.bar_write(0x40, 0x1000_0010);
        assert_eq!(bench.bar_read(0x600), 0x0200_0000);
        assert_eq!(bench.bar_read(0x40), 0x1000_0060);
        bench.bar_write(0x40, 0x2200_0022);
        assert_eq!(bench.bar_read(0x40), 0x6000_0020);
        assert_eq!((bench.bar_read(0x600), bench.bar_read(0x604)), (1, 2));
    }

    /// Reference 8: a host write to the low word stores it and rings; the high word and NIC
    /// CPU writes ring nothing (C, I).
    #[test]
    fn mailboxes_ring_by_their_low_words() {
        let mut bench = Bench::default();
        bench.bar_write(0x510, 5);
        assert_eq!(bench.read(Register::MailboxEventA), 0);
        bench.bar_write(Mailbox::SendProducer.bar_offset(), 17);
        assert_eq!(bench.word(Mailbox::SendProducer.nic_address()), 17);
        for cpu in Cpu::ALL {
            let bits = bench.read(Register::mailbox_event(cpu));
            assert_eq!(bits, Mailbox::SendProducer.mask());
        }
        bench.write(Register::MailboxEventA, u32::MAX);
        bench.bar_write(0x68, 0);
        bench.bar_write(0x800 + Mailbox::MiniProducer.nic_address(), 3);
        assert_eq!(
            bench.read(Register::MailboxEventA),
            0,
            "not through the window"
        );
    }

    /// Host interface: BAR 0x1000-0x3FFF reads zero and ignores writes; it is counted.
    #[test]
    fn the_rest_of_the_bar_is_empty() {
        let mut bench = Bench::default();
        let before = bench.card.inspect().undefined().count();
        bench.bar_write(0x1000, 5);
        assert_eq!(bench.bar_read(0x3FFC), 0);
        assert_eq!(bench.bar_read(0xFFFF_FFFC), 0);
        let log: &UndefinedLog = bench.card.inspect().undefined();
        assert_eq!(log.count(), before + 3);
    }
}
