//! The machine as a debugger sees it: memory as each CPU sees it, registers, faults.
//!
//! Hardware reference, section 2: SRAM and registers are shared, the scratch pad and the
//! spill window are each CPU's own.

use super::{Environment, Machine, environment};
use crate::cpu::Place;
use tigon2_chip::Cpu;

/// What an instruction is about to touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub place: Place,
    pub bytes: u32,
    pub stores: bool,
}

impl Machine {
    /// Reads what a CPU would read from `address` on, without its side effects; returns
    /// how many bytes there are before the first address at which nothing answers.
    pub fn look_at(&mut self, cpu: Cpu, address: u32, out: &mut [u8]) -> usize {
        for (offset, byte) in (0..).zip(out.iter_mut()) {
            let at = address.wrapping_add(offset);
            let Some(word) = self.word_of(cpu, at & !3) else {
                return offset as usize;
            };
            *byte = word.to_be_bytes()[at as usize % 4];
        }
        out.len()
    }

    fn word_of(&mut self, cpu: Cpu, address: u32) -> Option<u32> {
        let core = self.cpus.core(cpu);
        match core.wrapped(&self.sram, address)? {
            Place::Register(offset) => Some(
                self.card
                    .device(&mut environment!(self))
                    .cpu_read(cpu, offset),
            ),
            place => Some(core.word_at(&self.sram, place)),
        }
    }

    /// Writes as a CPU would, word by word; whether something answers at all of it.
    pub fn change(&mut self, cpu: Cpu, address: u32, bytes: &[u8]) -> bool {
        for (offset, byte) in (0..).zip(bytes) {
            let at = address.wrapping_add(offset);
            let Some(word) = self.word_of(cpu, at & !3) else {
                return false;
            };
            let mut word = word.to_be_bytes();
            word[at as usize % 4] = *byte;
            // A register takes whole words: it is written once, with its last byte.
            let last = at % 4 == 3 || offset as usize + 1 == bytes.len();
            self.set_word_of(cpu, at & !3, u32::from_be_bytes(word), last);
        }
        true
    }

    fn set_word_of(&mut self, cpu: Cpu, address: u32, value: u32, last: bool) {
        let core = self.cpus.core_mut(cpu);
        match core.wrapped(&self.sram, address) {
            Some(Place::Register(offset)) if last => {
                self.write_register(cpu, offset, value, self.cycle);
            }
            Some(Place::Register(_)) | None => {}
            Some(place) => core.set_word_at(&mut self.sram, place, value),
        }
    }

    /// Sets a general register of a CPU.
    pub fn set_gpr(&mut self, cpu: Cpu, number: usize, value: u32) {
        self.cpus.core_mut(cpu).set_gpr(number, value);
    }

    /// Sets a CPU's program counter; it continues there.
    pub fn set_pc(&mut self, cpu: Cpu, pc: u32) {
        self.cpus.core_mut(cpu).jump(pc);
    }

    /// What a CPU's next instruction is about to touch.
    pub(crate) fn upcoming_touch(&mut self, cpu: Cpu) -> Option<Touch> {
        let core = self.cpus.core_mut(cpu);
        let (instruction, _) = core.upcoming(&self.sram).ok()?;
        let operation = instruction.operation;
        if !operation.loads() && !operation.stores() {
            return None;
        }
        let place = match core.target(instruction)? {
            Place::Sram(address) => Place::Sram(self.sram.wrap(address)),
            other => other,
        };
        Some(Touch {
            place,
            bytes: operation.width()?.into(),
            stores: operation.stores(),
        })
    }

    /// Where an address of a CPU leads.
    pub(crate) fn place_of(&self, cpu: Cpu, address: u32) -> Option<Place> {
        self.cpus.core(cpu).wrapped(&self.sram, address)
    }
}
