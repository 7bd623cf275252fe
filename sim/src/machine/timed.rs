//! The main loop of the cycle model: engines, port and pipelines, cycle by cycle.

use super::lead::concerns_cpus;
use super::observe::handler_of;
use super::{Environment, Machine, environment};
use crate::cpu::Access;
use crate::timing::counts::Cause;
use crate::timing::dma::{Action, Work};
use crate::timing::port::Client;
use crate::timing::{Flowed, Timed};
use tigon2_chip::instruction::{FUNCTION_JOFF, function, opcode, rt};
use tigon2_chip::{Cpu, Register, beyond};
use tigon2_model::dma::Direction;
use tigon2_model::{DmaWork, Reception, UndefinedKind};

/// Less than so many cycles are not worth the beginning of a flow.
const SHORTEST_FLOW: u64 = 5;

impl Machine {
    /// Lets time pass until `horizon`, or until the card changes.
    pub(super) fn execute_timed(&mut self, timed: &mut Timed, horizon: u64) {
        // The chip's two CPUs do not pay for others.
        if self.cpus.all().len() == Cpu::ALL.len() {
            self.execute_timed_cpus::<2>(timed, horizon);
        } else {
            self.execute_timed_cpus::<{ Cpu::MOST }>(timed, horizon);
        }
    }

    /// The same for up to `N` CPUs; those that there are not never run.
    fn execute_timed_cpus<const N: usize>(&mut self, timed: &mut Timed, horizon: u64) {
        while self.cycle < horizon && !self.changed {
            let Flowed { cycle, engines } = self.flow::<N>(timed, horizon);
            self.cycle = cycle;
            if !engines {
                self.tick_engines(timed, cycle);
            }
            timed.grant(cycle, &self.sram);
            if self.cuts_through {
                self.follow_cut_through(timed);
            }
            for index in 0..N {
                let cpu = Cpu::EVERY[index];
                if timed.pipelines[index].attention() <= cycle && self.cpus.core(cpu).running() {
                    if self.unlimited.is_some() {
                        self.tick_unlimited(timed, cycle, cpu);
                    } else {
                        self.tick_cpu(timed, cycle, cpu);
                        self.run_ahead::<N>(timed, cycle, horizon, cpu);
                    }
                }
            }
            self.cycle = self
                .next_cycle::<N>(timed, cycle)
                .min(horizon)
                .max(cycle + 1);
        }
    }

    /// Lets data flow, if nothing else is due and nothing observes each beat.
    #[inline]
    fn flow<const N: usize>(&self, timed: &mut Timed, horizon: u64) -> Flowed {
        let cycle = self.cycle;
        let observed = self.recorder.is_some() || self.cuts_through;
        if timed.flows && timed.dma.is_busy() && !self.recheck && !observed {
            let last = self.attention::<N>(timed).min(horizon - 1);
            if last >= cycle + SHORTEST_FLOW {
                return timed.flow(cycle, last);
            }
        }
        Flowed {
            cycle,
            engines: false,
        }
    }

    /// The engines' turn.
    #[inline]
    fn tick_engines(&mut self, timed: &mut Timed, cycle: u64) {
        if self.recheck {
            self.catch_up(timed);
        }
        if timed.dma.wake <= cycle {
            self.move_data(timed, cycle);
        }
        if timed.mac.wake <= cycle && (self.recheck || !timed.mac.only_asks(cycle, &mut timed.port))
        {
            self.tick_mac(timed, cycle);
        }
    }

    /// The card or its host did something: the engines look for work, pipelines of CPUs
    /// that were started begin anew.
    fn catch_up(&mut self, timed: &mut Timed) {
        self.recheck = false;
        timed.recheck();
        if self.unlimited.is_some() {
            let cycle = self.cycle;
            for pipeline in &mut timed.pipelines {
                pipeline.ready = pipeline.ready.min(cycle);
            }
        }
        for cpu in self.cpus.all().iter().copied() {
            if std::mem::take(&mut self.restarted[cpu.index()]) {
                let ready = self.ready[cpu.index()];
                let pipeline = &mut timed.pipelines[cpu.index()];
                pipeline.restart(ready, &mut timed.port, Client::cpu(cpu));
            }
        }
    }

    /// The next cycle in which anything happens.
    fn next_cycle<const N: usize>(&self, timed: &Timed, cycle: u64) -> u64 {
        if timed.port.wanted() || self.recheck {
            return cycle + 1;
        }
        let engines = timed.dma.wake.min(timed.mac.wake);
        engines.min(self.attention::<N>(timed))
    }

    /// The first cycle in which a CPU needs attention, but for a grant of the port.
    #[inline]
    fn attention<const N: usize>(&self, timed: &Timed) -> u64 {
        let running = |index: &usize| self.cpus.core(Cpu::EVERY[*index]).running();
        (0..N).filter(running).fold(u64::MAX, |first, n| {
            first.min(timed.pipelines[n].attention())
        })
    }

    /// The DMA channels' turn; most of the time only data moves.
    #[inline]
    fn move_data(&mut self, timed: &mut Timed, cycle: u64) {
        let Timed {
            parameters,
            port,
            dma,
            ..
        } = timed;
        if !self.recheck && dma.only_moves(cycle, parameters, port) {
            self.note_bus(dma);
        } else {
            self.tick_dma(timed, cycle);
        }
    }

    fn tick_dma(&mut self, timed: &mut Timed, cycle: u64) {
        for direction in Direction::ALL {
            let Timed {
                parameters,
                port,
                dma,
                ..
            } = timed;
            // A change of this very cycle counts, too.
            if dma.looks(direction) || self.recheck && dma.idle(direction) {
                let alone = dma.idle(direction.other());
                let work = match self.card.inspect().dma_work(direction) {
                    DmaWork::Nothing => Work::Nothing,
                    DmaWork::Direct => Work::Direct,
                    DmaWork::Descriptor { alone: true } if !alone => Work::Nothing,
                    DmaWork::Descriptor { .. } => Work::Descriptor,
                };
                dma.start(cycle, direction, work, parameters, port);
                if !dma.idle(direction) {
                    self.note_dma_start(direction, cycle);
                }
            }
            match dma.tick(cycle, direction, parameters, port) {
                Action::Nothing => {}
                Action::Begin(direction) => {
                    if direction == Direction::Write {
                        self.follow_received(timed);
                    }
                    let transfer = self
                        .card
                        .stages(&mut environment!(self))
                        .dma_begin(direction);
                    if direction == Direction::Read {
                        self.look_for_cut_through(&timed.mac);
                    }
                    self.note_dma_begin(direction, cycle);
                    let Timed {
                        parameters,
                        port,
                        dma,
                        ..
                    } = timed;
                    dma.begun(cycle, direction, transfer, parameters, port);
                    self.note_target(&mut timed.dma, direction, transfer.as_ref());
                    self.unpark_changed(timed, cycle, None);
                }
                Action::Complete(direction) => {
                    if self.cuts_through && direction == Direction::Read {
                        self.end_cut_through_transfer(&timed.mac);
                    }
                    self.dma_complete(direction);
                    timed.dma.completed(direction);
                    self.settle();
                    self.unpark_changed(timed, cycle, None);
                }
            }
        }
        timed.dma.arbitrate(cycle, &timed.parameters);
        self.note_bus(&timed.dma);
        timed.dma.plan(cycle, &timed.parameters);
    }

    fn tick_mac(&mut self, timed: &mut Timed, cycle: u64) {
        if timed.mac.is_quiet() {
            self.wire
                .set_speed(self.card.inspect().link_megabits(self.now()));
            timed.mac.set_speed(self.wire.byte_ps());
        }
        if timed.mac.is_sending() && !self.card.inspect().is_sending() {
            self.cut_frame(timed, cycle);
        }
        let due = timed.mac.tick(cycle, &mut timed.port);
        let looks = due.may_send && (timed.mac.looks() || self.recheck) && !self.transmitter_held;
        if due.sent {
            self.note_sent(cycle);
            self.end_cut_through();
            self.card
                .stages(&mut environment!(self))
                .transmit_complete();
            self.settle();
        }
        if looks {
            timed.mac.looked();
            if let Some(length) = self.card.stages(&mut environment!(self)).transmit_begin() {
                self.note_sending(cycle, length);
                timed.mac.send(cycle, length);
                self.note_departure(&timed.mac, length);
                timed.mac.tick(cycle, &mut timed.port);
                self.look_for_cut_through(&timed.mac);
            }
        }
        let mut may_receive = due.may_receive;
        if due.received {
            may_receive = self.store_received(timed);
        }
        let mut arrival = u64::MAX;
        if may_receive && let Some((start, length)) = self.wire.next_start() {
            let start = timed.mac.at(start);
            let held = timed.parameters.fc && !self.takes_frames();
            if start.ceil() > cycle {
                arrival = start.ceil();
            } else if held {
                self.wire.hold();
            } else {
                self.note_receiving(cycle);
                timed.mac.receive(start.no_earlier_than(cycle), length);
                self.card
                    .stages(&mut environment!(self))
                    .set_receiving(true);
                timed.mac.tick(cycle, &mut timed.port);
            }
        }
        timed.mac.plan(cycle, arrival);
        self.unpark_changed(timed, cycle, None);
    }

    /// The frame at the head of the wire has arrived; returns whether the receiver is free.
    fn store_received(&mut self, timed: &mut Timed) -> bool {
        let now = self.now();
        match self.offer_frame() {
            None => {
                timed.mac.received();
                return true;
            }
            Some(Reception::Held) => return false,
            Some(_) => {}
        }
        self.wire.take_next(now);
        self.card
            .stages(&mut environment!(self))
            .set_receiving(false);
        timed.mac.received();
        self.settle();
        true
    }

    /// A CPU's turn: its load asks for the port, or its next instruction issues if it can. One
    /// function, run in every cycle of either CPU: its parts would share the pipeline's state.
    #[inline]
    pub(super) fn tick_cpu(&mut self, timed: &mut Timed, cycle: u64, cpu: Cpu) {
        let Timed {
            parameters,
            port,
            pipelines,
            ..
        } = timed;
        let client = Client::cpu(cpu);
        let pipeline = &mut pipelines[cpu.index()];
        if pipeline.ready > cycle {
            return pipeline.ask(cycle, port, client);
        }
        let core = self.cpus.core_mut(cpu);
        let (instruction, address) = match core.upcoming(&self.sram) {
            Ok(upcoming) => upcoming,
            Err(fault) => return self.fault_cpu(cpu, fault),
        };
        if let Some(address) = address
            && !pipeline.fetch(cycle, address, parameters, port, client)
        {
            return;
        }
        let word = instruction.word;
        if pipeline.uses_load(cycle, instruction.sources, parameters) {
            return;
        }
        if self.is_probed(cycle) && !self.probe(Some(cpu)) {
            return;
        }
        if let Some(address) = address {
            pipeline.executes(address, word);
        }
        let core = self.cpus.core_mut(cpu);
        let executed = match core.step_decoded(&mut self.sram, instruction) {
            Ok(executed) => executed,
            Err(fault) => return self.fault_cpu(cpu, fault),
        };
        if let Access::ReadRegister { offset, .. } = executed.access
            && offset == beyond::event(cpu)
        {
            if let Some(recorder) = &mut self.recorder {
                recorder.polled(cpu, cycle, pipeline.counts.total());
            }
            pipeline.counts.dispatching();
        }
        pipeline.issue(cycle);
        if executed.taken {
            pipeline.penalty(Cause::Branch, parameters.br);
            if opcode(word) == 0 && function(word) == FUNCTION_JOFF {
                let entry = core.gpr(rt(word));
                if let Some(recorder) = &mut self.recorder {
                    let bit = handler_of(entry);
                    recorder.entered(cpu, pipeline.ready, bit, pipeline.counts.total());
                }
                pipeline.counts.entered(entry);
            }
        }
        match executed.access {
            Access::None => {}
            Access::LoadScratch => {
                pipeline.penalty(Cause::Scratch, parameters.sp_ld);
                pipeline.loaded_scratch(rt(word));
            }
            Access::StoreScratch => pipeline.penalty(Cause::Scratch, parameters.sp_st),
            Access::LoadSram => pipeline.load_sram(),
            Access::StoreSram => {
                pipeline.store_sram(parameters, port, client);
                if let Some(recorder) = &mut self.recorder {
                    recorder.stored(cpu, &self.sram, cycle);
                }
            }
            Access::ReadRegister { offset, target } => {
                pipeline.penalty(Cause::Register, parameters.reg_ld);
                if concerns_cpus(offset) {
                    self.gather_others(timed, cycle, cpu);
                }
                self.follow_read(timed, offset);
                if self.read_register(cpu, &executed, offset, target) {
                    self.park(timed, cpu);
                }
            }
            Access::WriteRegister { offset, value } => {
                pipeline.penalty(Cause::Register, parameters.reg_st);
                if publishes(cpu, offset) {
                    pipeline.publish();
                }
                if concerns_cpus(offset) {
                    self.gather_others(timed, cycle, cpu);
                }
                self.write_register(cpu, offset, value, cycle);
                self.unpark_changed(timed, cycle, Some(cpu));
            }
            // As long as a register, which they are most like.
            Access::LoadNothing { address } => {
                pipeline.penalty(Cause::Register, parameters.reg_ld);
                self.undefined(cpu, UndefinedKind::Read, address, 0);
            }
            Access::StoreNothing { address, value } => {
                pipeline.penalty(Cause::Register, parameters.reg_st);
                self.undefined(cpu, UndefinedKind::Write, address, value);
            }
        }
    }
}

/// Whether the write of a register has another unit look at what this CPU stored.
pub(super) fn publishes(cpu: Cpu, offset: u32) -> bool {
    match Register::from_offset(offset) {
        Some(
            Register::AssistReadProducer
            | Register::AssistWriteProducer
            | Register::TxDescriptorProducer,
        ) => true,
        Some(Register::EventA | Register::EventB) => offset != beyond::event(cpu),
        _ => false,
    }
}
