//! Random programs.
//!
//! The instructions depend on each other: results used at once, delay slots that change a register
//! of their branch, loads after stores. Branches go forward only, so every program ends.

use super::cases::{INSTRUCTIONS, Shape};
use super::{DATA, Program, RESULTS};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tigon2_chip::memory::SCRATCH_BASE;
use tigon2_sim::asm::{BREAK, immediate, lw, special, sw};

/// Instructions of a program, besides what sets it up and ends it.
const LENGTH: usize = 400;
/// Registers that the instructions use.
const REGISTERS: u32 = 28;
/// Points to SRAM.
const SRAM: u32 = 28;
/// Points to the scratch pad.
const PAD: u32 = 29;
/// Words of each memory that the instructions use.
const MEMORY_WORDS: i32 = 16;
/// Farthest branch, in instructions.
const FARTHEST: u32 = 6;

/// A program and what to read back from it.
#[derive(Clone, Debug)]
pub struct RandomProgram {
    /// It ends with `break`.
    pub program: Program,
    random: SplitMix64,
}

/// Words of results: registers, then both memories.
pub const WORDS: usize = REGISTERS as usize + 2 * MEMORY_WORDS as usize;

impl RandomProgram {
    /// The program of a seed.
    pub fn new(seed: u64) -> RandomProgram {
        let mut new = RandomProgram {
            program: Program::default(),
            random: SplitMix64::seed_from_u64(seed),
        };
        new.program.constant(SRAM, DATA);
        new.program.constant(PAD, SCRATCH_BASE + 0x800);
        for word in 0..MEMORY_WORDS {
            let value = new.random.next_u32();
            new.program.constant(1, value);
            new.program
                .add(&[sw(1, 4 * word, SRAM), sw(1, 4 * word, PAD)]);
        }
        for register in 1..REGISTERS {
            let value = new.random.next_u32();
            new.program.constant(register, value);
        }
        new.body();
        new.end();
        new
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.random.next_u32() % limit
    }

    fn body(&mut self) {
        let end = self.program.words.len() + LENGTH;
        let mut in_slot = false;
        while self.program.words.len() < end {
            let left = (end - self.program.words.len()) as u32;
            let word = self.instruction(if in_slot { 0 } else { left });
            in_slot = word.1;
            self.program.add(&[word.0]);
        }
        // A branch of the last word may have its slot here.
        self.program.add(&[0; FARTHEST as usize + 2]);
    }

    /// An instruction, and whether it has a delay slot; no branch if `left` is 0.
    fn instruction(&mut self, left: u32) -> (u32, bool) {
        let (d, s, t) = (
            self.below(REGISTERS),
            self.below(REGISTERS),
            self.below(REGISTERS),
        );
        let ahead = 1 + self.below(FARTHEST) as i32;
        let value = self.random.next_u32() as i32;
        let (memory, at) = (
            if self.below(2) == 0 { SRAM } else { PAD },
            self.below(4 * MEMORY_WORDS as u32),
        );
        let access = |opcode, bytes: u32| {
            let at = at & !(bytes - 1);
            (immediate(opcode, t, memory, at as i32), false)
        };
        loop {
            let shape = INSTRUCTIONS[self.below(INSTRUCTIONS.len() as u32) as usize].1;
            return match shape {
                Shape::Registers(function) => (special(function, d, s, t, 0), false),
                Shape::Shift(function) => (special(function, d, 0, t, at & 31), false),
                Shape::Immediate(opcode) => (immediate(opcode, t, s, value), false),
                Shape::Upper => (immediate(0x0F, t, 0, value), false),
                Shape::Load(opcode, bytes) | Shape::Store(opcode, bytes) => access(opcode, bytes),
                Shape::BranchOnTwo(opcode) if left > 0 => (immediate(opcode, t, s, ahead), true),
                Shape::BranchOnOne(opcode, kind) if left > 0 => {
                    (immediate(opcode, kind, s, ahead), true)
                }
                _ => continue,
            };
        }
    }

    /// Stores all that may have changed.
    fn end(&mut self) {
        let result = 30;
        self.program.constant(result, RESULTS);
        for register in 0..REGISTERS as i32 {
            let word = sw(register as u32, 4 * register, result);
            self.program.add(&[word]);
        }
        for (memory, first) in [
            (SRAM, REGISTERS as i32),
            (PAD, REGISTERS as i32 + MEMORY_WORDS),
        ] {
            for word in 0..MEMORY_WORDS {
                let copy = [lw(1, 4 * word, memory), sw(1, 4 * (first + word), result)];
                self.program.add(&copy);
            }
        }
        self.program.add(&[BREAK]);
    }
}
