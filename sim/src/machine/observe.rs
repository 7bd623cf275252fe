//! Reports events of the machine to its [`Recorder`], and applies the delays of its
//! [`Disturbance`], if it has one.
//!
//! Recording only reads: a machine with a recorder does the same in the same cycles as one
//! without. With the functional clock, a recorded machine executes polls instead of skipping them,
//! so the recorder sees every dispatch; the card does its work in the same order as
//! [`tigon2_model::Device::run`].

use super::{Environment, Machine, environment};
use crate::cpu::Access;
use crate::explore::Disturbance;
use crate::timeline::{Recorder, Timeline};
use crate::timing::counts::Tally;
use crate::timing::dma::DmaEngine;
use tigon2_chip::dma::RING_BYTES;
use tigon2_chip::instruction::{FUNCTION_JOFF, function, opcode, rt};
use tigon2_chip::mac::{POINTER_FLAGS, TxDescriptor};
use tigon2_chip::{Cpu, Register, beyond};
use tigon2_model::{Direction, Reception};

/// The event bit whose handler an entry of the jump table leads to; entry 0 is idle.
#[inline]
pub(super) fn handler_of(entry: u32) -> Option<u8> {
    entry.checked_sub(1).map(|bit| bit as u8 % 32)
}

const fn producer(direction: Direction) -> Register {
    match direction {
        Direction::Read => Register::AssistReadProducer,
        Direction::Write => Register::AssistWriteProducer,
    }
}

const fn consumer(direction: Direction) -> Register {
    match direction {
        Direction::Read => Register::AssistReadConsumer,
        Direction::Write => Register::AssistWriteConsumer,
    }
}

impl Machine {
    /// Takes down what happens from now on. Nothing else changes.
    pub fn record(&mut self, mut recorder: Recorder) {
        recorder.begin(self.cycle, self.interrupt, &self.sram);
        self.recorder = Some(Box::new(recorder));
    }

    /// Ends the recording; `None` if there was none.
    pub fn recorded(&mut self) -> Option<Timeline> {
        let recorder = self.recorder.take()?;
        Some(recorder.finish(self.clock, self.cycle))
    }

    /// A register as it is, without the side effects of a CPU's access.
    fn peek(&mut self, register: Register) -> u32 {
        let offset = register.offset();
        self.card
            .device(&mut environment!(self))
            .cpu_read(Cpu::A, offset)
    }

    /// A CPU stores to a register.
    #[inline]
    pub(super) fn write_register(&mut self, cpu: Cpu, offset: u32, value: u32, cycle: u64) {
        if self.recorder.is_some() {
            self.note_queued(cpu, offset, value, cycle);
        }
        self.card
            .device(&mut environment!(self))
            .cpu_write(cpu, offset, value);
        self.settle();
    }

    fn note_queued(&mut self, cpu: Cpu, offset: u32, value: u32, cycle: u64) {
        for direction in Direction::ALL {
            if offset == producer(direction).offset() {
                let before = self.peek(producer(direction)) % RING_BYTES;
                if let Some(recorder) = &mut self.recorder {
                    recorder.queued(cpu, direction, before, value % RING_BYTES, cycle);
                }
            }
        }
    }

    #[inline]
    pub(super) fn note_dma_start(&mut self, direction: Direction, cycle: u64) {
        if self.recorder.is_none() {
            return;
        }
        let descriptor = self.peek(consumer(direction)) % RING_BYTES;
        if let Some(recorder) = &mut self.recorder {
            recorder.dma_started(direction, cycle, Some(descriptor));
        }
    }

    #[inline]
    pub(super) fn note_dma_begin(&mut self, direction: Direction, cycle: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.dma_begun(direction, cycle);
        }
    }

    /// The transfer of a channel has its side effects.
    #[inline]
    pub(super) fn dma_complete(&mut self, direction: Direction) {
        if let Some(recorder) = &mut self.recorder
            && let Some(transfer) = self.card.inspect().dma_transfer(direction)
        {
            let (sram, host) = (&self.sram, &self.host);
            recorder.dma_completed(direction, self.cycle, &transfer, sram, host);
        }
        self.card
            .stages(&mut environment!(self))
            .dma_complete(direction);
    }

    #[inline]
    pub(super) fn note_bus(&mut self, dma: &DmaEngine) {
        if let Some(recorder) = &mut self.recorder {
            let (now, free) = dma.bus_use();
            recorder.bus(now, free);
        }
    }

    /// The transmitter has taken a frame of `length` bytes.
    #[inline]
    pub(super) fn note_sending(&mut self, cycle: u64, length: usize) {
        if self.recorder.is_none() {
            return;
        }
        let at = self.peek(Register::TxDescriptorConsumer) & !POINTER_FLAGS;
        let descriptor = TxDescriptor {
            start_and_flags: self.word(at),
            length_and_tag: self.word(at + 4),
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.sending(cycle, descriptor.start(), length as u32);
        }
    }

    #[inline]
    pub(super) fn note_sent(&mut self, cycle: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.sent(cycle);
        }
    }

    #[inline]
    pub(super) fn note_receiving(&mut self, cycle: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.receiving(cycle);
        }
    }

    /// Offers the card the frame at the head of the wire, if there is one.
    pub(super) fn offer_frame(&mut self) -> Option<Reception> {
        let place = match self.recorder {
            None => 0,
            Some(_) => self.peek(Register::RxProducer),
        };
        let (frame, error) = self.wire.next_frame()?;
        let reception = if self.wire.is_line() {
            self.card
                .device(&mut environment!(self))
                .receive_unheld(frame, error)
        } else {
            self.card
                .device(&mut environment!(self))
                .receive_damaged(frame, error)
        };
        match reception {
            Reception::Held => return Some(reception),
            Reception::Accepted => self.received.accepted += 1,
            Reception::Dropped(_) => self.received.dropped += 1,
        }
        if let Some(recorder) = &mut self.recorder {
            let place = (reception == Reception::Accepted).then_some(place);
            recorder.received(self.cycle, place, frame);
        }
        Some(reception)
    }

    pub(super) fn set_interrupt(&mut self, asserted: bool) {
        self.interrupt = asserted;
        if let Some(recorder) = &mut self.recorder {
            recorder.interrupt(asserted, self.cycle);
        }
    }

    pub(super) fn note_restart(&mut self, cpu: Cpu) {
        if let Some(recorder) = &mut self.recorder {
            recorder.restarted(cpu);
        }
    }

    pub(super) fn note_host_write(&mut self, offset: u32, value: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.host_wrote(offset, value, self.cycle, &self.sram, &self.host);
        }
    }

    /// Follows a schedule from now on, or the clock's own. Only under the functional clock.
    pub fn disturb(&mut self, disturbance: Option<Disturbance>) {
        if !self.instant {
            return;
        }
        // What is under way ends now.
        if self.disturbance.take().is_some() {
            for direction in Direction::ALL {
                self.dma_complete(direction);
            }
            self.card
                .stages(&mut environment!(self))
                .transmit_complete();
        }
        self.disturbance = disturbance.map(Box::new);
        self.settle();
    }

    /// Whether the functional clock has a recorder or a disturbance.
    #[inline]
    pub(super) fn watched(&self) -> bool {
        self.recorder.is_some() || self.disturbance.is_some()
    }

    /// The functional clock's loop for a machine with a recorder, a schedule or a probe.
    pub(super) fn execute_watched(&mut self, horizon: u64) {
        while self.cycle < horizon && !self.changed {
            let mut next = u64::MAX;
            for cpu in self.cpus.all().iter().copied() {
                if !self.cpus.core(cpu).running() {
                    continue;
                }
                if self.ready[cpu.index()] <= self.cycle {
                    // A probe may have seen enough, or have halted the CPU.
                    if self.is_probed(self.cycle) && !self.probe(Some(cpu)) && self.is_left() {
                        return;
                    }
                    self.step_watched(cpu);
                }
                next = next.min(self.ready[cpu.index()]);
            }
            self.cycle = if self.changed {
                self.cycle + 1
            } else {
                // Until then all of them are stalled.
                next.clamp(self.cycle + 1, horizon)
            };
        }
    }

    fn step_watched(&mut self, cpu: Cpu) {
        let core = self.cpus.core_mut(cpu);
        let tally = Tally {
            instructions: core.retired(),
            ..Tally::default()
        };
        let executed = match core.step(&mut self.sram) {
            Ok(executed) => executed,
            Err(fault) => return self.fault_cpu(cpu, fault),
        };
        let takes = match &mut self.disturbance {
            None => self.timing.cycles(&executed),
            Some(schedule) => schedule.cycles(cpu, self.cycle, &executed.access),
        };
        let next = self.cycle + takes;
        self.ready[cpu.index()] = next;
        let jumps = executed.taken
            && opcode(executed.word) == 0
            && function(executed.word) == FUNCTION_JOFF;
        if let Some(recorder) = &mut self.recorder {
            if jumps {
                let bit = handler_of(core.gpr(rt(executed.word)));
                let tally = Tally {
                    instructions: core.retired(),
                    ..tally
                };
                recorder.entered(cpu, next, bit, tally);
            }
            match executed.access {
                Access::ReadRegister { offset, .. } if offset == beyond::event(cpu) => {
                    recorder.polled(cpu, self.cycle, tally);
                }
                Access::StoreSram => recorder.stored(cpu, &self.sram, self.cycle),
                _ => {}
            }
        }
        let waits = self.effect_of(cpu, &executed);
        if waits && let Some(schedule) = &mut self.disturbance {
            self.ready[cpu.index()] += schedule.idle();
        }
    }

    /// What [`tigon2_model::Device::run`] does, taken down, and each of it in its time; returns
    /// whether more can be done now.
    pub(super) fn run_watched(&mut self) -> bool {
        for _ in 0..super::WORK_LIMIT {
            let mut worked = false;
            for direction in Direction::ALL {
                worked |= self.move_watched(direction);
            }
            worked |= self.send_watched();
            if !worked {
                self.card.stages(&mut environment!(self)).flow_control();
                return false;
            }
        }
        true
    }

    fn move_watched(&mut self, direction: Direction) -> bool {
        let cycle = self.cycle;
        if self
            .disturbance
            .as_ref()
            .is_none_or(|all| !all.moves(direction))
        {
            self.note_dma_start(direction, cycle);
            let begun = self
                .card
                .stages(&mut environment!(self))
                .dma_begin(direction);
            if begun.is_none() {
                return false;
            }
            if let Some(schedule) = &mut self.disturbance {
                schedule.begin(direction, cycle);
            }
        }
        let schedule = self.disturbance.as_mut();
        let done = schedule.is_none_or(|all| all.moved(direction, cycle));
        if done {
            self.dma_complete(direction);
        }
        done
    }

    fn send_watched(&mut self) -> bool {
        let cycle = self.cycle;
        if let Some(length) = self.card.stages(&mut environment!(self)).transmit_begin() {
            self.note_sending(cycle, length);
            match &mut self.disturbance {
                Some(schedule) => schedule.send(cycle),
                None => {
                    self.note_sent(cycle);
                    self.card
                        .stages(&mut environment!(self))
                        .transmit_complete();
                    return true;
                }
            }
        }
        let sent = self.disturbance.as_mut().is_some_and(|all| all.sent(cycle));
        if sent {
            self.note_sent(cycle);
            self.card
                .stages(&mut environment!(self))
                .transmit_complete();
        }
        sent
    }
}
