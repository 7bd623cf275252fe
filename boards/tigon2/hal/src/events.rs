//! Software event bits and the priority encoder.
//!
//! Hardware reference, sections 3.2 and 5. The event register mixes levels that
//! hardware makes with bits that software sets for itself; a write replaces the latter
//! and leaves the former.

use crate::Bus;
use tigon2_chip::events::{EventBit, SOFTWARE_BITS};
use tigon2_chip::{Cpu, Register};

/// The software bits of one CPU's event register, when that CPU is their only writer.
///
/// The reference asks for the semaphore round every read-modify-write of the register,
/// because CPU A and CPU B both set bits in it (section 5). Here one CPU is the only
/// writer, so the bits have a copy in its scratch pad: setting one is a store, with no
/// register read and no semaphore.
#[derive(Debug)]
pub struct SoftwareEvents {
    register: Register,
    bits: u32,
}

impl SoftwareEvents {
    /// The software bits of `cpu`, all 0 as the register must be, too.
    pub const fn new(cpu: Cpu) -> SoftwareEvents {
        SoftwareEvents {
            register: Register::event(cpu),
            bits: 0,
        }
    }

    /// Sets an event.
    #[inline(always)]
    pub fn set<B: Bus>(&mut self, bus: &mut B, event: EventBit) {
        self.write(bus, self.bits | event.mask() & SOFTWARE_BITS);
    }

    /// Clears an event.
    #[inline(always)]
    pub fn clear<B: Bus>(&mut self, bus: &mut B, event: EventBit) {
        self.write(bus, self.bits & !event.mask());
    }

    #[inline(always)]
    fn write<B: Bus>(&mut self, bus: &mut B, bits: u32) {
        if bits != self.bits {
            self.bits = bits;
            bus.write(self.register, bits);
        }
    }

    /// Whether an event is set.
    #[inline(always)]
    pub fn is_set(&self, event: EventBit) -> bool {
        self.bits & event.mask() != 0
    }
}

/// The number of the most significant set bit of `events & mask`, plus one; 0 if there
/// is none. On the chip it is the instruction PRI (reference 3.2, C!).
#[inline(always)]
pub fn priority(events: u32, mask: u32) -> u32 {
    #[cfg(target_arch = "mips")]
    {
        let number: u32;
        // SAFETY: PRI reads two registers and writes one; nothing else changes. The
        // assembler does not know it, so the word names the registers: rd = $2, rs = $3,
        // rt = $4.
        unsafe {
            core::arch::asm!(
                ".word 0x0064100b",
                in("$3") events,
                in("$4") mask,
                lateout("$2") number,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        number
    }
    #[cfg(not(target_arch = "mips"))]
    {
        u32::BITS - (events & mask).leading_zeros()
    }
}
