//! The mailbox event registers `R[64]` and `R[74]`.
//!
//! Hardware reference, section 8. A host write to the low word of mailbox n stores the word
//! in SRAM (the [`window`](crate::window) does that) and sets bit n in both registers; a
//! register's value other than 0 is event bit 22 of its CPU.

use tigon2_chip::Cpu;

/// The two registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mailboxes {
    bits: [u32; 2],
}

impl Mailboxes {
    /// The host wrote the low word of mailbox `number` (0..32; others are ignored).
    pub fn ring(&mut self, number: u32) {
        let bit = 1u32.checked_shl(number).unwrap_or(0);
        for bits in &mut self.bits {
            *bits |= bit;
        }
    }

    /// The CPU's register; 0 for a CPU without one.
    pub fn read(&self, cpu: Cpu) -> u32 {
        self.bits.get(cpu.index()).copied().unwrap_or(0)
    }

    /// A write to the CPU's register: ones clear (8, C).
    pub fn clear(&mut self, cpu: Cpu, ones: u32) {
        if let Some(bits) = self.bits.get_mut(cpu.index()) {
            *bits &= !ones;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 8: a host write sets bit n in R[64] and R[74]; both are write-1-to-clear
    /// and independent (C).
    #[test]
    fn a_mailbox_rings_both_cpus_and_each_clears_its_own() {
        let mut mailboxes = Mailboxes::default();
        mailboxes.ring(2);
        mailboxes.ring(31);
        mailboxes.ring(32);
        assert_eq!(mailboxes.read(Cpu::A), 0x8000_0004);
        assert_eq!(mailboxes.read(Cpu::B), 0x8000_0004);
        mailboxes.clear(Cpu::A, 4);
        assert_eq!(mailboxes.read(Cpu::A), 0x8000_0000);
        assert_eq!(mailboxes.read(Cpu::B), 0x8000_0004);
        mailboxes.clear(Cpu::B, u32::MAX);
        assert_eq!(mailboxes.read(Cpu::B), 0);
    }
}
