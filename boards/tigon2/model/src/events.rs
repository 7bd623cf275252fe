//! The two main event registers `R[60]` and `R[70]`.
//!
//! Hardware reference, section 5. Both show the same hardware bits, which are levels of the parts
//! (only the timer and mailbox bits are per CPU), and each has its own software bits, which a
//! register write replaces.

use tigon2_chip::Cpu;
use tigon2_chip::events::{EventBit, SOFTWARE_BITS};

/// The software bits of both registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoftwareEvents {
    bits: [u32; Cpu::MOST],
}

impl SoftwareEvents {
    /// The CPU's software bits.
    #[inline]
    pub fn read(&self, cpu: Cpu) -> u32 {
        self.bits[cpu.index()]
    }

    /// A write to the CPU's register: replaces the software bits, hardware bits ignore it
    /// (5, C!).
    pub fn write(&mut self, cpu: Cpu, value: u32) {
        self.bits[cpu.index()] = value & SOFTWARE_BITS;
    }
}

/// The levels behind the hardware bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Bit 6: (`R[E0]` & !7) != `R[E8]`.
    pub receive_complete: bool,
    /// Bit 14: the write ring's consumer has passed its reference.
    pub dma_write_complete: bool,
    /// Bit 15: the read ring's consumer has passed its reference.
    pub dma_read_complete: bool,
    /// Bit 19: error bits in `R[A0]`.
    pub dma_write_attention: bool,
    /// Bit 20: error bits in `R[B0]`.
    pub dma_read_attention: bool,
    /// Bit 22: the CPU's mailbox event register is not 0.
    pub mailbox: bool,
    /// Bit 25: an attention bit of `R[220]`.
    pub mac_rx_attention: bool,
    /// Bit 26: an attention bit of `R[200]`.
    pub mac_tx_attention: bool,
    /// Bit 28: the CPU's timer reference is reached.
    pub timer: bool,
}

impl Levels {
    /// The hardware bits of the event register.
    #[inline]
    pub fn bits(self) -> u32 {
        let bit = |level: bool, event: EventBit| if level { event.mask() } else { 0 };
        bit(self.receive_complete, EventBit::ReceiveComplete)
            | bit(self.dma_write_complete, EventBit::DmaWriteComplete)
            | bit(self.dma_read_complete, EventBit::DmaReadComplete)
            | bit(self.dma_write_attention, EventBit::DmaWriteAttention)
            | bit(self.dma_read_attention, EventBit::DmaReadAttention)
            | bit(self.mailbox, EventBit::Mailbox)
            | bit(self.mac_rx_attention, EventBit::MacRxAttention)
            | bit(self.mac_tx_attention, EventBit::MacTxAttention)
            | bit(self.timer, EventBit::Timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use tigon2_chip::Register;
    use tigon2_chip::events::HARDWARE_BITS;

    /// Reference 5: a write replaces the software bits only; hardware bits ignore it (C!).
    #[test]
    fn software_bits_are_replaced_and_hardware_bits_ignore_writes() {
        let mut bench = Bench::default();
        bench.write(Register::EventA, u32::MAX);
        assert_eq!(bench.read(Register::EventA), SOFTWARE_BITS);
        bench.write(Register::EventA, 0x18);
        assert_eq!(bench.read(Register::EventA), 0x18);
        assert_eq!(
            bench.read(Register::EventB),
            0,
            "B has its own software bits"
        );
    }

    /// Reference 5: vendor writes 0x08000080 and waits until bit 27 reads 1 (C!).
    #[test]
    fn the_start_bit_is_software() {
        let mut bench = Bench::default();
        bench.write(Register::EventA, 0x0800_0080);
        assert_eq!(bench.read(Register::EventA), 0x0800_0080);
    }

    /// Reference 5: plain read-modify-write while hardware bits change loses nothing (C!).
    #[test]
    fn read_modify_write_does_not_store_hardware_bits() {
        let mut bench = Bench::default();
        bench.bar_write(0x50C, 1);
        let value = bench.read(Register::EventA);
        assert_eq!(value, EventBit::Mailbox.mask());
        bench.write(Register::EventA, value | EventBit::SendBdReady.mask());
        bench.write(Register::MailboxEventA, u32::MAX);
        assert_eq!(bench.read(Register::EventA), EventBit::SendBdReady.mask());
    }

    #[test]
    fn every_hardware_bit_has_a_level() {
        let all = Levels {
            receive_complete: true,
            dma_write_complete: true,
            dma_read_complete: true,
            dma_write_attention: true,
            dma_read_attention: true,
            mailbox: true,
            mac_rx_attention: true,
            mac_tx_attention: true,
            timer: true,
        };
        assert_eq!(all.bits(), HARDWARE_BITS);
        assert_eq!(Levels::default().bits(), 0);
    }
}
