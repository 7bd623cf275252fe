//! Counts how a CPU's cycles were spent: by handler, and by what it waited for.

use crate::cpu::Stretch;

/// Bits of an event register.
const EVENT_BITS: usize = 32;

/// What a cycle was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Issuing an instruction.
    Issue,
    /// Waiting for an instruction from SRAM.
    Fetch,
    /// Waiting for a word from SRAM.
    SramLoad,
    /// Waiting for room in the store buffer.
    SramStore,
    /// Waiting for a register of the chip.
    Register,
    /// The extra cycles of the scratch pad.
    Scratch,
    /// A word from the scratch pad that the next instruction uses.
    LoadUse,
    /// Taken branches and jumps.
    Branch,
    /// Waiting for the SRAM port while another client had it.
    Contention,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 9] = [
        Cause::Issue,
        Cause::Fetch,
        Cause::SramLoad,
        Cause::SramStore,
        Cause::Register,
        Cause::Scratch,
        Cause::LoadUse,
        Cause::Branch,
        Cause::Contention,
    ];

    /// What to call it in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Issue => "issue",
            Cause::Fetch => "fetch",
            Cause::SramLoad => "SRAM load",
            Cause::SramStore => "SRAM store",
            Cause::Register => "register",
            Cause::Scratch => "scratch",
            Cause::LoadUse => "load use",
            Cause::Branch => "branch",
            Cause::Contention => "contention",
        }
    }
}

/// What a CPU is doing, as far as its event dispatch shows: JOFF names the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Nothing was pending: dispatch and the idle entry.
    Idle,
    /// The handler of an event bit.
    Handler(u8),
    /// From reading the event register to the jump that found something.
    Dispatch,
    /// All before the first dispatch.
    Boot,
}

const IDLE: usize = 0;
const DISPATCH: usize = EVENT_BITS + 1;
const BOOT: usize = EVENT_BITS + 2;
const SLOTS: usize = EVENT_BITS + 3;

/// Instructions, runs and cycles of one activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it was entered.
    pub runs: u64,
    /// Instructions executed in it.
    pub instructions: u64,
    /// Cycles, by [`Cause`].
    pub cycles: [u64; Cause::ALL.len()],
}

impl Tally {
    /// All cycles.
    pub fn total(&self) -> u64 {
        self.cycles.iter().sum()
    }

    /// The cycles of a cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.cycles[cause as usize]
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.instructions += other.instructions;
        for (sum, cycles) in self.cycles.iter_mut().zip(other.cycles) {
            *sum += cycles;
        }
    }

    /// This without what was in an earlier reading of it.
    #[must_use]
    pub fn since(&self, earlier: &Tally) -> Tally {
        Tally {
            runs: self.runs - earlier.runs,
            instructions: self.instructions - earlier.instructions,
            cycles: std::array::from_fn(|n| self.cycles[n] - earlier.cycles[n]),
        }
    }
}

/// One CPU's tallies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    slots: [Tally; SLOTS],
    current: usize,
    /// See [`overtakes`](Self::overtakes).
    overtakes: u64,
    /// See [`stale_fetches`](Self::stale_fetches).
    stale_fetches: u64,
    /// The dispatch slot when the dispatch under way began.
    before: Tally,
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            slots: [Tally::default(); SLOTS],
            current: BOOT,
            overtakes: 0,
            stale_fetches: 0,
            before: Tally::default(),
        }
    }
}

impl Counts {
    /// The CPU reads its event register.
    #[inline]
    pub fn dispatching(&mut self) {
        self.before = self.slots[DISPATCH];
        self.current = DISPATCH;
    }

    /// The CPU jumps to entry `entry` of its table: 0 is idle, n + 1 the handler of bit n.
    #[inline]
    pub fn entered(&mut self, entry: u32) {
        let entry = entry as usize % (EVENT_BITS + 1);
        if entry == IDLE {
            // The search found nothing: it was part of being idle.
            let search = self.slots[DISPATCH].since(&self.before);
            self.slots[IDLE].add(&search);
            self.slots[DISPATCH] = self.before;
        }
        self.slots[entry].runs += 1;
        self.current = entry;
    }

    /// An instruction issued.
    #[inline]
    pub fn issued(&mut self) {
        let slot = &mut self.slots[self.current];
        slot.instructions += 1;
        slot.cycles[Cause::Issue as usize] += 1;
    }

    /// Cycles went by for a cause.
    #[inline]
    pub fn stalled(&mut self, cause: Cause, cycles: u64) {
        self.slots[self.current].cycles[cause as usize] += cycles;
    }

    /// Instructions were executed in a row.
    #[inline]
    pub(crate) fn executed(&mut self, row: &Stretch) {
        let slot = &mut self.slots[self.current];
        slot.instructions += row.instructions;
        slot.cycles[Cause::Issue as usize] += row.instructions;
        slot.cycles[Cause::Scratch as usize] += row.scratch;
        slot.cycles[Cause::LoadUse as usize] += row.load_use;
        slot.cycles[Cause::Branch as usize] += row.branch;
    }

    /// Takes back what was [`executed`](Self::executed) last.
    pub(crate) fn retract(&mut self, row: &Stretch) {
        let slot = &mut self.slots[self.current];
        slot.instructions -= row.instructions;
        slot.cycles[Cause::Issue as usize] -= row.instructions;
        slot.cycles[Cause::Scratch as usize] -= row.scratch;
        slot.cycles[Cause::LoadUse as usize] -= row.load_use;
        slot.cycles[Cause::Branch as usize] -= row.branch;
    }

    /// The CPU notifies another unit of data in SRAM, with a store in its buffer.
    #[inline]
    pub(crate) fn overtook(&mut self) {
        self.overtakes += 1;
    }

    /// How often the CPU told the DMA assist, the MAC's transmitter or another CPU of what it
    /// had stored while a store was still in its buffer. Register accesses are not ordered
    /// behind stores, so the other one may read what was in SRAM before; a load in between
    /// waits for the stores.
    pub fn overtakes(&self) -> u64 {
        self.overtakes
    }

    /// The CPU executes an instruction that is not what its line was filled with.
    #[cold]
    pub(crate) fn fetched_stale(&mut self) {
        self.stale_fetches += 1;
    }

    /// How often the CPU executed an instruction from its line whose word in SRAM had changed since
    /// the line was filled, whoever wrote it. The chip executes the old word there, the simulator
    /// the new one. A store counts as written when it issues, although it may still be in the
    /// buffer; a word that has its former value again is not stale.
    pub fn stale_fetches(&self) -> u64 {
        self.stale_fetches
    }

    /// The tally of an activity.
    pub fn tally(&self, activity: Activity) -> Tally {
        let slot = match activity {
            Activity::Idle => IDLE,
            Activity::Handler(bit) => usize::from(bit) % EVENT_BITS + 1,
            Activity::Dispatch => DISPATCH,
            Activity::Boot => BOOT,
        };
        self.slots[slot]
    }

    /// Every activity that has cycles, with its tally.
    pub fn iter(&self) -> impl Iterator<Item = (Activity, Tally)> + '_ {
        let all = std::iter::once(Activity::Idle)
            .chain((0..EVENT_BITS as u8).map(Activity::Handler))
            .chain([Activity::Dispatch, Activity::Boot]);
        all.map(|activity| (activity, self.tally(activity)))
            .filter(|(_, tally)| tally.total() != 0)
    }

    /// Whether the CPU is between a dispatch that found nothing and the next one.
    #[inline]
    pub fn idle(&self) -> bool {
        self.current == IDLE || self.current == DISPATCH
    }

    /// Of all activities together; `runs` counts dispatches as well.
    pub fn total(&self) -> Tally {
        let mut sum = Tally::default();
        for slot in &self.slots {
            sum.add(slot);
        }
        sum
    }

    /// What was counted since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            slots: std::array::from_fn(|n| self.slots[n].since(&earlier.slots[n])),
            current: self.current,
            overtakes: self.overtakes - earlier.overtakes,
            stale_fetches: self.stale_fetches - earlier.stale_fetches,
            before: Tally::default(),
        }
    }

    /// Adds rounds of idling that were not executed one by one.
    pub(crate) fn skip(&mut self, round: &Tally, times: u64) {
        let slot = &mut self.slots[IDLE];
        slot.runs += round.runs * times;
        slot.instructions += round.instructions * times;
        for (sum, cycles) in slot.cycles.iter_mut().zip(round.cycles) {
            *sum += cycles * times;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_in_vain_is_idling_and_one_that_finds_is_dispatch() {
        let mut counts = Counts::default();
        counts.issued();
        for entry in [0, 0, 7] {
            counts.dispatching();
            counts.issued();
            counts.stalled(Cause::Register, 8);
            counts.entered(entry);
            counts.issued();
        }
        let total = |activity| counts.tally(activity).total();
        assert_eq!(total(Activity::Boot), 1);
        assert_eq!(total(Activity::Idle), 2 * 10);
        assert_eq!(total(Activity::Dispatch), 9);
        assert_eq!(total(Activity::Handler(6)), 1);
        assert_eq!(counts.iter().count(), 4);
        assert_eq!(counts.tally(Activity::Idle).runs, 2);
    }
}
