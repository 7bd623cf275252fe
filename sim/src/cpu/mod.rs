//! The CPUs: MIPS II interpreters with private scratch pads.
//!
//! Hardware reference, section 3. [`Core`] executes one instruction at a time and knows
//! SRAM, spill window and scratch pad. Registers of the chip belong to the card: an
//! instruction that touches one is reported as [`Access::ReadRegister`] or
//! [`Access::WriteRegister`], and the machine completes it.

mod core;
mod decode;
mod execute;
mod history;
mod stretch;
#[cfg(test)]
mod tests;

pub use self::core::{Access, Core, Executed};
pub(crate) use self::core::{Checkpoint, Place};
pub(crate) use self::decode::Operation;
pub use self::history::HISTORY;
pub(crate) use self::stretch::{Costs, StoredOver, Stretch};

use tigon2_chip::Cpu;
use tigon2_model::{Board, CpuPort};

/// The CPUs of a board.
#[derive(Debug)]
pub struct Cpus {
    cores: [Core; Cpu::MOST],
    count: usize,
}

impl Cpus {
    /// Its CPUs, halted, with zeroed scratch pads. Those that it has not are never started.
    pub fn new(board: &Board) -> Self {
        let count = board.cpus().len();
        let pad = |cpu: Cpu| match cpu.index() < count {
            true => board.scratch_bytes(cpu),
            false => 0,
        };
        Cpus {
            cores: Cpu::EVERY.map(|cpu| Core::new(pad(cpu))),
            count,
        }
    }

    /// Which there are.
    #[inline]
    pub fn all(&self) -> &'static [Cpu] {
        Cpu::first(self.count)
    }

    /// One of them.
    pub fn core(&self, cpu: Cpu) -> &Core {
        &self.cores[cpu.index()]
    }

    /// One of them.
    pub fn core_mut(&mut self, cpu: Cpu) -> &mut Core {
        &mut self.cores[cpu.index()]
    }

    /// Whether any of them runs.
    pub fn any_running(&self) -> bool {
        self.cores.iter().any(Core::running)
    }
}

impl CpuPort for Cpus {
    fn pc(&self, cpu: Cpu) -> u32 {
        self.core(cpu).pc()
    }

    fn gpr(&self, cpu: Cpu, n: usize) -> u32 {
        self.core(cpu).gpr(n)
    }

    fn scratch_read(&self, cpu: Cpu, offset: u32) -> u32 {
        self.core(cpu).scratch_word(offset)
    }

    fn scratch_write(&mut self, cpu: Cpu, offset: u32, value: u32) {
        self.core_mut(cpu).set_scratch_word(offset, value);
    }
}
