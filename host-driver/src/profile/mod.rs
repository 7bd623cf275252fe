//! Which handler a CPU is in, told by its program counter.
//!
//! The chip shows a host the program counter of either CPU while it runs (hardware reference,
//! 3.4). Read now and then, it says what part of its time a CPU spends where. The firmware
//! has no part in that: it costs no instruction and no word of SRAM, which counting cycles in
//! each handler would, and it holds for a handler whose runs take long and for one that runs
//! often. What an address means is in the firmware's ELF file:
//!
//! ```text
//!   program counter ──► jump table entry ───────────────► the handler it leads to, or idle
//!                  └──► function ── a handler ──────────► that one
//!                               └── called by one only ─► that one
//!                               └── else ───────────────► by its own name
//! ```
//!
//! Entries of the jump tables count as their handlers, since an emulator that translates code
//! shows the last address that was jumped to.

mod elf;

use crate::log::{BuildId, LogError};
use std::ops::Range;
use tigon2_chip::Cpu;

/// Who a CPU works for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Nobody: it turns in its dispatch loop.
    Idle,
    /// A handler, by its event.
    Handler(String),
    /// A function that several handlers call, or none.
    Function(String),
}

/// A piece of code and who it works for.
#[derive(Clone, Debug)]
struct Span {
    code: Range<u32>,
    owner: Owner,
}

/// The code of a firmware, as each CPU sees it.
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

    /// Whether it is that of the firmware on a card.
    ///
    /// # Errors
    /// [`LogError::WrongBuild`] if not.
    pub fn check(&self, card: BuildId) -> Result<(), LogError> {
        self.build.check(card)
    }

    /// Who CPU `cpu` works for when its program counter is `pc`; none where there is no code,
    /// as with a CPU that was never started.
    pub fn owner(&self, cpu: Cpu, pc: u32) -> Option<&Owner> {
        let spans = self.spans.get(cpu.index())?;
        let behind = spans.partition_point(|span| span.code.start <= pc);
        let span = spans.get(behind.checked_sub(1)?)?;
        span.code.contains(&pc).then_some(&span.owner)
    }
}
