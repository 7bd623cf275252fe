//! Telling the host how far the return ring is filled.
//!
//! Hardware reference, section 14, steps 7 and 8: after a number of BDs or a time, and at
//! once for a BD that asks for it.

use crate::config::Config;
use crate::dma::{write, write_words};
use crate::{Firmware, timer};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;

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
pub fn set_coalescing<B: Bus>(firmware: &mut Firmware<B>, ticks: u32, max_bds: u32) {
    let index = &mut firmware.receive.index;
    index.ticks = ticks;
    index.threshold = match (ticks, max_bds) {
        (0, _) => 1,
        (_, 0) => u32::MAX,
        (_, bds) => bds,
    };
}

/// A return BD is on its way: its index follows by count or time, or now.
#[inline(always)]
pub(super) fn returned<B: Bus>(firmware: &mut Firmware<B>, now: bool) {
    let index = &mut firmware.receive.index;
    index.unreported += 1;
    if now || index.unreported >= index.threshold {
        return due(firmware, now);
    }
    if !firmware.deadlines.receive.is_armed() {
        let ticks = index.ticks;
        timer::arm_receive(firmware, ticks);
    }
}

/// An update without waiting for the time.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn due<B: Bus>(firmware: &mut Firmware<B>, now: bool) {
    let index = &mut firmware.receive.index;
    index.now |= now;
    if index.ticks != 0 && index.unreported == index.threshold {
        index.threshold_hits = index.threshold_hits.wrapping_add(1);
    }
    if index.interrupts_by_time && index.ticks != 0 && !firmware.deadlines.receive.is_armed() {
        let ticks = index.ticks;
        timer::arm_receive(firmware, ticks);
    }
    firmware
        .events
        .set(&mut firmware.bus, EventBit::UpdateReceiveReturnProducer);
}

/// Update receive return producer. With "interrupt only on coalescing" the update by number
/// of BDs is silent; the interrupt comes when the time is up.
#[inline(always)]
pub fn update_producer<B: Bus>(firmware: &mut Firmware<B>) {
    let producer = firmware.receive.return_producer;
    let index = &firmware.receive.index;
    let silent = index.interrupts_by_time && !index.now && firmware.deadlines.receive.is_armed();
    if producer != index.reported || index.silent && !silent {
        let kind = if silent {
            write::QUIET
        } else {
            write::RETURN_INDEX
        };
        if write_words(firmware, index.place, &[producer, 0], kind).is_err() {
            // What frees descriptors has a lower priority.
            return firmware.hold(EventBit::UpdateReceiveReturnProducer);
        }
        let index = &mut firmware.receive.index;
        index.reported = producer;
        index.silent = silent;
        firmware.counters.return_updates = firmware.counters.return_updates.wrapping_add(1);
    }
    firmware.receive.index.unreported = 0;
    if !silent {
        firmware.receive.index.now = false;
        firmware.deadlines.receive.disarm();
    }
    firmware
        .events
        .clear(&mut firmware.bus, EventBit::UpdateReceiveReturnProducer);
}
