//! A minimal assembler for programs of about twenty instructions.

use tigon2_chip::instruction::{encode_joff, encode_pri};
use tigon2_chip::memory::{FIRMWARE_BASE, REGISTERS_BASE};
use tigon2_chip::registers::Register;

/// Always zero.
pub const ZERO: u32 = 0;
/// Registers without a meaning to hardware.
pub const T0: u32 = 8;
/// See [`T0`].
pub const T1: u32 = 9;
/// See [`T0`].
pub const T2: u32 = 10;
/// See [`T0`].
pub const T3: u32 = 11;
/// See [`T0`].
pub const T4: u32 = 12;
/// See [`T0`].
pub const T5: u32 = 13;
/// Base of the chip's registers, as the vendor's firmware has it in r28.
pub const GP: u32 = 28;

/// A program, started at its first instruction.
pub struct Program {
    /// Address of the first instruction.
    pub base: u32,
    /// The instructions.
    pub words: Vec<u32>,
}

impl Program {
    /// A program where firmware lies.
    pub fn new() -> Self {
        Self::at(FIRMWARE_BASE)
    }

    /// A program at `base` that starts with the base of the registers in [`GP`].
    pub fn at(base: u32) -> Self {
        let words = Vec::new();
        let mut program = Program { base, words };
        program.li(GP, REGISTERS_BASE);
        program
    }

    /// Address of the next instruction.
    pub fn here(&self) -> u32 {
        self.base + 4 * self.words.len() as u32
    }

    fn push(&mut self, word: u32) -> &mut Self {
        self.words.push(word);
        self
    }

    fn immediate(&mut self, opcode: u32, rs: u32, rt: u32, value: u32) -> &mut Self {
        self.push(opcode << 26 | rs << 21 | rt << 16 | value & 0xFFFF)
    }

    /// Any instruction.
    pub fn word(&mut self, word: u32) -> &mut Self {
        self.push(word)
    }

    /// `nop`
    pub fn nop(&mut self) -> &mut Self {
        self.push(0)
    }

    /// `lui` and `ori`
    pub fn li(&mut self, rt: u32, value: u32) -> &mut Self {
        self.immediate(0x0F, 0, rt, value >> 16)
            .immediate(0x0D, rt, rt, value)
    }

    /// `addiu rt, rs, value`
    pub fn addiu(&mut self, rt: u32, rs: u32, value: u32) -> &mut Self {
        self.immediate(0x09, rs, rt, value)
    }

    /// `lw rt, offset(base)`
    pub fn lw(&mut self, rt: u32, offset: u32, base: u32) -> &mut Self {
        self.immediate(0x23, base, rt, offset)
    }

    /// `sw rt, offset(base)`
    pub fn sw(&mut self, rt: u32, offset: u32, base: u32) -> &mut Self {
        self.immediate(0x2B, base, rt, offset)
    }

    /// Reads a register of the chip.
    pub fn read(&mut self, rt: u32, register: Register) -> &mut Self {
        self.lw(rt, register.offset(), GP)
    }

    /// Writes a register of the chip.
    pub fn write(&mut self, rt: u32, register: Register) -> &mut Self {
        self.sw(rt, register.offset(), GP)
    }

    /// Stores a constant at an address, changing [`T0`] and [`T1`].
    pub fn store(&mut self, value: u32, address: u32) -> &mut Self {
        self.li(T0, value).li(T1, address).sw(T0, 0, T1)
    }

    /// Copies a word, changing [`T0`] and [`T1`].
    pub fn copy(&mut self, from: u32, to: u32) -> &mut Self {
        self.li(T1, from).lw(T0, 0, T1).li(T1, to).sw(T0, 0, T1)
    }

    fn branch(&mut self, opcode: u32, rs: u32, rt: u32, target: u32) -> &mut Self {
        let distance = target.wrapping_sub(self.here() + 4) >> 2;
        self.immediate(opcode, rs, rt, distance).nop()
    }

    /// `beq rs, rt, target` with an empty delay slot
    pub fn beq(&mut self, rs: u32, rt: u32, target: u32) -> &mut Self {
        self.branch(0x04, rs, rt, target)
    }

    /// `bne rs, rt, target` with an empty delay slot
    pub fn bne(&mut self, rs: u32, rt: u32, target: u32) -> &mut Self {
        self.branch(0x05, rs, rt, target)
    }

    /// `pri rd, rs, rt`
    pub fn pri(&mut self, rd: u32, rs: u32, rt: u32) -> &mut Self {
        self.push(encode_pri(rd, rs, rt))
    }

    /// `joff rs, rt`, the delay slot follows
    pub fn joff(&mut self, rs: u32, rt: u32) -> &mut Self {
        self.push(encode_joff(rs, rt))
    }

    /// `break`
    pub fn stop(&mut self) -> &mut Self {
        self.push(0x0D)
    }

    /// An endless loop.
    pub fn spin(&mut self) -> &mut Self {
        let here = self.here();
        self.beq(ZERO, ZERO, here)
    }
}
