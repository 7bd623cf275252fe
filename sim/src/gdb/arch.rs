//! The CPUs as gdb sees them: big-endian MIPS II without floating point.
//!
//! The layout is gdb's for MIPS: 32 general registers, status, lo, hi, bad address, cause, program
//! counter. The chip has none of the five between the first and the last (hardware reference,
//! 3.1): they read 0 and ignore writes.

use gdbstub::arch::{Arch, Registers};

/// Bytes of a register.
const REGISTER: usize = 4;
/// The program counter's number.
const PC: usize = 37;

/// The architecture.
#[derive(Debug)]
pub enum Mips {}

impl Arch for Mips {
    type Usize = u32;
    type Registers = MipsRegisters;
    type BreakpointKind = usize;
    type RegId = ();

    fn target_description_xml() -> Option<&'static str> {
        // BFD's name of MIPS II. The registers are those that gdb expects by itself.
        Some(r#"<target version="1.0"><architecture>mips:6000</architecture></target>"#)
    }
}

/// The registers of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MipsRegisters {
    /// The general registers.
    pub general: [u32; 32],
    /// The instruction to execute next.
    pub pc: u32,
}

impl Registers for MipsRegisters {
    type ProgramCounter = u32;

    fn pc(&self) -> u32 {
        self.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let absent = [0; PC - 32];
        let all = self.general.iter().chain(&absent).chain([&self.pc]);
        for byte in all.flat_map(|value| value.to_be_bytes()) {
            write_byte(Some(byte));
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let mut words = bytes.chunks_exact(REGISTER).map(|word| {
            let word: [u8; REGISTER] = word.try_into().unwrap_or_default();
            u32::from_be_bytes(word)
        });
        for register in &mut self.general {
            *register = words.next().ok_or(())?;
        }
        self.pc = words.nth(PC - 32).ok_or(())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_go_out_and_come_back_as_big_endian_words() {
        let mut registers = MipsRegisters::default();
        registers.general[29] = 0x00C0_02C0;
        registers.pc = 0x4000;
        let mut bytes = Vec::new();
        registers.gdb_serialize(|byte| bytes.push(byte.expect("all are known")));
        assert_eq!(bytes.len(), 4 * (PC + 1));
        assert_eq!(bytes[4 * 29..4 * 30], [0x00, 0xC0, 0x02, 0xC0]);
        assert_eq!(bytes[4 * PC..], [0, 0, 0x40, 0]);
        let mut back = MipsRegisters::default();
        assert_eq!(back.gdb_deserialize(&bytes), Ok(()));
        assert_eq!(back, registers);
        assert_eq!(back.gdb_deserialize(&bytes[..4 * PC]), Err(()));
    }
}
