//! CPUs of infinite speed: they show what the firmware demands of the engines.
//!
//! The firmware runs unchanged, but its instructions take no time and no cycle of the SRAM port:
//! in the cycle in which an event rises, all of its handlers run to completion. The remaining
//! limits are those of any firmware with the same demands on the engines, the bus, the wire and
//! the host.
//!
//! ```text
//!   board's CPU   event ──► handler ......... ──► DMA
//!   unlimited     event ──► handler ──► DMA            in the same cycle
//! ```
//!
//! A CPU rests when it has polled its event register twice with the same result and has written no
//! new value to a register in between: it has no work, or cannot proceed before an engine does.

use super::{Environment, Machine, environment};
use crate::cpu::Access;
use crate::timing::Timed;
use tigon2_chip::{Cpu, Register, beyond};
use tigon2_model::UndefinedKind;

/// Instructions of a CPU in a cycle: firmware that waits for time to pass must see it pass.
const BUDGET: u32 = 512;
/// A CPU's last read of its event register, and its actions since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Poll {
    /// The instruction that looked, and what it saw.
    pub seen: Option<(u32, u32)>,
    /// Whether a register has been written since.
    pub wrote: bool,
}

/// A CPU at rest looks again after so many cycles: what it waits for may be a word that
/// the other CPU stores.
const REST: u64 = 16;

/// Pointers into the descriptor rings of the DMA assist and the transmitter that firmware
/// writes.
const POINTERS: [Register; 5] = [
    Register::AssistReadProducer,
    Register::AssistReadReference,
    Register::AssistWriteProducer,
    Register::AssistWriteReference,
    Register::TxDescriptorProducer,
];

impl Machine {
    /// Whether the CPUs take no time, from now on. Only the cycle model knows of it.
    pub fn set_unlimited(&mut self, unlimited: bool) {
        if self.timed.is_some() {
            self.unlimited = unlimited.then(Default::default);
            // Accesses under way are done; what they wait for is not waited for.
            self.restarted = [true; Cpu::MOST];
            self.ready = [self.cycle; Cpu::MOST];
            self.recheck = true;
        }
    }

    fn poll_of(&mut self, cpu: Cpu) -> &mut Poll {
        &mut self.unlimited.get_or_insert_default()[cpu.index()]
    }

    /// A CPU's turn: all that it can do now.
    pub(super) fn tick_unlimited(&mut self, timed: &mut Timed, cycle: u64, cpu: Cpu) {
        let mut poll = std::mem::take(self.poll_of(cpu));
        let mut again = cycle + 1;
        for _ in 0..BUDGET {
            if !self.cpus.core(cpu).running() {
                return;
            }
            let core = self.cpus.core_mut(cpu);
            let executed = match core.step(&mut self.sram) {
                Ok(executed) => executed,
                Err(fault) => return self.fault_cpu(cpu, fault),
            };
            match executed.access {
                Access::None
                | Access::LoadScratch
                | Access::StoreScratch
                | Access::LoadSram
                | Access::StoreSram => {}
                Access::ReadRegister { offset, target } => {
                    self.follow_read(timed, offset);
                    self.read_register(cpu, &executed, offset, target);
                    if offset == beyond::event(cpu) {
                        let seen = Some((executed.pc, self.cpus.core(cpu).gpr(target)));
                        let rests = seen == poll.seen && !poll.wrote;
                        poll = Poll { seen, wrote: false };
                        if rests {
                            again = cycle + REST;
                            break;
                        }
                    }
                }
                Access::WriteRegister { offset, value } => {
                    let before = self.pointer(cpu, offset);
                    self.card
                        .device(&mut environment!(self))
                        .cpu_write(cpu, offset, value);
                    if before.is_none() || self.pointer(cpu, offset) != before {
                        poll.wrote = true;
                        self.settle();
                    }
                }
                Access::LoadNothing { address } => {
                    self.undefined(cpu, UndefinedKind::Read, address, 0);
                }
                Access::StoreNothing { address, value } => {
                    self.undefined(cpu, UndefinedKind::Write, address, value);
                }
            }
        }
        *self.poll_of(cpu) = poll;
        timed.pipelines[cpu.index()].ready = again;
    }

    /// What one of the [`POINTERS`] reads; `None` for any other register. Firmware writes
    /// them in each turn, moved or not, while an event waits that it cannot serve yet.
    fn pointer(&mut self, cpu: Cpu, offset: u32) -> Option<u32> {
        POINTERS
            .iter()
            .any(|register| register.offset() == offset)
            .then(|| {
                self.card
                    .device(&mut environment!(self))
                    .cpu_read(cpu, offset)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{REGISTERS, get, put};
    use super::super::timed_tests::{machine, start};
    use super::*;
    use crate::asm::*;
    use crate::timing::Parameters;
    use tigon2_chip::memory::SCRATCH_BASE;

    /// Turns in so many cycles of a CPU that takes no time and polls for ever, with an
    /// instruction between that writes a register.
    fn turns(cycles: u64, write: &[u32]) -> u32 {
        let setup = [REGISTERS, addiu(A0, ZERO, 0x20)];
        let again = j(SCRATCH_BASE + 4 * setup.len() as u32);
        let round = [get(V0, Register::EventA), addiu(V1, V1, 1)];
        let program = [&setup[..], &round, write, &[again, NOP]].concat();

        let mut machine = machine(Parameters::default());
        machine.load_scratch(Cpu::A, &program);
        machine.set_unlimited(true);
        start(&mut machine, SCRATCH_BASE);
        machine.run(cycles);
        machine.cpus.core(Cpu::A).gpr(V1 as usize)
    }

    /// A CPU with nothing to do looks about once a rest; one that tells the assist each time
    /// what the assist knows has nothing to do either.
    #[test]
    fn a_cpu_rests_that_writes_nothing_new() {
        let rests = (1600 / REST) as u32;
        let same = put(A0, Register::AssistWriteProducer);
        for write in [&[NOP][..], &[same]] {
            let turns = turns(1600, write);
            assert!(
                (rests..rests + 5).contains(&turns),
                "{turns}, {rests} rests"
            );
        }
    }

    /// One that moves a pointer, or writes a register which may do something, goes on.
    #[test]
    fn a_cpu_goes_on_that_writes_something() {
        let moved = [addiu(A0, A0, 0x20), put(A0, Register::AssistWriteProducer)];
        let other = [put(A0, Register::MulticastHash0)];
        for write in [&moved[..], &other] {
            let turns = turns(1600, write);
            assert!(turns > 1600 * 50, "{turns}");
        }
    }
}
