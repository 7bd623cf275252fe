//! Control of the two CPUs: state registers, halt and start, program counters.
//!
//! Hardware reference, section 3.4. The engine executes the instructions; the card decides when a
//! CPU starts and halts ([`Effect::CpuStart`](crate::Effect::CpuStart),
//! [`Effect::CpuHalt`](crate::Effect::CpuHalt)).

use tigon2_chip::bits::CpuState;

/// Why a CPU stopped. There are no exception vectors: every fault halts the CPU (3.1, I).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuFault {
    /// A `break` instruction: a failed assertion in firmware (3.1, I).
    Break,
    /// An instruction that the CPU does not implement.
    ReservedInstruction,
    /// A load, store or fetch at an unaligned address (3.1, U).
    Unaligned {
        /// The address.
        address: u32,
    },
    /// A load, store or fetch at an unmapped address.
    BusError {
        /// The address.
        address: u32,
    },
    /// Any other exception of the engine's CPU, by the engine's number.
    Exception(u32),
}

/// The action that a write to a state register requests from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuCommand {
    /// Run from `pc`, or from the current place.
    Start {
        /// The program counter that was written while it was halted, if any.
        pc: Option<u32>,
    },
    /// Stop.
    Halt,
}

/// One CPU's control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuControl {
    /// Bits of the state register other than halt and its reasons.
    state: u32,
    halted: bool,
    /// Its boot code found nothing valid to start (3.4, bit 4).
    rom_failed: bool,
    /// Program counter for the next start: written while halted, or the place of a fault.
    pc: Option<u32>,
    fault: Option<CpuFault>,
}

impl Default for CpuControl {
    /// After power-on: halted.
    fn default() -> Self {
        CpuControl {
            state: 0,
            halted: true,
            rom_failed: false,
            pc: None,
            fault: None,
        }
    }
}

impl CpuControl {
    /// Whether the CPU is halted.
    pub fn halted(&self) -> bool {
        self.halted
    }

    /// The fault that halted it, until it starts again.
    pub fn fault(&self) -> Option<CpuFault> {
        self.fault
    }

    /// The state register: bit 16 reads 1 while halted (3.4, C!).
    pub fn state(&self) -> u32 {
        CpuState::from_bits(self.state)
            .with_halt(self.halted)
            .with_rom_failed(self.rom_failed)
            .into_bits()
    }

    /// The CPU's boot code reports that it failed: bit 4 reads 1 until the next reset or start.
    /// Only the CPU itself can set it (docs/hardware.md, "Boot").
    pub fn fail_rom(&mut self) {
        self.rom_failed = true;
    }

    /// A write to the state register. Bit 0 resets: halted, at address 0 (I). Bit 16 halts
    /// and 0 runs (C). Bits 1 (step, I) and 2 (U) are stored.
    pub fn write_state(&mut self, value: u32) -> Option<CpuCommand> {
        let value = CpuState::from_bits(value);
        if value.reset() {
            let was_running = !self.halted;
            *self = CpuControl {
                pc: Some(0),
                ..CpuControl::default()
            };
            return was_running.then_some(CpuCommand::Halt);
        }
        self.state = value
            .with_halt(false)
            .with_halt_reasons(0)
            .with_rom_failed(false)
            .into_bits();
        match (self.halted, value.halt()) {
            (false, true) => {
                self.halted = true;
                Some(CpuCommand::Halt)
            }
            (true, false) => {
                self.halted = false;
                self.rom_failed = false;
                self.fault = None;
                Some(CpuCommand::Start { pc: self.pc.take() })
            }
            _ => None,
        }
    }

    /// The program counter for the next start, if any.
    pub fn pc(&self) -> Option<u32> {
        self.pc
    }

    /// A write to the program counter register; it applies to the next start.
    pub fn write_pc(&mut self, pc: u32) {
        self.pc = Some(pc & !3);
    }

    /// The engine found a fault at `pc`; returns whether the CPU was running.
    pub fn stop_on(&mut self, fault: CpuFault, pc: u32) -> bool {
        let was_running = !self.halted;
        self.halted = true;
        self.fault = Some(fault);
        self.pc = Some(pc);
        was_running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use crate::{Cpu, Effect};
    use tigon2_chip::{Register, registers::cpu_gpr};

    /// Reference 3.4 and 19: halt reads back (C!); the host starts CPU A with R[144] and
    /// clearing bit 16; the next read shows what firmware wrote, 4 (C).
    #[test]
    fn the_host_start_sequence_starts_cpu_a() {
        let mut bench = Bench::default();
        let state = bench.bar_read(0x140);
        bench.bar_write(0x140, state | 0x1_0000);
        assert_ne!(bench.bar_read(0x140) & CpuState::HALTED, 0);
        bench.bar_write(0x144, 0x4000);
        assert_eq!(bench.bar_read(0x144), 0x4000);
        let state = bench.bar_read(0x140);
        bench.bar_write(0x140, state & !0x1_0002);
        let start = Effect::CpuStart {
            cpu: Cpu::A,
            pc: 0x4000,
        };
        assert_eq!(bench.effects(), [start]);
        bench.write(Register::CpuAState, 4);
        assert_eq!(bench.bar_read(0x140), 4);
        assert_eq!(bench.effects(), []);
    }

    /// Reference 3.4: CPU A starts CPU B: R[240] |= 0x10000; R[244] = entry; R[240] = 0 (C).
    #[test]
    fn cpu_a_starts_cpu_b() {
        let mut bench = Bench::default();
        let state = bench.read(Register::CpuBState);
        bench.write(Register::CpuBState, state | 0x1_0000);
        bench.write(Register::CpuBPc, 0x8000);
        bench.write(Register::CpuBState, 0);
        let start = Effect::CpuStart {
            cpu: Cpu::B,
            pc: 0x8000,
        };
        assert_eq!(bench.effects(), [start]);
        assert_eq!(bench.read(Register::CpuBState), 0);
    }

    /// Reference 3.4: firmware stops itself by setting bit 16 of R[140] (C); without a new
    /// program counter it continues where it stopped.
    #[test]
    fn a_cpu_halts_itself_and_goes_on_where_it_stood() {
        let mut bench = Bench::default();
        bench.bar_write(0x140, 0);
        bench.effects();
        bench.write(Register::CpuAState, 0x1_0004);
        assert_eq!(bench.effects(), [Effect::CpuHalt { cpu: Cpu::A }]);
        bench.cpus.pc[0] = 0x5678;
        assert_eq!(bench.bar_read(0x144), 0x5678);
        bench.bar_write(0x140, 4);
        let start = Effect::CpuStart {
            cpu: Cpu::A,
            pc: 0x5678,
        };
        assert_eq!(bench.effects(), [start]);
    }

    /// Reference 3.1: `break` halts the CPU, bit 16 of its state (I).
    #[test]
    fn a_fault_halts_and_is_remembered() {
        let mut bench = Bench::default();
        bench.bar_write(0x140, 0);
        bench.effects();
        bench.with(|card, env| card.cpu_fault(env, Cpu::A, CpuFault::Break, 0x4444));
        assert_eq!(bench.effects(), [Effect::CpuHalt { cpu: Cpu::A }]);
        assert_eq!(bench.bar_read(0x140) & CpuState::HALTED, 0x1_0000);
        assert_eq!(bench.bar_read(0x144), 0x4444);
        assert_eq!(bench.card.inspect().fault(Cpu::A), Some(CpuFault::Break));
        bench.bar_write(0x140, 0);
        assert_eq!(bench.card.inspect().fault(Cpu::A), None);
    }

    /// Reference 3.4: registers and scratch pads are visible to the host (I).
    #[test]
    fn the_host_sees_registers_and_scratch_pads() {
        let mut bench = Bench::default();
        bench.cpus.gpr[1][29] = 0xCAFE;
        assert_eq!(bench.bar_read(cpu_gpr(Cpu::B, 29)), 0xCAFE);
        bench.bar_write(0x154, 0x10);
        bench.bar_write(0x158, 0x1234_5678);
        assert_eq!(bench.cpus.scratch[0][4], 0x1234_5678);
        bench.bar_write(0x254, 0x1FFC);
        bench.cpus.scratch[1][0x7FF] = 5;
        assert_eq!(bench.bar_read(0x258), 5);
    }

    #[test]
    fn a_reset_halts_at_address_zero() {
        let mut control = CpuControl::default();
        control.write_pc(0x4000);
        assert_eq!(
            control.write_state(4),
            Some(CpuCommand::Start { pc: Some(0x4000) })
        );
        assert_eq!(control.write_state(1), Some(CpuCommand::Halt));
        assert_eq!(control.state(), 0x1_0000);
        assert_eq!(control.pc(), Some(0));
    }
}
