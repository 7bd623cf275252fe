//! The receive path: wire to host.
//!
//! Hardware reference, section 14. A frame takes the next BD of one of the host's rings,
//! chosen by its length, and costs a transfer of its data; the return BDs of all frames of a
//! run follow with one more. The return producer index follows by count or time.
//!
//! | module | what |
//! | --- | --- |
//! | this one | the configuration, and the host's producers |
//! | [`rings`] | the rings of empty buffers |
//! | [`frame`] | a frame that arrived: drop it or deliver it |
//! | `fast_path` | delivery of frames with nothing to look at, several in a run |
//! | [`claim`] | the same where several CPUs receive |
//! | `deliver` | a frame's data and its return BD, with the channel's sum |
//! | `slow_path` | the same in all other cases |
//! | [`returns`] | the return ring, and the return BDs of several frames in one transfer |
//! | [`headers`] | what a frame's headers say, and what its sum has to leave out |
//! | [`queues`] | queue mode: one receive queue for each CPU of the host |
//! | [`index`] | reporting to the host how far the return ring is filled |

pub mod claim;
mod deliver;
mod fast_path;
pub mod fault;
pub mod frame;
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
use crate::memory::layout::STAGING;
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
    /// Frames from this length on, without CRC, and ...
    window: u32,
    /// ... this many bytes longer are for the standard ring without another look.
    window_bytes: u32,
    /// Frames of [`frame::HEADER`] bytes on, and so many longer ones, likewise for the mini
    /// ring.
    mini_bytes: u32,
    /// Longest frame that is accepted, without CRC.
    longest: u32,
    /// Bytes of a frame that are not delivered: the CRC, unless the host wants it.
    cut: u32,
    /// The ring that the last plain frames were for.
    usual: RingId,
    /// Return BDs to go until none in the slots has other words than the fast path sets.
    untidy: u32,
    /// Whether the host wants bad frames too.
    bad_frames: bool,
    /// Whether the host's stack takes frames.
    stack_up: bool,
    /// Whether a frame waits for BDs.
    waiting: bool,
    /// Whether frames are sorted into queues.
    sorts: bool,
    /// What else the host wants done, as flags of a ring control block; 0 for nothing.
    wants: u32,
    /// The return ring.
    returns: ReturnQueue,
    /// Where the seeds of sums are made: 32 bytes for each write descriptor.
    seeds: u32,
    /// Reporting to the host.
    index: index::Index,
    /// What is counted for each frame.
    pub counters: ReceiveCounters,
}

impl Receive {
    /// Nothing configured.
    pub const fn new(ring: ReceiveRing) -> Receive {
        Receive {
            ring,
            base: 0,
            rings: BufferRings::new(),
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
            sorts: false,
            wants: 0,
            returns: ReturnQueue::new(),
            seeds: STAGING,
            index: index::Index::new(),
            counters: ReceiveCounters::new(),
        }
    }

    /// Places the MAC's ring in the block with base K.
    pub fn place(&mut self, block: u32) {
        self.ring.place(block + block::MAC_RX_RING);
    }

    /// Which lengths need no other look. None while the stack is down.
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

    /// The ring of good frames of a length without CRC, if it can be told without another
    /// look.
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

    /// The shortest length that is plainly a ring's, and how many are.
    #[inline(always)]
    fn lengths(&self, id: RingId) -> (u32, u32) {
        if id == RingId::Mini {
            (frame::HEADER, self.mini_bytes)
        } else {
            (self.window, self.window_bytes)
        }
    }

    /// The next frame has this length: changes the usual ring; `false` if it is of none.
    fn changes_ring(&mut self, length: u32) -> bool {
        let id = self.plainly(length);
        self.usual = id.unwrap_or(self.usual);
        id.is_some()
    }

    /// Frames are sorted into queues from now on, or not any more.
    fn set_queues(&mut self, sorts: bool) {
        self.sorts = sorts;
    }

    /// How many lengths, from that of a header on, a queue takes without another look.
    #[inline(always)]
    fn queue_lengths(&self) -> u32 {
        if self.wants == 0 && self.stack_up {
            (self.longest + 1).saturating_sub(frame::HEADER)
        } else {
            0
        }
    }

    /// Whether a good frame of this length without CRC needs no judgement.
    fn takes_in_queue(&self, length: u32) -> bool {
        self.stack_up && length >= frame::HEADER && length <= self.longest
    }

    /// Index updates because the number of BDs was reached.
    pub fn threshold_hits(&self) -> u32 {
        self.index.threshold_hits()
    }

    /// BDs in NIC memory that no frame has taken: standard, jumbo, mini.
    pub fn bds_now<B: Bus>(&mut self, bus: &mut B) -> [u32; 3] {
        [RingId::Standard, RingId::Jumbo, RingId::Mini].map(|id| self.rings.get_mut(id).ready(bus))
    }

    /// Whether a frame waits for BDs.
    pub fn is_starved(&self) -> bool {
        self.waiting
    }

    /// BDs have come.
    pub fn try_again(&mut self) {
        self.waiting = false;
    }
}

/// Takes the configuration; the receive buffer begins at `base`.
pub fn configure<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, config: &Config, base: u32) {
    receive.ring.reset(&mut io.bus);
    receive.base = base;
    receive.cut = if config.mode.include_crc() { 0 } else { CRC };
    receive.rings = BufferRings::configured(config, CRC - receive.cut);
    receive.bad_frames = config.mode.bad_frames();
    receive.wants = wants(config.standard.flags);
    receive.returns.configure(&mut io.bus, config);
    receive.index = index::Index::configured(config);
    receive.set_window();
}

/// What the flags of the rings ask for beyond handing frames on. They are the same in all
/// of the receive rings (12, C).
const fn wants(flags: RcbFlags) -> u32 {
    let work = flags.transport_checksum() || flags.ip_checksum() || flags.vlan_assist();
    if work {
        (flags.into_bits() & RcbFlags::RECEIVE_CONSISTENCY) as u32
    } else {
        0
    }
}

/// The longest frame that the interface takes, without CRC; 0 leaves it to the rings.
pub fn set_longest(receive: &mut Receive, mtu: u32) {
    receive.longest = if mtu == 0 { 0xFFFF } else { mtu.min(0xFFFF) };
    receive.set_window();
}

/// Whether the host's stack takes frames. What arrives while it does not is dropped.
pub fn set_stack<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, up: bool) {
    receive.stack_up = up;
    receive.set_window();
    io.bus.set(EventBit::ReceiveComplete);
}

/// The host moved the producer of a ring: CPU B fetches the BDs. An index outside of the
/// ring, or one that takes back or overruns what was produced before, is refused.
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

/// Looks again at a frame that found no BD or no room in the return ring: the host may
/// have read entries, which it does not say, or have changed the limits.
pub fn retry<B: Dispatch>(io: &mut IoA<B>) {
    io.bus.set(EventBit::ReceiveComplete);
}

/// Before CPU B is asked to reset the jumbo ring: no frame takes a BD of it any more.
pub fn freeze_jumbo<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    receive.rings.get_mut(RingId::Jumbo).freeze();
    let producer = RECEIVE_PRODUCERS.of(RingId::Jumbo as usize);
    producer.set(&io.me, &mut io.bus, 0);
}

/// Command "reset jumbo ring": the BDs that no frame has taken are forgotten, the ring
/// begins at 0 again, and the host gets the event. CPU B has forgotten what it has fetched
/// or is fetching.
///
/// A run of frames ends with their data and return BDs queued, so all that the host is told
/// of the old BDs reaches it in front of the event: nothing is under way when it frees them.
///
/// # Errors
/// [`Busy`] when there is no room to tell the host.
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
    // A frame that waited for a jumbo BD may be too long by now.
    io.bus.set(EventBit::ReceiveComplete);
    Ok(())
}
