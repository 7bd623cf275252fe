//! The fast path: runs of frames that need no inspection.
//!
//! It takes good frames to this card's own address, of a length that is clearly the standard or
//! the mini ring's, for a host that wants no checksums. Local variables hold whatever changes from
//! frame to frame, so that it stays in registers; that, and the SRAM words that are not touched,
//! make this path fast. Any other frame ends the run, and [`handlers`](super::handlers) has it
//! inspected.

use super::deliver::{NOW, Taken, flags_of};
use super::state::Receive;
use super::{frame, returns};
use crate::io::IoA;
use crate::io::note::WriteNote;
use host_interface::bd::ReceiveBdAt;
use host_interface::bd::destination::UNICAST;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Frames that were delivered.
    pub count: u32,
    /// Why it ended.
    pub end: End,
    /// Whether a BD asked for an update at once.
    pub now: bool,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// No frame is left, or the requested number was delivered.
    Done,
    /// The next frame has this length, which is not clearly the usual ring's.
    OtherLength(u32),
    /// The next frame needs inspection or has to wait.
    Other,
}

/// Delivers up to `most` frames. One loop in one function: what goes from frame to frame is in
/// registers, and a frame's words are written with other work in between, while the SRAM port is
/// busy.
///
/// A frame that is not to be delivered here, by its start and its length without CRC, ends the run
/// as [`End::Other`]: that of a group, at least, and any that somebody else wants.
#[inline(always)]
pub(super) fn run<B: Dispatch>(
    receive: &mut Receive,
    io: &mut IoA<B>,
    most: u32,
    mut ends: impl FnMut(&mut B, u32, u32) -> bool,
) -> Run {
    let IoA {
        bus,
        write_ring,
        states,
        ..
    } = io;
    let usual = receive.usual;
    let (shortest, lengths) = receive.lengths(usual);
    let cut = receive.cut;
    let mut made = receive.returns.open();
    let state = states.data;
    let mut frames = receive.ring.open();
    let mut queue = write_ring.open();
    let ring = receive.rings.get_mut(usual);
    let ring_flags = flags_of(ring.flag(), UNICAST);
    // The limits are checked before the run, except for the number of frames: more arrive
    // meanwhile.
    let mut bds = ring.open(bus, most);
    let room = receive.returns.known_room();
    let limit = most
        .min(bds.ready())
        .min(room)
        .min(queue.free().saturating_sub(returns::TRANSFERS));
    let mut left = limit;
    let (mut octets, mut flags) = (0, 0);
    let end = loop {
        if left == 0 {
            break if limit == most { End::Done } else { End::Other };
        }
        let Some(frame) = frames.oldest(bus) else {
            break End::Done;
        };
        // Error bits make it longer than any frame.
        let length = (frame.errors << 16 | frame.length).wrapping_sub(frame::CRC);
        if length.wrapping_sub(shortest) >= lengths {
            break End::OtherLength(length);
        }
        if ends(bus, frame.start, length) {
            break End::Other;
        }
        let bytes = frame.length - cut;
        let taken = Taken::new(bus, bds.next_address());
        if bytes > taken.room() {
            break End::Other;
        }
        // The frame before this one: the loads have waited for its stores already.
        queue.notify(bus);
        let descriptor = queue.next();
        descriptor.local(bus, frame.start);
        octets = barrier(octets + length);
        let slot = barrier(made.slot());
        let staged = ReceiveBdAt(slot);
        bus.store(staged.kind_and_flags(), ring_flags);
        made.set(barrier(made.after()));
        flags = barrier(flags | taken.flags);
        descriptor.length(bus, bytes);
        let index_and_length = barrier(taken.index_and_length(bytes));
        left = barrier(left - 1);
        descriptor.state(bus, state);
        bds.advance();
        bus.store(staged.index_and_length(), index_and_length);
        frames.release();
        bus.store(staged.opaque(), taken.opaque);
        bus.store_host_address(staged.address(), taken.host);
        descriptor.host(bus, taken.host);
        queue.commit(WriteNote::receive_data(slot).word());
    };
    drop(frames);
    queue.notify(bus);
    drop(queue);
    ring.close(bds);
    let count = limit - left;
    if count != 0 {
        receive.returns.close(made);
        io.frees_with_data();
        receive.counters.received(UNICAST, count, octets);
    }
    Run {
        count,
        end,
        now: flags & NOW != 0,
    }
}
