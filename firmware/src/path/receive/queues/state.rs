//! The state of queue mode.

use super::classify::{Classify, Found};
use super::notify::Notify;
use super::queue::Queue;
use super::verdicts::Verdicts;
use crate::memory::layout::{QUEUE_RINGS, QUEUE_SHIFT, QUEUES};
use host_interface::queue::QueueCounter;
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;

/// All queues.
#[derive(Debug)]
pub struct Queues {
    pub(super) table: [Queue; QUEUES],
    /// The number of open queues; 0 in classic mode.
    pub(super) open: u32,
    /// Selects a frame's queue.
    pub(super) classify: Classify,
    /// When and where each queue is reported.
    pub(super) notify: [Notify; QUEUES],
    /// Queues to report now, a bit for each.
    pub(super) due: u32,
    /// The verdicts on the next frames.
    pub(super) verdicts: Verdicts,
    /// The verdict on the frame at which the last run ended, if that is left to others.
    pub(super) found: Found,
    /// Whether return BDs found no descriptor.
    pub(super) stuck: bool,
    /// The return rings in host memory.
    pub(super) returns: [HostAddress; QUEUES],
}

impl Queues {
    /// No queue is open.
    pub const fn new() -> Queues {
        Queues {
            table: [const { Queue::UNUSED }; QUEUES],
            open: 0,
            classify: Classify::SINGLE,
            notify: [Notify::UNUSED; QUEUES],
            due: 0,
            verdicts: Verdicts::CLOSED,
            found: Found::NONE,
            stuck: false,
            returns: [const { HostAddress { high: 0, low: 0 } }; QUEUES],
        }
    }

    /// Whether the card is in queue mode.
    #[inline(always)]
    pub const fn is_open(&self) -> bool {
        QUEUES != 0 && self.open != 0
    }

    /// The data of a frame whose return BD is at `slot` could not be written.
    pub(in crate::path::receive) fn refused<B: Bus>(&mut self, bus: &mut B, slot: u32) {
        let number = slot.wrapping_sub(QUEUE_RINGS) >> QUEUE_SHIFT;
        if let Some(queue) = self.table.get_mut(number as usize) {
            queue.count(bus, QueueCounter::Fault);
            queue.is_untidy();
        }
    }

    /// The open queues, each with its return ring in host memory.
    #[inline(always)]
    pub(super) fn open_table(&mut self) -> impl Iterator<Item = (&mut Queue, &HostAddress)> {
        let open = self.open as usize;
        let table = self.table.get_mut(..open).unwrap_or_default();
        table.iter_mut().zip(&self.returns)
    }

    /// Counts frames that never arrived, rounded down to turns of the MAC's ring: tests let the
    /// positions of verdicts wrap.
    #[cfg(not(target_arch = "mips"))]
    pub(crate) const fn count_frames(&mut self, count: u32) {
        self.verdicts.count_frames(count);
    }

    /// The number of open queues.
    pub const fn count(&self) -> u32 {
        self.open
    }
}

impl Default for Queues {
    fn default() -> Queues {
        Queues::new()
    }
}
