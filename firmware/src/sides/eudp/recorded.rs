//! The transitions of RECV and RDMA, recorded for the explorer.
//!
//! CPU B records what SDMA and SEND do in every image. A row of CPU A's costs throughput: CPU A works
//! on each datagram for most of its time. So only firmware with the feature `transitions` records
//! these, for schedules that are not measured; in all other nothing of this module is left. There some
//! code lies in SRAM for which CPU A's pad has no room then.
//!
//! Each machine runs on one CPU, so the order of each is kept, and that is what the checker follows.

use super::word;
use crate::memory::layout::EUDP_ARRIVALS;
use frame_pipeline::trace::Entry;
use frame_pipeline::{Step, TABLES};
use host_interface::eudp::BlockWord;
use host_interface::eudp::arrivals::{STEPS, TRACE, TRACE_BYTES};
use tigon2_hal::Bus;

/// RECV's number in [`TABLES`].
pub(super) const RECV: usize = 2;
/// RDMA's.
pub(super) const RDMA: usize = 3;

const _: () = {
    assert!(matches!(TABLES[RECV].name.as_bytes(), b"RECV"));
    assert!(matches!(TABLES[RDMA].name.as_bytes(), b"RDMA"));
};

/// Says where they are, before anything is open.
pub(super) fn describe<B: Bus>(bus: &mut B) {
    if let Some(bus) = Recorder::of(bus).bus() {
        bus.store(EUDP_ARRIVALS + STEPS, 0);
        bus.store(word(BlockWord::Arrivals), EUDP_ARRIVALS);
    }
}

/// Records what an event did, if it took a row.
#[inline(always)]
pub(super) fn note<B: Bus>(bus: &mut B, machine: usize, step: Step) {
    if let Step::Taken(row) = step {
        Recorder::of(bus).record(machine, row);
    }
}

/// Records a row that is about to be taken.
pub(super) struct Recorder<'a, B>(Held<'a, B>);

#[cfg(feature = "transitions")]
type Held<'a, B> = &'a mut B;
/// Not even a pointer: with one, a compiler would order what is around it in another way.
#[cfg(not(feature = "transitions"))]
type Held<'a, B> = core::marker::PhantomData<&'a mut B>;

#[cfg(feature = "transitions")]
impl<'a, B: Bus> Recorder<'a, B> {
    /// By way of a CPU's bus.
    pub fn of(bus: &'a mut B) -> Recorder<'a, B> {
        Recorder(bus)
    }

    fn bus(self) -> Option<&'a mut B> {
        Some(self.0)
    }
}

#[cfg(not(feature = "transitions"))]
impl<'a, B: Bus> Recorder<'a, B> {
    /// By way of no bus.
    #[inline(always)]
    pub fn of(_: &'a mut B) -> Recorder<'a, B> {
        Recorder(core::marker::PhantomData)
    }

    #[inline(always)]
    fn bus(self) -> Option<&'a mut B> {
        None
    }
}

impl<B: Bus> Recorder<'_, B> {
    /// Row `row` of the machine with this number.
    #[inline(always)]
    pub fn record(self, machine: usize, row: u8) {
        if let Some(bus) = self.bus() {
            put(bus, Entry::new(machine, row));
        }
    }
}

/// In SRAM: CPU A's pad has no room for it at each event.
#[inline(never)]
fn put<B: Bus>(bus: &mut B, entry: Entry) {
    let step = bus.load(EUDP_ARRIVALS + STEPS);
    let at = EUDP_ARRIVALS + TRACE + (step & (TRACE_BYTES - 1));
    bus.store_byte(at, entry.byte());
    bus.store(EUDP_ARRIVALS + STEPS, step.wrapping_add(1));
}
