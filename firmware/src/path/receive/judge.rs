//! Accepts frames that need inspection, and drops or holds those that no ring takes.
//!
//! Hardware reference, section 14.

use super::frame::{CRC, HEADER, TAG, end_of, wrapped};
use super::headers;
use super::state::Receive;
use crate::io::IoA;
use crate::io::buffer_ring::RingId;
use crate::memory::shared::STARVED;
use crate::memory::statistics::count;
use host_interface::bd::BdErrors;
use host_interface::bd::destination::MULTICAST;
use host_interface::extension::DropReason;
use tigon2_chip::events::EventBit;
use tigon2_chip::mac::VLAN_TYPE;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

const GIANT: u32 = BdErrors::new().with_giant(true).into_bits() as u32;
/// MAC errors that are not reported: short frames are complete all the same, and vendor firmware
/// ignores the flag (10.3).
const HARMLESS: u32 = BdErrors::new().with_runt(true).into_bits() as u32;

/// Selects the ring of a frame that is not clearly for one, or the reason to drop it.
#[inline(never)]
pub(super) fn judge<B: Dispatch>(
    receive: &Receive,
    io: &mut IoA<B>,
    frame: ReceivedFrame,
    destination: u8,
) -> Result<(RingId, u32), DropReason> {
    let mut flaws = judge_beginning(receive, io, frame, destination)?;
    let bus = &mut io.bus;
    // A frame with a tag may be longer by the tag; a tag that is stripped needs no room.
    let length = frame.length - CRC;
    let standard = receive.rings.get(RingId::Standard).longest();
    let mut delivered = length;
    let mut limit = receive.longest;
    if length > standard.min(limit) {
        let kind = bus.load(wrapped(receive.base, frame.start + 12)) >> 16;
        if kind == u32::from(VLAN_TYPE) {
            limit += TAG;
            if receive.wants & headers::VLAN != 0 {
                delivered -= TAG;
            }
        }
    }
    if length > limit {
        if !receive.bad_frames {
            return Err(DropReason::TooLong);
        }
        flaws |= GIANT;
    }
    if length <= receive.rings.get(RingId::Mini).longest() {
        Ok((RingId::Mini, flaws))
    } else if delivered <= standard {
        Ok((RingId::Standard, flaws))
    } else if receive.rings.get(RingId::Jumbo).longest() != 0 {
        Ok((RingId::Jumbo, flaws))
    } else {
        Err(DropReason::TooLong)
    }
}

/// The checks that both modes share; returns the frame's flaws.
#[inline(never)]
fn judge_beginning<B: Dispatch>(
    receive: &Receive,
    io: &mut IoA<B>,
    frame: ReceivedFrame,
    destination: u8,
) -> Result<u32, DropReason> {
    if !receive.stack_up {
        return Err(DropReason::StackDown);
    }
    let flaws = frame.errors & !HARMLESS;
    if flaws != 0 && !receive.bad_frames {
        return Err(DropReason::BadFrame);
    }
    if frame.length < HEADER + CRC {
        return Err(DropReason::TooShort);
    }
    if destination == MULTICAST && !io.filter.takes(&mut io.bus, frame.start) {
        return Err(DropReason::NotSubscribed);
    }
    Ok(flaws)
}

/// Checks a frame in queue mode, where the length selects no ring. Returns its flaws.
#[inline(never)]
pub(super) fn judge_in_queue<B: Dispatch>(
    receive: &Receive,
    io: &mut IoA<B>,
    frame: ReceivedFrame,
    destination: u8,
) -> Result<u32, DropReason> {
    let mut flaws = judge_beginning(receive, io, frame, destination)?;
    let length = frame.length - CRC;
    let mut limit = receive.longest;
    if length > limit {
        let kind = io.bus.load(wrapped(receive.base, frame.start + 12)) >> 16;
        if kind == u32::from(VLAN_TYPE) {
            limit += TAG;
        }
    }
    if length > limit {
        if !receive.bad_frames {
            return Err(DropReason::TooLong);
        }
        flaws |= GIANT;
    }
    Ok(flaws)
}

/// The ring for the frame is empty. The event stays set, so it is masked until CPU B reports that
/// BDs have arrived. One more check finds BDs that arrived between the last check and this
/// request.
#[inline(never)]
pub(super) fn wait_for_bds<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, id: RingId) {
    if !receive.waiting {
        receive.waiting = true;
        count!(io.bus, no_receive_bds);
    }
    STARVED.set(&io.me, &mut io.bus, 1);
    if !receive.rings.get_mut(id).look(&mut io.bus) {
        io.bus.clear(EventBit::ReceiveComplete);
    }
}

/// The return ring is full. The host does not report that it has read entries, so housekeeping
/// checks again.
#[inline(never)]
pub(super) fn wait_for_returns<B: Dispatch>(io: &mut IoA<B>) {
    count!(io.bus, no_return_space);
    io.bus.clear(EventBit::ReceiveComplete);
    io.hasten();
}

/// Drops a frame. Its bytes may only be freed when no older frame is being read from the buffer;
/// the next delivered frame frees them as well.
#[inline(never)]
pub(super) fn drop_frame<B: Dispatch>(
    receive: &mut Receive,
    io: &mut IoA<B>,
    frame: ReceivedFrame,
    reason: DropReason,
) {
    receive.counters.drops.count(reason);
    match reason {
        DropReason::BadFrame => count_errors(&mut io.bus, frame.errors),
        DropReason::TooLong => count!(io.bus, frames_too_long),
        _ => {}
    }
    io.free_later(end_of(receive.base, &frame));
    receive.ring.release();
    io.await_writes();
    io.free();
}

/// Counts a bad frame by the MAC's error bits.
fn count_errors<B: Dispatch>(bus: &mut B, errors: u32) {
    let errors = BdErrors::from_bits(errors as u16);
    count!(*bus, in_errors);
    if errors.odd_nibbles() {
        count!(*bus, alignment_errors);
    }
    if errors.collision() {
        count!(*bus, mac_late_collisions);
    }
    if errors.link_lost() {
        count!(*bus, mac_link_lost);
    }
    if errors.phy_decode() {
        count!(*bus, mac_phy_decode_errors);
    }
    if errors.mac_abort() {
        count!(*bus, mac_aborts);
    }
    if errors.truncated() {
        count!(*bus, mac_truncated);
    }
}
