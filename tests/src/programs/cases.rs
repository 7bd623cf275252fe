//! Test cases for every instruction of the CPU, with edge-case and random operands.
//!
//! Hardware reference, sections 3.1 to 3.3. A [`Case`] sets up registers and memory, executes one
//! instruction, with its delay slot if it has one, and stores everything that may have changed:
//! destination, sources, the return address, the path taken, the words in memory around the
//! access.

use super::{DATA, Program, RESULTS};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tigon2_chip::instruction::{FUNCTION_JOFF, FUNCTION_PRI, jump_target};
use tigon2_chip::memory::{SCRATCH_BASE, SPILL_WINDOW};
use tigon2_sim::asm::{BREAK, NOP, RA, ZERO, addiu, beq, immediate, lw, ori, special, sw};

/// What an instruction takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `rd = rs op rt`, with this function of SPECIAL.
    Registers(u32),
    /// `rd = rt op amount`, with this function of SPECIAL.
    Shift(u32),
    /// `rt = rs op immediate`, with this opcode.
    Immediate(u32),
    /// `lui`.
    Upper,
    /// A load with this opcode, of so many bytes.
    Load(u32, u32),
    /// A store with this opcode, of so many bytes.
    Store(u32, u32),
    /// A branch on `rs` and `rt`, with this opcode.
    BranchOnTwo(u32),
    /// A branch on `rs`, with this opcode and this number in the field of `rt`.
    BranchOnOne(u32, u32),
    /// A jump within 256 MB, with this opcode.
    Jump(u32),
    /// `jr`.
    JumpRegister,
    /// `jalr`.
    JumpAndLinkRegister,
    /// `joff`.
    JumpOffset,
    /// `break`, the end of every program and the only case of its own.
    Break,
}

/// Every instruction that an image may contain.
pub const INSTRUCTIONS: &[(&str, Shape)] = &[
    ("sll", Shape::Shift(0x00)),
    ("srl", Shape::Shift(0x02)),
    ("sra", Shape::Shift(0x03)),
    ("sllv", Shape::Registers(0x04)),
    ("srlv", Shape::Registers(0x06)),
    ("srav", Shape::Registers(0x07)),
    ("jr", Shape::JumpRegister),
    ("jalr", Shape::JumpAndLinkRegister),
    ("joff", Shape::JumpOffset),
    ("pri", Shape::Registers(FUNCTION_PRI)),
    ("break", Shape::Break),
    ("addu", Shape::Registers(0x21)),
    ("subu", Shape::Registers(0x23)),
    ("and", Shape::Registers(0x24)),
    ("or", Shape::Registers(0x25)),
    ("xor", Shape::Registers(0x26)),
    ("nor", Shape::Registers(0x27)),
    ("slt", Shape::Registers(0x2A)),
    ("sltu", Shape::Registers(0x2B)),
    ("bltz", Shape::BranchOnOne(0x01, 0x00)),
    ("bgez", Shape::BranchOnOne(0x01, 0x01)),
    ("bltzl", Shape::BranchOnOne(0x01, 0x02)),
    ("bgezl", Shape::BranchOnOne(0x01, 0x03)),
    ("bltzal", Shape::BranchOnOne(0x01, 0x10)),
    ("bgezal", Shape::BranchOnOne(0x01, 0x11)),
    ("bltzall", Shape::BranchOnOne(0x01, 0x12)),
    ("bgezall", Shape::BranchOnOne(0x01, 0x13)),
    ("j", Shape::Jump(0x02)),
    ("jal", Shape::Jump(0x03)),
    ("beq", Shape::BranchOnTwo(0x04)),
    ("bne", Shape::BranchOnTwo(0x05)),
    ("blez", Shape::BranchOnOne(0x06, 0)),
    ("bgtz", Shape::BranchOnOne(0x07, 0)),
    ("addiu", Shape::Immediate(0x09)),
    ("slti", Shape::Immediate(0x0A)),
    ("sltiu", Shape::Immediate(0x0B)),
    ("andi", Shape::Immediate(0x0C)),
    ("ori", Shape::Immediate(0x0D)),
    ("xori", Shape::Immediate(0x0E)),
    ("lui", Shape::Upper),
    ("beql", Shape::BranchOnTwo(0x14)),
    ("bnel", Shape::BranchOnTwo(0x15)),
    ("blezl", Shape::BranchOnOne(0x16, 0)),
    ("bgtzl", Shape::BranchOnOne(0x17, 0)),
    ("lb", Shape::Load(0x20, 1)),
    ("lh", Shape::Load(0x21, 2)),
    ("lw", Shape::Load(0x23, 4)),
    ("lbu", Shape::Load(0x24, 1)),
    ("lhu", Shape::Load(0x25, 2)),
    ("sb", Shape::Store(0x28, 1)),
    ("sh", Shape::Store(0x29, 2)),
    ("sw", Shape::Store(0x2B, 4)),
];

/// Operands that are more telling than others.
const EDGES: [u32; 12] = [
    0,
    1,
    u32::MAX,
    0x7FFF_FFFF,
    0x8000_0000,
    0x8000_0001,
    0x5555_5555,
    0xFF00_FF00,
    0x7FFF,
    0xFFFF_8000,
    31,
    32,
];

/// Immediates that are more telling than others.
const IMMEDIATES: [i32; 6] = [0, 1, -1, 0x7FFF, -0x8000, 0x5555];

/// Cases with operands at random, for each instruction.
const AT_RANDOM: usize = 60;

/// The registers that a case may use; those behind them are the test's.
const REGISTERS: u32 = 26;
/// Points to the case's memory.
const PLACE: u32 = 26;
/// Points to the case's results.
const RESULT: u32 = 27;
/// Tells which way the instructions went.
const PATH: u32 = 28;
/// For constants.
const SPARE: u32 = 29;

/// One execution of an instruction.
#[derive(Clone, Debug)]
pub struct Case {
    /// The instruction.
    pub word: u32,
    /// What it was given, for people.
    pub operands: String,
}

/// A program of all cases of one instruction.
#[derive(Clone, Debug)]
pub struct Batch {
    /// It ends with `break`.
    pub program: Program,
    /// Every case has [`WORDS`] results.
    pub cases: Vec<Case>,
    random: SplitMix64,
}

/// Results of each case.
pub const WORDS: usize = 6;

impl Batch {
    /// All cases of an instruction; the same seed gives the same ones.
    pub fn new(shape: Shape, seed: u64) -> Batch {
        let mut batch = Batch {
            program: Program::default(),
            cases: Vec::new(),
            random: SplitMix64::seed_from_u64(seed),
        };
        if shape == Shape::Break {
            batch.cases.push(Case {
                word: BREAK,
                operands: String::new(),
            });
        } else {
            for (s, t) in EDGES.into_iter().flat_map(|s| EDGES.map(|t| (s, t))) {
                batch.case(shape, s, t);
            }
            for _ in 0..AT_RANDOM {
                let (s, t) = (batch.random.next_u32(), batch.random.next_u32());
                batch.case(shape, s, t);
            }
        }
        batch.program.add(&[BREAK]);
        batch
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.random.next_u32() % limit
    }

    /// Register 0 as well, and the same one twice.
    fn register(&mut self) -> u32 {
        self.below(REGISTERS)
    }

    fn other_than(&mut self, taken: u32) -> u32 {
        loop {
            let register = self.register();
            if register != taken && register != ZERO {
                return register;
            }
        }
    }

    fn immediate(&mut self) -> i32 {
        match self.below(8) {
            n @ 0..6 => IMMEDIATES[n as usize],
            _ => i32::from(self.random.next_u32() as i16),
        }
    }

    /// Appends a case with values for its two sources.
    fn case(&mut self, shape: Shape, s_value: u32, t_value: u32) {
        let results = RESULTS + 4 * (WORDS * self.cases.len()) as u32;
        self.program.constant(RESULT, results).small(PATH, 0);
        let (d, s, t) = (self.register(), self.register(), self.register());
        let d_value = self.random.next_u32();
        for (register, value) in [(d, d_value), (s, s_value), (t, t_value), (RA, d_value)] {
            self.program.constant(register, value);
        }
        let word = match shape {
            Shape::Registers(function) => self.alone(special(function, d, s, t, 0)),
            Shape::Shift(function) => {
                let amount = self.below(32);
                self.alone(special(function, d, 0, t, amount))
            }
            Shape::Immediate(opcode) => {
                let value = self.immediate();
                self.alone(immediate(opcode, t, s, value))
            }
            Shape::Upper => {
                let value = self.immediate();
                self.alone(immediate(0x0F, t, 0, value))
            }
            Shape::Load(opcode, bytes) => self.access(opcode, bytes, s, t, [s_value, t_value]),
            Shape::Store(opcode, bytes) => {
                let s = self.other_than(t);
                self.access(opcode, bytes, s, t, [s_value, d_value])
            }
            Shape::BranchOnTwo(opcode) => self.branch(opcode, s, t),
            Shape::BranchOnOne(opcode, kind) => self.branch(opcode, s, kind),
            Shape::Jump(opcode) => {
                let target = self.program.here() + 16;
                let word = opcode << 26 | target >> 2;
                assert_eq!(jump_target(self.program.here(), word), target);
                self.forward(word, s)
            }
            Shape::JumpRegister => {
                let s = self.other_than(ZERO);
                self.jump_to(s, special(0x08, 0, s, 0, 0))
            }
            Shape::JumpAndLinkRegister => {
                let s = self.other_than(d);
                self.jump_to(s, special(0x09, d, s, 0, 0))
            }
            Shape::JumpOffset => {
                let (s, t) = (self.other_than(t), t);
                let entry = if t == ZERO { 0 } else { t_value };
                // Two words for the constant, three to the target.
                let target = self.program.here() + 4 * (2 + 4);
                self.program.constant(s, target.wrapping_sub(entry << 3));
                self.forward(special(FUNCTION_JOFF, 0, s, t, 0), s)
            }
            Shape::Break => BREAK,
        };
        self.cases.push(Case {
            word,
            operands: format!("rs {s_value:#x}, rt {t_value:#x}, rd {d_value:#x}"),
        });
        let memory = matches!(shape, Shape::Load(..) | Shape::Store(..));
        for (place, register) in (0..).zip([d, s, t]) {
            self.program.add(&[sw(register, 4 * place, RESULT)]);
        }
        let [first, second] = if memory {
            self.program
                .add(&[lw(SPARE, 0, PLACE), lw(PLACE, 4, PLACE)]);
            [SPARE, PLACE]
        } else {
            [PATH, RA]
        };
        self.program
            .add(&[sw(first, 12, RESULT), sw(second, 16, RESULT)]);
        self.program.add(&[sw(word_base(word), 20, RESULT)]);
    }

    /// An instruction that goes nowhere.
    fn alone(&mut self, word: u32) -> u32 {
        self.program.add(&[word]);
        word
    }

    /// A load or store somewhere in two words with these values, in one of the memories.
    fn access(&mut self, opcode: u32, bytes: u32, s: u32, t: u32, values: [u32; 2]) -> u32 {
        let memories = [
            DATA,
            0x0030_0000 + DATA,
            SPILL_WINDOW.start + DATA,
            SCRATCH_BASE + 0x400,
        ];
        let s = if s == ZERO { 1 } else { s };
        let place = memories[self.below(4) as usize] + 8 * self.below(64);
        let at = self.below(8 / bytes) * bytes;
        let offset = match self.below(3) {
            0 => 0,
            1 => self.immediate(),
            _ => 8 * (self.below(9) as i32 - 4),
        };
        self.program.constant(PLACE, place);
        for (place, value) in [(0, values[0]), (4, values[1])] {
            self.program.constant(SPARE, value);
            self.program.add(&[sw(SPARE, place, PLACE)]);
        }
        let base = place.wrapping_add(at).wrapping_add_signed(-offset);
        self.program.constant(s, base);
        let word = immediate(opcode, t, s, offset);
        self.alone(word)
    }

    /// A branch forward or back, with its slot.
    fn branch(&mut self, opcode: u32, s: u32, t: u32) -> u32 {
        if self.below(2) == 0 {
            return self.forward(immediate(opcode, t, s, 3), s);
        }
        let word = immediate(opcode, t, s, -4);
        let slot = self.slot(s);
        self.program.add(&[
            beq(ZERO, ZERO, 4),
            NOP,
            ori(PATH, PATH, 2),
            beq(ZERO, ZERO, 4),
            NOP,
            word,
            slot,
            ori(PATH, PATH, 4),
        ]);
        word
    }

    /// A jump or branch over two instructions behind its slot.
    fn forward(&mut self, word: u32, s: u32) -> u32 {
        let slot = self.slot(s);
        self.program.add(&[
            word,
            slot,
            ori(PATH, PATH, 2),
            ori(PATH, PATH, 4),
            ori(PATH, PATH, 8),
        ]);
        word
    }

    /// A jump to what register `s` holds.
    fn jump_to(&mut self, s: u32, word: u32) -> u32 {
        let target = self.program.here() + 4 * (2 + 4);
        self.program.constant(s, target);
        self.forward(word, s)
    }

    /// Marks the path, or changes what the jump has looked at.
    fn slot(&mut self, s: u32) -> u32 {
        match self.below(2) {
            0 => ori(PATH, PATH, 1),
            _ => addiu(s, s, 4),
        }
    }
}

/// The register in the field of `rs`, which loads and jumps may have changed.
fn word_base(word: u32) -> u32 {
    word >> 21 & 31
}
