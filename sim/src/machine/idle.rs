//! Detects that a CPU only waits, so that the engine can skip the waiting.
//!
//! Firmware waits by polling its event register. [`prove`] lets the CPU execute until it returns
//! to the instruction where it began, and then undoes this round. The CPU only waits if the round
//! accessed no register of the chip except the event register and changed only a counter of its
//! rounds: it then repeats the same until something outside changes what it reads. If this holds
//! for every running CPU, nothing can change before the next deadline, and whole rounds can be
//! skipped with the same result as executing them.
//!
//! The counter is one word of memory and any number of general registers, which each round
//! increases by the same step. No decision may depend on their values: only additions of constants
//! may connect them. The proof follows this through the round's instructions and does not infer it
//! from values.

use super::Timing;
use crate::cpu::{Access, Checkpoint, Core, Executed, HISTORY, Place};
use crate::memory::SramBytes;
use tigon2_chip::instruction::{destination, is_load, is_store, opcode, rs, sources};

/// Instructions of the longest round that is looked for: what a CPU can be put back by.
const LONGEST_ROUND: usize = HISTORY;

/// Opcode of `addiu`.
const ADDIU: u32 = 0x09;
/// Opcode of `lw`.
const LW: u32 = 0x23;
/// Opcode of `sw`.
const SW: u32 = 0x2B;

/// A round of a waiting loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// Its length in cycles.
    pub(super) cycles: u64,
    /// Its length in instructions.
    pub(super) instructions: u64,
    /// What it adds to all that it counts in.
    step: u32,
    /// The word of memory that it counts in.
    counter: Option<Place>,
    /// The general registers that it counts in, as a mask.
    registers: u32,
    /// The words of memory that it reads.
    loads: Vec<Place>,
}

impl Round {
    /// Whether the round reads a word of SRAM that another CPU's round counts in.
    pub(super) fn reads_counter_of(&self, other: &Round) -> bool {
        let shared = other
            .counter
            .filter(|place| matches!(place, Place::Sram(_)));
        shared.is_some_and(|place| self.loads.contains(&place))
    }

    /// Accounts for `count` rounds of `core` that are not executed.
    pub(super) fn pass(&self, core: &mut Core, sram: &mut SramBytes, count: u64) {
        core.retire(count * self.instructions);
        // Counters are words and wrap: so may the count.
        let added = self.step.wrapping_mul(count as u32);
        if let Some(place) = self.counter {
            let value = core.word_at(sram, place).wrapping_add(added);
            core.set_word_at(sram, place, value);
        }
        for register in (0..32).filter(|n| self.registers >> n & 1 != 0) {
            core.set_gpr(register, core.gpr(register).wrapping_add(added));
        }
    }
}

/// An instruction of a round.
struct Step {
    word: u32,
    /// The aligned word that it loads from or stores to, unless that is a register.
    place: Option<Place>,
}

/// What the instructions of a round cost.
pub(super) trait Cost {
    /// Cycles of an instruction, which came from SRAM or not. `None` if they depend on more
    /// than the CPU itself.
    fn cycles(&mut self, executed: &Executed, from_sram: bool) -> Option<u64>;
}

impl Cost for Timing {
    fn cycles(&mut self, executed: &Executed, _from_sram: bool) -> Option<u64> {
        Some(Timing::cycles(*self, executed))
    }
}

/// What a CPU's event register is while it waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Offset of its event register.
    pub(super) offset: u32,
    /// What it reads.
    pub(super) value: u32,
}

/// The round that `core` repeats from where it stands, if it provably only waits. CPU and
/// SRAM are left as they were.
pub(super) fn prove(
    core: &mut Core,
    sram: &mut SramBytes,
    cost: &mut impl Cost,
    waiting: Waiting,
) -> Option<Round> {
    let start = core.checkpoint();
    let mut trial = Trial::default();
    let cycles = trial.execute(core, &start, sram, cost, waiting);
    let raised = trial.undo(core, sram);
    let end = *core.gprs();
    core.put_back(&start);
    let (cycles, Trial { stored, steps }) = (cycles?, trial);

    let mut registers = 0;
    let mut step = raised.filter(|raised| *raised != 0);
    for (n, (end, start)) in end.iter().zip(start.gpr).enumerate() {
        let raised = end.wrapping_sub(start);
        if raised != 0 {
            if *step.get_or_insert(raised) != raised {
                return None;
            }
            registers |= 1 << n;
        }
    }
    let step = step.unwrap_or(0);
    let counter = stored.map(|(place, _)| place);
    if raised.is_some_and(|raised| raised != step) || !only_counts(&steps, counter, step, registers)
    {
        return None;
    }
    let loads = steps
        .iter()
        .filter(|step| is_load(step.word))
        .filter_map(|step| step.place);
    Some(Round {
        cycles,
        instructions: steps.len() as u64,
        step,
        counter,
        registers,
        loads: loads.collect(),
    })
}

/// The execution of one round.
#[derive(Default)]
struct Trial {
    /// The only word that was stored to, and what stood there before.
    stored: Option<(Place, u32)>,
    steps: Vec<Step>,
}

impl Trial {
    /// Executes until the CPU is back at `start`; returns the cycles.
    fn execute(
        &mut self,
        core: &mut Core,
        start: &Checkpoint,
        sram: &mut SramBytes,
        cost: &mut impl Cost,
        waiting: Waiting,
    ) -> Option<u64> {
        let mut cycles = 0;
        for _ in 0..LONGEST_ROUND {
            let (instruction, from) = core.upcoming(sram).ok()?;
            let word = instruction.word;
            let accesses = is_load(word) || is_store(word);
            let place = core.data_word(sram, word).filter(|_| accesses);
            if is_store(word) {
                let place = place.filter(|_| opcode(word) == SW)?;
                let before = core.word_at(sram, place);
                if self.stored.get_or_insert((place, before)).0 != place {
                    return None;
                }
            }
            let executed = core.step(sram).ok()?;
            match executed.access {
                Access::ReadRegister { offset, target } if offset == waiting.offset => {
                    core.complete_read(target, waiting.value);
                }
                Access::ReadRegister { .. }
                | Access::WriteRegister { .. }
                | Access::LoadNothing { .. }
                | Access::StoreNothing { .. } => return None,
                _ => (),
            }
            cycles += cost.cycles(&executed, from.is_some())?;
            self.steps.push(Step { word, place });
            if core.is_at(start) {
                return Some(cycles);
            }
        }
        None
    }

    /// Takes the round's store back; returns by how much the word was raised.
    fn undo(&self, core: &mut Core, sram: &mut SramBytes) -> Option<u32> {
        let (place, before) = self.stored?;
        let after = core.word_at(sram, place);
        core.set_word_at(sram, place, before);
        Some(after.wrapping_sub(before))
    }
}

/// Whether the values that a round raises decide nothing in it: constants may be added to
/// them, and they may be stored to the counter.
fn only_counts(steps: &[Step], counter: Option<Place>, step: u32, registers: u32) -> bool {
    // Registers whose value is a raised value plus a constant.
    let mut holders = registers;
    for Step { word, place } in steps {
        let word = *word;
        let at_counter = place.is_some() && *place == counter;
        let used = sources(word) & holders;
        let mut holds = false;
        if is_load(word) {
            if used != 0 || at_counter && step != 0 && opcode(word) != LW {
                return false;
            }
            holds = at_counter;
        } else if is_store(word) {
            // A word that is stored to and not raised must get what stands there already.
            let base_is_raised = holders >> rs(word) & 1 != 0;
            if base_is_raised || used == 0 && step != 0 {
                return false;
            }
        } else if used != 0 {
            if opcode(word) != ADDIU {
                return false;
            }
            holds = true;
        }
        if let Some(register) = destination(word) {
            holders = if holds {
                holders | 1 << register
            } else {
                holders & !(1 << register)
            };
        }
    }
    // What was raised must have been raised by counting.
    registers & !holders == 0
}
