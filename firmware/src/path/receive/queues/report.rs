//! Reports to a queue's thread: status lines, polled marks, interrupts.
//!
//! KNET, section 3.2. A queue is *armed* or *polled*. Frames of an armed queue mark it polled,
//! after the queue's own count or time, and raise the interrupt. A polled queue raises none, but
//! its producer is still written. The thread re-arms by a mailbox write with the index up to which
//! it has taken frames; if the queue holds more, it is reported at once, so no frame is lost
//! between "empty" and "re-armed".
//!
//! ```text
//!   armed ── count or time: status line, interrupt ──► polled ─┐ count or time: status line
//!     ▲                                                  │ ▲───┘
//!     └────────── re-arm, all taken ─────────────────────┘
//!                 re-arm, more is there: status line, interrupt, polled again
//! ```

use super::notify::Notify;
use super::queue::Queue;
use super::state::Queues;
use crate::io::IoA;
use crate::io::deadline::SlotA;
use crate::io::note::{WriteKind, WriteNote};
use crate::path::receive::state::Receive;
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Sets the event for queues that are due.
#[inline(always)]
pub(super) fn soon<B: Dispatch>(io: &mut IoA<B>) {
    io.bus.set(EventBit::UpdateReceiveReturnProducer);
}

/// Update Receive Return Producer in queue mode: reports all queues that are due, by count, time
/// or re-arming.
#[inline(never)]
pub fn report<B: Dispatch>(receive: &mut Receive, queues: &mut Queues, io: &mut IoA<B>) {
    let now = timer::now(&mut io.bus);
    let mut wait = u32::MAX;
    let Queues {
        table,
        notify,
        returns,
        due,
        open,
        ..
    } = queues;
    for (((number, queue), notify), host) in (0..*open).zip(table).zip(notify).zip(returns) {
        // Queues whose time is nearly over are reported with those whose time is: one interrupt
        // and one look of the host for all of them.
        let slack = notify.ticks >> 2;
        let over = notify.armed && timer::reached(now.wrapping_add(slack), notify.at);
        if *due >> number & 1 == 0 && !over {
            if notify.armed {
                wait = wait.min(notify.at.wrapping_sub(now));
            }
            continue;
        }
        queue.settle_now();
        if !report_queue(queue, notify, *host, io) {
            *due |= 1 << number;
            return io.wait_for_descriptor(EventBit::UpdateReceiveReturnProducer);
        }
        *due &= !(1 << number);
        let counters = &mut receive.counters;
        counters.return_updates = counters.return_updates.wrapping_add(1);
    }
    io.disarm(SlotA::Receive);
    if wait != u32::MAX {
        io.arm(SlotA::Receive, wait);
    }
    io.bus.clear(EventBit::UpdateReceiveReturnProducer);
}

/// Reports a settled queue: sends its remaining return BDs, then its status line, which names only
/// BDs that are on their way. `false` if descriptors were missing: the caller tries again.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
pub(super) fn report_queue<B: Dispatch>(
    queue: &mut Queue,
    notify: &mut Notify,
    host: HostAddress,
    io: &mut IoA<B>,
) -> bool {
    if !send_returns_here(queue, host, io, 1) || !io.has_write_room(1) {
        return false;
    }
    notify.armed = false;
    let (line, interrupts) = queue.report(&mut io.bus);
    let note = if interrupts {
        WriteNote::of(WriteKind::QueueStatus)
    } else {
        WriteNote::QUIET
    };
    io.put_line(notify.status, line, note);
    true
}

/// As [`send_returns_here`], for callers that cannot spare the room.
#[inline(never)]
pub(super) fn send_returns<B: Dispatch>(
    queue: &mut Queue,
    host: HostAddress,
    io: &mut IoA<B>,
    enough: u32,
) -> bool {
    send_returns_here(queue, host, io, enough)
}

/// Sends return BDs of a queue until fewer than `enough` are left; `false` if there is no
/// descriptor for them.
#[inline(always)]
fn send_returns_here<B: Dispatch>(
    queue: &mut Queue,
    host: HostAddress,
    io: &mut IoA<B>,
    enough: u32,
) -> bool {
    while queue.waiting() >= enough {
        if !io.has_write_room(1) {
            return false;
        }
        let transfer = queue.next_run(host, io.states.words);
        io.write_ring.put(&mut io.bus, &transfer);
    }
    true
}
