//! The receive path: wire to host.
//!
//! Hardware reference, section 14. A frame takes the next BD of one of the host's rings,
//! chosen by its length, and costs a transfer of its data; the return BDs of all frames of a
//! run follow with one more. The return producer index follows by count or time.
//!
//! | module | what |
//! | --- | --- |
//! | this one | the configuration, and the host's producers |
//! | [`rings`] | the rings of these |
//! | [`frame`] | a frame that arrived: drop it or hand it on |
//! | `plain` | the same for some frames without anything to look at |
//! | `hand_on` | its data and its return BD, with the channel's sum |
//! | `returns` | the return BDs of several frames in one transfer |
//! | `careful` | the same in all the cases that are not plain |
//! | [`headers`] | what a frame's headers say, and what its sum has to leave out |
//! | [`index`] | telling the host how far the return ring is filled |

mod careful;
pub mod fault;
pub mod frame;
mod hand_on;
pub mod headers;
pub mod index;
mod plain;
mod returns;
pub mod rings;

use crate::dma::has_write_room;
use crate::layout::{RETURN_BDS, RETURN_SLOTS, STAGING};
use crate::shared::RECEIVE_PRODUCERS;
use crate::{SideA, host_events};
use frame::CRC;
#[cfg(feature = "lanes")]
pub(crate) use hand_on::{FLAGS, Taken, flags_of};
use host_interface::event::{self, EventCode};
use host_interface::info::RcbFlags;
use host_interface::ring::return_entries;
#[cfg(feature = "lanes")]
pub(crate) use returns::offset as return_offset;
use rings::{Rings, Which};
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_hal::Bus;
use tigon2_hal::assist::{DescriptorRing, Full, HostAddress, Position, Write};
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
    rings: Rings,
    /// Frames from this length on, without CRC, and ...
    window: u32,
    /// ... this many bytes longer are for the standard ring without another look.
    window_bytes: u32,
    /// Frames of [`frame::HEADER`] bytes on, and so many longer ones, likewise for the mini
    /// ring.
    mini_bytes: u32,
    /// Longest frame that is accepted, without CRC.
    longest: u32,
    /// Bytes of a frame that are not handed on: the CRC, unless the host wants it.
    cut: u32,
    /// The ring that the last plain frames were for.
    usual: Which,
    /// Return BDs to go until none in the slots has other words than plain frames set.
    untidy: u32,
    /// Whether the host wants bad frames too.
    bad_frames: bool,
    /// Whether the host's stack takes frames.
    stack_up: bool,
    /// Whether a frame waits for BDs.
    waiting: bool,
    /// What else the host wants done, as flags of a ring control block; 0 for nothing.
    wants: u32,
    /// Where the receive buffer is free up to once all in front of `freed_behind` is
    /// written; 0: no matter.
    freed: u32,
    freed_behind: Position,
    /// The host's return ring.
    returns: HostAddress,
    /// Its entries minus one.
    return_mask: u32,
    /// The next entry.
    return_producer: u32,
    /// The next one whose BD is not on its way.
    return_queued: u32,
    /// The host's consumer index when it was last read.
    return_consumer: u32,
    /// The host has ever written that word.
    consumer_is_told: bool,
    /// Where return BDs are made.
    slots: u32,
    /// Where the seeds of sums are made: 32 bytes for each write descriptor.
    seeds: u32,
    /// Telling the host.
    index: index::Index,
}

impl Receive {
    /// Nothing configured.
    pub const fn new(ring: ReceiveRing) -> Receive {
        Receive {
            ring,
            base: 0,
            rings: Rings::new(),
            window: 0,
            window_bytes: 0,
            mini_bytes: 0,
            longest: 0,
            cut: CRC,
            usual: Which::Standard,
            untidy: 0,
            bad_frames: false,
            stack_up: false,
            waiting: false,
            wants: 0,
            freed: 0,
            freed_behind: Position::START,
            returns: HostAddress { high: 0, low: 0 },
            return_mask: 0,
            return_producer: 0,
            return_queued: 0,
            return_consumer: 0,
            consumer_is_told: false,
            slots: RETURN_BDS,
            seeds: STAGING,
            index: index::Index::new(),
        }
    }

    /// Places the MAC's ring in the block with base K.
    pub(crate) fn place(&mut self, block: u32) {
        self.ring.place(block + block::MAC_RX_RING);
    }

    /// Which lengths need no other look. None while the stack is down.
    fn set_window(&mut self) {
        let mini = self.rings.mini.longest();
        self.window = mini.max(frame::HEADER - 1) + 1;
        (self.window_bytes, self.mini_bytes) = if self.stack_up {
            let upper = self.longest.min(self.rings.standard.longest()) + 1;
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
    fn plainly(&self, length: u32) -> Option<Which> {
        if length.wrapping_sub(self.window) < self.window_bytes {
            Some(Which::Standard)
        } else if length.wrapping_sub(frame::HEADER) < self.mini_bytes {
            Some(Which::Mini)
        } else {
            None
        }
    }

    /// The shortest length that is plainly a ring's, and how many are.
    #[inline(always)]
    fn lengths(&self, which: Which) -> (u32, u32) {
        if which == Which::Mini {
            (frame::HEADER, self.mini_bytes)
        } else {
            (self.window, self.window_bytes)
        }
    }

    /// The next frame has this length: changes the usual ring; `false` if it is of none.
    fn changes_ring(&mut self, length: u32) -> bool {
        let which = self.plainly(length);
        self.usual = which.unwrap_or(self.usual);
        which.is_some()
    }

    /// NIC address at which the return BD of an entry of the host's ring is made.
    #[inline(always)]
    fn slot(&self, entry: u32) -> u32 {
        self.slots + returns::offset(entry)
    }

    /// Return BDs that are made and not on their way.
    #[inline(always)]
    fn returns_waiting(&self) -> u32 {
        self.return_producer.wrapping_sub(self.return_queued) & self.return_mask
    }

    /// The receive buffer is free up to `end` when all that is queued now has been written.
    fn free_later(&mut self, end: u32, ring: &DescriptorRing<Write>) {
        self.freed = end;
        self.freed_behind = ring.position();
    }

    /// Index updates because the number of BDs was reached.
    pub fn threshold_hits(&self) -> u32 {
        self.index.threshold_hits()
    }

    /// BDs in NIC memory that no frame has taken: standard, jumbo, mini.
    pub fn bds_now<B: Bus>(&mut self, bus: &mut B) -> [u32; 3] {
        let Rings {
            standard,
            mini,
            jumbo,
        } = &mut self.rings;
        [standard.ready(bus), jumbo.ready(bus), mini.ready(bus)]
    }

    /// Tells the workers what they hand on, and where.
    #[cfg(feature = "lanes")]
    pub(crate) fn tell_workers<B: Bus>(&mut self, bus: &mut B) {
        use crate::lanes::turn::Setting;
        for (setting, value) in [
            (Setting::ReturnMask, self.return_mask),
            (Setting::ReturnHigh, self.returns.high),
            (Setting::ReturnLow, self.returns.low),
            (Setting::Cut, self.cut),
            (Setting::Window, self.window),
            (Setting::WindowBytes, self.window_bytes),
            (Setting::MiniBytes, self.mini_bytes),
            (Setting::StandardMask, self.rings.standard.mask()),
            (Setting::MiniMask, self.rings.mini.mask()),
        ] {
            bus.store(setting.address(), value);
        }
    }

    /// Workers have returned BDs in front of `producer`; how many are new.
    #[cfg(feature = "lanes")]
    #[inline(always)]
    pub(crate) fn follow(&mut self, producer: u32) -> u32 {
        let count = producer.wrapping_sub(self.return_producer) & self.return_mask;
        self.return_producer = producer;
        self.return_queued = producer;
        count
    }

    /// Workers have taken the BDs of a ring in front of `next`.
    #[cfg(feature = "lanes")]
    pub(crate) fn taken_up_to(&mut self, which: Which, next: u32) {
        self.rings.get(which).taken_up_to(next);
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
pub fn configure<B: Dispatch>(a: &mut SideA<B>, base: u32) {
    let config = &a.config;
    let receive = &mut a.receive;
    receive.ring.reset(&mut a.bus);
    receive.base = base;
    receive.cut = if config.mode.include_crc() { 0 } else { CRC };
    receive.rings = Rings::configured(config, CRC - receive.cut);
    receive.bad_frames = config.mode.bad_frames();
    receive.wants = wants(config.standard.flags);
    receive.returns = config.receive_return.address;
    let entries = return_entries(config.receive_return.max_len as u16).unwrap_or(1);
    receive.return_mask = entries - 1;
    // What is not written for each frame is 0.
    for word in (0..RETURN_SLOTS * 32).step_by(4) {
        a.bus.store(receive.slots + word, 0);
    }
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
pub fn set_longest<B: Dispatch>(a: &mut SideA<B>, mtu: u32) {
    let receive = &mut a.receive;
    receive.longest = if mtu == 0 { 0xFFFF } else { mtu.min(0xFFFF) };
    receive.set_window();
    #[cfg(feature = "lanes")]
    receive.tell_workers(&mut a.bus);
}

/// Whether the host's stack takes frames. What arrives while it does not is dropped.
pub fn set_stack<B: Dispatch>(a: &mut SideA<B>, up: bool) {
    a.receive.stack_up = up;
    a.receive.set_window();
    a.bus.set(EventBit::ReceiveComplete);
}

/// The host moved the producer of a ring: CPU B fetches the BDs. An index outside of the
/// ring, or one that takes back or overruns what was produced before, is refused.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
pub fn host_produced<B: Dispatch>(a: &mut SideA<B>, which: Which, producer: u32) {
    #[cfg(feature = "lanes")]
    crate::lanes::follow_bds(a, which);
    match a.receive.rings.get(which).produced(producer) {
        Err(_) => host_events::post_error(a, event::ERROR_BAD_CONFIGURATION),
        Ok(None) => {}
        Ok(Some(producer)) => {
            which.of(RECEIVE_PRODUCERS).set(&a.me, &mut a.bus, producer);
            a.ring();
        }
    }
}

/// Looks again at a frame that found no BD or no room in the return ring: the host may
/// have read entries, which it does not say, or have changed the limits.
pub fn retry<B: Dispatch>(a: &mut SideA<B>) {
    a.bus.set(EventBit::ReceiveComplete);
}

/// Before CPU B is asked to reset the jumbo ring: no frame takes a BD of it any more.
pub fn freeze_jumbo<B: Dispatch>(a: &mut SideA<B>) {
    a.receive.rings.jumbo.freeze();
    Which::Jumbo.of(RECEIVE_PRODUCERS).set(&a.me, &mut a.bus, 0);
}

/// Command "reset jumbo ring": the BDs that no frame has taken are forgotten, the ring
/// begins at 0 again, and the host gets the event. CPU B has forgotten what it has fetched
/// or is fetching.
///
/// A run of frames ends with their data and return BDs queued, so all that the host is told
/// of the old BDs reaches it in front of the event: nothing is under way when it frees them.
///
/// # Errors
/// [`Full`] when there is no room to tell the host.
#[inline(never)]
pub fn reset_jumbo<B: Dispatch>(a: &mut SideA<B>) -> Result<(), Full> {
    /// The return producer index, the event and its index.
    const TRANSFERS: u32 = 3;
    if !has_write_room(a, TRANSFERS) {
        return Err(Full);
    }
    a.receive.rings.jumbo.restart();
    index::update_producer(a);
    crate::statistics::count!(a, event_jumbo_ring_reset);
    host_events::post(a, EventCode::JumboRingReset, 0);
    // A frame that waited for a jumbo BD may be too long by now.
    a.bus.set(EventBit::ReceiveComplete);
    Ok(())
}
