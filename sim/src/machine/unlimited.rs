//! CPUs without limit: what the firmware asks of the engines, with all of its work free.
//!
//! The firmware runs as ever, but its instructions take no time and no cycle of the SRAM
//! port: in the cycle in which an event rises all of its handlers run to their end.
//! What is left is what limits any firmware that asks the same of the engines, the bus,
//! the wire and the host.
//!
//! ```text
//!   board's CPU   event ──► handler ......... ──► DMA
//!   unlimited     event ──► handler ──► DMA            in the same cycle
//! ```
//!
//! A CPU rests when it has polled its event register twice with the same answer and has
//! written no register between: it has nothing to do, or cannot do what is there until an
//! engine gets on.

use super::{Environment, Machine, environment};
use crate::cpu::Access;
use crate::timing::Timed;
use tigon2_chip::{Cpu, beyond};
use tigon2_model::UndefinedKind;

/// Instructions of a CPU in a cycle: firmware that waits for time to pass must see it pass.
const BUDGET: u32 = 512;
/// A CPU at rest looks again after so many cycles: what it waits for may be a word that
/// the other CPU stores.
const REST: u64 = 16;

impl Machine {
    /// Whether the CPUs take no time, from now on. Only the cycle model knows of it.
    pub fn set_unlimited(&mut self, unlimited: bool) {
        if let Some(timed) = &mut self.timed {
            timed.unlimited = unlimited;
            // Accesses under way are done; what they wait for is not waited for.
            self.restarted = [true; Cpu::MOST];
            self.ready = [self.cycle; Cpu::MOST];
            self.recheck = true;
        }
    }

    /// A CPU's turn: all that it can do now.
    pub(super) fn tick_unlimited(&mut self, timed: &mut Timed, cycle: u64, cpu: Cpu) {
        let mut polled = None;
        let mut wrote = false;
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
                    self.read_register(cpu, &executed, offset, target);
                    if offset == beyond::event(cpu) {
                        let seen = Some((executed.pc, self.cpus.core(cpu).gpr(target)));
                        if seen == polled && !wrote {
                            timed.pipelines[cpu.index()].ready = cycle + REST;
                            return;
                        }
                        polled = seen;
                        wrote = false;
                    }
                }
                Access::WriteRegister { offset, value } => {
                    wrote = true;
                    self.card
                        .cpu_write(&mut environment!(self), cpu, offset, value);
                    self.settle();
                }
                Access::LoadNothing { address } => {
                    self.undefined(cpu, UndefinedKind::Read, address, 0);
                }
                Access::StoreNothing { address, value } => {
                    self.undefined(cpu, UndefinedKind::Write, address, value);
                }
            }
        }
        timed.pipelines[cpu.index()].ready = cycle + 1;
    }
}
