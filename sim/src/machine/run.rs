//! The loop that lets time pass.

use super::idle::common_multiple;
use super::{Environment, Machine, WORK_LIMIT, environment};
use crate::cpu::{Access, Executed};
use tigon2_chip::{Cpu, Register};
use tigon2_model::{Effect, Reception};

impl Machine {
    /// Lets `cycles` pass.
    pub fn run(&mut self, cycles: u64) {
        self.run_until(self.cycle.saturating_add(cycles), |_| false);
    }

    /// Lets time pass until cycle `limit` or until `stop` holds; returns whether it holds.
    /// The condition is looked at whenever the card has changed, not after each
    /// instruction: it may ask for the interrupt, frames, faults and card state.
    pub fn run_until(&mut self, limit: u64, mut stop: impl FnMut(&Machine) -> bool) -> bool {
        self.changed = true;
        loop {
            if std::mem::take(&mut self.changed) && stop(self) {
                return true;
            }
            if self.cycle >= limit {
                return false;
            }
            if self.cycle >= self.deadline {
                self.attend();
                continue;
            }
            let horizon = limit.min(self.deadline);
            if self.cpus.any_running() {
                self.execute(horizon);
            } else {
                self.cycle = horizon;
            }
        }
    }

    /// Executes until `horizon`, or until the card changes.
    fn execute(&mut self, horizon: u64) {
        while self.cycle < horizon && !self.changed {
            let mut waiting = false;
            for cpu in Cpu::ALL {
                if self.cpus.core(cpu).running() && self.ready[cpu.index()] <= self.cycle {
                    waiting |= self.step(cpu);
                }
            }
            self.cycle += 1;
            if waiting && !self.changed {
                self.skip(horizon);
            }
        }
    }

    /// Executes one instruction; returns whether the CPU was found waiting.
    #[inline]
    fn step(&mut self, cpu: Cpu) -> bool {
        let core = self.cpus.core_mut(cpu);
        match core.step(&mut self.sram) {
            Ok(executed) => {
                self.ready[cpu.index()] = self.cycle + self.timing.cycles(&executed);
                match executed.access {
                    Access::None | Access::LoadSram | Access::LoadScratch => false,
                    Access::StoreSram | Access::StoreScratch => {
                        self.idle.changed(self.cycle);
                        false
                    }
                    Access::ReadRegister { offset, target } => {
                        self.read_register(cpu, &executed, offset, target)
                    }
                    Access::WriteRegister { offset, value } => {
                        self.card
                            .cpu_write(&mut environment!(self), cpu, offset, value);
                        self.settle();
                        false
                    }
                }
            }
            Err(fault) => {
                let pc = core.pc();
                self.card.cpu_fault(&mut environment!(self), cpu, fault, pc);
                self.settle();
                false
            }
        }
    }

    /// Completes a load from a register of the chip.
    fn read_register(&mut self, cpu: Cpu, executed: &Executed, offset: u32, target: usize) -> bool {
        let value = self.card.cpu_read(&mut environment!(self), cpu, offset);
        let core = self.cpus.core_mut(cpu);
        core.complete_read(target, value);
        if offset == Register::event(cpu).offset() {
            self.idle.polled(cpu.index(), core, executed.pc, self.cycle)
        } else {
            self.idle.changed(self.cycle);
            false
        }
    }

    /// Skips as many whole rounds of waiting as fit before `horizon`, if all running CPUs
    /// wait.
    fn skip(&mut self, horizon: u64) {
        let mut common = 1;
        for cpu in Cpu::ALL {
            if self.cpus.core(cpu).running() {
                let round = self.idle.round(cpu.index());
                let Some(multiple) = round.and_then(|round| common_multiple(common, round.cycles))
                else {
                    return;
                };
                common = multiple;
            }
        }
        let cycles = (horizon - self.cycle.min(horizon)) / common * common;
        if cycles == 0 {
            return;
        }
        self.cycle += cycles;
        for cpu in Cpu::ALL {
            if let Some(round) = self.idle.round(cpu.index()) {
                let instructions = cycles / round.cycles * round.instructions;
                self.cpus.core_mut(cpu).retire(instructions);
                self.ready[cpu.index()] += cycles;
                self.idle.skip(cpu.index(), cycles, instructions);
            }
        }
    }

    /// A deadline of the card or the wire has come.
    fn attend(&mut self) {
        self.card.advance(&mut environment!(self));
        let now = self.now();
        while let Some(frame) = self.wire.arrived(now) {
            match self.card.receive(&mut environment!(self), &frame.bytes) {
                Reception::Held => {
                    self.wire.hold();
                    break;
                }
                Reception::Accepted => self.received.accepted += 1,
                Reception::Dropped(_) => self.received.dropped += 1,
            }
            self.wire.take_arrived(now);
        }
        self.settle();
    }

    /// Lets the card do what it has to do and carries out its effects.
    pub(super) fn settle(&mut self) {
        let mut more = true;
        let mut rounds = 0;
        while more && rounds < WORK_LIMIT {
            more = self.card.run(&mut environment!(self));
            self.apply_effects();
            rounds += 1;
        }
        self.idle.changed(self.cycle);
        self.changed = true;
        self.plan();
        if more {
            self.deadline = self.cycle + 1;
        }
    }

    /// Carries out what the card has asked for.
    fn apply_effects(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        effects.extend(self.card.drain_effects());
        let now = self.now();
        for effect in effects.drain(..) {
            match effect {
                Effect::Interrupt(asserted) => self.interrupt = asserted,
                Effect::Transmit(frame) => self.wire.transmit(now, frame),
                Effect::CpuStart { cpu, pc } => {
                    self.cpus.core_mut(cpu).start(pc);
                    self.ready[cpu.index()] = self.cycle + 1;
                }
                Effect::CpuHalt { cpu } => self.cpus.core_mut(cpu).halt(),
                Effect::SpillBase { cpu, base } => self.cpus.core_mut(cpu).set_spill_base(base),
            }
        }
        self.effects = effects;
    }

    /// Works out when the card or the wire needs attention next.
    pub(super) fn plan(&mut self) {
        let now = self.now();
        let card = self.card.next_deadline(now);
        // A frame that the card cannot take now waits until the card has changed.
        let wire = self
            .wire
            .next_arrival()
            .filter(|at| *at > now || self.card.can_receive());
        let next = card.into_iter().chain(wire).min();
        self.deadline = next.map_or(u64::MAX, |at| self.clock.cycle_at(at).max(self.cycle + 1));
    }
}
