//! Executes instructions.
//!
//! Hardware reference, sections 3.1 to 3.3: the integer subset of MIPS I/II, one branch delay
//! slot, likely branches that annul it, and the chip's own PRI and JOFF. The CPU executes exactly
//! the instructions that [`tigon2_chip::instruction::classify`] does not forbid; all others, and a
//! jump in the delay slot of another jump, raise [`CpuFault::ReservedInstruction`].

use super::core::{Access, Core, Place, Position};
use super::decode::{Decoded, Operation};
use crate::memory::{SramBytes, load, store};
use tigon2_chip::instruction::{joff_target, pri};
use tigon2_model::CpuFault;

/// The return address register.
const RA: u8 = 31;
/// A branch on the sign of a register that links.
const LINK: u8 = 0x10;

/// General registers, of which the first one is 0.
type Gprs = [u32; 32];

impl Core {
    /// Executes an instruction that stands at `pc`. The position is already that of the
    /// next one (the delay slot of a branch).
    #[inline(always)]
    pub(super) fn execute(
        &mut self,
        sram: &mut SramBytes,
        pc: u32,
        instruction: &Decoded,
    ) -> Result<Access, CpuFault> {
        match instruction.operation {
            Operation::Break => Err(CpuFault::Break),
            Operation::Reserved => Err(CpuFault::ReservedInstruction),
            _ if instruction.bytes != 0 => self.access(sram, instruction),
            _ => {
                compute(&mut self.gpr, &mut self.position, pc, instruction);
                Ok(Access::None)
            }
        }
    }

    /// Executes a load or a store.
    #[inline(always)]
    fn access(&mut self, sram: &mut SramBytes, instruction: &Decoded) -> Result<Access, CpuFault> {
        let Decoded {
            operation,
            bytes,
            t,
            ..
        } = *instruction;
        let address = self.address(instruction);
        let place = self.data(address, bytes)?;
        if operation.loads() {
            let (value, access) = match place {
                Some(Place::Sram(address)) => {
                    let at = sram.wrap(address) as usize;
                    (loaded(operation, sram.bytes(), at), Access::LoadSram)
                }
                Some(Place::Scratch(at)) => {
                    (loaded(operation, &self.scratch, at), Access::LoadScratch)
                }
                Some(Place::Register(offset)) => {
                    let target = usize::from(t);
                    return Ok(Access::ReadRegister { offset, target });
                }
                None => (0, Access::LoadNothing { address }),
            };
            set(&mut self.gpr, t, value);
            return Ok(access);
        }
        let value = self.gpr[usize::from(t & 31)];
        let value = value & (u32::MAX >> (32 - 8 * u32::from(bytes)));
        Ok(match place {
            Some(Place::Sram(address)) => {
                let at = sram.wrap(address) as usize;
                stored(operation, sram.bytes_mut(), at, value);
                Access::StoreSram
            }
            Some(Place::Scratch(at)) => {
                stored(operation, &mut self.scratch, at, value);
                self.cache.forget(at);
                Access::StoreScratch
            }
            Some(Place::Register(offset)) => Access::WriteRegister { offset, value },
            None => Access::StoreNothing { address, value },
        })
    }
}

/// Executes an instruction at `pc` that touches no memory. The position is already that of
/// the next one.
#[inline(always)]
pub(super) fn compute(gpr: &mut Gprs, position: &mut Position, pc: u32, instruction: &Decoded) {
    use Operation::*;
    let Decoded { s, t, d, value, .. } = *instruction;
    let (a, b) = (gpr[usize::from(s & 31)], gpr[usize::from(t & 31)]);
    let (target, result) = match instruction.operation {
        ShiftLeft => (d, b << (value & 31)),
        ShiftRight => (d, b >> (value & 31)),
        ShiftRightSigned => (d, (b as i32 >> (value & 31)) as u32),
        ShiftLeftBy => (d, b << (a & 31)),
        ShiftRightBy => (d, b >> (a & 31)),
        ShiftRightSignedBy => (d, (b as i32 >> (a & 31)) as u32),
        Add => (d, a.wrapping_add(b)),
        Subtract => (d, a.wrapping_sub(b)),
        And => (d, a & b),
        Or => (d, a | b),
        Xor => (d, a ^ b),
        Nor => (d, !(a | b)),
        Less => (d, ((a as i32) < b as i32).into()),
        LessUnsigned => (d, (a < b).into()),
        Priority => (d, pri(a, b)),
        AddImmediate => (t, a.wrapping_add(value)),
        LessImmediate => (t, ((a as i32) < value as i32).into()),
        LessImmediateUnsigned => (t, (a < value).into()),
        AndImmediate => (t, a & (value & 0xFFFF)),
        OrImmediate => (t, a | (value & 0xFFFF)),
        XorImmediate => (t, a ^ (value & 0xFFFF)),
        Upper => (t, value << 16),
        Jump => return position.next = pc.wrapping_add(4) & 0xF000_0000 | value,
        JumpAndLink => {
            position.next = pc.wrapping_add(4) & 0xF000_0000 | value;
            (RA, pc.wrapping_add(8))
        }
        JumpRegister => return position.next = a,
        JumpAndLinkRegister => {
            position.next = a;
            (d, pc.wrapping_add(8))
        }
        JumpOffset => return position.next = joff_target(a, b),
        Equal => return position.branch(pc, value, a == b),
        NotEqual => return position.branch(pc, value, a != b),
        NotPositive => return position.branch(pc, value, a as i32 <= 0),
        Positive => return position.branch(pc, value, a as i32 > 0),
        EqualLikely => return position.branch_likely(pc, value, a == b),
        NotEqualLikely => return position.branch_likely(pc, value, a != b),
        NotPositiveLikely => return position.branch_likely(pc, value, a as i32 <= 0),
        PositiveLikely => return position.branch_likely(pc, value, a as i32 > 0),
        Sign => {
            position.branch_on_sign(pc, value, a, t);
            if t & LINK == 0 {
                return;
            }
            (RA, pc.wrapping_add(8))
        }
        LoadByte | LoadHalf | LoadWord | LoadByteUnsigned | LoadHalfUnsigned | StoreByte
        | StoreHalf | StoreWord | Break | Reserved => return,
    };
    set(gpr, target, result);
}

impl Position {
    /// A branch on the sign of a register, of a kind: bit 0 not negative, bit 1 likely,
    /// bit 4 with link.
    #[inline]
    fn branch_on_sign(&mut self, pc: u32, distance: u32, value: u32, kind: u8) {
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
            self.advance(false);
        }
    }
}

/// Sets a general register; register 0 stays 0.
#[inline(always)]
pub(super) fn set(gpr: &mut Gprs, register: u8, value: u32) {
    gpr[usize::from(register & 31)] = value;
    gpr[0] = 0;
}

/// What a load makes of the bytes at an offset, which is aligned.
#[inline(always)]
pub(super) fn loaded(operation: Operation, bytes: &[u8], at: usize) -> u32 {
    match operation {
        Operation::LoadByte => bytes[at] as i8 as u32,
        Operation::LoadByteUnsigned => bytes[at].into(),
        Operation::LoadHalf => i16::from_be_bytes(load(bytes, at)) as u32,
        Operation::LoadHalfUnsigned => u16::from_be_bytes(load(bytes, at)).into(),
        _ => u32::from_be_bytes(load(bytes, at)),
    }
}

/// Stores as much of a value as a store does, at an offset, which is aligned.
#[inline(always)]
pub(super) fn stored(operation: Operation, bytes: &mut [u8], at: usize, value: u32) {
    match operation {
        Operation::StoreByte => bytes[at] = value as u8,
        Operation::StoreHalf => store(bytes, at, (value as u16).to_be_bytes()),
        _ => store(bytes, at, value.to_be_bytes()),
    }
}
