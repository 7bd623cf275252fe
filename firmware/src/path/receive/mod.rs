//! The receive path: wire to host.
//!
//! Hardware reference, section 14. A frame takes the next BD of one of the host's rings, selected
//! by its length, and costs one transfer for its data; one more transfer moves the return BDs of
//! all frames of a run. The return producer index follows by count or time.
//!
//! | module | what |
//! | --- | --- |
//! | [`handlers`] | Receive Complete, and Update Receive Return Producer |
//! | this one | the configuration, and the host's producers |
//! | `state` | the state of the path |
//! | [`rings`] | the rings of empty buffers |
//! | [`frame`] | a frame in the receive buffer |
//! | `judge` | which frames are accepted, dropped, or wait |
//! | `fast_path` | delivery of runs of frames that need no inspection |
//! | [`guarded`] | frames among which somebody else wants some |
//! | [`claim`] | the same where several CPUs receive frames |
//! | `deliver` | a frame's data and its return BD, with the channel's sum |
//! | `slow_path` | delivery of all other frames |
//! | [`returns`] | the return ring, and the return BDs of several frames in one transfer |
//! | [`headers`] | inspection of headers, seeds of checksums |
//! | [`queues`] | queue mode: one receive queue for each CPU of the host |
//! | [`index`], `report` | when and how the return producer index is reported |

pub mod claim;
mod deliver;
mod fast_path;
pub mod fault;
pub mod frame;
pub mod guarded;
pub mod handlers;
pub mod headers;
pub mod index;
mod judge;
pub mod queues;
mod report;
pub mod returns;
pub mod rings;
mod slow_path;
mod state;

use crate::io::Busy;
use crate::io::IoA;
use crate::io::buffer_ring::RingId;
use crate::memory::config::Config;
use crate::memory::shared::RECEIVE_PRODUCERS;
use frame::CRC;
use host_interface::event::{self, EventCode};
use host_interface::info::RcbFlags;
use index::Index;
pub use state::Receive;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// Takes the configuration; the receive buffer begins at `base`.
pub fn configure<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, config: &Config, base: u32) {
    receive.ring.reset(&mut io.bus);
    receive.base = base;
    receive.cut = if config.mode.include_crc() { 0 } else { CRC };
    receive.rings.configure(config, CRC - receive.cut);
    receive.bad_frames = config.mode.bad_frames();
    receive.wants = wants(config.standard.flags);
    receive.returns.configure(&mut io.bus, config);
    receive.index = Index::configured(config);
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

/// The coalescing words, which drivers may change at run time: 0 microseconds means "at once", 0
/// BDs "by time only".
pub fn set_coalescing(receive: &mut Receive, ticks: u32, max_bds: u32) {
    receive.index.set_coalescing(ticks, max_bds);
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
    report::update_producer(receive, io);
    crate::memory::statistics::count!(io.bus, event_jumbo_ring_reset);
    io.post(EventCode::JumboRingReset, 0);
    // A frame that waited for a jumbo BD may be too long now.
    io.bus.set(EventBit::ReceiveComplete);
    Ok(())
}
