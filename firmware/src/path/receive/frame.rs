//! Receive Complete: delivers or drops frames that have arrived.
//!
//! Hardware reference, section 14. Most frames are free of errors, for this card, and fit the
//! standard or the mini ring; few comparisons recognise them. `judge` inspects all others.

use super::deliver::{self, Accepted, Taken, deliver};
use super::fast_path::{self, End};
use super::headers::{self, Headers};
use super::index::returned;
use super::queues::{self, Queues};
use super::{Receive, is_sorting, returns, slow_path};
use crate::io::buffer_ring::RingId;
use crate::io::{IoA, filter};
use crate::memory::shared::STARVED;
use crate::memory::statistics::count;
use host_interface::bd::BdErrors;
use host_interface::bd::destination::MULTICAST;
use host_interface::extension::DropReason;
use tigon2_chip::events::EventBit;
use tigon2_chip::mac::VLAN_TYPE;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Bytes of the CRC, which the MAC leaves on the frame.
pub const CRC: u32 = 4;
/// Bytes of an Ethernet header.
pub const HEADER: u32 = 14;
/// Bytes of a VLAN tag.
pub(super) const TAG: u32 = 4;
const GIANT: u32 = BdErrors::new().with_giant(true).into_bits() as u32;
/// MAC errors that are not reported: short frames are complete all the same, and vendor firmware
/// ignores the flag (10.3).
const HARMLESS: u32 = BdErrors::new().with_runt(true).into_bits() as u32;

/// Frames of one run: more save little and delay what frees resources.
pub const FRAMES: u32 = 16;

/// Receive Complete: handles some frames.
#[inline(always)]
pub fn complete<B: Dispatch>(receive: &mut Receive, queues: &mut Queues, io: &mut IoA<B>) {
    let mut detours = receive.detours();
    if is_sorting(detours) {
        return queues::complete(receive, queues, io);
    }
    let mut left = FRAMES;
    while left != 0 {
        if detours == 0 {
            let run = fast_path::run(receive, io, left, |bus, start, _| {
                filter::is_of_group(bus, start)
            });
            if run.count != 0 {
                left -= run.count;
                returned(receive, io, run.count, run.now);
            }
            match run.end {
                End::Done => break,
                End::OtherLength(length) if receive.changes_ring(length) => continue,
                _ => {}
            }
        }
        if !one(receive, io) {
            break;
        }
        left -= 1;
        detours = receive.detours();
    }
    let enough = if receive.index.is_due() {
        1
    } else {
        returns::MANY
    };
    returns::queue(receive, io, enough);
    receive.ring.give_back(&mut io.bus);
}

/// Handles one frame; `false` if there is none or it has to wait.
#[inline(always)]
fn one<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) -> bool {
    let bus = &mut io.bus;
    let Some(frame) = receive.ring.oldest(bus) else {
        return false;
    };
    let length = frame.length.wrapping_sub(CRC);
    let destination = filter::destination(bus, frame.start);
    let good = frame.errors == 0 && destination != MULTICAST;
    let (id, flaws) = match receive.plainly(length) {
        Some(id) if good => (id, 0),
        _ => match judge(receive, io, frame, destination) {
            Ok(judged) => judged,
            Err(reason) => {
                drop(receive, io, frame, reason);
                return true;
            }
        },
    };
    let accepted = Accepted {
        frame,
        length,
        id,
        flaws,
        destination,
    };
    let bus = &mut io.bus;
    let ring = receive.rings.get_mut(id);
    if ring.is_empty(bus) {
        wait_for_bds(receive, io, id);
        return false;
    }
    if receive.returns.is_full(bus) {
        wait_for_returns(io);
        return false;
    }
    if flaws != 0 || ring.is_extended() {
        return slow_path::deliver(receive, io, accepted);
    }
    let taken = Taken::new(bus, ring.next_short());
    if frame.length - receive.cut > taken.room() {
        return slow_path::deliver(receive, io, accepted);
    }
    let looks = receive.wants != 0;
    if looks && (receive.cut == 0 || frame.start > PACKET_MEMORY_END - headers::REACH) {
        return slow_path::deliver(receive, io, accepted);
    }
    if !io.has_write_room(deliver::TRANSFERS + returns::TRANSFERS) {
        count_no_descriptors(io);
        return false;
    }
    let bus = &mut io.bus;
    let mut found = Headers::NOTHING;
    if looks {
        found = headers::look(bus, receive.wants, frame.start, length);
        if found.padding != 0 {
            found.leave_out_padding(bus, receive.base, frame.start + length - found.padding);
        }
    }
    deliver(receive, io, &accepted, &taken, &found);
    true
}

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
}

#[inline(never)]
fn count_no_descriptors<B: Dispatch>(io: &mut IoA<B>) {
    count!(io.bus, no_write_descriptors);
}

/// Drops a frame. Its bytes may only be freed when no older frame is being read from the buffer;
/// the next delivered frame frees them as well.
#[inline(never)]
pub(super) fn drop<B: Dispatch>(
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

/// The address of a byte of the receive buffer, which begins at `base`, wrapped at its end.
#[inline(always)]
pub const fn wrapped(base: u32, address: u32) -> u32 {
    if address >= PACKET_MEMORY_END {
        address - (PACKET_MEMORY_END - base)
    } else {
        address
    }
}

/// Where the frame after `frame` starts: at the next multiple of 8 bytes, wrapped at the end of
/// the buffer (10.3, C).
pub(super) const fn end_of(base: u32, frame: &ReceivedFrame) -> u32 {
    wrapped(base, (frame.start + frame.length + 7) & !7)
}
