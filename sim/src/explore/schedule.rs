//! A schedule under way: disturbs the card, watches its CPUs, and sums up what they did.

use super::ExploreError;
use super::check::Checked;
use super::disturbance::{Disturbance, Pace};
use crate::timeline::Recorder;
use crate::transport::SharedMachine;
use tigon2_chip::Cpu;
use tigon2_model::is_flow_control;

/// What became of a schedule that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How CPU A and CPU B got on.
    pub paces: [Pace; 2],
    /// Frames that came out, both ways.
    pub frames: u64,
    /// Instructions of CPU A and of CPU B.
    pub instructions: [u64; 2],
    /// Core cycles.
    pub cycles: u64,
}

/// A card whose CPUs, DMA and MAC are delayed at random.
pub(super) struct Schedule {
    pub machine: SharedMachine,
    paces: [Pace; 2],
    /// Instructions and cycle before.
    before: ([u64; 2], u64),
}

impl Schedule {
    /// Disturbs the card from now on as the seed says, and records it if a recorder is given.
    pub fn begin(machine: SharedMachine, seed: u64, recorder: Option<Recorder>) -> Schedule {
        let disturbance = Disturbance::new(seed);
        let paces = Cpu::ALL.map(|cpu| disturbance.pace(cpu));
        let before = (retired(&machine), machine.lock().cycle());
        let mut card = machine.lock();
        if let Some(recorder) = recorder {
            card.record(recorder);
        }
        card.disturb(Some(disturbance));
        drop(card);
        Schedule {
            machine,
            paces,
            before,
        }
    }

    /// Watches a timed card, whose time is its own.
    pub fn watch(machine: SharedMachine, recorder: Option<Recorder>) -> Schedule {
        let before = (retired(&machine), machine.lock().cycle());
        if let Some(recorder) = recorder {
            machine.lock().record(recorder);
        }
        Schedule {
            machine,
            paces: [Pace::Steady; 2],
            before,
        }
    }

    /// The card's time, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.machine.lock().now()
    }

    /// Checks that no CPU has halted.
    ///
    /// # Errors
    /// [`ExploreError::Fault`].
    pub fn check_cpus(&self) -> Result<(), ExploreError> {
        let machine = self.machine.lock();
        for cpu in machine.cpus().all().iter().copied() {
            if let Some((fault, pc)) = machine.fault(cpu) {
                return Err(ExploreError::Fault { cpu, fault, pc });
            }
        }
        Ok(())
    }

    /// Checks that firmware touched only what exists.
    ///
    /// # Errors
    /// [`ExploreError::Undefined`].
    pub fn check_accesses(&self) -> Result<(), ExploreError> {
        match self.machine.lock().card().undefined().count() {
            0 => Ok(()),
            count => Err(ExploreError::Undefined(count)),
        }
    }

    /// Checks that TxPrd and RxCon never moved back.
    ///
    /// # Errors
    /// [`ExploreError::MovedBack`].
    pub fn check_pointers(&self) -> Result<(), ExploreError> {
        match self.machine.lock().card().moved_back() {
            0 => Ok(()),
            count => Err(ExploreError::MovedBack(count)),
        }
    }

    /// Takes the frames that have left the card.
    ///
    /// # Errors
    /// [`ExploreError::Frame`] for one that is not due.
    pub fn take_sent(&self, out: &mut Checked) -> Result<(), ExploreError> {
        let mut machine = self.machine.lock();
        while let Some(frame) = machine.take_frame() {
            if is_flow_control(&frame.bytes) {
                continue;
            }
            let direction = "sent";
            out.take(&frame.bytes)
                .map_err(|fault| ExploreError::Frame { direction, fault })?;
        }
        Ok(())
    }

    /// Sums up a schedule in which `frames` came out.
    pub fn outcome(&self, frames: u64) -> Outcome {
        let (before, start) = self.before;
        let after = retired(&self.machine);
        Outcome {
            paces: self.paces,
            frames,
            instructions: [0, 1].map(|cpu| after[cpu] - before[cpu]),
            cycles: self.machine.lock().cycle() - start,
        }
    }
}

/// Instructions that each CPU has executed.
fn retired(machine: &SharedMachine) -> [u64; 2] {
    let machine = machine.lock();
    Cpu::ALL.map(|cpu| machine.cpus().core(cpu).retired())
}
