//! A frame whose data could not be read from the host's memory.
//!
//! The frame may be in the MAC's ring already, where the MAC waits for the data: it is
//! taken out. What else of it is queued is read all the same, into room that is free.

use super::{SKIPPED, Send};
use crate::dma::read;
use crate::log::log_warn;
use crate::{SideB, doorbell, filter};
use host_interface::extension::Drop;
use tigon2_chip::bits::DmaState;
use tigon2_hal::events::Dispatch;

/// Data of a frame; the assist is paused at its descriptor.
pub fn data<B: Dispatch>(b: &mut SideB<B>, failed: u32) {
    let bus = &mut b.bus;
    if b.read_ring.note(failed) & read::ABANDONED != 0 {
        // Its frame was dropped before.
        return;
    }
    let local = bus.load(failed + 8);
    let Send { ring, buffer, .. } = &mut b.send;
    let queued = ring.remove(bus, |start, length| buffer.distance(start, local) < length);
    let (start, length) = match queued {
        Some((start, length)) => {
            b.counters.out_octets.subtract(length);
            (start, length)
        }
        None => {
            // The frame in work: the rest of its BDs is passed over. Else it was dropped
            // for another reason.
            let send = &mut b.send;
            let frame = (send.frame_start, send.frame_bytes);
            let mine = send.buffer.distance(send.frame_start, local) < send.frame_bytes;
            if send.frame_bytes == SKIPPED || !mine {
                return;
            }
            send.buffer.rewind(send.frame_start);
            send.frame_bytes = SKIPPED;
            frame
        }
    };
    if !abandon(b, start, length) {
        let destination = filter::destination(&mut b.bus, start);
        b.counters.not_out(destination);
    }
    log_warn!("a frame of {=u32} bytes cannot be read", length);
    b.counters.drops.count(Drop::SendFault);
    doorbell::post_error(b);
}

/// Marks all transfers of a frame that were not looked at, so that none moves the MAC's
/// producer and none is taken for a frame's. Returns whether its first is among them.
fn abandon<B: Dispatch>(b: &mut SideB<B>, start: u32, length: u32) -> bool {
    const END: u32 = DmaState::new().with_end_of_frame(true).into_bits();
    let SideB {
        bus,
        read_ring,
        send,
        ..
    } = b;
    let mut first = false;
    let mut next = read_ring.oldest();
    while let Some(descriptor) = next {
        let kind = read_ring.note(descriptor) & read::KIND;
        let local = bus.load(descriptor + 8);
        let mine = kind & (read::SEND_DATA | read::ABANDONED) == read::SEND_DATA
            && send.buffer.distance(start, local) < length;
        if mine {
            first |= kind & read::FIRST != 0;
            let kept = kind & (read::SEND_DATA | read::NOW);
            read_ring.set_note(descriptor, kept | read::ABANDONED);
            let state = bus.load(descriptor + 16);
            bus.store(descriptor + 16, state & !END);
        }
        next = read_ring.behind(descriptor);
    }
    first
}

/// BDs, from the one with its copy at `local` on; `again` is true for the first of them.
pub fn bds(send: &mut Send, local: u32, again: bool) {
    if again {
        send.bds.request_again(local);
    }
}

/// The transmit buffer seems full: the room of frames that were dropped is taken back if
/// the MAC has nothing left to send.
#[inline(never)]
pub fn reclaim<B: Dispatch>(send: &mut Send, bus: &mut B) {
    if !send.is_reading() && send.frame_bytes == 0 && send.ring.is_empty(bus) {
        send.buffer.clear(bus);
    }
}
