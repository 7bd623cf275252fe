//! The main loop of the functional clock.

use super::idle::{Round, Waiting, prove};
use super::{Environment, Machine, WORK_LIMIT, environment};
use crate::cpu::{Access, Executed};
use tigon2_chip::{Cpu, beyond};
use tigon2_model::{Accessor, CpuFault, Effect, Reception, UndefinedKind, is_flow_control};

/// Two polls of the event register no farther apart than this may be rounds of a wait.
const SHORT_ROUND: u64 = 64;
/// A CPU that could not be parked is not looked at again before so many cycles.
pub(super) const LONGEST_POLL: u64 = 4 * SHORT_ROUND;
/// Less than this is not worth a skip, and a skip that could not be done is not tried
/// again before so many cycles.
const SKIP_WORTH: u64 = 256;

impl Machine {
    /// Lets `cycles` pass.
    pub fn run(&mut self, cycles: u64) {
        self.run_until(self.cycle.saturating_add(cycles), |_| false);
    }

    /// Lets time pass until cycle `limit` or until `stop` holds; returns whether it holds.
    /// The condition is looked at whenever the card has changed, not after each
    /// instruction: it may ask for the interrupt, frames, faults and card state.
    pub fn run_until(&mut self, limit: u64, stop: impl FnMut(&Machine) -> bool) -> bool {
        let stopped = self.run_towards(limit, stop);
        self.gather();
        stopped
    }

    /// The same; CPUs may then have [the lead](super::lead) or be [parked](super::parking): nobody
    /// may look at them before [`Machine::gather`].
    pub(super) fn run_towards(
        &mut self,
        limit: u64,
        mut stop: impl FnMut(&Machine) -> bool,
    ) -> bool {
        self.changed = true;
        loop {
            if self.is_left() {
                return false;
            }
            if std::mem::take(&mut self.changed) && stop(self) {
                return true;
            }
            if self.cycle >= limit {
                return false;
            }
            if self.cycle >= self.deadline {
                self.attend();
                if let Some(mut timed) = self.timed.take() {
                    self.unpark_changed(&mut timed, self.cycle, None);
                    self.timed = Some(timed);
                }
                continue;
            }
            if self.is_probed(self.cycle) {
                self.gather();
                if !self.probe(None) {
                    continue;
                }
            }
            let horizon = limit.min(self.deadline).min(self.probe_wakes());
            if let Some(mut timed) = self.timed.take() {
                self.execute_timed(&mut timed, horizon);
                self.timed = Some(timed);
            } else if self.watched() || self.is_probed(self.cycle) {
                self.execute_watched(horizon);
            } else if self.cpus.any_running() {
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
            for cpu in self.cpus.all().iter().copied() {
                if self.cpus.core(cpu).running() && self.ready[cpu.index()] <= self.cycle {
                    waiting |= self.step(cpu);
                }
            }
            self.cycle += 1;
            if waiting
                && !self.changed
                && self.cycle >= self.skip_from
                && horizon.saturating_sub(self.cycle) >= SKIP_WORTH
                && !self.skip(horizon)
            {
                self.skip_from = self.cycle + SKIP_WORTH;
            }
        }
    }

    /// Executes one instruction; returns whether the CPU seems to wait.
    #[inline]
    fn step(&mut self, cpu: Cpu) -> bool {
        let core = self.cpus.core_mut(cpu);
        match core.step(&mut self.sram) {
            Ok(executed) => {
                self.ready[cpu.index()] = self.cycle + self.timing.cycles(&executed);
                self.effect_of(cpu, &executed)
            }
            Err(fault) => {
                self.fault_cpu(cpu, fault);
                false
            }
        }
    }

    /// Completes an instruction's access; returns whether the CPU seems to wait.
    #[inline]
    pub(super) fn effect_of(&mut self, cpu: Cpu, executed: &Executed) -> bool {
        match executed.access {
            Access::None
            | Access::LoadSram
            | Access::LoadScratch
            | Access::StoreSram
            | Access::StoreScratch => false,
            Access::ReadRegister { offset, target } => {
                self.read_register(cpu, executed, offset, target)
            }
            Access::WriteRegister { offset, value } => {
                self.write_register(cpu, offset, value, self.cycle);
                false
            }
            Access::LoadNothing { address } => self.undefined(cpu, UndefinedKind::Read, address, 0),
            Access::StoreNothing { address, value } => {
                self.undefined(cpu, UndefinedKind::Write, address, value)
            }
        }
    }

    /// A CPU meets an instruction that it cannot execute.
    pub(super) fn fault_cpu(&mut self, cpu: Cpu, fault: CpuFault) {
        let pc = self.cpus.core(cpu).pc();
        self.card
            .device(&mut environment!(self))
            .cpu_fault(cpu, fault, pc);
        self.settle();
    }

    /// Notes an access of a CPU at which nothing answered.
    #[cold]
    pub(super) fn undefined(
        &mut self,
        cpu: Cpu,
        kind: UndefinedKind,
        address: u32,
        value: u32,
    ) -> bool {
        self.card.device(&mut environment!(self)).note_undefined(
            Accessor::Cpu(cpu),
            kind,
            address,
            value,
        );
        false
    }

    /// Completes a load from a register of the chip.
    pub(super) fn read_register(
        &mut self,
        cpu: Cpu,
        executed: &Executed,
        offset: u32,
        target: usize,
    ) -> bool {
        let value = match self.past {
            Some(value) => value,
            None => self
                .card
                .device(&mut environment!(self))
                .cpu_read(cpu, offset),
        };
        self.cpus.core_mut(cpu).complete_read(target, value);
        if offset != beyond::event(cpu) {
            return false;
        }
        let poll = &mut self.polls[cpu.index()];
        let (pc, cycle) = std::mem::replace(poll, (executed.pc, self.cycle));
        pc == executed.pc && self.cycle - cycle <= SHORT_ROUND
    }

    /// Skips as many whole rounds of waiting as fit before `horizon`, if all running CPUs
    /// provably wait; returns whether any were skipped.
    fn skip(&mut self, horizon: u64) -> bool {
        let mut rounds = [const { None::<Round> }; Cpu::MOST];
        let mut common = 1;
        for cpu in self.cpus.all().iter().copied() {
            if !self.cpus.core(cpu).running() {
                continue;
            }
            let waiting = Waiting {
                offset: beyond::event(cpu),
                value: self.card.inspect().events(self.now(), cpu),
            };
            let core = self.cpus.core_mut(cpu);
            let Some(round) = prove(core, &mut self.sram, &mut self.timing, waiting) else {
                return false;
            };
            let Some(multiple) = common_multiple(common, round.cycles) else {
                return false;
            };
            common = multiple;
            rounds[cpu.index()] = Some(round);
        }
        let meets = |(n, a): (usize, &Round)| {
            let others = rounds.iter().enumerate().filter(|(other, _)| *other != n);
            let mut others = others.filter_map(|(_, round)| round.as_ref());
            others.any(|b| a.reads_counter_of(b))
        };
        let all = rounds.iter().enumerate();
        if all
            .filter_map(|(n, round)| Some((n, round.as_ref()?)))
            .any(meets)
        {
            return false;
        }
        let cycles = horizon.saturating_sub(self.cycle) / common * common;
        for cpu in self.cpus.all().iter().copied() {
            if let Some(round) = &rounds[cpu.index()] {
                let count = cycles / round.cycles;
                round.pass(self.cpus.core_mut(cpu), &mut self.sram, count);
                self.ready[cpu.index()] += cycles;
                self.polls[cpu.index()].1 += cycles;
            }
        }
        self.cycle += cycles;
        cycles != 0
    }

    /// A deadline of the card or the wire has come.
    fn attend(&mut self) {
        self.card.stages(&mut environment!(self)).let_time_pass();
        self.take_controls();
        if !self.instant {
            return self.settle();
        }
        let now = self.now();
        while self.wire.arrived(now).is_some() {
            if self.offer_frame() == Some(Reception::Held) {
                self.wire.hold();
                break;
            }
            self.wire.take_arrived(now);
        }
        self.settle();
    }

    /// Lets the card do what it has to do and carries out its effects.
    pub(super) fn settle(&mut self) {
        if !self.instant {
            // Pause frames take no time of the wire.
            self.card.stages(&mut environment!(self)).flow_control();
            self.apply_effects();
            self.recheck = true;
            self.changed = true;
            return self.plan();
        }
        let mut more = true;
        let mut rounds = 0;
        while more && rounds < WORK_LIMIT {
            more = if self.watched() {
                self.run_watched()
            } else {
                self.card.device(&mut environment!(self)).run()
            };
            self.apply_effects();
            rounds += 1;
        }
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
                Effect::Interrupt(asserted) => self.set_interrupt(asserted),
                Effect::Transmit(frame) if self.instant => {
                    self.wire.set_speed(self.card.inspect().link_megabits(now));
                    self.wire.transmit(now, frame);
                }
                // The MAC makes pause frames itself.
                Effect::Transmit(frame) if is_flow_control(&frame) && !self.has_just_sent() => {
                    self.wire.control(now, frame);
                }
                // The MAC has taken its time.
                Effect::Transmit(frame) => self.wire.deliver(now, frame),
                Effect::CpuStart { cpu, pc } => {
                    self.note_restart(cpu);
                    self.cpus.core_mut(cpu).start(pc);
                    self.ready[cpu.index()] = self.cycle + 1;
                    self.restarted[cpu.index()] = true;
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
        let card = self.card.inspect().next_deadline(now);
        // A frame that the card cannot take now waits until the card has changed.
        let wire = self
            .wire
            .next_arrival()
            .filter(|at| self.instant && (*at > now || self.takes_frames()));
        let control = self.wire.next_control();
        let next = card.into_iter().chain(wire).chain(control).min();
        let engines = self.disturbance.as_ref().and_then(|all| all.next_due());
        let next = next.map_or(u64::MAX, |at| self.clock.cycle_at(at));
        self.deadline = next.min(engines.unwrap_or(u64::MAX)).max(self.cycle + 1);
    }
}

/// The least common multiple of two lengths above 0, or `None` if it is too large.
fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a.checked_div(x)?.checked_mul(b)
}
