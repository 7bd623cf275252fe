//! A CPU between two instructions: its waits, its instruction line, its stores.
//!
//! The CPU is in-order and blocking, with one outstanding memory operation. Instructions come from
//! the scratch pad without a penalty, or from one line of 64 bytes that is filled beat by beat
//! from SRAM, critical word first. Stores to SRAM go through a buffer; a load waits until it is
//! empty. For each CPU the port serves line beats first, then stores, then the load.
//!
//! Nothing but another fill changes the line on the chip. The CPUs here execute what is in SRAM, so
//! the line also keeps the words that it was filled with: an instruction that differs from them is
//! counted as [stale](Counts::stale_fetches).

use super::counts::{Cause, Counts};
use super::parameters::Parameters;
use super::port::{Client, Port};
use crate::cpu::Stretch;
use crate::memory::SramBytes;

/// Beats of 8 bytes in an instruction line.
const BEATS: u64 = 8;
/// Bytes of an instruction line.
const LINE_BYTES: u32 = 64;
/// Instructions in it.
const WORDS: usize = LINE_BYTES as usize / 4;
/// A beat that has not been granted.
const NEVER: u64 = u64::MAX;

/// What a CPU waits for before its next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing: it can issue at `ready`.
    Nothing,
    /// The port for a load; the port is asked from this cycle on.
    Load,
    /// Room in the store buffer.
    Store,
    /// A beat of the line under way.
    Beat(usize),
    /// The end of the fill under way, to begin another one.
    Fill,
}

/// The line buffer.
#[derive(Clone, Debug)]
struct Line {
    /// The line's address in SRAM, aliases resolved; odd when there is none.
    tag: u32,
    /// When each beat can be used.
    usable: [u64; BEATS as usize],
    /// The next beat to fetch, and how many are left.
    next: usize,
    left: u64,
    /// The instructions, as they were in SRAM when their beats were granted.
    words: [u32; WORDS],
}

/// The state of one CPU's pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The first cycle in which the next instruction can issue; [`u64::MAX`] while only a
    /// grant of the port can tell.
    pub ready: u64,
    wait: Wait,
    /// When the wait began, and how much of it was contention.
    since: u64,
    contended: u64,
    line: Line,
    stores: u64,
    load: bool,
    /// When the load may ask for the port, and whether it has.
    ask_at: u64,
    asked: bool,
    /// The general register that the last instruction loaded from the scratch pad.
    loaded: u32,
    /// Where the cycles went.
    pub counts: Counts,
}

impl Default for Pipeline {
    fn default() -> Self {
        Pipeline {
            ready: 0,
            wait: Wait::Nothing,
            since: 0,
            contended: 0,
            line: Line {
                tag: 1,
                usable: [NEVER; BEATS as usize],
                next: 0,
                left: 0,
                words: [0; WORDS],
            },
            stores: 0,
            load: false,
            ask_at: 0,
            asked: false,
            loaded: 0,
            counts: Counts::default(),
        }
    }
}

/// Holds up the CPUs of a set of bits, which asked for the port: other clients had it in so
/// many cycles.
#[inline]
pub fn hold_up(pipelines: &mut [Pipeline], mut cpus: u16, cycles: u64) {
    while cpus != 0 {
        pipelines[cpus.trailing_zeros() as usize].outvoted(cycles);
        cpus &= cpus - 1;
    }
}

impl Pipeline {
    /// The CPU starts with a cleared pipeline (3.4, C); stores of its earlier life are
    /// lost to time only, their data is in SRAM.
    pub fn restart(&mut self, cycle: u64, port: &mut Port, client: Client) {
        let counts = std::mem::take(&mut self.counts);
        *self = Pipeline {
            ready: cycle,
            counts,
            ..Pipeline::default()
        };
        port.withdraw(client);
    }

    /// Whether the instruction at SRAM address `address` is at hand in `cycle`. If not,
    /// the pipeline waits for it.
    #[inline]
    pub fn fetch(
        &mut self,
        cycle: u64,
        address: u32,
        parameters: &Parameters,
        port: &mut Port,
        client: Client,
    ) -> bool {
        let tag = address & !(LINE_BYTES - 1);
        let beat = (address / 8) as usize % BEATS as usize;
        if self.line.tag == tag {
            let usable = self.usable(beat, parameters);
            if usable <= cycle {
                return true;
            }
            if usable != NEVER {
                self.counts.stalled(Cause::Fetch, usable - cycle);
                self.ready = usable;
                return false;
            }
            self.begin_wait(cycle, Wait::Beat(beat));
            return false;
        }
        if self.line.left != 0 {
            self.begin_wait(cycle, Wait::Fill);
            return false;
        }
        self.line = Line {
            tag,
            usable: [NEVER; BEATS as usize],
            next: beat,
            left: BEATS,
            words: self.line.words,
        };
        port.request(client, false);
        self.begin_wait(cycle, Wait::Beat(beat));
        false
    }

    /// The CPU executes the instruction at SRAM address `address`, which is `word` there and comes
    /// from the line.
    #[inline]
    pub fn executes(&mut self, address: u32, word: u32) {
        if self.line.words[address as usize / 4 % WORDS] != word {
            self.counts.fetched_stale();
        }
    }

    /// Whether the instruction at SRAM address `address` can issue in `cycle`, without
    /// anything being fetched before.
    #[inline]
    pub(crate) fn holds(&self, address: u32, cycle: u64, parameters: &Parameters) -> bool {
        let beat = (address / 8) as usize % BEATS as usize;
        self.line.left == 0
            && self.line.tag == address & !(LINE_BYTES - 1)
            && self.usable(beat, parameters) <= cycle
    }

    /// The first cycle after `cycle` in which the CPU may issue an instruction, at the
    /// earliest.
    #[inline]
    pub(crate) fn issues_from(&self, cycle: u64, parameters: &Parameters) -> u64 {
        if self.ready != NEVER {
            return self.ready.max(cycle);
        }
        // The port is granted in the next cycle at the earliest.
        match self.wait {
            Wait::Load => self.ask_at.max(cycle) + 1 + parameters.sram_lat,
            Wait::Beat(_) => cycle + 1 + parameters.fill_lat,
            _ => cycle + 1,
        }
    }

    /// When a beat can be used. Without critical word first: when the line is complete.
    fn usable(&self, beat: usize, parameters: &Parameters) -> u64 {
        if parameters.cwf {
            self.line.usable[beat]
        } else {
            self.line.usable.iter().copied().max().unwrap_or(NEVER)
        }
    }

    /// Whether an instruction that reads these general registers has to wait for what was
    /// loaded from the scratch pad just before it.
    #[inline]
    pub fn uses_load(&mut self, cycle: u64, sources: u32, parameters: &Parameters) -> bool {
        if self.loaded == 0 {
            return false;
        }
        let uses = sources & self.loaded != 0;
        self.loaded = 0;
        if uses && parameters.load_use != 0 {
            self.counts.stalled(Cause::LoadUse, parameters.load_use);
            self.ready = cycle + parameters.load_use;
            return true;
        }
        false
    }

    /// An instruction issues; the next one can in the next cycle.
    #[inline]
    pub fn issue(&mut self, cycle: u64) {
        self.counts.issued();
        self.ready = cycle + 1;
    }

    /// The issued instruction costs so much more.
    #[inline]
    pub fn penalty(&mut self, cause: Cause, cycles: u64) {
        if cycles != 0 {
            self.counts.stalled(cause, cycles);
            self.ready += cycles;
        }
    }

    /// It loaded register `target` from the scratch pad.
    #[inline]
    pub fn loaded_scratch(&mut self, target: usize) {
        self.loaded = 1 << target & !1;
    }

    /// It loads from SRAM: asks for the port in the next cycle.
    #[inline]
    pub fn load_sram(&mut self) {
        self.load = true;
        self.asked = false;
        self.ask_at = self.ready;
        let from = self.ready;
        self.begin_wait(from, Wait::Load);
    }

    /// It stored to SRAM.
    #[inline]
    pub fn store_sram(&mut self, parameters: &Parameters, port: &mut Port, client: Client) {
        self.stores += 1;
        port.request(client, self.line.left == 0);
        if self.stores > parameters.wb {
            let from = self.ready;
            self.begin_wait(from, Wait::Store);
        }
    }

    /// It writes a register that makes another unit read what was stored.
    #[inline]
    pub fn publish(&mut self) {
        if self.stores != 0 {
            self.counts.overtook();
        }
    }

    /// A load whose request is due asks for the port; it is asked for until it is granted.
    #[inline]
    pub fn ask(&mut self, cycle: u64, port: &mut Port, client: Client) {
        if self.load && !self.asked && cycle >= self.ask_at {
            self.asked = true;
            port.request(client, self.line.left == 0 && self.stores != 0);
        }
    }

    /// When the CPU next needs attention without a grant of the port.
    #[inline]
    pub fn attention(&self) -> u64 {
        if self.load && !self.asked {
            self.ask_at
        } else {
            self.ready
        }
    }

    /// The CPU got the port in `cycle`.
    #[inline]
    pub fn granted(
        &mut self,
        cycle: u64,
        parameters: &Parameters,
        port: &mut Port,
        client: Client,
        sram: &SramBytes,
    ) {
        if self.line.left != 0 {
            self.beat_granted(cycle, parameters, sram);
        } else if self.stores != 0 {
            self.stores -= 1;
            if self.wait == Wait::Store && self.stores <= parameters.wb {
                self.end_wait(Cause::SramStore, cycle.max(self.since));
            }
        } else if self.load {
            self.load = false;
            self.end_wait(Cause::SramLoad, cycle + parameters.sram_lat);
        }
        let asks = self.load && self.asked;
        if self.line.left == 0 && self.stores == 0 && !asks {
            port.withdraw(client);
        } else {
            port.request(client, self.line.left == 0 && self.stores != 0);
        }
    }

    fn beat_granted(&mut self, cycle: u64, parameters: &Parameters, sram: &SramBytes) {
        let line = &mut self.line;
        line.usable[line.next] = cycle + parameters.fill_lat;
        let beat = u64::from_be_bytes(sram.load(line.tag + 8 * line.next as u32));
        line.words[2 * line.next] = (beat >> 32) as u32;
        line.words[2 * line.next + 1] = beat as u32;
        line.next = (line.next + 1) % BEATS as usize;
        line.left -= 1;
        match self.wait {
            Wait::Beat(beat) => {
                let usable = self.usable(beat, parameters);
                if usable != NEVER {
                    self.end_wait(Cause::Fetch, usable);
                }
            }
            Wait::Fill if self.line.left == 0 => self.end_wait(Cause::Fetch, cycle + 1),
            _ => {}
        }
    }

    fn begin_wait(&mut self, from: u64, wait: Wait) {
        self.wait = wait;
        self.since = from;
        self.contended = 0;
        self.ready = u64::MAX;
    }

    fn end_wait(&mut self, cause: Cause, ready: u64) {
        let all = ready.saturating_sub(self.since);
        let contended = self.contended.min(all);
        self.counts.stalled(Cause::Contention, contended);
        self.counts.stalled(cause, all - contended);
        self.ready = ready;
        self.wait = Wait::Nothing;
    }

    /// Another client got the port in so many cycles in which this CPU asked for it.
    #[inline]
    fn outvoted(&mut self, cycles: u64) {
        if self.wait != Wait::Nothing {
            self.contended += cycles;
        }
    }

    /// Where a row of instructions begins: its cycle, and the register that was loaded just
    /// before it.
    #[inline]
    pub(crate) fn place(&self) -> (u64, u32) {
        (self.ready, self.loaded)
    }

    /// Goes back to such a place.
    pub(crate) fn back_to(&mut self, (ready, loaded): (u64, u32)) {
        self.ready = ready;
        self.loaded = loaded;
    }

    /// A row of instructions was executed.
    #[inline]
    pub(crate) fn executed(&mut self, row: &Stretch) {
        self.counts.executed(row);
        self.ready = row.at;
        self.loaded = row.loaded;
    }

    /// Whether nothing of it is outstanding at the port.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.line.left == 0 && self.stores == 0 && !self.load
    }

    /// The register that the last instruction loaded from the scratch pad, as a mask.
    pub(crate) fn loaded(&self) -> u32 {
        self.loaded
    }
}
