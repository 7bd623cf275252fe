//! The instruction set: fields, the two custom instructions, and proven instructions.
//!
//! Hardware reference, sections 3.1 to 3.3. It is a big-endian MIPS I/II integer subset in which
//! functions 0x0A and 0x0B of SPECIAL are the chip's own JOFF and PRI. [`classify`] says whether
//! vendor code proves an instruction, whether this project permits it, or why an image must not
//! contain it.

/// Bits 31:26.
#[inline]
pub const fn opcode(word: u32) -> u32 {
    word >> 26
}

/// Bits 25:21: a register number.
#[inline]
pub const fn rs(word: u32) -> usize {
    (word >> 21 & 31) as usize
}

/// Bits 20:16: a register number.
#[inline]
pub const fn rt(word: u32) -> usize {
    (word >> 16 & 31) as usize
}

/// Bits 15:11: a register number.
#[inline]
pub const fn rd(word: u32) -> usize {
    (word >> 11 & 31) as usize
}

/// Bits 10:6: a shift amount.
#[inline]
pub const fn shift(word: u32) -> u32 {
    word >> 6 & 31
}

/// Bits 5:0: the function of SPECIAL.
#[inline]
pub const fn function(word: u32) -> u32 {
    word & 0x3F
}

/// Bits 15:0, sign-extended.
#[inline]
pub const fn immediate(word: u32) -> i32 {
    word as u16 as i16 as i32
}

/// Target of a branch at `pc`.
#[inline]
pub const fn branch_target(pc: u32, word: u32) -> u32 {
    pc.wrapping_add(4)
        .wrapping_add((immediate(word) << 2) as u32)
}

/// Target of a jump (`j`, `jal`) at `pc`.
#[inline]
pub const fn jump_target(pc: u32, word: u32) -> u32 {
    pc.wrapping_add(4) & 0xF000_0000 | (word & 0x03FF_FFFF) << 2
}

/// Function of SPECIAL of the chip's jump with scaled offset (3.3, C).
pub const FUNCTION_JOFF: u32 = 0x0A;
/// Function of SPECIAL of the chip's priority encoder (3.2, C!).
pub const FUNCTION_PRI: u32 = 0x0B;

/// The result of PRI: 0 if no bit is set in both operands, else the number of the most significant
/// such bit plus 1, so 0..=32 (3.2, C!).
#[inline]
pub const fn pri(rs: u32, rt: u32) -> u32 {
    u32::BITS - (rs & rt).leading_zeros()
}

/// The target of JOFF, after its delay slot: entries of a jump table are 8 bytes (3.3, C).
#[inline]
pub const fn joff_target(rs: u32, rt: u32) -> u32 {
    rs.wrapping_add(rt << 3)
}

/// The word of `pri rd, rs, rt`; register numbers below 32.
#[inline]
pub const fn encode_pri(rd: u32, rs: u32, rt: u32) -> u32 {
    (rs & 31) << 21 | (rt & 31) << 16 | (rd & 31) << 11 | FUNCTION_PRI
}

/// The word of `joff rs, rt`; register numbers below 32.
#[inline]
pub const fn encode_joff(rs: u32, rt: u32) -> u32 {
    (rs & 31) << 21 | (rt & 31) << 16 | FUNCTION_JOFF
}

/// Whether an instruction loads from memory into a general register.
#[inline]
pub const fn is_load(word: u32) -> bool {
    matches!(opcode(word), 0x20 | 0x21 | 0x23..=0x25)
}

/// Whether an instruction stores a general register to memory.
#[inline]
pub const fn is_store(word: u32) -> bool {
    matches!(opcode(word), 0x28 | 0x29 | 0x2B)
}

/// Whether an instruction is a jump or a branch, so that the next instruction is in its delay
/// slot.
#[inline]
pub const fn has_delay_slot(word: u32) -> bool {
    match opcode(word) {
        0x00 => matches!(function(word), 0x08 | 0x09 | FUNCTION_JOFF),
        0x01..=0x07 | 0x14..=0x17 => true,
        _ => false,
    }
}

/// The general registers that an instruction reads, as a mask; register 0 is left out.
/// Only meaningful for instructions that [`classify`] does not forbid.
#[inline]
pub const fn sources(word: u32) -> u32 {
    let (s, t) = (1 << rs(word), 1 << rt(word));
    let mask: u32 = match opcode(word) {
        0x00 => match function(word) {
            0x00 | 0x02 | 0x03 => t,
            0x08 | 0x09 => s,
            0x0D => 0,
            _ => s | t,
        },
        0x02 | 0x03 | 0x0F => 0,
        0x04 | 0x05 | 0x14 | 0x15 | 0x28 | 0x29 | 0x2B => s | t,
        _ => s,
    };
    mask & !1
}

/// The general register that an instruction writes, if any; register 0 is left out.
/// Only meaningful for instructions that [`classify`] does not forbid.
#[inline]
pub const fn destination(word: u32) -> Option<usize> {
    let register = match opcode(word) {
        0x00 => match function(word) {
            0x08 | 0x0D | FUNCTION_JOFF => 0,
            _ => rd(word),
        },
        0x01 if rt(word) & 0x10 != 0 => 31,
        0x03 => 31,
        0x09..=0x0F | 0x20 | 0x21 | 0x23..=0x25 => rt(word),
        _ => 0,
    };
    if register == 0 { None } else { Some(register) }
}

/// Why a firmware image must not contain an instruction (3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forbidden {
    /// Needs a multiplier, which vendor code suggests does not exist.
    Multiply,
    /// Needs a divider.
    Divide,
    /// Load-linked or store-conditional: the chip has only its semaphore.
    LoadLinked,
    /// Part of an unaligned access (`lwl`, `swr`, ...).
    Unaligned,
    /// Coprocessor, FPU or MMU.
    Coprocessor,
    /// Raises an exception, which the CPU model does not have (`syscall`, `teq`, `add`, ...).
    Trap,
    /// Barrier or cache maintenance, never seen in vendor code.
    Barrier,
    /// 64-bit operation.
    SixtyFourBit,
    /// An encoding without meaning in MIPS I/II.
    Reserved,
}

impl core::fmt::Display for Forbidden {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Forbidden::Multiply => "multiply",
            Forbidden::Divide => "divide",
            Forbidden::LoadLinked => "load-linked",
            Forbidden::Unaligned => "unaligned access",
            Forbidden::Coprocessor => "coprocessor",
            Forbidden::Trap => "trap",
            Forbidden::Barrier => "barrier",
            Forbidden::SixtyFourBit => "64-bit",
            Forbidden::Reserved => "reserved",
        })
    }
}

/// The class of an instruction; each variant carries the mnemonic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Vendor code uses it, so the chip has it (3.1, C).
    Proven(&'static str),
    /// MIPS I/II integer instruction that vendor code does not use but compilers emit.
    Allowed(&'static str),
    /// An image must not contain it.
    Forbidden(Forbidden, &'static str),
}

impl Class {
    /// The mnemonic.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Proven(name) | Class::Allowed(name) | Class::Forbidden(_, name) => name,
        }
    }
}

/// The class of the instruction in a word (3.1).
pub const fn classify(word: u32) -> Class {
    use Class::{Allowed, Forbidden as Bad, Proven};
    use Forbidden::{Barrier, Coprocessor, LoadLinked, Reserved, SixtyFourBit, Trap, Unaligned};
    match opcode(word) {
        0x00 => classify_special(word),
        0x01 => classify_register_immediate(word),
        0x02 => Proven("j"),
        0x03 => Proven("jal"),
        0x04 => Proven("beq"),
        0x05 => Proven("bne"),
        0x06 => blank_rt(word, Proven("blez")),
        0x07 => blank_rt(word, Allowed("bgtz")),
        0x08 => Bad(Trap, "addi"),
        0x09 => Proven("addiu"),
        0x0A => Proven("slti"),
        0x0B => Proven("sltiu"),
        0x0C => Proven("andi"),
        0x0D => Proven("ori"),
        0x0E => Proven("xori"),
        0x0F if rs(word) == 0 => Proven("lui"),
        0x10..=0x13 => Bad(Coprocessor, "cop"),
        0x14 => Proven("beql"),
        0x15 => Proven("bnel"),
        0x16 => blank_rt(word, Proven("blezl")),
        0x17 => blank_rt(word, Allowed("bgtzl")),
        0x18 | 0x19 => Bad(SixtyFourBit, "daddi"),
        0x1A | 0x1B => Bad(SixtyFourBit, "ldl"),
        0x20 => Allowed("lb"),
        0x21 => Allowed("lh"),
        0x22 => Bad(Unaligned, "lwl"),
        0x23 => Proven("lw"),
        0x24 => Proven("lbu"),
        0x25 => Proven("lhu"),
        0x26 => Bad(Unaligned, "lwr"),
        0x27 => Bad(SixtyFourBit, "lwu"),
        0x28 => Proven("sb"),
        0x29 => Proven("sh"),
        0x2A => Bad(Unaligned, "swl"),
        0x2B => Proven("sw"),
        0x2C | 0x2D => Bad(SixtyFourBit, "sdl"),
        0x2E => Bad(Unaligned, "swr"),
        0x2F => Bad(Barrier, "cache"),
        0x30 => Bad(LoadLinked, "ll"),
        0x31..=0x33 | 0x35..=0x36 => Bad(Coprocessor, "lwc"),
        0x34 => Bad(SixtyFourBit, "lld"),
        0x37 => Bad(SixtyFourBit, "ld"),
        0x38 => Bad(LoadLinked, "sc"),
        0x39..=0x3B | 0x3D..=0x3E => Bad(Coprocessor, "swc"),
        0x3C => Bad(SixtyFourBit, "scd"),
        0x3F => Bad(SixtyFourBit, "sd"),
        _ => Bad(Reserved, "reserved"),
    }
}

const fn classify_special(word: u32) -> Class {
    use Class::{Allowed, Forbidden as Bad, Proven};
    use Forbidden::{Barrier, Divide, Multiply, Reserved, SixtyFourBit, Trap};
    let class = match function(word) {
        0x00 => return blank(word, 0x03E0_0000, Proven("sll")),
        0x02 => return blank(word, 0x03E0_0000, Proven("srl")),
        0x03 => return blank(word, 0x03E0_0000, Proven("sra")),
        0x04 => Proven("sllv"),
        0x06 => Allowed("srlv"),
        0x07 => Proven("srav"),
        0x08 => return blank(word, 0x001F_FFC0, Proven("jr")),
        0x09 => return blank(word, 0x001F_07C0, Proven("jalr")),
        FUNCTION_JOFF => return blank(word, 0x0000_FFC0, Proven("joff")),
        FUNCTION_PRI => Proven("pri"),
        0x0C => return Bad(Trap, "syscall"),
        0x0D => return Proven("break"),
        0x0F => return Bad(Barrier, "sync"),
        0x10 => return Bad(Multiply, "mfhi"),
        0x11 => return Bad(Multiply, "mthi"),
        0x12 => return Bad(Multiply, "mflo"),
        0x13 => return Bad(Multiply, "mtlo"),
        0x18 => return Bad(Multiply, "mult"),
        0x19 => return Bad(Multiply, "multu"),
        0x1A => return Bad(Divide, "div"),
        0x1B => return Bad(Divide, "divu"),
        0x20 => Bad(Trap, "add"),
        0x21 => Proven("addu"),
        0x22 => Bad(Trap, "sub"),
        0x23 => Proven("subu"),
        0x24 => Proven("and"),
        0x25 => Proven("or"),
        0x26 => Proven("xor"),
        0x27 => Proven("nor"),
        0x2A => Proven("slt"),
        0x2B => Proven("sltu"),
        0x14 | 0x16 | 0x17 | 0x1C..=0x1F | 0x2C..=0x2F | 0x38..=0x3F => {
            return Bad(SixtyFourBit, "dop");
        }
        0x30..=0x34 | 0x36 => return Bad(Trap, "trap"),
        _ => return Bad(Reserved, "reserved"),
    };
    blank(word, 0x07C0, class)
}

const fn classify_register_immediate(word: u32) -> Class {
    use Class::{Allowed, Forbidden as Bad, Proven};
    match rt(word) {
        0x00 => Allowed("bltz"),
        0x01 => Proven("bgez"),
        0x02 => Proven("bltzl"),
        0x03 => Allowed("bgezl"),
        0x08..=0x0C | 0x0E => Bad(Forbidden::Trap, "trap"),
        0x10 => Allowed("bltzal"),
        0x11 => Allowed("bgezal"),
        0x12 => Allowed("bltzall"),
        0x13 => Allowed("bgezall"),
        _ => Bad(Forbidden::Reserved, "reserved"),
    }
}

/// `class` if the bits that the encoding leaves unused are 0.
const fn blank(word: u32, unused: u32, class: Class) -> Class {
    if word & unused == 0 {
        class
    } else {
        Class::Forbidden(Forbidden::Reserved, "reserved")
    }
}

const fn blank_rt(word: u32, class: Class) -> Class {
    blank(word, 0x001F_0000, class)
}

#[cfg(test)]
mod tests;
