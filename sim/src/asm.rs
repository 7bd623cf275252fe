//! Instruction words for small programs, in the notation of an assembler.

pub use tigon2_chip::instruction::{encode_joff as joff, encode_pri as pri};

/// Always 0.
pub const ZERO: u32 = 0;
/// First result.
pub const V0: u32 = 2;
/// Second result.
pub const V1: u32 = 3;
/// First argument.
pub const A0: u32 = 4;
/// Second argument.
pub const A1: u32 = 5;
/// Scratch.
pub const T0: u32 = 8;
/// Scratch.
pub const T1: u32 = 9;
/// Return address.
pub const RA: u32 = 31;

/// No operation.
pub const NOP: u32 = 0;
/// Halts with a fault.
pub const BREAK: u32 = 0x0D;

/// An instruction with opcode, two registers and an immediate.
pub fn immediate(opcode: u32, rt: u32, rs: u32, value: i32) -> u32 {
    opcode << 26 | rs << 21 | rt << 16 | value as u32 & 0xFFFF
}

/// An instruction of SPECIAL.
pub fn special(function: u32, rd: u32, rs: u32, rt: u32, shift: u32) -> u32 {
    rs << 21 | rt << 16 | rd << 11 | shift << 6 | function
}

/// `lui rt, value`
pub fn lui(rt: u32, value: u32) -> u32 {
    immediate(0x0F, rt, ZERO, value as i32)
}

/// `ori rt, rs, value`
pub fn ori(rt: u32, rs: u32, value: u32) -> u32 {
    immediate(0x0D, rt, rs, value as i32)
}

/// `addiu rt, rs, value`
pub fn addiu(rt: u32, rs: u32, value: i32) -> u32 {
    immediate(0x09, rt, rs, value)
}

/// `addu rd, rs, rt`
pub fn addu(rd: u32, rs: u32, rt: u32) -> u32 {
    special(0x21, rd, rs, rt, 0)
}

/// `lw rt, offset(rs)`
pub fn lw(rt: u32, offset: i32, rs: u32) -> u32 {
    immediate(0x23, rt, rs, offset)
}

/// `sw rt, offset(rs)`
pub fn sw(rt: u32, offset: i32, rs: u32) -> u32 {
    immediate(0x2B, rt, rs, offset)
}

/// `beq rs, rt` over `words` instructions from the delay slot on
pub fn beq(rs: u32, rt: u32, words: i32) -> u32 {
    immediate(0x04, rt, rs, words)
}

/// `bne rs, rt` over `words` instructions from the delay slot on
pub fn bne(rs: u32, rt: u32, words: i32) -> u32 {
    immediate(0x05, rt, rs, words)
}

/// `j target`
pub fn j(target: u32) -> u32 {
    0x02 << 26 | target >> 2 & 0x03FF_FFFF
}

/// `jr rs`
pub fn jr(rs: u32) -> u32 {
    special(0x08, 0, rs, 0, 0)
}

/// The bytes of a program as they stand in NIC memory.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
