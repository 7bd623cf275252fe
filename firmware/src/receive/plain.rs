//! Frames without anything to look at, some in a run.
//!
//! Good frames to this card's own address, of a length that is plainly the standard or the
//! mini ring's, for a host that wants no sums. What changes from frame to frame is kept in
//! variables of its own in here, so that it is in registers: that and the words of SRAM that
//! are not touched are what makes it fast. Whatever else there is about a frame ends the
//! run, and [`frame`](super::frame) looks at it.

use super::hand_on::{NOW, Taken, flags_of};
use super::rings::Which;
use super::{Receive, frame, returns};
use crate::dma::write;
use crate::{SideA, filter};
use host_interface::bd::destination::UNICAST;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Frames that were handed on.
    pub count: u32,
    /// Whether there is a frame that was not, as it is not plain or has to wait.
    pub other: bool,
    /// Whether a BD asked for an update at once.
    pub now: bool,
}

/// Hands on up to `most` frames.
#[inline(always)]
pub(super) fn run<B: Dispatch>(a: &mut SideA<B>, most: u32) -> Run {
    let SideA {
        bus,
        receive,
        write_ring,
        states,
        counters,
        ..
    } = a;
    let Receive {
        ring,
        rings,
        window,
        window_bytes,
        mini_bytes,
        cut,
        slots,
        return_mask,
        return_consumer,
        ..
    } = receive;
    let (window, window_bytes, mini_bytes) = (*window, *window_bytes, *mini_bytes);
    let (cut, slots, mask, consumer) = (*cut, *slots, *return_mask, *return_consumer);
    let state = states.data;
    let mut frames = ring.open();
    let mut queue = write_ring.open();
    let mut producer = receive.return_producer;
    let mut left = most;
    let (mut octets, mut flags) = (0, 0);
    let other = loop {
        if left == 0 {
            break false;
        }
        let Some(frame) = frames.oldest(bus) else {
            break false;
        };
        // Errors make it longer than any frame.
        let length = (frame.errors << 16 | frame.length).wrapping_sub(frame::CRC);
        let which = if length.wrapping_sub(window) < window_bytes {
            Which::Standard
        } else if length.wrapping_sub(frame::HEADER) < mini_bytes {
            Which::Mini
        } else {
            break true;
        };
        let bds = rings.get(which);
        let after = (producer + 1) & mask;
        if filter::is_of_group(bus, frame.start)
            || bds.is_empty(bus)
            || after == consumer
            || !queue.has_room(1 + returns::TRANSFERS)
        {
            break true;
        }
        let taken = Taken::new(bus, bds.next_short());
        let bytes = frame.length - cut;
        if bytes > taken.room() {
            break true;
        }
        let slot = slots + ((producer & (crate::layout::RETURN_SLOTS - 1)) << 5);
        taken.stage(bus, slot, bytes, flags_of(bds.flag(), UNICAST), 0);
        bds.advance();
        let transfer = Transfer {
            host: taken.host,
            local: frame.start,
            length: bytes,
            state,
            note: slot | write::RECEIVE_DATA,
        };
        queue.put(bus, &transfer);
        frames.release();
        producer = after;
        octets += length;
        flags |= taken.flags;
        left -= 1;
    };
    drop(frames);
    drop(queue);
    let count = most - left;
    if count != 0 {
        receive.return_producer = producer;
        receive.freed = 0;
        counters.received(UNICAST, count, octets);
    }
    Run {
        count,
        other,
        now: flags & NOW != 0,
    }
}
