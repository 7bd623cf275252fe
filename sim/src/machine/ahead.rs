//! Lets a CPU run ahead of the engines while it uses nothing that they share.
//!
//! Most instructions compute, branch or access the CPU's own scratch pad. They have no effect that
//! anything outside the CPU could see. Until the next cycle in which an engine or the other CPU
//! may do something visible to a CPU or the host (a transfer or a frame begins or ends, the other
//! CPU issues an instruction), nothing outside changes them or the values that the CPU loads. Up
//! to that cycle they are executed in one run, each with its exact cycles. After it the CPU may
//! take the [lead](super::lead).
//!
//! The one value that the beats of the engines change is `R[C4]` while a frame arrives. It is read
//! in its own cycle.
//!
//! ```text
//!   cycle      n                                  quiet until
//!   engines    |  beats of DMA and MAC, no effect yet  | effect
//!   other CPU  |  waits                                |
//!   this CPU   | lw (scratch) | addu | bne | lw (SRAM) | sll | or | sw (SRAM): asks in its
//!                                                      ╰─ lead ─╯              cycle
//! ```

use super::Machine;
use crate::cpu::{Access, Operation, Place};
use crate::timing::Timed;
use crate::timing::counts::Cause;
use tigon2_chip::{Cpu, Register};

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
        self.leads[cpu.index()].end();
        let ready = timed.pipelines[cpu.index()].ready;
        if ready >= horizon || !self.cpus.core(cpu).running() {
            return;
        }
        // A recorder sees every instruction in its turn, and so does a probe.
        if self.recorder.is_some() || self.is_probed(cycle) || self.is_left() {
            return;
        }
        // The engines have not seen yet what has changed.
        if !self.changed && !self.run_quietly::<N>(timed, cycle, horizon, cpu) {
            return;
        }
        if timed.pipelines[cpu.index()].ready < horizon {
            self.lead(timed, horizon, cpu);
        }
    }

    /// Lets a CPU go on while nothing can happen that it could see. Returns whether that is
    /// why it stopped: the next instruction involves only this CPU.
    #[inline]
    fn run_quietly<const N: usize>(
        &mut self,
        timed: &mut Timed,
        cycle: u64,
        horizon: u64,
        cpu: Cpu,
    ) -> bool {
        let limit = self.quiet_until::<N>(timed, cycle, cpu).min(horizon);
        while self.run_private(timed, limit, cpu) {
            // What needs more than the CPU, but nothing of anybody else: it is done as of
            // its own cycle.
            let at = timed.pipelines[cpu.index()].ready;
            let now = std::mem::replace(&mut self.cycle, at);
            self.tick_cpu(timed, at, cpu);
            self.cycle = now;
        }
        timed.pipelines[cpu.index()].ready >= limit
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
                && self.parked[other.index()].is_none()
            {
                let issues = timed.pipelines[other.index()].issues_from(cycle, &timed.parameters);
                // In a cycle they go in their order.
                until = until.min(if cpu < other { issues + 1 } else { issues });
            }
        }
        until
    }

    /// Executes instructions that involve only this CPU, before cycle `limit`, from its
    /// scratch pad or from the line that it holds. Returns whether the next one can be
    /// executed now, too: a load whose value nobody changes before.
    #[inline]
    fn run_private(&mut self, timed: &mut Timed, limit: u64, cpu: Cpu) -> bool {
        let Timed {
            parameters,
            pipelines,
            ..
        } = timed;
        let pipeline = &mut pipelines[cpu.index()];
        let core = self.cpus.core_mut(cpu);
        let costs = parameters.costs();
        loop {
            let row = core.stretch(limit, &costs, pipeline.place());
            pipeline.executed(&row);
            let at = pipeline.ready;
            if at >= limit {
                return false;
            }
            // What is not in the scratch pad, or leads out of it.
            let Ok((instruction, address)) = core.upcoming(&self.sram) else {
                return false;
            };
            if address.is_some_and(|address| !pipeline.holds(address, at, parameters)) {
                return false;
            }
            let operation = instruction.operation;
            if operation.halts() || instruction.jumps && core.in_slot() {
                return false;
            }
            if operation.width().is_some() {
                match core.target(instruction) {
                    Some(Place::Scratch(_)) => {}
                    Some(Place::Register(offset)) => {
                        return operation.loads() && offset != Register::RxProducer.offset();
                    }
                    Some(Place::Sram(_)) => return operation.loads() && pipeline.is_quiet(),
                    None => return false,
                }
            }
            if pipeline.uses_load(at, instruction.sources, parameters) {
                continue;
            }
            let Ok(executed) = core.step_decoded(&mut self.sram, instruction) else {
                return false;
            };
            if let Some(address) = address {
                pipeline.executes(address, instruction.word);
            }
            pipeline.issue(at);
            match executed.access {
                Access::LoadScratch => {
                    pipeline.penalty(Cause::Scratch, parameters.sp_ld);
                    pipeline.loaded_scratch(instruction.t.into());
                }
                Access::StoreScratch => pipeline.penalty(Cause::Scratch, parameters.sp_st),
                _ => {}
            }
            if executed.taken {
                pipeline.penalty(Cause::Branch, parameters.br);
                if operation == Operation::JumpOffset {
                    pipeline.counts.entered(core.gpr(instruction.t.into()));
                }
            }
        }
    }
}
