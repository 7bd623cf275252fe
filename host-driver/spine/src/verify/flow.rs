//! Follows every path through one function.

use super::{Place, Refused, place};
use crate::link::Linked;
use spine_image::interface::{self, Number};
use std::collections::{BTreeMap, BTreeSet};
use tigon2_chip::instruction::{
    branch_target, destination, function, has_delay_slot, immediate, jump_target, opcode, rs, rt,
    sources,
};

/// Register numbers.
const ZERO: usize = 0;
const GLOBAL: usize = 28;
const STACK: usize = 29;
const RETURN: usize = 31;
/// Registers that a function leaves as they were: s0 to s8, and the return address.
const KEPT: [usize; 10] = [16, 17, 18, 19, 20, 21, 22, 23, 30, RETURN];
/// Registers that no extension touches: k0, k1, gp.
const FOREIGN: [usize; 3] = [26, 27, GLOBAL];

/// What calls need to know of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The largest frame.
    pub frame: u32,
    /// Whether a way leads back to the caller.
    pub returns: bool,
    /// Functions and imports that it calls, each with the largest frame at a call.
    pub calls: BTreeMap<u32, u32>,
}

/// What is known at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Where `sp` is from where it was at entry; 0 or less.
    sp: i32,
    /// Where, likewise, the caller's values of [`KEPT`] were stored, if they were.
    saved: [Option<i32>; KEPT.len()],
    /// Which of them are in their registers.
    held: [bool; KEPT.len()],
}

const ENTRY: State = State {
    sp: 0,
    saved: [None; KEPT.len()],
    held: [true; KEPT.len()],
};

impl State {
    /// Whether the caller's return address is in its register.
    fn holds_return(&self) -> bool {
        kept(RETURN).is_some_and(|index| self.held[index])
    }

    /// What is so on both of two ways.
    fn both(&self, other: &State) -> State {
        State {
            sp: self.sp,
            saved: std::array::from_fn(|index| {
                self.saved[index].filter(|_| self.saved[index] == other.saved[index])
            }),
            held: std::array::from_fn(|index| self.held[index] && other.held[index]),
        }
    }
}

/// A register's index in [`KEPT`].
fn kept(register: usize) -> Option<usize> {
    KEPT.iter().position(|kept| *kept == register)
}

/// Where control goes behind an instruction and its delay slot.
enum Next {
    /// Behind it.
    On,
    /// To one of two: taken, not taken; with whether the slot is left out if it is not.
    Branch(u32, bool),
    /// There.
    Jump(u32),
    /// Calls that, and then behind the slot unless it never comes back.
    Call(u32, bool),
    /// Calls that instead of returning.
    TailCall(u32),
    /// Back to the caller.
    Return,
}

struct Walk<'a> {
    linked: &'a Linked,
    returning: &'a BTreeSet<u32>,
    start: u32,
    end: u32,
    seen: BTreeMap<u32, State>,
    open: Vec<u32>,
    summary: Summary,
}

/// Walks a function; `returning` are those that are known to return.
pub fn walk(linked: &Linked, index: usize, returning: &BTreeSet<u32>) -> Result<Summary, Refused> {
    let Some((start, bytes, _)) = linked.functions.get(index) else {
        return Ok(Summary::default());
    };
    let mut walk = Walk {
        linked,
        returning,
        start: *start,
        end: start + bytes,
        seen: BTreeMap::new(),
        open: Vec::new(),
        summary: Summary::default(),
    };
    walk.reach(*start, *start, ENTRY)?;
    while let Some(at) = walk.open.pop() {
        if let Some(state) = walk.seen.get(&at).copied() {
            walk.step(at, state)?;
        }
    }
    Ok(walk.summary)
}

impl Walk<'_> {
    fn at(&self, address: u32) -> Place {
        place(self.linked, address)
    }

    fn word(&self, address: u32) -> Option<u32> {
        let index = address.wrapping_sub(self.linked.text_base) / 4;
        let inside = (self.start..self.end).contains(&address);
        self.linked
            .text_words()
            .get(index as usize)
            .copied()
            .filter(|_| inside)
    }

    /// Control comes from `from` to `to`.
    fn reach(&mut self, from: u32, to: u32, state: State) -> Result<(), Refused> {
        if self.word(to).is_none() {
            let at = self.at(from);
            return Err(Refused::FallsOut { at });
        }
        match self.seen.get(&to) {
            None => {
                self.seen.insert(to, state);
                self.open.push(to);
            }
            Some(known) if known.sp != state.sp => {
                let at = self.at(to);
                return Err(Refused::UnevenStack { at });
            }
            Some(known) => {
                // Only what is so on all ways is known.
                let both = known.both(&state);
                if both != *known {
                    self.seen.insert(to, both);
                    self.open.push(to);
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, at: u32, state: State) -> Result<(), Refused> {
        let Some(word) = self.word(at) else {
            return Ok(());
        };
        let next = self.next(at, word)?;
        if matches!(next, Next::On) {
            let state = self.execute(at, word, state)?;
            return self.reach(at, at + 4, state);
        }
        self.judge_registers(at, word)?;
        let Some(slot) = self.word(at + 4) else {
            return Err(Refused::DelaySlot { at: self.at(at) });
        };
        if has_delay_slot(slot) {
            let at = self.at(at + 4);
            return Err(Refused::DelaySlot { at });
        }
        let calls = matches!(next, Next::Call(..));
        if calls && destination(slot) == Some(RETURN) {
            let at = self.at(at + 4);
            return Err(Refused::DelaySlot { at });
        }
        // A call has written the return address before its slot runs.
        let mut before = state;
        if calls && let Some(index) = kept(RETURN) {
            before.held[index] = false;
        }
        let behind = self.execute(at + 4, slot, before)?;
        match next {
            Next::On => Ok(()),
            Next::Branch(target, annuls) => {
                self.reach(at, target, behind)?;
                self.reach(at, at + 8, if annuls { state } else { behind })
            }
            Next::Jump(target) => self.reach(at, target, behind),
            Next::Call(target, returns) => {
                self.call(target, behind);
                if !returns {
                    return Ok(());
                }
                self.reach(at, at + 8, behind)
            }
            Next::TailCall(target) => {
                self.judge_end(at, behind)?;
                self.summary.returns |= self.comes_back(target);
                self.call(target, behind);
                Ok(())
            }
            Next::Return => {
                // The address is read before the slot.
                if !state.holds_return() {
                    let at = self.at(at);
                    return Err(Refused::ReturnAddress { at });
                }
                self.summary.returns = true;
                self.judge_end(at, behind)
            }
        }
    }

    /// Whether all is as the caller left it.
    fn judge_end(&self, at: u32, state: State) -> Result<(), Refused> {
        let at = self.at(at);
        if state.sp != 0 {
            let offset = state.sp;
            return Err(Refused::Frame { at, offset });
        }
        match KEPT.iter().zip(state.held).find(|(_, held)| !held) {
            None => Ok(()),
            Some((&RETURN, _)) => Err(Refused::ReturnAddress { at }),
            Some((&register, _)) => Err(Refused::Kept { at, register }),
        }
    }

    fn call(&mut self, target: u32, state: State) {
        let frame = state.sp.unsigned_abs();
        let known = self.summary.calls.entry(target).or_default();
        *known = frame.max(*known);
    }

    /// Where an instruction leads.
    fn next(&self, at: u32, word: u32) -> Result<Next, Refused> {
        let wrong = |target| Refused::Jump {
            at: self.at(at),
            target,
        };
        match opcode(word) {
            0 if function(word) == 0x08 => {
                if rs(word) == RETURN {
                    Ok(Next::Return)
                } else {
                    let at = self.at(at);
                    Err(Refused::ComputedJump { at })
                }
            }
            2 => {
                let target = jump_target(at, word);
                if self.word(target).is_some() {
                    Ok(Next::Jump(target))
                } else if self.is_callable(target) {
                    Ok(Next::TailCall(target))
                } else {
                    Err(wrong(target))
                }
            }
            3 => {
                let target = jump_target(at, word);
                if !self.is_callable(target) {
                    return Err(wrong(target));
                }
                Ok(Next::Call(target, self.comes_back(target)))
            }
            code @ (1 | 4..=7 | 0x14..=0x17) => {
                let target = branch_target(at, word);
                if self.word(target).is_none() {
                    return Err(wrong(target));
                }
                let always = code == 4 && rs(word) == ZERO && rt(word) == ZERO;
                let annuls = code >= 0x14 || code == 1 && rt(word) & 2 != 0;
                Ok(if always {
                    Next::Jump(target)
                } else {
                    Next::Branch(target, annuls)
                })
            }
            _ => Ok(Next::On),
        }
    }

    /// Whether a call of a function or an import comes back.
    fn comes_back(&self, target: u32) -> bool {
        let mut imports = self.linked.imports.iter();
        match imports.find(|(at, _)| *at == target) {
            Some((_, number)) => *number != Number::Panic as usize,
            None => self.returning.contains(&target),
        }
    }

    /// Whether a function of the object or an import begins there.
    fn is_callable(&self, target: u32) -> bool {
        let mut functions = self.linked.functions.iter();
        let mut imports = self.linked.imports.iter();
        functions.any(|(start, ..)| *start == target) || imports.any(|(at, _)| *at == target)
    }

    fn judge_registers(&self, at: u32, word: u32) -> Result<(), Refused> {
        let touched = sources(word) | destination(word).map_or(0, |register| 1 << register);
        for register in FOREIGN {
            if touched & 1 << register != 0 {
                let at = self.at(at);
                return Err(Refused::Register { at, register });
            }
        }
        Ok(())
    }

    /// What an instruction that is no jump makes of the state.
    fn execute(&mut self, at: u32, word: u32, state: State) -> Result<State, Refused> {
        self.judge_registers(at, word)?;
        let mut state = state;
        let offset = immediate(word);
        let on_stack = rs(word) == STACK;
        match destination(word) {
            Some(STACK) => {
                // addiu sp, sp, constant
                if opcode(word) != 9 || !on_stack || offset % 4 != 0 {
                    let at = self.at(at);
                    return Err(Refused::StackPointer { at });
                }
                state.sp += offset;
                // A frame that was given back holds nothing any more.
                for saved in &mut state.saved {
                    *saved = saved.filter(|saved| *saved >= state.sp);
                }
                let frame = state.sp.unsigned_abs();
                if state.sp > 0 || frame > 0x1000 {
                    let (at, offset) = (self.at(at), state.sp);
                    return Err(Refused::Frame { at, offset });
                }
                self.summary.frame = self.summary.frame.max(frame);
            }
            Some(register) => {
                if let Some(index) = kept(register) {
                    // lw register, where it was stored
                    let back = opcode(word) == 0x23 && on_stack;
                    state.held[index] = back && state.saved[index] == Some(state.sp + offset);
                }
            }
            None => {}
        }
        if opcode(word) >= 0x28 && on_stack {
            self.store(at, word, &mut state)?;
        }
        Ok(state)
    }

    /// A store by the stack pointer: into the frame, perhaps over what is kept there.
    fn store(&self, at: u32, word: u32, state: &mut State) -> Result<(), Refused> {
        let place = state.sp + immediate(word);
        let into_frame = place >= state.sp && place < 0;
        if !into_frame {
            let at = self.at(at);
            let offset = place;
            return Err(Refused::Frame { at, offset });
        }
        for saved in &mut state.saved {
            *saved = saved.filter(|saved| *saved != place & !3);
        }
        let is_word = opcode(word) == 0x2B;
        if let Some(index) = kept(rt(word)).filter(|index| is_word && state.held[*index]) {
            state.saved[index] = Some(place);
        }
        Ok(())
    }
}

const _: () = assert!(interface::COUNT > Number::Panic as usize);
