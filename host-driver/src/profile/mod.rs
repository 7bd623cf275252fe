//! Profiles of a CPU by sampling its program counter.
//!
//! The chip shows a host the program counter of either CPU while it runs (hardware reference,
//! 3.4). Samples of it show where a CPU spends its time. The firmware needs no support for that:
//! it costs no instruction and no word of SRAM, unlike cycle counters in each handler, and it
//! works for long and for frequent handlers. The firmware's ELF file gives addresses their
//! meaning:
//!
//! ```text
//!   program counter ──► jump table entry ───────────────► the handler it leads to, or idle
//!                  └──► function ── a handler ──────────► that one
//!                               └── called by one only ─► that one
//!                               └── else ───────────────► by its own name
//! ```
//!
//! Entries of the jump tables count as their handlers, because an emulator that translates code
//! shows the last jump target.

mod elf;

use crate::log::{BuildId, LogError};
use std::ops::Range;
use tigon2_chip::Cpu;

/// The owner of a CPU's time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The dispatch loop.
    Idle,
    /// A handler, by its event.
    Handler(String),
    /// A function that several handlers or none call.
    Function(String),
}

/// A range of code and its owner.
#[derive(Clone, Debug)]
struct Span {
    code: Range<u32>,
    owner: Owner,
}

/// The code of a firmware, for each CPU.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Sorted, without overlaps.
    spans: [Vec<Span>; 2],
    build: BuildId,
}

impl Profile {
    /// Reads the firmware's ELF file.
    ///
    /// # Errors
    /// [`LogError`] if it is no whole ELF file, or none of this project's firmware.
    pub fn parse(file: &[u8]) -> Result<Self, LogError> {
        elf::parse(file)
    }

    /// Checks that it matches the firmware on a card.
    ///
    /// # Errors
    /// [`LogError::WrongBuild`] if it does not.
    pub fn check(&self, card: BuildId) -> Result<(), LogError> {
        self.build.check(card)
    }

    /// The owner of CPU `cpu`'s time at program counter `pc`; None where there is no code, as for a
    /// CPU that was never started.
    pub fn owner(&self, cpu: Cpu, pc: u32) -> Option<&Owner> {
        let spans = self.spans.get(cpu.index())?;
        let behind = spans.partition_point(|span| span.code.start <= pc);
        let span = spans.get(behind.checked_sub(1)?)?;
        span.code.contains(&pc).then_some(&span.owner)
    }
}
