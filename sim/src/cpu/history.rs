//! Records which instructions a CPU has executed last.
//!
//! Most instructions follow the previous one in memory, so only the starts of runs are recorded:
//! the address, and the number of instructions executed before it.

/// How many program counters a core remembers.
pub const HISTORY: usize = 64;
/// Runs that are kept: a history can be [taken back](History::take_back) by as many
/// instructions as it remembers.
const KEPT: usize = 2 * HISTORY;

/// The last instructions.
#[derive(Clone, Debug)]
pub(super) struct History {
    runs: [(u32, u64); KEPT],
    /// Where and when the next run is written down.
    mark: Mark,
}

/// How far a history has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    runs: usize,
    instructions: u64,
}

impl History {
    /// Of a CPU that has executed nothing and stands at address 0.
    pub(super) fn new() -> History {
        History {
            runs: [(0, 0); KEPT],
            mark: Mark {
                runs: 1,
                instructions: 0,
            },
        }
    }

    /// The CPU continues at `pc` after `count` instructions that are not
    /// [counted](Self::executed) yet.
    #[inline]
    pub(super) fn turn(&mut self, pc: u32, count: u64) {
        self.runs[self.mark.runs % KEPT] = (pc, self.mark.instructions + count);
        self.mark.runs += 1;
    }

    /// Counts instructions.
    #[inline]
    pub(super) fn executed(&mut self, instructions: u64) {
        self.mark.instructions += instructions;
    }

    /// How far it has come.
    #[inline]
    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// Takes back what was executed since a mark, no more than [`HISTORY`] instructions.
    pub(super) fn take_back(&mut self, mark: Mark) {
        self.mark = mark;
    }

    /// The program counters, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let first = self.mark.instructions.saturating_sub(HISTORY as u64);
        let mut end = self.mark.instructions;
        let mut last = Vec::new();
        let mut run = self.mark.runs;
        while end > first {
            run -= 1;
            let (pc, begin) = self.runs[run % KEPT];
            let run = (begin.max(first)..end).rev();
            last.extend(run.map(|n| pc.wrapping_add(4 * (n - begin) as u32)));
            end = end.min(begin);
        }
        last.into_iter().rev()
    }
}
