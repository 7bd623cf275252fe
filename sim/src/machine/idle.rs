//! Finds out that a CPU only waits, so that the engine can skip the waiting.
//!
//! Firmware waits by polling its event register. When a CPU reads that register twice
//! with the same general registers at the same instruction, and nothing in the machine
//! changed between (no store by any CPU, no other register access, no work of the card, no
//! access of the host), then it will do the same over and over until something changes.
//! If this is so for every running CPU, nothing can change before the next deadline, and
//! whole rounds can be skipped: the result is the same as of executing them.

use crate::cpu::Core;

/// The last poll of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Poll {
    pc: u32,
    gprs: [u32; 32],
    cycle: u64,
    retired: u64,
    /// The round that was found to repeat.
    round: Option<Round>,
}

/// A round of a waiting loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// The cycle of the poll at which it began.
    since: u64,
    /// Its length in cycles.
    pub(super) cycles: u64,
    /// Its length in instructions.
    pub(super) instructions: u64,
}

/// Watches both CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleWatch {
    polls: [Poll; 2],
    changed_at: u64,
}

impl IdleWatch {
    /// Something changed in a cycle that a waiting loop may depend on.
    #[inline]
    pub(super) fn changed(&mut self, cycle: u64) {
        self.changed_at = cycle;
    }

    /// A CPU has read its event register; returns whether it repeats its last round.
    pub(super) fn polled(&mut self, cpu: usize, core: &Core, pc: u32, cycle: u64) -> bool {
        let poll = &mut self.polls[cpu];
        let repeats = poll.pc == pc && poll.cycle > self.changed_at && poll.gprs == *core.gprs();
        poll.round = repeats.then(|| Round {
            since: poll.cycle,
            cycles: cycle - poll.cycle,
            instructions: core.retired() - poll.retired,
        });
        poll.pc = pc;
        poll.gprs = *core.gprs();
        poll.cycle = cycle;
        poll.retired = core.retired();
        repeats
    }

    /// The round that a CPU repeats, if nothing has changed since it began.
    pub(super) fn round(&self, cpu: usize) -> Option<Round> {
        self.polls[cpu]
            .round
            .filter(|round| round.since > self.changed_at)
    }

    /// Accounts for `cycles` that a waiting CPU skipped with `instructions` in them.
    pub(super) fn skip(&mut self, cpu: usize, cycles: u64, instructions: u64) {
        self.polls[cpu].cycle += cycles;
        self.polls[cpu].retired += instructions;
    }
}

/// The least common multiple of two lengths above 0, or `None` if it is too large.
pub(super) fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a.checked_div(x)?.checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_repeats_only_if_nothing_changed_in_it() {
        let mut core = Core::new(0x4000);
        let mut watch = IdleWatch::default();
        assert!(
            !watch.polled(0, &core, 0x4000, 10),
            "the first poll knows no round"
        );
        assert!(watch.polled(0, &core, 0x4000, 14));
        assert_eq!(watch.round(0).map(|round| round.cycles), Some(4));
        watch.changed(12);
        assert_eq!(watch.round(0), None, "it began before the change");
        assert!(
            watch.polled(0, &core, 0x4000, 18),
            "the round from 14 to 18 is clean"
        );
        assert!(watch.round(0).is_some());
        assert!(
            !watch.polled(0, &core, 0x4010, 22),
            "another instruction polls"
        );
        core.set_gpr(2, 1);
        assert!(!watch.polled(0, &core, 0x4010, 26), "a register changed");
        watch.changed(26);
        assert!(
            !watch.polled(0, &core, 0x4010, 30),
            "a change in the cycle of the poll counts"
        );
        assert!(watch.polled(0, &core, 0x4010, 34));
        assert_eq!(watch.round(1), None);
    }

    #[test]
    fn common_multiples() {
        assert_eq!(common_multiple(4, 6), Some(12));
        assert_eq!(common_multiple(7, 7), Some(7));
        assert_eq!(common_multiple(1, 13), Some(13));
        assert_eq!(common_multiple(u64::MAX, u64::MAX - 1), None);
    }
}
