//! The receive path: wire to host.
//!
//! Hardware reference, section 14. A frame takes the next BD of one of the host's rings, selected
//! by its length, and costs one transfer for its data; one more transfer moves the return BDs of
//! all frames of a run. The return producer index follows by count or time.
//!
//! | module | what |
//! | --- | --- |
//! | this one | the configuration, and the host's producers |
//! | [`rings`] | the rings of empty buffers |
//! | [`frame`] | Receive Complete: delivers or drops frames |
//! | `fast_path` | delivery of runs of frames that need no inspection |
//! | [`guarded`] | frames among which somebody else wants some |
//! | [`claim`] | the same where several CPUs receive frames |
//! | `deliver` | a frame's data and its return BD, with the channel's sum |
//! | `slow_path` | delivery of all other frames |
//! | [`returns`] | the return ring, and the return BDs of several frames in one transfer |
//! | [`headers`] | inspection of headers, seeds of checksums |
//! | [`queues`] | queue mode: one receive queue for each CPU of the host |
//! | [`index`] | reports of the return producer index |

pub mod claim;
mod deliver;
mod fast_path;
pub mod fault;
pub mod frame;
pub mod guarded;
pub mod headers;
pub mod index;
pub mod queues;
pub mod returns;
pub mod rings;
mod slow_path;

use crate::io::Busy;
use crate::io::IoA;
use crate::io::buffer_ring::RingId;
use crate::memory::config::Config;
use crate::memory::layout::QUEUES;
use crate::memory::region::{ReturnBds, Staging, TakenBds};
use crate::memory::shared::RECEIVE_PRODUCERS;
use crate::record::counters::ReceiveCounters;
use frame::CRC;
use host_interface::event::{self, EventCode};
use host_interface::info::RcbFlags;
use returns::ReturnQueue;
use rings::BufferRings;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceiveRing;

/// State of the receive side.
#[derive(Debug)]
pub struct Receive {
    /// The MAC's ring.
    ring: ReceiveRing,
    /// Start of the receive buffer.
    base: u32,
    /// The host's rings of empty buffers.
    rings: BufferRings,
    /// Frames of this length, without CRC, and ...
    window: u32,
    /// ... up to this many bytes more are for the standard ring without further inspection.
    window_bytes: u32,
    /// Likewise for the mini ring: frames of [`frame::HEADER`] bytes and up to this many more.
    mini_bytes: u32,
    /// Longest frame that is accepted, without CRC.
    longest: u32,
    /// Bytes of a frame that are not delivered: the CRC, unless the host wants it.
    cut: u32,
    /// The ring of the last simple frames.
    usual: RingId,
    /// Return BDs to go until no slot has words other than those that the fast path sets; and
    /// [`SORTS`].
    untidy: u32,
    /// Whether the host wants bad frames as well.
    bad_frames: bool,
    /// Whether the host's stack accepts frames.
    stack_up: bool,
    /// Whether a frame waits for BDs.
    waiting: bool,
    /// Further work that the host requests, as flags of a ring control block; 0 for none.
    wants: u32,
    /// The return ring.
    returns: ReturnQueue,
    /// Where the seeds of sums are made: in the staging slots of their write descriptors. A
    /// variable is faster than the constant here.
    seeds: u32,
    /// Reports to the host.
    index: index::Index,
    /// Per-frame counters.
    pub counters: ReceiveCounters,
}

/// Frames are sorted into queues: a bit of `untidy` that neither a count of slots nor a flag of
/// `wants` reaches, so that the fast path tests for it without a load of its own.
const SORTS: u32 = 1 << 31;

/// Whether the [detours](Receive::detours) say that frames are sorted into queues.
#[inline(always)]
const fn is_sorting(detours: u32) -> bool {
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
            index: index::Index::new(),
            counters: ReceiveCounters::new(),
        }
    }

    /// Places the MAC's ring in the block with base K.
    pub fn place(&mut self, block: u32) {
        self.ring.place(block + block::MAC_RX_RING);
    }

    /// Sets the lengths that need no inspection: none while the stack is down.
    fn set_window(&mut self) {
        let mini = self.rings.get(RingId::Mini).longest();
        self.window = mini.max(frame::HEADER - 1) + 1;
        (self.window_bytes, self.mini_bytes) = if self.stack_up {
            let upper = self.longest.min(self.rings.get(RingId::Standard).longest()) + 1;
            let upper_mini = self.longest.min(mini) + 1;
            (
                upper.saturating_sub(self.window),
                upper_mini.saturating_sub(frame::HEADER),
            )
        } else {
            (0, 0)
        };
    }

    /// The ring of good frames of a length without CRC, if the length alone decides it.
    #[inline(always)]
    fn plainly(&self, length: u32) -> Option<RingId> {
        if length.wrapping_sub(self.window) < self.window_bytes {
            Some(RingId::Standard)
        } else if length.wrapping_sub(frame::HEADER) < self.mini_bytes {
            Some(RingId::Mini)
        } else {
            None
        }
    }

    /// The shortest length that is clearly a ring's, and the number of such lengths.
    #[inline(always)]
    fn lengths(&self, id: RingId) -> (u32, u32) {
        if id == RingId::Mini {
            (frame::HEADER, self.mini_bytes)
        } else {
            (self.window, self.window_bytes)
        }
    }

    /// Switches the usual ring for a frame of this length; `false` if no ring clearly takes it.
    fn changes_ring(&mut self, length: u32) -> bool {
        let id = self.plainly(length);
        self.usual = id.unwrap_or(self.usual);
        id.is_some()
    }

    /// Starts or stops sorting frames into queues.
    fn set_queues(&mut self, sorts: bool) {
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
    const fn detours(&self) -> u32 {
        self.wants | self.untidy
    }

    /// How many lengths, from `least` on, a queue takes without another look.
    #[inline(always)]
    fn queue_lengths(&self, least: u32) -> u32 {
        if self.wants == 0 && self.stack_up {
            (self.longest + 1).saturating_sub(least)
        } else {
            0
        }
    }

    /// Whether a good frame of this length without CRC needs no inspection.
    fn takes_in_queue(&self, length: u32) -> bool {
        self.stack_up && length >= frame::HEADER && length <= self.longest
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

/// Takes the configuration; the receive buffer begins at `base`.
pub fn configure<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, config: &Config, base: u32) {
    receive.ring.reset(&mut io.bus);
    receive.base = base;
    receive.cut = if config.mode.include_crc() { 0 } else { CRC };
    receive.rings.configure(config, CRC - receive.cut);
    receive.bad_frames = config.mode.bad_frames();
    receive.wants = wants(config.standard.flags);
    receive.returns.configure(&mut io.bus, config);
    receive.index = index::Index::configured(config);
    receive.set_window();
}

/// What the flags of the rings request besides delivery. All receive rings have the same (12, C).
const fn wants(flags: RcbFlags) -> u32 {
    let work = flags.transport_checksum() || flags.ip_checksum() || flags.vlan_assist();
    if work {
        (flags.into_bits() & RcbFlags::RECEIVE_CONSISTENCY) as u32
    } else {
        0
    }
}

/// The longest frame that the interface accepts, without CRC; 0 leaves it to the rings.
pub fn set_longest(receive: &mut Receive, mtu: u32) {
    receive.longest = if mtu == 0 { 0xFFFF } else { mtu.min(0xFFFF) };
    receive.set_window();
}

/// Whether the host's stack accepts frames. While it does not, arriving frames are dropped.
pub fn set_stack<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, up: bool) {
    receive.stack_up = up;
    receive.set_window();
    io.bus.set(EventBit::ReceiveComplete);
}

/// The host moved the producer of a ring: CPU B fetches the BDs. Rejects an index outside of the
/// ring, or one that moves backwards or overruns BDs in use.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
pub fn host_produced<B: Dispatch>(
    receive: &mut Receive,
    io: &mut IoA<B>,
    id: RingId,
    producer: u32,
) {
    match receive.rings.get_mut(id).produced(producer) {
        Err(_) => io.post_error(event::ERROR_BAD_CONFIGURATION),
        Ok(None) => {}
        Ok(Some(producer)) => {
            let shared = RECEIVE_PRODUCERS.of(id as usize);
            shared.set(&io.me, &mut io.bus, producer);
            io.ring_b();
        }
    }
}

/// Tries again a frame that found no BD or no room in the return ring: the host may have read
/// entries, which it does not report, or changed the limits.
pub fn retry<B: Dispatch>(io: &mut IoA<B>) {
    io.bus.set(EventBit::ReceiveComplete);
}

/// Prepares a reset of the jumbo ring by CPU B: no frame takes one of its BDs any more.
pub fn freeze_jumbo<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    receive.rings.get_mut(RingId::Jumbo).freeze();
    let producer = RECEIVE_PRODUCERS.of(RingId::Jumbo as usize);
    producer.set(&io.me, &mut io.bus, 0);
}

/// Command "reset jumbo ring": discards the BDs that no frame has taken, restarts the ring at 0,
/// and posts the event. CPU B has discarded what it has fetched or is fetching.
///
/// A run of frames ends with their data and return BDs queued, so every report about the old BDs
/// reaches the host before the event: no transfer is in flight when the host frees them.
///
/// # Errors
/// [`Busy`] when there is no room to notify the host.
#[inline(never)]
pub fn reset_jumbo<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) -> Result<(), Busy> {
    /// The return BDs that wait and the producer index.
    const TRANSFERS: u32 = returns::TRANSFERS + 1;
    if !io.has_write_room(TRANSFERS) {
        return Err(Busy);
    }
    receive.rings.get_mut(RingId::Jumbo).restart();
    index::update_producer(receive, io);
    crate::memory::statistics::count!(io.bus, event_jumbo_ring_reset);
    io.post(EventCode::JumboRingReset, 0);
    // A frame that waited for a jumbo BD may be too long now.
    io.bus.set(EventBit::ReceiveComplete);
    Ok(())
}
