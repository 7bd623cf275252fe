//! What each instruction does.
//!
//! Hardware reference, sections 3.1 to 3.3: the integer subset of MIPS I/II, one branch
//! delay slot, likely branches that annul it, and the chip's own PRI and JOFF. Exactly
//! what [`tigon2_chip::instruction::classify`] does not forbid is executed; all else, and
//! a jump in the delay slot of another, is [`CpuFault::ReservedInstruction`].

use super::core::{Access, Core, Place};
use crate::memory::{SramBytes, load, store};
use tigon2_chip::instruction::{
    FUNCTION_JOFF, FUNCTION_PRI, branch_target, function, immediate, joff_target, jump_target,
    opcode, pri, rd, rs, rt, shift,
};
use tigon2_model::CpuFault;

/// What an instruction with a register operand in a field that must be 0 is.
const RESERVED: CpuFault = CpuFault::ReservedInstruction;

/// The return address register.
const RA: usize = 31;

impl Core {
    /// Executes `word`, which stands at `pc`. `self.pc` is already the next instruction
    /// (the delay slot of a branch) and `self.next` the one after it.
    #[inline]
    pub(super) fn execute(
        &mut self,
        sram: &mut SramBytes,
        pc: u32,
        word: u32,
    ) -> Result<Access, CpuFault> {
        let s = self.gpr[rs(word)];
        let t = self.gpr[rt(word)];
        match opcode(word) {
            0x00 => self.special(pc, word, s, t)?,
            0x01 => self.register_immediate(pc, word, s)?,
            0x02 => self.next = jump_target(pc, word),
            0x03 => {
                self.next = jump_target(pc, word);
                self.set_gpr(RA, pc.wrapping_add(8));
            }
            0x04 => self.branch(pc, word, s == t),
            0x05 => self.branch(pc, word, s != t),
            0x06 => self.branch_on_one(pc, word, s as i32 <= 0)?,
            0x07 => self.branch_on_one(pc, word, s as i32 > 0)?,
            0x09 => self.set_gpr(rt(word), s.wrapping_add_signed(immediate(word))),
            0x0A => self.set_gpr(rt(word), ((s as i32) < immediate(word)).into()),
            0x0B => self.set_gpr(rt(word), (s < immediate(word) as u32).into()),
            0x0C => self.set_gpr(rt(word), s & u32::from(word as u16)),
            0x0D => self.set_gpr(rt(word), s | u32::from(word as u16)),
            0x0E => self.set_gpr(rt(word), s ^ u32::from(word as u16)),
            0x0F if rs(word) == 0 => self.set_gpr(rt(word), word << 16),
            0x14 => self.branch_likely(pc, word, s == t),
            0x15 => self.branch_likely(pc, word, s != t),
            0x16 => self.branch_on_one_likely(pc, word, s as i32 <= 0)?,
            0x17 => self.branch_on_one_likely(pc, word, s as i32 > 0)?,
            0x20 => return self.load(sram, word, s, |[byte]: [u8; 1]| byte as i8 as u32),
            0x21 => return self.load(sram, word, s, |half| i16::from_be_bytes(half) as u32),
            0x23 => return self.load(sram, word, s, u32::from_be_bytes),
            0x24 => return self.load(sram, word, s, |[byte]: [u8; 1]| byte.into()),
            0x25 => return self.load(sram, word, s, |half| u16::from_be_bytes(half).into()),
            0x28 => return self.store(sram, word, s, [t as u8]),
            0x29 => return self.store(sram, word, s, (t as u16).to_be_bytes()),
            0x2B => return self.store(sram, word, s, t.to_be_bytes()),
            _ => return Err(RESERVED),
        }
        Ok(Access::None)
    }

    /// Opcode 0.
    #[inline]
    fn special(&mut self, pc: u32, word: u32, s: u32, t: u32) -> Result<(), CpuFault> {
        let unused = match function(word) {
            0x00 | 0x02 | 0x03 => 0x03E0_0000,
            0x08 => 0x001F_FFC0,
            0x09 => 0x001F_07C0,
            FUNCTION_JOFF => 0x0000_FFC0,
            0x0D => 0,
            _ => 0x0000_07C0,
        };
        if word & unused != 0 {
            return Err(RESERVED);
        }
        let value = match function(word) {
            0x00 => t << shift(word),
            0x02 => t >> shift(word),
            0x03 => (t as i32 >> shift(word)) as u32,
            0x04 => t << (s & 31),
            0x06 => t >> (s & 31),
            0x07 => (t as i32 >> (s & 31)) as u32,
            0x08 => {
                self.next = s;
                return Ok(());
            }
            0x09 => {
                self.next = s;
                pc.wrapping_add(8)
            }
            FUNCTION_JOFF => {
                self.next = joff_target(s, t);
                return Ok(());
            }
            FUNCTION_PRI => pri(s, t),
            0x0D => return Err(CpuFault::Break),
            0x21 => s.wrapping_add(t),
            0x23 => s.wrapping_sub(t),
            0x24 => s & t,
            0x25 => s | t,
            0x26 => s ^ t,
            0x27 => !(s | t),
            0x2A => ((s as i32) < t as i32).into(),
            0x2B => (s < t).into(),
            _ => return Err(RESERVED),
        };
        self.set_gpr(rd(word), value);
        Ok(())
    }

    /// Opcode 1: branches on the sign of a register.
    #[inline]
    fn register_immediate(&mut self, pc: u32, word: u32, s: u32) -> Result<(), CpuFault> {
        let negative = (s as i32) < 0;
        let kind = rt(word);
        if kind & !0x13 != 0 {
            return Err(RESERVED);
        }
        if kind & 0x10 != 0 {
            self.set_gpr(RA, pc.wrapping_add(8));
        }
        let taken = negative ^ (kind & 1 != 0);
        if kind & 2 != 0 {
            self.branch_likely(pc, word, taken);
        } else {
            self.branch(pc, word, taken);
        }
        Ok(())
    }

    #[inline]
    fn branch(&mut self, pc: u32, word: u32, taken: bool) {
        if taken {
            self.next = branch_target(pc, word);
        }
    }

    /// A likely branch that is not taken annuls its delay slot (3.1, C).
    #[inline]
    fn branch_likely(&mut self, pc: u32, word: u32, taken: bool) {
        if taken {
            self.next = branch_target(pc, word);
        } else {
            self.pc = self.next;
            self.next = self.pc.wrapping_add(4);
            self.slot = false;
        }
    }

    #[inline]
    fn branch_on_one(&mut self, pc: u32, word: u32, taken: bool) -> Result<(), CpuFault> {
        if rt(word) != 0 {
            return Err(RESERVED);
        }
        self.branch(pc, word, taken);
        Ok(())
    }

    #[inline]
    fn branch_on_one_likely(&mut self, pc: u32, word: u32, taken: bool) -> Result<(), CpuFault> {
        if rt(word) != 0 {
            return Err(RESERVED);
        }
        self.branch_likely(pc, word, taken);
        Ok(())
    }

    #[inline]
    fn load<const N: usize>(
        &mut self,
        sram: &SramBytes,
        word: u32,
        base: u32,
        value: impl Fn([u8; N]) -> u32,
    ) -> Result<Access, CpuFault> {
        let target = rt(word);
        let address = base.wrapping_add_signed(immediate(word));
        let Some(place) = self.data::<N>(address)? else {
            self.set_gpr(target, 0);
            return Ok(Access::LoadNothing { address });
        };
        match place {
            Place::Sram(address) => {
                self.set_gpr(target, value(sram.load(address)));
                Ok(Access::LoadSram)
            }
            Place::Scratch(at) => {
                self.set_gpr(target, value(load(self.scratch(), at)));
                Ok(Access::LoadScratch)
            }
            Place::Register(offset) => Ok(Access::ReadRegister { offset, target }),
        }
    }

    #[inline]
    fn store<const N: usize>(
        &mut self,
        sram: &mut SramBytes,
        word: u32,
        base: u32,
        bytes: [u8; N],
    ) -> Result<Access, CpuFault> {
        let address = base.wrapping_add_signed(immediate(word));
        let value = || {
            let bytes = bytes.iter();
            bytes.fold(0, |value, byte| value << 8 | u32::from(*byte))
        };
        let Some(place) = self.data::<N>(address)? else {
            let value = value();
            return Ok(Access::StoreNothing { address, value });
        };
        match place {
            Place::Sram(address) => {
                sram.store(address, bytes);
                Ok(Access::StoreSram)
            }
            Place::Scratch(at) => {
                store(self.scratch_mut(), at, bytes);
                Ok(Access::StoreScratch)
            }
            Place::Register(offset) => {
                let value = value();
                Ok(Access::WriteRegister { offset, value })
            }
        }
    }
}
