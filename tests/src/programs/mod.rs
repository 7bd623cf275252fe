//! Runs a test's programs on CPU A, without firmware and driver.
//!
//! The same words are put into the same memory of each engine and run until they halt; their
//! results in memory are read back through the host's window and compared.
//!
//! ```text
//!   cases, random ──► words ──► window ──► CPU A of QEMU       ──► window ─┐
//!                          └──► window ──► CPU A of the simulator ► window ─┴─► equal?
//! ```

pub mod cases;
pub mod random;

use crate::engine::Engine;
use host_driver::Transport;
use std::time::Duration;
use tigon2_chip::bits::CpuState;
use tigon2_chip::{Cpu, Register};
use tigon2_sim::asm::{addiu, lui, ori};

/// Where programs begin.
pub const ORIGIN: u32 = 0x4000;
/// Where programs leave their results.
pub const RESULTS: u32 = 0x8_0000;
/// Memory that programs load from and store to.
pub const DATA: u32 = 0xC_0000;

/// BAR offset and bytes of the window (hardware reference, section 9).
const WINDOW: u32 = 0x800;
const WINDOW_WORDS: usize = 0x200;

/// Instructions under way.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The words, the first of them at [`ORIGIN`].
    pub words: Vec<u32>,
}

impl Program {
    /// The address of the next instruction.
    pub fn here(&self) -> u32 {
        ORIGIN + 4 * self.words.len() as u32
    }

    /// Appends instructions.
    pub fn add(&mut self, words: &[u32]) -> &mut Self {
        self.words.extend(words);
        self
    }

    /// Loads a constant into a register.
    pub fn constant(&mut self, register: u32, value: u32) -> &mut Self {
        self.add(&[
            lui(register, value >> 16),
            ori(register, register, value & 0xFFFF),
        ])
    }

    /// Loads a small constant into a register.
    pub fn small(&mut self, register: u32, value: i32) -> &mut Self {
        self.add(&[addiu(register, 0, value)])
    }
}

/// An engine whose card runs programs.
pub struct Bare<E: Engine> {
    /// The card's wire.
    pub engine: E,
    transport: E::Transport,
}

impl<E: Engine> Bare<E> {
    /// A card after power-on, its words in the host's order (section 9).
    pub fn start() -> Self {
        let (engine, transport) = E::start();
        Self::on(engine, transport)
    }

    /// The same with an engine that was started already.
    pub fn on(engine: E, transport: E::Transport) -> Self {
        let mut bare = Bare { engine, transport };
        bare.set(Register::MiscHostControl, 0x2200_0022);
        // Its boot code would look for an image, and halt in the middle of the first program.
        bare.set(Register::CpuAState, CpuState::HALTED);
        bare
    }

    /// Writes a register from the host's side.
    pub fn set(&mut self, register: Register, value: u32) {
        let done = self.transport.write(register.offset(), value);
        done.expect("the card is there");
    }

    /// Reads a register from the host's side.
    pub fn get(&mut self, register: Register) -> u32 {
        let value = self.transport.read(register.offset());
        value.expect("the card is there")
    }

    /// Puts words into NIC memory, from the start of a window on.
    pub fn write(&mut self, address: u32, words: &[u32]) {
        for (page, words) in (0..).zip(words.chunks(WINDOW_WORDS)) {
            self.set(Register::WindowBase, address + 0x800 * page);
            let done = self.transport.write_block(WINDOW, words);
            done.expect("the card is there");
        }
    }

    /// Words of NIC memory, from the start of a window on.
    pub fn read(&mut self, address: u32, count: usize) -> Vec<u32> {
        let mut all = vec![0; count];
        for (page, words) in (0..).zip(all.chunks_mut(WINDOW_WORDS)) {
            self.set(Register::WindowBase, address + 0x800 * page);
            let done = self.transport.read_block(WINDOW, words);
            done.expect("the card is there");
        }
        all
    }

    /// Runs CPU A from an address until it halts; returns where that is.
    ///
    /// # Panics
    /// When it does not halt.
    pub fn run(&mut self, pc: u32) -> u32 {
        self.set(Register::CpuAPc, pc);
        self.set(Register::cpu_state(Cpu::A), 0);
        for _ in 0..100_000 {
            if CpuState::from_bits(self.get(Register::CpuAState)).halt() {
                return self.get(Register::CpuAPc);
            }
            self.engine.pass(Duration::from_micros(20));
        }
        panic!("CPU A runs on and on");
    }

    /// Runs a program whose last instruction is its `break`; returns `count` words of its
    /// results.
    pub fn results(&mut self, program: &Program, count: usize) -> Vec<u32> {
        self.write(ORIGIN, &program.words);
        let end = self.run(ORIGIN);
        assert_eq!(end, program.here() - 4, "the program comes to its end");
        self.read(RESULTS, count)
    }
}
