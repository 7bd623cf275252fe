//! Handles a frame whose data could not be read from the host's memory.
//!
//! The frame may be in the MAC's ring already, where the MAC waits for the data; it is removed
//! from there. Its other queued fragments are still read, into room that is free.

use super::{SKIPPED, SendPath};
use crate::io::note::{ReadKind, ReadNote};
use crate::io::{IoB, filter};
use crate::record::log::log_warn;
use host_interface::extension::DropReason;
use tigon2_chip::bits::DmaState;
use tigon2_chip::dma::DmaDescriptorAt;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// Data of a frame; the assist is paused at its descriptor.
pub fn data<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>, failed: u32) {
    if ReadNote::of_word(io.read_ring.note(failed)).is_abandoned() {
        // Its frame was dropped before.
        return;
    }
    let bus = &mut io.bus;
    let local = bus.load(DmaDescriptorAt(failed).local());
    let SendPath { ring, buffer, .. } = send;
    let queued = ring.remove(bus, |start, length| buffer.distance(start, local) < length);
    let (start, length) = match queued {
        Some((start, length)) => {
            send.counters.octets.subtract(length);
            (start, length)
        }
        None => {
            // The current frame: skips the rest of its BDs. Any other frame was dropped for another
            // reason.
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
    if !abandon(send, io, start, length) {
        let destination = filter::destination(&mut io.bus, start);
        send.counters.not_sent(destination);
    }
    log_warn!("a frame of {=u32} bytes cannot be read", length);
    send.counters.drops.count(DropReason::SendFault);
    io.post_error();
}

/// Marks all pending transfers of a frame, so that none advances the MAC's producer and none
/// counts as a frame's data. Returns whether its first is among them.
fn abandon<B: Dispatch>(send: &SendPath, io: &mut IoB<B>, start: u32, length: u32) -> bool {
    const END: u32 = DmaState::new().with_end_of_frame(true).into_bits();
    let IoB { bus, read_ring, .. } = io;
    let mut first = false;
    let mut next = read_ring.oldest();
    while let Some(descriptor) = next {
        let note = ReadNote::of_word(read_ring.note(descriptor));
        let at = DmaDescriptorAt(descriptor);
        let local = bus.load(at.local());
        let mine = note.kind() == ReadKind::SendData
            && !note.is_abandoned()
            && send.buffer.distance(start, local) < length;
        if mine {
            first |= note.start().is_some();
            read_ring.set_note(descriptor, note.abandoned().word());
            let state = bus.load(at.state());
            bus.store(at.state(), state & !END);
        }
        next = read_ring.behind(descriptor);
    }
    first
}

/// Handles BDs that could not be fetched, from the copy at `local` on; `again` marks the first of
/// them.
pub fn bds(send: &mut SendPath, local: u32, again: bool) {
    if again {
        send.bds.request_again(local);
    }
}

/// The transmit buffer seems full: frees the room of dropped frames if the MAC has nothing left to
/// send.
#[inline(never)]
pub fn reclaim<B: Bus>(send: &mut SendPath, bus: &mut B) {
    if !send.is_reading() && send.frame_bytes == 0 && send.ring.is_empty(bus) {
        send.buffer.clear(bus);
    }
}
