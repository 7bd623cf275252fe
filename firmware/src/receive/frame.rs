//! A frame that arrived: drop it or hand it on.
//!
//! Hardware reference, section 14. Most frames are fit for the standard or the mini ring,
//! for this card, and free of errors; they are recognised by few comparisons. All others are
//! judged (`judge`) with more care.

use super::hand_on::{self, Accepted, Taken, hand_on};
use super::headers::{self, Headers};
use super::index::returned;
use super::plain::{self, End};
use super::rings::Which;
use super::{careful, returns};
use crate::SideA;
use crate::dma::{await_writes, has_write_room};
use crate::filter;
use crate::shared::STARVED;
use crate::statistics::count;
use host_interface::bd::BdErrors;
use host_interface::bd::destination::MULTICAST;
use host_interface::extension::Drop;
use host_interface::gencom::Gencom;
use tigon2_chip::Register;
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
/// Errors of the MAC that the host is not bothered with: short frames are complete all
/// the same, and vendor firmware ignores the flag (10.3).
const HARMLESS: u32 = BdErrors::new().with_runt(true).into_bits() as u32;

/// Frames of one run: more save little, and what frees resources waits.
pub(super) const FRAMES: u32 = 16;

/// Receive complete, where the frames are other CPUs'.
#[cfg(feature = "lanes")]
pub use crate::lanes::receive_elsewhere as complete;

/// Receive complete: some frames.
#[cfg(not(feature = "lanes"))]
#[inline(always)]
pub fn complete<B: Dispatch>(a: &mut SideA<B>) {
    let mut left = FRAMES;
    while left != 0 {
        if a.receive.wants | a.receive.untidy == 0 {
            let run = plain::run(a, left);
            if run.count != 0 {
                left -= run.count;
                returned(a, run.count, run.now);
            }
            match run.end {
                End::Done => break,
                End::OtherLength(length) if a.receive.changes_ring(length) => continue,
                _ => {}
            }
        }
        if !one(a) {
            break;
        }
        left -= 1;
    }
    let enough = if a.receive.index.is_due() {
        1
    } else {
        returns::MANY
    };
    returns::queue(a, enough);
    a.receive.ring.give_back(&mut a.bus);
}

/// One frame; `false` if there is none, or if it has to wait.
#[inline(always)]
fn one<B: Dispatch>(a: &mut SideA<B>) -> bool {
    let Some(frame) = a.receive.ring.oldest(&mut a.bus) else {
        return false;
    };
    let receive = &mut a.receive;
    let bus = &mut a.bus;
    let length = frame.length.wrapping_sub(CRC);
    let destination = filter::destination(bus, frame.start);
    let good = frame.errors == 0 && destination != MULTICAST;
    let (which, flaws) = match receive.plainly(length) {
        Some(which) if good => (which, 0),
        _ => match judge(a, frame, destination) {
            Ok(judged) => judged,
            Err(reason) => {
                drop(a, frame, reason);
                return true;
            }
        },
    };
    let accepted = Accepted {
        frame,
        length,
        which,
        flaws,
        destination,
    };
    let receive = &mut a.receive;
    let bus = &mut a.bus;
    let ring = receive.rings.get(which);
    if ring.is_empty(bus) {
        wait_for_bds(a, which);
        return false;
    }
    let after = (receive.return_producer + 1) & receive.return_mask;
    if after == receive.return_consumer {
        let consumer = bus.load(Gencom::ReceiveReturnConsumer.nic_address());
        receive.return_consumer = consumer & receive.return_mask;
        // Linux never says how far it has read, and need not: it gives a buffer back only
        // behind its return BD, and there are fewer buffers than entries.
        receive.consumer_is_told |= consumer != 0;
        if after == receive.return_consumer && receive.consumer_is_told {
            // The host says nothing when it has read entries: housekeeping looks again.
            count!(a, no_return_space);
            a.bus.clear(EventBit::ReceiveComplete);
            return false;
        }
    }
    if flaws != 0 || ring.is_extended() {
        return careful::hand_on(a, accepted);
    }
    let taken = Taken::new(bus, ring.next_short());
    if frame.length - receive.cut > taken.room() {
        return careful::hand_on(a, accepted);
    }
    let looks = receive.wants != 0;
    if looks && (receive.cut == 0 || frame.start > PACKET_MEMORY_END - headers::REACH) {
        return careful::hand_on(a, accepted);
    }
    if !has_write_room(a, hand_on::TRANSFERS + returns::TRANSFERS) {
        count!(a, no_write_descriptors);
        return false;
    }
    let receive = &mut a.receive;
    let bus = &mut a.bus;
    let mut found = Headers::NOTHING;
    if looks {
        found = headers::look(bus, receive.wants, frame.start, length);
        if found.padding != 0 {
            found.leave_out_padding(bus, receive.base, frame.start + length - found.padding);
        }
    }
    hand_on(a, &accepted, &taken, &found);
    true
}

/// Chooses the ring of a frame that is not plainly for one, or says why the host does not
/// get it.
#[inline(never)]
fn judge<B: Dispatch>(
    a: &mut SideA<B>,
    frame: ReceivedFrame,
    destination: u8,
) -> Result<(Which, u32), Drop> {
    let receive = &a.receive;
    if !receive.stack_up {
        return Err(Drop::StackDown);
    }
    let mut flaws = frame.errors & !HARMLESS;
    if flaws != 0 && !receive.bad_frames {
        return Err(Drop::BadFrame);
    }
    if frame.length < HEADER + CRC {
        return Err(Drop::TooShort);
    }
    let bus = &mut a.bus;
    if destination == MULTICAST && !a.link.filter.takes(bus, frame.start) {
        return Err(Drop::NotSubscribed);
    }
    // With a tag a frame may be longer by it; a tag that is taken off needs no room.
    let length = frame.length - CRC;
    let mut handed_on = length;
    let mut limit = receive.longest;
    if length > receive.rings.standard.longest().min(limit) {
        let kind = bus.load(wrapped(receive.base, frame.start + 12)) >> 16;
        if kind == u32::from(VLAN_TYPE) {
            limit += TAG;
            if receive.wants & headers::VLAN != 0 {
                handed_on -= TAG;
            }
        }
    }
    if length > limit {
        if !receive.bad_frames {
            return Err(Drop::TooLong);
        }
        flaws |= GIANT;
    }
    if length <= receive.rings.mini.longest() {
        Ok((Which::Mini, flaws))
    } else if handed_on <= receive.rings.standard.longest() {
        Ok((Which::Standard, flaws))
    } else if receive.rings.jumbo.longest() != 0 {
        Ok((Which::Jumbo, flaws))
    } else {
        Err(Drop::TooLong)
    }
}

/// The ring for the frame is empty. The event stays on, so it is held back until CPU B
/// says that BDs have arrived. That they did so between the last look and that word
/// reaching it is seen by another look.
#[inline(never)]
fn wait_for_bds<B: Dispatch>(a: &mut SideA<B>, which: Which) {
    if !a.receive.waiting {
        a.receive.waiting = true;
        count!(a, no_receive_bds);
    }
    STARVED.set(&a.me, &mut a.bus, 1);
    if !a.receive.rings.get(which).look(&mut a.bus) {
        a.bus.clear(EventBit::ReceiveComplete);
    }
}

/// Lets a frame go. Its bytes may only be freed when no older frame is being read from
/// the buffer any more; the next frame that is handed on frees them as well.
#[inline(never)]
fn drop<B: Dispatch>(a: &mut SideA<B>, frame: ReceivedFrame, reason: Drop) {
    a.counters.drops.count(reason);
    match reason {
        Drop::BadFrame => count_errors(a, frame.errors),
        Drop::TooLong => count!(a, frames_too_long),
        _ => {}
    }
    let receive = &mut a.receive;
    receive.free_later(end_of(receive.base, &frame), &a.write_ring);
    receive.ring.release();
    await_writes(&mut a.bus);
    free(a);
}

/// Counts a bad frame by what the MAC says of it.
fn count_errors<B: Dispatch>(a: &mut SideA<B>, errors: u32) {
    let errors = BdErrors::from_bits(errors as u16);
    count!(a, in_errors);
    if errors.odd_nibbles() {
        count!(a, alignment_errors);
    }
    if errors.collision() {
        count!(a, mac_late_collisions);
    }
    if errors.link_lost() {
        count!(a, mac_link_lost);
    }
    if errors.phy_decode() {
        count!(a, mac_phy_decode_errors);
    }
    if errors.mac_abort() {
        count!(a, mac_aborts);
    }
    if errors.truncated() {
        count!(a, mac_truncated);
    }
}

/// The address of a byte of the receive buffer, which begins at `base`, round its end.
#[inline(always)]
pub(super) const fn wrapped(base: u32, address: u32) -> u32 {
    if address >= PACKET_MEMORY_END {
        address - (PACKET_MEMORY_END - base)
    } else {
        address
    }
}

/// Where the frame behind `frame` starts: at the next 8 bytes, round the end of the buffer
/// (10.3, C).
pub(super) const fn end_of(base: u32, frame: &ReceivedFrame) -> u32 {
    wrapped(base, (frame.start + frame.length + 7) & !7)
}

/// Whether what dropped frames took is still to be freed.
#[inline(always)]
pub fn frees_later<B: Dispatch>(a: &SideA<B>) -> bool {
    a.receive.freed != 0
}

/// Frees what dropped frames took, if nothing older is being read.
#[inline(always)]
pub fn free<B: Dispatch>(a: &mut SideA<B>) {
    let receive = &mut a.receive;
    if receive.freed != 0 && a.write_ring.has_passed(receive.freed_behind) {
        a.bus.write(Register::RxConsumer, receive.freed);
        receive.freed = 0;
    }
}
