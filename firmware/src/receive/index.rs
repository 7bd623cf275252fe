//! Telling the host how far the return ring is filled.
//!
//! Hardware reference, section 14, steps 7 and 8: after a number of BDs or a time, and at
//! once for a BD that asks for it.

use super::returns;
use crate::config::Config;
use crate::dma::{has_write_room, put_words, write};
use crate::{SideA, timer};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;

/// What the host was told, and when it wants to hear more.
#[derive(Debug)]
pub struct Index {
    /// Where the host wants the return producer index.
    place: HostAddress,
    /// What the host was told last.
    reported: u32,
    /// Return BDs since then.
    unreported: u32,
    /// Return BDs after which it is told.
    threshold: u32,
    /// Microseconds after which it is told; 0 for at once.
    ticks: u32,
    /// Whether only the time interrupts; else reaching the number of BDs does, too.
    interrupts_by_time: bool,
    /// Whether a BD asked for an update at once.
    now: bool,
    /// Whether the index was written without the interrupt.
    silent: bool,
    /// Updates because the number of BDs was reached.
    threshold_hits: u32,
}

impl Index {
    /// Nothing configured.
    pub const fn new() -> Index {
        Index {
            place: HostAddress { high: 0, low: 0 },
            reported: 0,
            unreported: 0,
            threshold: 1,
            ticks: 0,
            interrupts_by_time: false,
            now: false,
            silent: false,
            threshold_hits: 0,
        }
    }

    /// As the host configured it.
    pub const fn configured(config: &Config) -> Index {
        let mut index = Index::new();
        index.place = config.return_producer;
        index.interrupts_by_time = config.receive_return.flags.coalesced_update_only();
        index
    }

    /// Whether the host is to be told without waiting for the time.
    #[inline(always)]
    pub(super) const fn is_due(&self) -> bool {
        self.now || self.unreported >= self.threshold
    }

    /// Updates because the number of BDs was reached.
    pub const fn threshold_hits(&self) -> u32 {
        self.threshold_hits
    }
}

impl Default for Index {
    fn default() -> Index {
        Index::new()
    }
}

/// The coalescing words, which drivers also change later: 0 microseconds is "at once", 0
/// BDs "by time only".
pub fn set_coalescing<B: Dispatch>(a: &mut SideA<B>, ticks: u32, max_bds: u32) {
    let index = &mut a.receive.index;
    index.ticks = ticks;
    index.threshold = match (ticks, max_bds) {
        (0, _) => 1,
        (_, 0) => u32::MAX,
        (_, bds) => bds,
    };
}

/// Some return BDs are on their way: their index follows by count or time, or now.
#[inline(always)]
pub(crate) fn returned<B: Dispatch>(a: &mut SideA<B>, count: u32, now: bool) {
    let index = &mut a.receive.index;
    index.unreported += count;
    if now || index.unreported >= index.threshold {
        return due(a, count, now);
    }
    if !a.deadlines.receive.is_armed() {
        let ticks = index.ticks;
        timer::arm_receive(a, ticks);
    }
}

/// An update without waiting for the time.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn due<B: Dispatch>(a: &mut SideA<B>, count: u32, now: bool) {
    let index = &mut a.receive.index;
    index.now |= now;
    let before = index.unreported - count;
    if index.ticks != 0 && (before..index.unreported).contains(&(index.threshold - 1)) {
        index.threshold_hits = index.threshold_hits.wrapping_add(1);
    }
    if index.interrupts_by_time && index.ticks != 0 && !a.deadlines.receive.is_armed() {
        let ticks = index.ticks;
        timer::arm_receive(a, ticks);
    }
    a.bus.set(EventBit::UpdateReceiveReturnProducer);
}

/// Update receive return producer. With "interrupt only on coalescing" the update by number
/// of BDs is silent; the interrupt comes when the time is up.
#[inline(always)]
pub fn update_producer<B: Dispatch>(a: &mut SideA<B>) {
    let producer = a.receive.return_producer;
    let index = &a.receive.index;
    let silent = index.interrupts_by_time && !index.now && a.deadlines.receive.is_armed();
    if producer != index.reported || index.silent && !silent {
        let kind = if silent {
            write::QUIET
        } else {
            write::RETURN_INDEX
        };
        let place = index.place;
        if !has_write_room(a, 1 + returns::TRANSFERS) {
            return a.wait_for_descriptor(EventBit::UpdateReceiveReturnProducer);
        }
        returns::queue(a, 1);
        put_words(a, place, &[producer, 0], kind);
        let index = &mut a.receive.index;
        index.reported = producer;
        index.silent = silent;
        a.counters.return_updates = a.counters.return_updates.wrapping_add(1);
    }
    a.receive.index.unreported = 0;
    if !silent {
        a.receive.index.now = false;
        a.deadlines.receive.disarm();
    }
    a.bus.clear(EventBit::UpdateReceiveReturnProducer);
}
