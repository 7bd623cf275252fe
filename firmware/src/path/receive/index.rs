//! When the receive return producer index is due for a report.
//!
//! Hardware reference, section 14, steps 7 and 8: after a number of BDs or a time, and at once for
//! a BD that requests it.

use crate::io::IoA;
use crate::io::deadline::SlotA;
use crate::memory::config::Config;
use crate::memory::layout::QUEUES;
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;

/// Only the time raises an interrupt; otherwise the number of BDs does as well.
const BY_TIME: u32 = 1;
/// Updates are the status lines of queues.
const BY_QUEUE: u32 = 1 << 31;

/// The last reported index, and the host's coalescing settings.
#[derive(Debug)]
pub struct Index {
    /// The host address of the return producer index.
    pub(super) place: HostAddress,
    /// The last reported index.
    pub(super) reported: u32,
    /// Return BDs since then.
    pub(super) unreported: u32,
    /// Return BDs after which the index is reported.
    threshold: u32,
    /// Microseconds after which the index is reported; 0 for at once.
    ticks: u32,
    /// The kind of updates: [`BY_TIME`], [`BY_QUEUE`]; 0 for the index with an interrupt.
    updates: u32,
    /// Whether a BD requested an update at once.
    pub(super) now: bool,
    /// Whether the index was written without the interrupt.
    pub(super) silent: bool,
    /// Updates that the BD threshold triggered.
    threshold_hits: u32,
}

impl Index {
    /// Nothing configured.
    pub const fn new() -> Index {
        Index {
            place: HostAddress::NULL,
            reported: 0,
            unreported: 0,
            threshold: 1,
            ticks: 0,
            updates: 0,
            now: false,
            silent: false,
            threshold_hits: 0,
        }
    }

    /// As the host configured it.
    pub const fn configured(config: &Config) -> Index {
        let mut index = Index::new();
        index.place = config.return_producer;
        if config.receive_return.flags.coalesced_update_only() {
            index.updates = BY_TIME;
        }
        index
    }

    /// Takes the host's coalescing: 0 microseconds means "at once", 0 BDs "by time only".
    pub(super) const fn set_coalescing(&mut self, ticks: u32, max_bds: u32) {
        self.ticks = ticks;
        self.threshold = match (ticks, max_bds) {
            (0, _) => 1,
            (_, 0) => u32::MAX,
            (_, bds) => bds,
        };
    }

    /// Starts or stops the updates of queues.
    pub(super) const fn set_queues(&mut self, sorts: bool) {
        self.updates = self.updates & BY_TIME | if sorts { BY_QUEUE } else { 0 };
    }

    pub(super) const fn is_by_time(&self) -> bool {
        self.updates & BY_TIME != 0
    }

    /// Whether updates are the status lines of queues.
    #[inline(always)]
    pub(super) const fn is_by_queue(&self) -> bool {
        QUEUES != 0 && self.updates & BY_QUEUE != 0
    }

    /// Whether the index is to be reported without waiting for the time.
    #[inline(always)]
    pub(super) const fn is_due(&self) -> bool {
        self.now || self.unreported >= self.threshold
    }

    /// Updates that the BD threshold triggered.
    pub const fn threshold_hits(&self) -> u32 {
        self.threshold_hits
    }
}

impl Default for Index {
    fn default() -> Index {
        Index::new()
    }
}

/// Some return BDs are queued: reports their index by count, by time or now.
#[inline(always)]
pub(crate) fn returned<B: Dispatch>(index: &mut Index, io: &mut IoA<B>, count: u32, now: bool) {
    index.unreported += count;
    if now || index.unreported >= index.threshold {
        return due(index, io, count, now);
    }
    if !io.is_armed(SlotA::Receive) {
        io.arm(SlotA::Receive, index.ticks);
    }
}

/// Requests an update without waiting for the time.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn due<B: Dispatch>(index: &mut Index, io: &mut IoA<B>, count: u32, now: bool) {
    index.now |= now;
    let before = index.unreported - count;
    if index.ticks != 0 && (before..index.unreported).contains(&(index.threshold - 1)) {
        index.threshold_hits = index.threshold_hits.wrapping_add(1);
    }
    if index.is_by_time() && index.ticks != 0 && !io.is_armed(SlotA::Receive) {
        io.arm(SlotA::Receive, index.ticks);
    }
    io.bus.set(EventBit::UpdateReceiveReturnProducer);
}
