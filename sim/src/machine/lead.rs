//! A CPU in the lead has executed instructions ahead of the engines, and can be rolled back.
//!
//! Instructions in the scratch pad that compute or access the scratch pad depend on nothing
//! outside the CPU, with few exceptions: another CPU halts this one, accesses its scratch pad
//! through the chip's registers, or the host stops the machine to inspect it. These are rare, so
//! the CPU continues without waiting for them, up to its next access to shared state, and saves an
//! undo record: its registers, and the words that it overwrote. If an exception happens in an
//! earlier cycle, the CPU is rolled back and executes up to that cycle. So no observer ever sees
//! it ahead.

use super::Machine;
use crate::cpu::{Checkpoint, StoredOver, Stretch};
use crate::timing::Timed;
use tigon2_chip::memory::REGISTERS_BYTES;
use tigon2_chip::{Cpu, Register, beyond};

/// The lead of a CPU, if it has one.
#[derive(Clone, Debug, Default)]
pub(super) struct Lead {
    /// Where it was taken: registers, cycle, the register that was loaded last.
    start: Option<(Checkpoint, (u64, u32))>,
    /// What was executed since.
    row: Stretch,
    stored_over: StoredOver,
}

impl Lead {
    /// Time has caught up with the CPU.
    #[inline]
    pub(super) fn end(&mut self) {
        self.start = None;
    }
}

/// Registers that show or change the state of a CPU: a bit for each word of their page.
static STATES: [u64; REGISTERS_BYTES as usize / 4 / 64] = {
    let mut states = [0; REGISTERS_BYTES as usize / 4 / 64];
    let mut offset = 0;
    while offset < REGISTERS_BYTES {
        if is_state(offset) {
            states[offset as usize / 4 / 64] |= 1 << (offset / 4 % 64);
        }
        offset += 4;
    }
    states
};

/// Whether a register shows or changes the state of a CPU.
#[inline]
pub(super) fn concerns_cpus(offset: u32) -> bool {
    let word = (offset % REGISTERS_BYTES) as usize / 4;
    STATES[word / 64] >> (word % 64) & 1 != 0
}

const fn is_state(offset: u32) -> bool {
    const GPRS: u32 = 32 * 4;
    let mut cpu = 0;
    while cpu < Cpu::MOST {
        let one = Cpu::EVERY[cpu];
        if offset == beyond::state(one) || offset == beyond::pc(one) {
            return true;
        }
        cpu += 1;
    }
    offset.wrapping_sub(Register::CpuAGpr0.offset()) < GPRS
        || offset.wrapping_sub(Register::CpuBGpr0.offset()) < GPRS
        || offset == Register::ScratchDataA.offset()
        || offset == Register::ScratchDataB.offset()
        || offset == Register::MiscHostControl.offset()
}

impl Machine {
    /// Lets a CPU take the lead, up to cycle `horizon`.
    #[inline]
    pub(super) fn lead(&mut self, timed: &mut Timed, horizon: u64, cpu: Cpu) {
        let pipeline = &mut timed.pipelines[cpu.index()];
        let lead = &mut self.leads[cpu.index()];
        let core = self.cpus.core_mut(cpu);
        let place = pipeline.place();
        lead.start = Some((core.checkpoint(), place));
        lead.stored_over.clear();
        let costs = timed.parameters.costs();
        lead.row = core.stretch_to_take_back(horizon, &costs, place, &mut lead.stored_over);
        pipeline.executed(&lead.row);
    }

    /// Brings a CPU that has the lead back to `cycle`, exclusive.
    #[inline]
    pub(super) fn bring_back(&mut self, timed: &mut Timed, cycle: u64, cpu: Cpu) {
        let pipeline = &mut timed.pipelines[cpu.index()];
        let lead = &mut self.leads[cpu.index()];
        let Some(start) = lead.start.take() else {
            return;
        };
        if pipeline.ready <= cycle {
            return;
        }
        pipeline.counts.retract(&lead.row);
        pipeline.back_to(start.1);
        let core = self.cpus.core_mut(cpu);
        core.put_back(&start.0);
        core.restore(&mut lead.stored_over);
        // Up to there it is certain.
        let row = core.stretch(cycle, &timed.parameters.costs(), start.1);
        pipeline.executed(&row);
    }

    /// Brings every CPU to where it is in this cycle: those in the lead back, those that
    /// are [parked](super::parking) forward.
    pub(crate) fn gather(&mut self) {
        let Some(mut timed) = self.timed.take() else {
            return;
        };
        for cpu in self.cpus.all() {
            self.bring_back(&mut timed, self.cycle, *cpu);
            self.unpark(&mut timed, self.cycle, *cpu);
        }
        self.timed = Some(timed);
    }

    /// CPU `one` is about to see or to change the state of others, in `cycle`: brings them
    /// there.
    #[cold]
    pub(super) fn gather_others(&mut self, timed: &mut Timed, cycle: u64, one: Cpu) {
        for cpu in self.cpus.all() {
            if *cpu != one {
                // In a cycle they go in their order.
                let there = if *cpu > one { cycle } else { cycle + 1 };
                self.bring_back(timed, there, *cpu);
                self.unpark(timed, there, *cpu);
            }
        }
    }
}
