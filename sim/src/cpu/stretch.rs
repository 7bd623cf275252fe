//! Instructions in a row that are the CPU's own affair.
//!
//! They stand in its scratch pad and compute, branch or touch the scratch pad: nothing else
//! of the card is needed to execute them, and nothing else sees them. Most of a CPU's work
//! is that, so it is one loop, without a word to the rest of the machine.

use super::core::Core;
use super::decode::Scope;
use crate::memory::SramBytes;
use tigon2_chip::memory::SCRATCH_BASE;

/// What instructions cost besides a cycle each, in cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// A load from the scratch pad.
    pub(crate) load: u64,
    /// A store to it.
    pub(crate) store: u64,
    /// An instruction that uses what the one before it has loaded from there.
    pub(crate) load_use: u64,
    /// A branch that is taken.
    pub(crate) branch: u64,
}

/// Instructions in a row: how far they got, and where their cycles went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The cycle in which the next instruction can issue.
    pub(crate) at: u64,
    /// The general register that the last one has loaded from the scratch pad, as a mask.
    pub(crate) loaded: u32,
    /// How many there were: a cycle each.
    pub(crate) instructions: u64,
    /// The extra cycles of the scratch pad.
    pub(crate) scratch: u64,
    /// Cycles for words that were used right behind their load.
    pub(crate) load_use: u64,
    /// Cycles of taken branches.
    pub(crate) branch: u64,
}

/// Words of the scratch pad that were stored over, in order: offset and former value.
pub(crate) type StoredOver = Vec<(u32, u32)>;

impl Core {
    /// Executes what is the CPU's own affair in cycles before `limit`, `most` instructions
    /// at most, and ends in front of anything else: accesses to what is shared, jumps by
    /// JOFF, faults, code in SRAM. With `stored_over` it can be taken back.
    #[inline]
    pub(crate) fn stretch(
        &mut self,
        sram: &mut SramBytes,
        (limit, most): (u64, u64),
        costs: &Costs,
        from: (u64, u32),
        mut stored_over: Option<&mut StoredOver>,
    ) -> Stretch {
        let (mut at, mut loaded) = from;
        let (mut instructions, mut scratch, mut load_use, mut branch) = (0, 0, 0, 0);
        let pad = self.scratch().len() as u32;
        while at < limit && instructions < most {
            let pc = self.pc;
            let offset = pc.wrapping_sub(SCRATCH_BASE);
            if offset >= pad || !offset.is_multiple_of(4) {
                break;
            }
            let instruction = self.in_pad(offset as usize);
            let target = match instruction.scope {
                Scope::Machine => break,
                Scope::Core if instruction.jumps && self.slot => break,
                Scope::Core => 0,
                Scope::Load | Scope::Store => {
                    let base = self.gpr[usize::from(instruction.s & 31)];
                    let address = base.wrapping_add(instruction.value);
                    let target = address.wrapping_sub(SCRATCH_BASE);
                    if target >= pad || target & u32::from(instruction.bytes - 1) != 0 {
                        break;
                    }
                    target
                }
            };
            let uses = loaded & instruction.sources != 0;
            loaded = 0;
            if uses && costs.load_use != 0 {
                load_use += costs.load_use;
                at += costs.load_use;
                continue;
            }
            self.pc = self.next;
            self.next = self.pc.wrapping_add(4);
            self.slot = instruction.jumps;
            at += 1;
            match instruction.scope {
                Scope::Core => {
                    self.compute(pc, instruction);
                    if instruction.jumps && self.next != self.pc.wrapping_add(4) {
                        branch += costs.branch;
                        at += costs.branch;
                    }
                }
                Scope::Load => {
                    // In the pad and aligned: there is nothing that it could not do.
                    let _ = self.access(sram, instruction);
                    scratch += costs.load;
                    at += costs.load;
                    loaded = 1 << (instruction.t & 31) & !1;
                }
                _ => {
                    if let Some(words) = &mut stored_over {
                        let word = self.scratch_word(target);
                        words.push((target & !3, word));
                    }
                    let _ = self.access(sram, instruction);
                    scratch += costs.store;
                    at += costs.store;
                }
            }
            self.remember(pc, instructions as usize);
            instructions += 1;
        }
        self.executed(instructions as usize);
        Stretch {
            at,
            loaded,
            instructions,
            scratch,
            load_use,
            branch,
        }
    }

    /// Stores what was stored over, the last word first.
    pub(crate) fn restore(&mut self, stored_over: &mut StoredOver) {
        for (at, word) in stored_over.drain(..).rev() {
            self.set_scratch_word(at, word);
        }
    }
}
