//! A [`Probe`] can stop the machine between two instructions.
//!
//! ```text
//!   driver, wire ──► run_until ──► about to execute ──► Probe::look ──► execute
//!                                                        │  ▲ as long as it likes
//!                                                        ▼  │
//!                                              reads and changes the machine
//! ```
//!
//! No time passes on the card while a probe inspects it, so the observations are repeatable. A
//! sleeping probe costs nothing: until its wake-up cycle the machine runs as it does without a
//! probe, and reaches the same state. A probe that is finished *leaves*: the machine stops for
//! good, and every call of a driver fails, which ends the program that used it.

use super::Machine;
use tigon2_chip::Cpu;

/// A place in the course of events: a CPU is about to execute an instruction.
///
/// Ordered as they come: by cycle, CPU A first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Core cycles since power-on.
    pub cycle: u64,
    /// Whose instruction; `None` is in front of both.
    pub cpu: Option<Cpu>,
}

/// What a probe wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// To look again in front of each instruction from this cycle on.
    From(u64),
    /// The same, and it has changed what the CPU would have executed.
    Changed,
    /// Nothing more.
    Leave,
}

/// Looks at a machine between two instructions.
pub trait Probe: Send {
    /// The machine stands still at `at`. With a CPU, that one executes its next instruction
    /// when this returns; without one, the card or the host does something.
    fn look(&mut self, machine: &mut Machine, at: Position) -> Verdict;

    /// The program on the machine has ended, for the reason `how`.
    fn ended(&mut self, machine: &mut Machine, how: &str);
}

/// A probe and when it looks.
#[derive(Default)]
pub(super) struct Probed {
    probe: Option<Box<dyn Probe>>,
    /// The cycle from which on it looks.
    from: Option<u64>,
    left: bool,
}

impl Machine {
    /// Lets a probe look from now on.
    pub fn set_probe(&mut self, probe: Box<dyn Probe>) {
        self.probed = Probed {
            probe: Some(probe),
            from: Some(self.cycle),
            left: false,
        };
    }

    /// Whether a probe has left: time does not pass any more.
    pub fn is_left(&self) -> bool {
        self.probed.left
    }

    /// Tells the probe that what ran on the machine is over; returns when it has seen
    /// enough. Nothing happens without a probe.
    pub fn end_probe(&mut self, how: &str) {
        if self.probed.left {
            return;
        }
        if let Some(mut probe) = self.probed.probe.take() {
            probe.ended(self, how);
            self.probed.left = true;
        }
    }

    /// Whether the probe inspects each instruction of `cycle`.
    #[inline]
    pub(super) fn is_probed(&self, cycle: u64) -> bool {
        self.probed.from.is_some_and(|from| from <= cycle)
    }

    /// The cycle in which a sleeping probe wakes.
    #[inline]
    pub(super) fn probe_wakes(&self) -> u64 {
        match self.probed.from {
            Some(from) if from > self.cycle => from,
            _ => u64::MAX,
        }
    }

    /// Lets the probe look; returns whether the CPU may execute what it was about to.
    pub(super) fn probe(&mut self, cpu: Option<Cpu>) -> bool {
        let Some(mut probe) = self.probed.probe.take() else {
            return !self.probed.left;
        };
        let at = Position {
            cycle: self.cycle,
            cpu,
        };
        let verdict = probe.look(self, at);
        match verdict {
            Verdict::From(cycle) => self.probed.from = Some(cycle),
            Verdict::Changed => self.probed.from = Some(self.cycle),
            Verdict::Leave => {
                self.probed.left = true;
                self.probed.from = None;
                // The loops read this.
                self.changed = true;
            }
        }
        self.probed.probe = Some(probe);
        matches!(verdict, Verdict::From(_))
    }
}
