//! The slow path of queue mode: frames that need inspection, and drops.
//!
//! It takes frames to group addresses, with flaws, with checksums or tags, longer than their
//! buffer, and those that find no room in their queue. It drops the latter at once, so that no
//! frame after them waits.

use super::queue::{Queue, Wanting};
use super::state::Queues;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::io::{IoA, filter};
use crate::memory::layout::QUEUE_SLOTS;
use crate::memory::statistics::count;
use crate::path::receive::deliver::{Accepted, Outcome, SEED_BYTES, Taken, put_seed, store_sum};
use crate::path::receive::frame::{CRC, end_of};
use crate::path::receive::headers::{self, Headers};
use crate::path::receive::judge;
use crate::path::receive::state::Receive;
use flow_classify::Verdict;
use host_interface::bd::destination::MULTICAST;
use host_interface::extension::DropReason;
use host_interface::queue::QueueCounter;
use tigon2_hal::Bus;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// Transfers of a frame: the seed of its sum, its data.
const TRANSFERS: u32 = 2;

/// Handles one frame; `None` if there is none or it has to wait for a descriptor, else the bit of
/// its queue, or 0. `verdict` is there if the frame was classified already: `round-robin` must not
/// classify it twice.
#[inline(never)]
pub(super) fn one<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    verdict: Option<Verdict>,
) -> Option<u32> {
    let frame = receive.ring.oldest(&mut io.bus)?;
    if !io.has_write_room(TRANSFERS) {
        count!(io.bus, no_write_descriptors);
        return None;
    }
    let length = frame.length.wrapping_sub(CRC);
    let destination = filter::destination(&mut io.bus, frame.start);
    let good = frame.errors == 0 && destination != MULTICAST;
    let flaws = if good && receive.takes_in_queue(length) {
        0
    } else {
        match judge::judge_in_queue(receive, io, frame, destination) {
            Ok(flaws) => flaws,
            Err(reason) => {
                judge::drop_frame(receive, io, frame, reason);
                return Some(0);
            }
        }
    };
    let bus = &mut io.bus;
    let verdict = match verdict {
        Some(verdict) => verdict,
        // A damaged frame has no reliable headers.
        None if flaws != 0 => Verdict::NONE,
        None => queues
            .classify
            .round(bus, frame.start, length, receive.base),
    };
    let number = verdict.queue as usize;
    let queue = queues.table.get_mut(number)?;
    if let Err(wanting) = queue.has_place(bus) {
        let reason = refuse(bus, queue, wanting);
        judge::drop_frame(receive, io, frame, reason);
        return Some(0);
    }
    let accepted = Accepted {
        frame,
        length,
        flaws,
        destination,
        ..Accepted::OF_QUEUE
    };
    let now = deliver(receive, queue, io, &accepted, verdict);
    let bit = queue.bit();
    if now {
        queues.due |= bit;
    }
    Some(bit)
}

/// Counts a frame that finds no room.
fn refuse<B: Bus>(bus: &mut B, queue: &Queue, wanting: Wanting) -> DropReason {
    let (counter, reason) = match wanting {
        Wanting::Buffer => (QueueCounter::NoBuffer, DropReason::NoReceiveBd),
        Wanting::ReturnEntry => (QueueCounter::ReturnRingFull, DropReason::ReturnRingFull),
    };
    queue.count(bus, counter);
    reason
}

/// Queues a frame's data and makes its return BD. Returns whether its BD requests a report at
/// once.
fn deliver<B: Dispatch>(
    receive: &mut Receive,
    queue: &mut Queue,
    io: &mut IoA<B>,
    accepted: &Accepted,
    verdict: Verdict,
) -> bool {
    let frame = accepted.frame;
    let base = receive.base;
    let bus = &mut io.bus;
    let looks = accepted.flaws == 0 && receive.wants != 0;
    let mut found = if looks {
        headers::look_round(bus, receive.wants, frame.start, accepted.length, base)
    } else {
        Headers::NOTHING
    };
    let taken = Taken::new(bus, queue.bd());
    let wanted = frame.length - receive.cut - found.stripped;
    let truncated = wanted > taken.room();
    let bytes = if truncated { taken.room() } else { wanted };
    if truncated || bytes < SEED_BYTES {
        found.forget_sums();
    }
    if found.summed {
        let end = frame.start + accepted.length;
        found.leave_out_padding(bus, base, end - found.padding);
        if receive.cut == 0 {
            let crc = headers::sum_of(bus, base, end, CRC);
            found.leave_out(crc);
        }
    }
    let slot = queue.bd() + QUEUE_SLOTS;
    let outcome = Outcome::new(accepted, slot, bytes, truncated, 0).with(&found);
    outcome.stage_classified(bus, &taken, verdict);
    if outcome.has_more() {
        queue.is_untidy();
    }
    queue.advance(accepted.length);
    queue.tidied();
    if truncated {
        queue.count(bus, QueueCounter::BufferTooSmall);
        receive.counters.drops.count(DropReason::BufferTooSmall);
    }
    if bytes == 0 {
        io.free_later(end_of(base, &frame));
        io.await_writes();
    } else {
        let mut transfer = Transfer {
            host: taken.host,
            // Frames start at multiples of 8, so a tag does not reach the end of the buffer.
            local: frame.start + found.stripped,
            length: bytes,
            state: io.states.data,
            note: WriteNote::receive_data(slot).word(),
        };
        if found.summed {
            put_seed(receive, bus, &mut io.write_ring, &transfer, found.seed);
            transfer.state |= Sum::ON;
            store_sum(bus, &io.write_ring, &mut transfer);
        }
        io.write_ring.put(bus, &transfer);
        io.frees_with_data();
    }
    receive.ring.release();
    receive
        .counters
        .received(accepted.destination, 1, accepted.length);
    taken.asks_now()
}
