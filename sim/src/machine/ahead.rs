//! A CPU runs ahead of the engines while it needs nothing that they share.
//!
//! Most instructions compute, branch or touch the CPU's own scratch pad. Nothing can be
//! seen of them from outside, and nothing from outside changes them, until the next cycle
//! in which an engine or the other CPU may do something that a CPU or the host could see:
//! a transfer or a frame begins or ends, the other CPU issues an instruction. Up to there
//! they are executed in a row, with the cycles that each of them would have had.
//!
//! ```text
//!   cycle      n                                        quiet until
//!   engines    |  beats of DMA and MAC, no effect yet        | effect
//!   other CPU  |  waits                                      |
//!   this CPU   | lw (scratch) | addu | bne | sll | or | lw (SRAM): asks in its cycle
//! ```

use super::Machine;
use crate::cpu::{Access, Place};
use crate::timing::Timed;
use crate::timing::counts::{Cause, Tally};
use tigon2_chip::Cpu;
use tigon2_chip::instruction::FUNCTION_JOFF;
use tigon2_chip::instruction::{function, opcode, rt};

impl Machine {
    /// Lets a CPU that has had its turn in `cycle` go on, as far as that can be told now;
    /// in no case does it issue anything in cycle `horizon` or later.
    #[inline]
    pub(super) fn run_ahead<const N: usize>(
        &mut self,
        timed: &mut Timed,
        cycle: u64,
        horizon: u64,
        cpu: Cpu,
    ) {
        let ready = timed.pipelines[cpu.index()].ready;
        // A recorder sees every instruction in its turn, and so does a probe.
        if ready >= horizon || self.changed || self.recorder.is_some() || self.is_probed(cycle) {
            return;
        }
        if !self.cpus.core(cpu).running() {
            return;
        }
        let limit = self.quiet_until::<N>(timed, cycle, cpu).min(horizon);
        while self.private_run(timed, limit, cpu) {
            // What needs more than the CPU, but nothing of anybody else: it is done as of
            // its own cycle.
            let at = timed.pipelines[cpu.index()].ready;
            let now = std::mem::replace(&mut self.cycle, at);
            self.tick_cpu(timed, at, cpu);
            self.cycle = now;
        }
    }

    /// The first cycle after `cycle` in which something may happen that the CPU could see,
    /// or that could stop it.
    #[inline]
    fn quiet_until<const N: usize>(&self, timed: &Timed, cycle: u64, cpu: Cpu) -> u64 {
        let mut until = timed.dma.quiet_until(cycle, &timed.parameters);
        until = until.min(timed.mac.quiet_until());
        for other in Cpu::EVERY.into_iter().take(N) {
            if other != cpu
                && self.cpus.core(other).running()
                && timed.parked[other.index()].is_none()
            {
                let issues = timed.pipelines[other.index()].issues_from(cycle, &timed.parameters);
                // In a cycle they go in their order.
                until = until.min(if cpu < other { issues + 1 } else { issues });
            }
        }
        until
    }

    /// Executes instructions that are the CPU's own affair, before cycle `limit`. Returns
    /// whether the next one can be executed now, too: a load whose value nobody changes
    /// before.
    #[inline]
    fn private_run(&mut self, timed: &mut Timed, limit: u64, cpu: Cpu) -> bool {
        let Timed {
            parameters,
            pipelines,
            ..
        } = timed;
        let pipeline = &mut pipelines[cpu.index()];
        let core = self.cpus.core_mut(cpu);
        let mut tally = Tally::default();
        let mut at = pipeline.ready;
        let mut more = false;
        while at < limit {
            let Ok((instruction, address)) = core.upcoming(&self.sram) else {
                break;
            };
            if address.is_some_and(|address| !pipeline.holds(address, at, parameters)) {
                break;
            }
            let operation = instruction.operation;
            if operation.halts() || instruction.jumps && core.in_slot() {
                break;
            }
            if operation.loads() || operation.stores() {
                match core.target(instruction) {
                    Some(Place::Scratch(_)) => {}
                    Some(Place::Register(_)) if operation.loads() => {
                        more = true;
                        break;
                    }
                    Some(Place::Sram(_)) if operation.loads() && pipeline.is_quiet() => {
                        more = true;
                        break;
                    }
                    _ => break,
                }
            }
            if pipeline.take_loaded() & instruction.sources != 0 && parameters.load_use != 0 {
                tally.cycles[Cause::LoadUse as usize] += parameters.load_use;
                at += parameters.load_use;
                continue;
            }
            let Ok(executed) = core.step_decoded(&mut self.sram, instruction) else {
                break;
            };
            tally.instructions += 1;
            at += 1;
            match executed.access {
                Access::LoadScratch => {
                    tally.cycles[Cause::Scratch as usize] += parameters.sp_ld;
                    at += parameters.sp_ld;
                    pipeline.loaded_scratch(instruction.t.into());
                }
                Access::StoreScratch => {
                    tally.cycles[Cause::Scratch as usize] += parameters.sp_st;
                    at += parameters.sp_st;
                }
                _ => {}
            }
            if executed.taken {
                tally.cycles[Cause::Branch as usize] += parameters.br;
                at += parameters.br;
                if opcode(instruction.word) == 0 && function(instruction.word) == FUNCTION_JOFF {
                    pipeline.counts.executed(&std::mem::take(&mut tally));
                    pipeline.counts.entered(core.gpr(rt(instruction.word)));
                }
            }
        }
        pipeline.counts.executed(&tally);
        pipeline.ready = at;
        more
    }
}
