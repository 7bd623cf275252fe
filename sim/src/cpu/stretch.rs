//! Executes runs of instructions that involve only one CPU.
//!
//! These instructions lie in its scratch pad and compute, branch or access the scratch pad: they
//! need no other part of the card, and no other part sees them. They are most of a CPU's work, so
//! one tight loop executes them without calling the rest of the machine.

use super::core::Core;
use super::decode::Scope;
use super::execute;
use super::history::HISTORY;
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

/// No row is longer: what it counts fits in the fields of a [`Tally`].
const LONGEST: u64 = 1 << 15;

/// What the instructions of a row were, in one number: all of them, loads, stores and
/// branches that were taken, and words that were used right behind their load.
#[derive(Clone, Copy, Default)]
struct Tally(u64);

impl Tally {
    const ISSUED: u64 = 1;
    const LOAD: u64 = 1 << 16;
    const STORE: u64 = 1 << 32;
    const BRANCH: u64 = 1 << 48;

    #[inline(always)]
    fn of(self, kind: u64) -> u64 {
        (self.0 / kind) & 0xFFFF
    }
}

impl Core {
    /// Executes instructions that involve only this CPU in cycles before `limit`, and ends in front
    /// of anything else: accesses to what is shared, jumps by JOFF, faults, code in SRAM.
    pub(crate) fn stretch(&mut self, limit: u64, costs: &Costs, from: (u64, u32)) -> Stretch {
        self.row::<false>(limit, costs, from, &mut StoredOver::new())
    }

    /// The same for no more than [`HISTORY`](super::HISTORY) instructions, with what is
    /// needed to take it back.
    pub(crate) fn stretch_to_take_back(
        &mut self,
        limit: u64,
        costs: &Costs,
        from: (u64, u32),
        stored_over: &mut StoredOver,
    ) -> Stretch {
        // An instruction takes a cycle at least.
        let limit = limit.min(from.0.saturating_add(HISTORY as u64));
        self.row::<true>(limit, costs, from, stored_over)
    }

    /// The instructions in a row, with `KEEP` what is needed to take them back. One loop in one
    /// function: program counter, cycle and pipeline stay in the host's registers.
    #[inline(always)]
    fn row<const KEEP: bool>(
        &mut self,
        limit: u64,
        costs: &Costs,
        (mut at, mut loaded): (u64, u32),
        stored_over: &mut StoredOver,
    ) -> Stretch {
        let limit = limit.min(at.saturating_add(LONGEST));
        let Core {
            gpr,
            position,
            scratch,
            cache,
            history,
            ..
        } = self;
        let (words, _) = scratch.as_chunks_mut::<4>();
        let mut here = *position;
        let mut tally = Tally::default();
        let mut load_use = 0;
        while at < limit {
            let pc = here.pc;
            let Some(instruction) = cache.known(pc) else {
                break;
            };
            let scope = instruction.scope;
            if loaded & instruction.sources != 0 {
                loaded = 0;
                if costs.load_use != 0 {
                    load_use += costs.load_use;
                    at += costs.load_use;
                    continue;
                }
            }
            match scope {
                Scope::Core => {
                    if instruction.jumps && here.slot {
                        break;
                    }
                    here.advance(instruction.jumps);
                    tally.0 += Tally::ISSUED;
                    at += 1;
                    loaded = 0;
                    execute::compute(gpr, &mut here, pc, instruction);
                    if instruction.jumps && here.turns() {
                        tally.0 += Tally::BRANCH;
                        at += costs.branch;
                    }
                }
                Scope::Load | Scope::Store => {
                    let base = gpr[usize::from(instruction.s & 31)];
                    let target = base
                        .wrapping_add(instruction.value)
                        .wrapping_sub(SCRATCH_BASE);
                    let Some(word) = words.get_mut(target as usize / 4) else {
                        break;
                    };
                    if target & u32::from(instruction.bytes - 1) != 0 {
                        break;
                    }
                    let (operation, t) = (instruction.operation, instruction.t);
                    here.advance(false);
                    at += 1;
                    if scope == Scope::Load {
                        execute::set(
                            gpr,
                            t,
                            execute::loaded(operation, word, target as usize & 3),
                        );
                        tally.0 += Tally::ISSUED + Tally::LOAD;
                        at += costs.load;
                        loaded = 1 << (t & 31) & !1;
                    } else {
                        if KEEP {
                            stored_over.push((target & !3, u32::from_be_bytes(*word)));
                        }
                        let value = gpr[usize::from(t & 31)];
                        execute::stored(operation, word, target as usize & 3, value);
                        cache.forget(target as usize);
                        tally.0 += Tally::ISSUED + Tally::STORE;
                        at += costs.store;
                        loaded = 0;
                    }
                }
                Scope::Machine | Scope::Unknown => break,
            }
            if here.pc != pc.wrapping_add(4) {
                history.turn(here.pc, tally.of(Tally::ISSUED));
            }
        }
        *position = here;
        let instructions = tally.of(Tally::ISSUED);
        history.executed(instructions);
        self.retired += instructions;
        Stretch {
            at,
            loaded,
            instructions,
            scratch: tally.of(Tally::LOAD) * costs.load + tally.of(Tally::STORE) * costs.store,
            load_use,
            branch: tally.of(Tally::BRANCH) * costs.branch,
        }
    }

    /// Stores what was stored over, the last word first.
    pub(crate) fn restore(&mut self, stored_over: &mut StoredOver) {
        for (at, word) in stored_over.drain(..).rev() {
            self.set_scratch_word(at, word);
        }
    }
}
