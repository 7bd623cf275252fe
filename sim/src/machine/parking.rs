//! Parks waiting CPUs in the cycle model: their polling rounds are not executed.
//!
//! A CPU that provably only polls its event register, from its scratch pad, does not use what the
//! engines share. So the engines proceed without it while the event register reads the same. When
//! the register changes, or when an observer inspects the CPU, the CPU is advanced to that cycle:
//! whole rounds by arithmetic, the rest instruction by instruction, with the values that it would
//! have read. The result is the same as executing all of them.

use super::idle::{Cost, Round, Waiting, prove};
use super::{Machine, run::LONGEST_POLL};
use crate::cpu::{Access, Executed};
use crate::timing::counts::{Cause, Tally};
use crate::timing::{Parameters, Timed};
use tigon2_chip::instruction::{rt, sources};
use tigon2_chip::{Cpu, beyond};

/// A CPU that waits.
#[derive(Clone, Debug)]
pub(super) struct Parked {
    round: Round,
    /// What a round counts.
    tally: Tally,
    /// The cycle in which a round began.
    since: u64,
    /// What its event register reads all the time.
    value: u32,
}

/// The cost of instructions that need nothing but their own CPU.
struct Alone<'a> {
    parameters: &'a Parameters,
    loaded: u32,
    tally: Tally,
}

impl Cost for Alone<'_> {
    fn cycles(&mut self, executed: &Executed, from_sram: bool) -> Option<u64> {
        if from_sram {
            return None;
        }
        let mut costs = [(Cause::Issue, 1), (Cause::LoadUse, 0), (Cause::Branch, 0)];
        let uses = sources(executed.word) & self.loaded != 0;
        self.loaded = 0;
        if uses {
            costs[1].1 = self.parameters.load_use;
        }
        if executed.taken {
            costs[2].1 = self.parameters.br;
        }
        let access = match executed.access {
            Access::None => (Cause::Issue, 0),
            Access::LoadScratch => {
                self.loaded = 1 << rt(executed.word) & !1;
                (Cause::Scratch, self.parameters.sp_ld)
            }
            Access::StoreScratch => (Cause::Scratch, self.parameters.sp_st),
            Access::ReadRegister { .. } => (Cause::Register, self.parameters.reg_ld),
            _ => return None,
        };
        let mut sum = 0;
        for (cause, cycles) in costs.into_iter().chain([access]) {
            self.tally.cycles[cause as usize] += cycles;
            sum += cycles;
        }
        self.tally.instructions += 1;
        Some(sum)
    }
}

impl Machine {
    /// Parks a CPU that has just polled its event register, if it provably waits.
    pub(super) fn park(&mut self, timed: &mut Timed, cpu: Cpu) {
        let pipeline = &mut timed.pipelines[cpu.index()];
        if self.past.is_some()
            || self.changed
            || !pipeline.is_quiet()
            || self.cycle < self.skip_from
            || self.is_probed(self.cycle)
        {
            return;
        }
        let waiting = Waiting {
            offset: beyond::event(cpu),
            value: self.card.inspect().events(self.now(), cpu),
        };
        let mut cost = Alone {
            parameters: &timed.parameters,
            loaded: pipeline.loaded(),
            tally: Tally {
                runs: 1,
                ..Tally::default()
            },
        };
        let loaded = cost.loaded;
        let core = self.cpus.core_mut(cpu);
        let round = prove(core, &mut self.sram, &mut cost, waiting);
        match round {
            Some(round) if cost.loaded == loaded && pipeline.counts.idle() => {
                self.parked[cpu.index()] = Some(Parked {
                    round,
                    tally: cost.tally,
                    since: pipeline.ready,
                    value: waiting.value,
                });
                pipeline.ready = u64::MAX;
            }
            _ => self.skip_from = self.cycle + LONGEST_POLL,
        }
    }

    /// Brings a parked CPU to `cycle`, exclusive, and lets it run from there.
    #[inline]
    pub(super) fn unpark(&mut self, timed: &mut Timed, cycle: u64, cpu: Cpu) {
        let Some(parked) = self.parked[cpu.index()].take() else {
            return;
        };
        let Parked {
            round,
            tally,
            since,
            value,
        } = parked;
        let count = cycle.saturating_sub(since) / round.cycles;
        let pipeline = &mut timed.pipelines[cpu.index()];
        pipeline.ready = since + count * round.cycles;
        pipeline.counts.skip(&tally, count);
        round.pass(self.cpus.core_mut(cpu), &mut self.sram, count);
        // The polls are those of executed rounds: the next one may park the CPU again.
        self.polls[cpu.index()].1 += count * round.cycles;
        self.past = Some(value);
        while timed.pipelines[cpu.index()].ready < cycle {
            let at = timed.pipelines[cpu.index()].ready;
            let now = std::mem::replace(&mut self.cycle, at);
            self.tick_cpu(timed, at, cpu);
            self.cycle = now;
        }
        self.past = None;
    }

    /// Something has changed in `cycle`: brings those CPUs to it that see it. What CPU
    /// `writer` does, those in front of it see in the next cycle: they go in their order.
    #[inline]
    pub(super) fn unpark_changed(&mut self, timed: &mut Timed, cycle: u64, writer: Option<Cpu>) {
        for cpu in self.cpus.all().iter().copied() {
            let Some(parked) = &self.parked[cpu.index()] else {
                continue;
            };
            if self.card.inspect().events(self.now(), cpu) != parked.value {
                let seen = cycle + u64::from(writer.is_some_and(|writer| cpu < writer));
                self.unpark(timed, seen, cpu);
            }
        }
    }
}
