//! The event handlers of the receive path: Receive Complete, Update Receive Return Producer.
//!
//! Hardware reference, section 14. Most frames are free of errors, for this card, and fit the
//! standard or the mini ring; few comparisons recognise them. [`judge`](super::judge) inspects all
//! others.

use super::deliver::{self, Accepted, Taken, deliver};
use super::fast_path::{self, End};
use super::frame::{CRC, FRAMES};
use super::headers::{self, Headers};
use super::index::returned;
use super::queues::state::Queues;
use super::queues::{self, report as queue_reports};
use super::report::update_producer;
use super::state::{Receive, is_sorting};
use super::{judge, returns, slow_path};
use crate::io::{IoA, filter};
use crate::memory::statistics::count;
use host_interface::bd::destination::MULTICAST;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::events::Dispatch;

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
                returned(&mut receive.index, io, run.count, run.now);
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
    returns::queue(&mut receive.returns, io, enough);
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
    let (id, flaws) = match receive.ring_by_length(length) {
        Some(id) if good => (id, 0),
        _ => match judge::judge(receive, io, frame, destination) {
            Ok(judged) => judged,
            Err(reason) => {
                judge::drop_frame(receive, io, frame, reason);
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
        judge::wait_for_bds(receive, io, id);
        return false;
    }
    if receive.returns.is_full(bus) {
        judge::wait_for_returns(io);
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

#[inline(never)]
fn count_no_descriptors<B: Dispatch>(io: &mut IoA<B>) {
    count!(io.bus, no_write_descriptors);
}

/// Update Receive Return Producer. With "interrupt only on coalescing" an update by the number of
/// BDs is silent; the interrupt follows when the time is over.
#[inline(always)]
pub fn update<B: Dispatch>(receive: &mut Receive, queues: &mut Queues, io: &mut IoA<B>) {
    if receive.index.is_by_queue() {
        return queue_reports::report(receive, queues, io);
    }
    update_producer(receive, io);
}
