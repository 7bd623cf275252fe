//! What each instruction does.
//!
//! Hardware reference, sections 3.1 to 3.3: the integer subset of MIPS I/II, one branch
//! delay slot, likely branches that annul it, and the chip's own PRI and JOFF. Exactly
//! what [`tigon2_chip::instruction::classify`] does not forbid is executed; all else, and
//! a jump in the delay slot of another, is [`CpuFault::ReservedInstruction`].

use super::core::{Access, Core, Place};
use super::decode::{Decoded, Operation};
use crate::memory::{SramBytes, load, store};
use tigon2_chip::instruction::{joff_target, pri};
use tigon2_model::CpuFault;

/// The return address register.
const RA: u8 = 31;

impl Core {
    /// Executes an instruction that stands at `pc`. `self.pc` is already the next one (the
    /// delay slot of a branch) and `self.next` the one after it.
    #[inline(always)]
    pub(super) fn execute(
        &mut self,
        sram: &mut SramBytes,
        pc: u32,
        instruction: Decoded,
    ) -> Result<Access, CpuFault> {
        match instruction.operation {
            Operation::Break => Err(CpuFault::Break),
            Operation::Reserved => Err(CpuFault::ReservedInstruction),
            _ if instruction.bytes != 0 => self.access(sram, instruction),
            _ => {
                self.compute(pc, instruction);
                Ok(Access::None)
            }
        }
    }

    /// Executes one that touches no memory, likewise.
    #[inline(always)]
    pub(super) fn compute(&mut self, pc: u32, instruction: Decoded) {
        use Operation::*;
        let Decoded { s, t, d, value, .. } = instruction;
        let (a, b) = (self.gpr[usize::from(s & 31)], self.gpr[usize::from(t & 31)]);
        match instruction.operation {
            ShiftLeft => self.set(d, b << (value & 31)),
            ShiftRight => self.set(d, b >> (value & 31)),
            ShiftRightSigned => self.set(d, (b as i32 >> (value & 31)) as u32),
            ShiftLeftBy => self.set(d, b << (a & 31)),
            ShiftRightBy => self.set(d, b >> (a & 31)),
            ShiftRightSignedBy => self.set(d, (b as i32 >> (a & 31)) as u32),
            Add => self.set(d, a.wrapping_add(b)),
            Subtract => self.set(d, a.wrapping_sub(b)),
            And => self.set(d, a & b),
            Or => self.set(d, a | b),
            Xor => self.set(d, a ^ b),
            Nor => self.set(d, !(a | b)),
            Less => self.set(d, ((a as i32) < b as i32).into()),
            LessUnsigned => self.set(d, (a < b).into()),
            Priority => self.set(d, pri(a, b)),
            AddImmediate => self.set(t, a.wrapping_add(value)),
            LessImmediate => self.set(t, ((a as i32) < value as i32).into()),
            LessImmediateUnsigned => self.set(t, (a < value).into()),
            AndImmediate => self.set(t, a & (value & 0xFFFF)),
            OrImmediate => self.set(t, a | (value & 0xFFFF)),
            XorImmediate => self.set(t, a ^ (value & 0xFFFF)),
            Upper => self.set(t, value << 16),
            Jump => self.next = pc.wrapping_add(4) & 0xF000_0000 | value,
            JumpAndLink => {
                self.next = pc.wrapping_add(4) & 0xF000_0000 | value;
                self.set(RA, pc.wrapping_add(8));
            }
            JumpRegister => self.next = a,
            JumpAndLinkRegister => {
                self.next = a;
                self.set(d, pc.wrapping_add(8));
            }
            JumpOffset => self.next = joff_target(a, b),
            Equal => self.branch(pc, value, a == b),
            NotEqual => self.branch(pc, value, a != b),
            NotPositive => self.branch(pc, value, a as i32 <= 0),
            Positive => self.branch(pc, value, a as i32 > 0),
            EqualLikely => self.branch_likely(pc, value, a == b),
            NotEqualLikely => self.branch_likely(pc, value, a != b),
            NotPositiveLikely => self.branch_likely(pc, value, a as i32 <= 0),
            PositiveLikely => self.branch_likely(pc, value, a as i32 > 0),
            Sign => self.branch_on_sign(pc, value, a, t),
            LoadByte | LoadHalf | LoadWord | LoadByteUnsigned | LoadHalfUnsigned | StoreByte
            | StoreHalf | StoreWord | Break | Reserved => {}
        }
    }

    /// Executes a load or a store.
    #[inline(always)]
    pub(super) fn access(
        &mut self,
        sram: &mut SramBytes,
        instruction: Decoded,
    ) -> Result<Access, CpuFault> {
        use Operation::*;
        let Decoded { s, t, value, .. } = instruction;
        let (a, b) = (self.gpr[usize::from(s & 31)], self.gpr[usize::from(t & 31)]);
        match instruction.operation {
            LoadByte => self.load(sram, t, a, value, |[byte]: [u8; 1]| byte as i8 as u32),
            LoadHalf => self.load(sram, t, a, value, |half| i16::from_be_bytes(half) as u32),
            LoadWord => self.load(sram, t, a, value, u32::from_be_bytes),
            LoadByteUnsigned => self.load(sram, t, a, value, |[byte]: [u8; 1]| byte.into()),
            LoadHalfUnsigned => {
                self.load(sram, t, a, value, |half| u16::from_be_bytes(half).into())
            }
            StoreByte => self.store(sram, a, value, [b as u8]),
            StoreHalf => self.store(sram, a, value, (b as u16).to_be_bytes()),
            StoreWord => self.store(sram, a, value, b.to_be_bytes()),
            _ => Ok(Access::None),
        }
    }

    /// Sets a general register; register 0 stays 0.
    #[inline(always)]
    fn set(&mut self, register: u8, value: u32) {
        self.gpr[usize::from(register & 31)] = value;
        self.gpr[0] = 0;
    }

    /// A branch on the sign of a register, of a kind: bit 0 not negative, bit 1 likely,
    /// bit 4 with link.
    #[inline]
    fn branch_on_sign(&mut self, pc: u32, distance: u32, value: u32, kind: u8) {
        if kind & 0x10 != 0 {
            self.set(RA, pc.wrapping_add(8));
        }
        let taken = ((value as i32) < 0) ^ (kind & 1 != 0);
        if kind & 2 != 0 {
            self.branch_likely(pc, distance, taken);
        } else {
            self.branch(pc, distance, taken);
        }
    }

    #[inline(always)]
    fn branch(&mut self, pc: u32, distance: u32, taken: bool) {
        if taken {
            self.next = pc.wrapping_add(4).wrapping_add(distance);
        }
    }

    /// A likely branch that is not taken annuls its delay slot (3.1, C).
    #[inline(always)]
    fn branch_likely(&mut self, pc: u32, distance: u32, taken: bool) {
        self.branch(pc, distance, taken);
        if !taken {
            self.pc = self.next;
            self.next = self.pc.wrapping_add(4);
            self.slot = false;
        }
    }

    #[inline(always)]
    fn load<const N: usize>(
        &mut self,
        sram: &SramBytes,
        target: u8,
        base: u32,
        offset: u32,
        value: impl Fn([u8; N]) -> u32,
    ) -> Result<Access, CpuFault> {
        let address = base.wrapping_add(offset);
        let Some(place) = self.data::<N>(address)? else {
            self.set(target, 0);
            return Ok(Access::LoadNothing { address });
        };
        match place {
            Place::Sram(address) => {
                self.set(target, value(sram.load(address)));
                Ok(Access::LoadSram)
            }
            Place::Scratch(at) => {
                self.set(target, value(load(self.scratch(), at)));
                Ok(Access::LoadScratch)
            }
            Place::Register(offset) => {
                let target = usize::from(target);
                Ok(Access::ReadRegister { offset, target })
            }
        }
    }

    #[inline(always)]
    fn store<const N: usize>(
        &mut self,
        sram: &mut SramBytes,
        base: u32,
        offset: u32,
        bytes: [u8; N],
    ) -> Result<Access, CpuFault> {
        let address = base.wrapping_add(offset);
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
