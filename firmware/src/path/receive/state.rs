//! The state of the receive path.

use super::frame::{CRC, HEADER};
use super::index::Index;
use super::returns::ReturnQueue;
use super::rings::BufferRings;
use crate::io::buffer_ring::RingId;
use crate::memory::layout::QUEUES;
use crate::memory::region::{ReturnBds, Staging, TakenBds};
use crate::record::counters::ReceiveCounters;
use tigon2_chip::memory::block;
use tigon2_hal::Bus;
use tigon2_hal::mac::ReceiveRing;

/// State of the receive side.
#[derive(Debug)]
pub struct Receive {
    /// The MAC's ring.
    pub(super) ring: ReceiveRing,
    /// Start of the receive buffer.
    pub(super) base: u32,
    /// The host's rings of empty buffers.
    pub(super) rings: BufferRings,
    /// Frames of this length, without CRC, and ...
    pub(super) window: u32,
    /// ... up to this many bytes more are for the standard ring without further inspection.
    pub(super) window_bytes: u32,
    /// Likewise for the mini ring: frames of [`HEADER`] bytes and up to this many more.
    pub(super) mini_bytes: u32,
    /// Longest frame that is accepted, without CRC.
    pub(super) longest: u32,
    /// Bytes of a frame that are not delivered: the CRC, unless the host wants it.
    pub(super) cut: u32,
    /// The ring of the last simple frames.
    pub(super) usual: RingId,
    /// Return BDs to go until no slot has words other than those that the fast path sets; and
    /// [`SORTS`].
    pub(super) untidy: u32,
    /// Whether the host wants bad frames as well.
    pub(super) bad_frames: bool,
    /// Whether the host's stack accepts frames.
    pub(super) stack_up: bool,
    /// Whether a frame waits for BDs.
    pub(super) waiting: bool,
    /// Further work that the host requests, as flags of a ring control block; 0 for none.
    pub(super) wants: u32,
    /// The return ring.
    pub(super) returns: ReturnQueue,
    /// Where the seeds of sums are made: in the staging slots of their write descriptors. A
    /// variable is faster than the constant here.
    pub(super) seeds: u32,
    /// Reports to the host.
    pub(super) index: Index,
    /// Per-frame counters.
    pub counters: ReceiveCounters,
}

/// Frames are sorted into queues: a bit of `untidy` that neither a count of slots nor a flag of
/// `wants` reaches, so that the fast path tests for it without a load of its own.
const SORTS: u32 = 1 << 31;

/// Whether the [detours](Receive::detours) say that frames are sorted into queues.
#[inline(always)]
pub(super) const fn is_sorting(detours: u32) -> bool {
    QUEUES != 0 && detours & SORTS != 0
}

impl Receive {
    /// Nothing configured.
    pub const fn new(
        ring: ReceiveRing,
        return_bds: ReturnBds,
        receive_bds: TakenBds,
        staging: &Staging,
    ) -> Receive {
        Receive {
            ring,
            base: 0,
            rings: BufferRings::new(receive_bds),
            window: 0,
            window_bytes: 0,
            mini_bytes: 0,
            longest: 0,
            cut: CRC,
            usual: RingId::Standard,
            untidy: 0,
            bad_frames: false,
            stack_up: false,
            waiting: false,
            wants: 0,
            returns: ReturnQueue::new(return_bds),
            seeds: staging.address(),
            index: Index::new(),
            counters: ReceiveCounters::new(),
        }
    }

    /// Places the MAC's ring in the block with base K.
    pub fn place(&mut self, block: u32) {
        self.ring.place(block + block::MAC_RX_RING);
    }

    /// Sets the lengths that need no inspection: none while the stack is down.
    pub(super) fn set_window(&mut self) {
        let mini = self.rings.get(RingId::Mini).longest();
        self.window = mini.max(HEADER - 1) + 1;
        (self.window_bytes, self.mini_bytes) = if self.stack_up {
            let upper = self.longest.min(self.rings.get(RingId::Standard).longest()) + 1;
            let upper_mini = self.longest.min(mini) + 1;
            (
                upper.saturating_sub(self.window),
                upper_mini.saturating_sub(HEADER),
            )
        } else {
            (0, 0)
        };
    }

    /// The ring of good frames of a length without CRC, if the length alone decides it.
    #[inline(always)]
    pub(super) fn ring_by_length(&self, length: u32) -> Option<RingId> {
        if length.wrapping_sub(self.window) < self.window_bytes {
            Some(RingId::Standard)
        } else if length.wrapping_sub(HEADER) < self.mini_bytes {
            Some(RingId::Mini)
        } else {
            None
        }
    }

    /// The shortest length that is clearly a ring's, and the number of such lengths.
    #[inline(always)]
    pub(super) fn lengths(&self, id: RingId) -> (u32, u32) {
        if id == RingId::Mini {
            (HEADER, self.mini_bytes)
        } else {
            (self.window, self.window_bytes)
        }
    }

    /// Switches the usual ring for a frame of this length; `false` if no ring clearly takes it.
    pub(super) fn changes_ring(&mut self, length: u32) -> bool {
        let id = self.ring_by_length(length);
        self.usual = id.unwrap_or(self.usual);
        id.is_some()
    }

    /// Starts or stops sorting frames into queues.
    pub(super) fn set_queues(&mut self, sorts: bool) {
        if sorts {
            self.untidy |= SORTS;
        } else {
            self.untidy &= !SORTS;
        }
        self.index.set_queues(sorts);
    }

    /// 0 if the fast path may deliver the frames. Otherwise the host requests further work, slots
    /// of return BDs are untidy, or frames are [sorted](is_sorting).
    #[inline(always)]
    pub(super) const fn detours(&self) -> u32 {
        self.wants | self.untidy
    }

    /// How many lengths, from `least` on, a queue takes without another look.
    #[inline(always)]
    pub(super) fn queue_lengths(&self, least: u32) -> u32 {
        if self.wants == 0 && self.stack_up {
            (self.longest + 1).saturating_sub(least)
        } else {
            0
        }
    }

    /// Whether a good frame of this length without CRC needs no inspection.
    pub(super) fn takes_in_queue(&self, length: u32) -> bool {
        self.stack_up && length >= HEADER && length <= self.longest
    }

    /// Index updates that the BD threshold triggered.
    pub fn threshold_hits(&self) -> u32 {
        self.index.threshold_hits()
    }

    /// BDs in NIC memory that no frame has taken: standard, jumbo, mini.
    pub fn bds_now<B: Bus>(&mut self, bus: &mut B) -> [u32; 3] {
        [RingId::Standard, RingId::Jumbo, RingId::Mini].map(|id| self.rings.get_mut(id).ready(bus))
    }

    /// Start of the receive buffer.
    #[inline(always)]
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Whether frames are sorted into queues.
    #[inline(always)]
    pub fn is_sorting(&self) -> bool {
        is_sorting(self.detours())
    }

    /// Whether a frame waits for BDs.
    pub fn is_starved(&self) -> bool {
        self.waiting
    }

    /// BDs have arrived: tries the waiting frame again.
    pub fn try_again(&mut self) {
        self.waiting = false;
    }
}
