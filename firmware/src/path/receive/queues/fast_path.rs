//! Frames with nothing to look at, several in a run.
//!
//! As the [fast path](super::super::fast_path) of classic mode, with a queue for each frame:
//! what is known of the queue is in memory, so a frame costs more. Whatever else there is
//! about a frame ends the run, and [`slow_path`](super::slow_path) looks at it.

use super::{Queues, Receive, classify};
use crate::io::note::WriteNote;
use crate::io::{IoA, filter};
use crate::path::receive::deliver::{NOW, Taken, flags_of};
use crate::path::receive::frame::{CRC, HEADER};
use flow_classify::Verdict;
use host_interface::bd::ReceiveBdAt;
use host_interface::bd::destination::UNICAST;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::events::Dispatch;

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Frames that were delivered.
    pub count: u32,
    /// The queues that they went to, a bit for each.
    pub touched: u32,
    /// Whether no frame is there any more.
    pub done: bool,
    /// The verdict on the frame that ended the run, if it was classified.
    pub verdict: Option<Verdict>,
}

/// Delivers up to `most` frames.
#[inline(always)]
pub(super) fn run<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    most: u32,
) -> Run {
    let IoA {
        bus,
        write_ring,
        states,
        ..
    } = io;
    let Queues {
        table,
        classify: classifier,
        due,
        ..
    } = queues;
    let lengths = receive.queue_lengths();
    let cut = receive.cut;
    let state = states.data;
    let mut frames = receive.ring.open();
    let mut writes = write_ring.open();
    let limit = most.min(writes.free());
    let mut left = limit;
    let (mut octets, mut touched) = (0, 0);
    let (mut verdict, mut done) = (None, limit == most);
    while left != 0 {
        let Some(frame) = frames.oldest(bus) else {
            done = true;
            break;
        };
        done = false;
        // Errors make it longer than any frame.
        let length = (frame.errors << 16 | frame.length).wrapping_sub(CRC);
        if length.wrapping_sub(HEADER) >= lengths
            || frame.start > PACKET_MEMORY_END - classify::REACH
            || filter::is_of_group(bus, frame.start)
        {
            break;
        }
        let Some(found) = classifier.straight(bus, frame.start, length) else {
            break;
        };
        let Some(queue) = table.get_mut(found.queue as usize) else {
            break;
        };
        if queue.quick == 0 && !queue.look(bus) {
            verdict = Some(found);
            break;
        }
        let bytes = frame.length - cut;
        let taken = Taken::new(bus, queue.bd());
        if bytes > taken.room() {
            verdict = Some(found);
            break;
        }
        let descriptor = writes.next();
        let slot = queue.slot();
        let staged = ReceiveBdAt(slot);
        descriptor.local(bus, frame.start);
        octets += length;
        descriptor.length(bus, bytes);
        let kind = (found.hash_type as u32) << 24 | found.queue << 16;
        descriptor.state(bus, state);
        touched |= queue.bit();
        bus.store(staged.kind_and_flags(), kind | flags_of(0, UNICAST));
        queue.advance(length);
        bus.store(staged.index_and_length(), taken.index_and_length(bytes));
        if taken.flags & NOW != 0 {
            *due |= queue.bit();
        }
        bus.store(staged.reserved(), found.hash);
        frames.release();
        bus.store(staged.opaque(), taken.opaque);
        left -= 1;
        bus.store_host_address(staged.address(), taken.host);
        descriptor.host(bus, taken.host);
        writes.commit(WriteNote::receive_data(slot).word());
        writes.tell(bus);
        done = left == 0 && limit == most;
    }
    drop(frames);
    drop(writes);
    let count = limit - left;
    if count != 0 {
        io.frees_with_data();
        receive.counters.received(UNICAST, count, octets);
    }
    Run {
        count,
        touched,
        done,
        verdict,
    }
}
