//! Boards beyond the chip: CPU C to CPU F, and their registers.
//!
//! Hypothetical, after section 7 of "Exploiting Task-level Concurrency in a Programmable Network
//! Interface": docs/beyond.md. A further CPU is a CPU B without mailboxes, timer and semaphore; it
//! sees the engines' events like all CPUs, and has its own software bits. Its registers lie in the
//! part of the page that the chip leaves empty:
//!
//! ```text
//! 0x300  CPU C: event, state, program counter, -
//! 0x310  CPU D          0x320  CPU E          0x330  CPU F
//! 0x3FC  number of CPUs (0 on the chip itself, where nothing answers)
//! ```

use crate::{Cpu, Register};

/// First register of CPU C.
pub const FIRST: u32 = 0x300;
/// Distance from a CPU's registers to those of the next one.
const STRIDE: u32 = 0x10;
/// Number of CPUs.
pub const COUNT: u32 = 0x3FC;

/// A register of a further CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Further {
    /// As `R[60]` and `R[70]`.
    Event = 0x0,
    /// As `R[140]` and `R[240]`.
    State = 0x4,
    /// As `R[144]` and `R[244]`.
    Pc = 0x8,
}

impl Further {
    /// Its offset for a CPU after CPU B.
    #[inline]
    const fn of(self, cpu: Cpu) -> u32 {
        FIRST + (cpu as u32).wrapping_sub(Cpu::C as u32) * STRIDE + self as u32
    }

    /// The register at an offset and its CPU, if a board with `count` CPUs has one there.
    #[inline]
    pub const fn at(offset: u32, count: usize) -> Option<(Cpu, Further)> {
        let within = offset.wrapping_sub(FIRST);
        let index = (within / STRIDE) as usize + Cpu::C as usize;
        if index >= count || index >= Cpu::EVERY.len() {
            return None;
        }
        let register = match within % STRIDE {
            0x0 => Further::Event,
            0x4 => Further::State,
            0x8 => Further::Pc,
            _ => return None,
        };
        Some((Cpu::EVERY[index], register))
    }
}

/// Offset of the event register of any CPU.
#[inline]
pub const fn event(cpu: Cpu) -> u32 {
    match cpu {
        Cpu::A => Register::EventA.offset(),
        Cpu::B => Register::EventB.offset(),
        further => Further::Event.of(further),
    }
}

/// Offset of the state of any CPU.
#[inline]
pub const fn state(cpu: Cpu) -> u32 {
    match cpu {
        Cpu::A => Register::CpuAState.offset(),
        Cpu::B => Register::CpuBState.offset(),
        further => Further::State.of(further),
    }
}

/// Offset of the program counter of any CPU.
#[inline]
pub const fn pc(cpu: Cpu) -> u32 {
    match cpu {
        Cpu::A => Register::CpuAPc.offset(),
        Cpu::B => Register::CpuBPc.offset(),
        further => Further::Pc.of(further),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_cpus_have_places_that_the_chip_leaves_empty() {
        let mut seen = std::collections::BTreeSet::new();
        for cpu in Cpu::EVERY.into_iter().skip(2) {
            for (offset, register) in [
                (event(cpu), Further::Event),
                (state(cpu), Further::State),
                (pc(cpu), Further::Pc),
            ] {
                assert!(offset < crate::memory::REGISTERS_BYTES && seen.insert(offset));
                assert_eq!(Register::from_offset(offset), None);
                assert_eq!(Further::at(offset, 6), Some((cpu, register)));
                assert_eq!(Further::at(offset, cpu.index()), None);
            }
        }
        assert_eq!(Further::at(0x30C, 6), None);
        assert_eq!(Further::at(Register::CpuBState.offset(), 6), None);
        assert_eq!(Register::from_offset(COUNT), None);
    }
}
