//! Caches decoded instructions.
//!
//! The cache has an entry for each word of the scratch pad and, indexed by the lower address bits,
//! for SRAM. An entry is used only while the word in memory equals the word that it was decoded
//! from, so code changes (stores, DMA, the host) need no invalidation. The scratch pad changes
//! only through its own CPU, whose stores mark the entry, so these entries need no comparison.
//!
//! ```text
//!   program counter ──► word in memory ──┐
//!                  └──► cache[address] ──┴─ equal? ──► operation, fields
//!                                            else decode, keep
//! ```

use tigon2_chip::instruction::{
    FUNCTION_JOFF, FUNCTION_PRI, function, has_delay_slot, immediate, opcode, rd, rs, rt, shift,
    sources,
};
use tigon2_chip::memory::SCRATCH_BASE;

/// Words of SRAM for which a decoded instruction is kept.
const SRAM_ENTRIES: usize = 1 << 13;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `rd = rt << amount`, and similar instructions.
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    ShiftLeftBy,
    ShiftRightBy,
    ShiftRightSignedBy,
    Add,
    Subtract,
    And,
    Or,
    Xor,
    Nor,
    Less,
    LessUnsigned,
    Priority,
    /// `rt = rs + immediate`, and similar instructions.
    AddImmediate,
    LessImmediate,
    LessImmediateUnsigned,
    AndImmediate,
    OrImmediate,
    XorImmediate,
    Upper,
    Jump,
    JumpAndLink,
    JumpRegister,
    JumpAndLinkRegister,
    JumpOffset,
    Equal,
    NotEqual,
    NotPositive,
    Positive,
    EqualLikely,
    NotEqualLikely,
    NotPositiveLikely,
    PositiveLikely,
    /// A branch on the sign of `rs`; its kind is in the field of `rt`.
    Sign,
    LoadByte,
    LoadHalf,
    LoadWord,
    LoadByteUnsigned,
    LoadHalfUnsigned,
    StoreByte,
    StoreHalf,
    StoreWord,
    Break,
    Reserved,
}

impl Operation {
    /// Whether it loads from memory.
    #[inline]
    pub(crate) fn loads(self) -> bool {
        (Operation::LoadByte as u8..=Operation::LoadHalfUnsigned as u8).contains(&(self as u8))
    }

    /// Whether it stores to memory.
    #[inline]
    pub(crate) fn stores(self) -> bool {
        (Operation::StoreByte as u8..=Operation::StoreWord as u8).contains(&(self as u8))
    }

    /// Bytes of its access to memory, if it has one.
    #[inline]
    pub(crate) fn width(self) -> Option<u8> {
        use Operation::*;
        match self {
            LoadByte | LoadByteUnsigned | StoreByte => Some(1),
            LoadHalf | LoadHalfUnsigned | StoreHalf => Some(2),
            LoadWord | StoreWord => Some(4),
            _ => None,
        }
    }

    /// Whether it halts the CPU.
    #[inline]
    pub(crate) fn halts(self) -> bool {
        self as u8 >= Operation::Break as u8
    }
}

/// How far what an instruction does may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Registers and program counter.
    Core,
    /// Memory, to load from it.
    Load,
    /// Memory, to store to it.
    Store,
    /// It halts the CPU or dispatches an event.
    Machine,
    /// The word was stored over since it was taken apart.
    Unknown,
}

impl Scope {
    fn of(operation: Operation) -> Scope {
        if operation.loads() {
            Scope::Load
        } else if operation.stores() {
            Scope::Store
        } else if operation.halts() || operation == Operation::JumpOffset {
            Scope::Machine
        } else {
            Scope::Core
        }
    }
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// What it was made of.
    pub(crate) word: u32,
    /// The immediate with its sign, the amount of a shift, the distance of a branch in
    /// bytes, or the target of a jump within 256 MB.
    pub(crate) value: u32,
    /// The general registers that it reads, as a mask without register 0.
    pub(crate) sources: u32,
    pub(crate) operation: Operation,
    pub(crate) scope: Scope,
    /// Bytes of its access to memory; 0: it has none.
    pub(crate) bytes: u8,
    /// Whether the instruction behind it is in its delay slot.
    pub(crate) jumps: bool,
    pub(crate) s: u8,
    pub(crate) t: u8,
    pub(crate) d: u8,
}

impl Decoded {
    /// Takes a word apart.
    #[cold]
    pub(crate) fn new(word: u32) -> Decoded {
        let operation = operation(word);
        let value = match operation {
            Operation::ShiftLeft | Operation::ShiftRight | Operation::ShiftRightSigned => {
                shift(word)
            }
            Operation::Jump | Operation::JumpAndLink => (word & 0x03FF_FFFF) << 2,
            _ if has_delay_slot(word) => (immediate(word) << 2) as u32,
            _ => immediate(word) as u32,
        };
        Decoded {
            word,
            value,
            sources: sources(word),
            operation,
            scope: Scope::of(operation),
            bytes: operation.width().unwrap_or(0),
            jumps: has_delay_slot(word),
            s: rs(word) as u8,
            t: rt(word) as u8,
            d: rd(word) as u8,
        }
    }
}

/// What a word does; reserved is whatever the image check forbids, too.
fn operation(word: u32) -> Operation {
    use Operation::*;
    match opcode(word) {
        0x00 => special(word),
        0x01 if rt(word) & !0x13 == 0 => Sign,
        0x02 => Jump,
        0x03 => JumpAndLink,
        0x04 => Equal,
        0x05 => NotEqual,
        0x06 if rt(word) == 0 => NotPositive,
        0x07 if rt(word) == 0 => Positive,
        0x09 => AddImmediate,
        0x0A => LessImmediate,
        0x0B => LessImmediateUnsigned,
        0x0C => AndImmediate,
        0x0D => OrImmediate,
        0x0E => XorImmediate,
        0x0F if rs(word) == 0 => Upper,
        0x14 => EqualLikely,
        0x15 => NotEqualLikely,
        0x16 if rt(word) == 0 => NotPositiveLikely,
        0x17 if rt(word) == 0 => PositiveLikely,
        0x20 => LoadByte,
        0x21 => LoadHalf,
        0x23 => LoadWord,
        0x24 => LoadByteUnsigned,
        0x25 => LoadHalfUnsigned,
        0x28 => StoreByte,
        0x29 => StoreHalf,
        0x2B => StoreWord,
        _ => Reserved,
    }
}

/// Opcode 0; a register in a field that must be 0 makes it reserved.
fn special(word: u32) -> Operation {
    use Operation::*;
    let (operation, blank) = match function(word) {
        0x00 => (ShiftLeft, 0x03E0_0000),
        0x02 => (ShiftRight, 0x03E0_0000),
        0x03 => (ShiftRightSigned, 0x03E0_0000),
        0x04 => (ShiftLeftBy, 0x07C0),
        0x06 => (ShiftRightBy, 0x07C0),
        0x07 => (ShiftRightSignedBy, 0x07C0),
        0x08 => (JumpRegister, 0x001F_FFC0),
        0x09 => (JumpAndLinkRegister, 0x001F_07C0),
        FUNCTION_JOFF => (JumpOffset, 0xFFC0),
        FUNCTION_PRI => (Priority, 0x07C0),
        0x0D => (Break, 0),
        0x21 => (Add, 0x07C0),
        0x23 => (Subtract, 0x07C0),
        0x24 => (And, 0x07C0),
        0x25 => (Or, 0x07C0),
        0x26 => (Xor, 0x07C0),
        0x27 => (Nor, 0x07C0),
        0x2A => (Less, 0x07C0),
        0x2B => (LessUnsigned, 0x07C0),
        _ => (Reserved, 0),
    };
    if word & blank == 0 {
        operation
    } else {
        Reserved
    }
}

/// The decoded instructions of a CPU.
#[derive(Debug)]
pub(super) struct Cache {
    scratch: Vec<Decoded>,
    sram: Vec<Decoded>,
}

impl Cache {
    /// Of a CPU with so many bytes of scratch pad.
    pub(super) fn new(scratch_bytes: u32) -> Cache {
        let nothing = Decoded::new(0);
        Cache {
            scratch: vec![nothing; scratch_bytes as usize / 4],
            sram: vec![nothing; SRAM_ENTRIES],
        }
    }

    /// The instruction of a word at an offset of the scratch pad.
    #[inline]
    pub(super) fn scratch(&mut self, at: usize, word: u32) -> Decoded {
        kept(&mut self.scratch[at / 4], word)
    }

    /// The instruction at an address of the scratch pad, if it is known; `None` for any
    /// other address and for one that is not aligned.
    #[inline(always)]
    pub(super) fn known(&self, address: u32) -> Option<&Decoded> {
        // What is not aligned is far beyond the pad.
        let place = address.wrapping_sub(SCRATCH_BASE).rotate_right(2) as usize;
        let instruction = self.scratch.get(place)?;
        (instruction.scope != Scope::Unknown).then_some(instruction)
    }

    /// The word at an offset of the scratch pad was stored over.
    #[inline]
    pub(super) fn forget(&mut self, at: usize) {
        self.scratch[at / 4].scope = Scope::Unknown;
    }

    /// The instruction of a word at an address of SRAM.
    #[inline]
    pub(super) fn sram(&mut self, address: u32, word: u32) -> Decoded {
        let at = address as usize / 4 % SRAM_ENTRIES;
        kept(&mut self.sram[at], word)
    }
}

#[inline]
fn kept(entry: &mut Decoded, word: u32) -> Decoded {
    if entry.word != word || entry.scope == Scope::Unknown {
        *entry = Decoded::new(word);
    }
    *entry
}
