//! What a queue's thread is told, and when: status lines, polled marks, interrupts.
//!
//! KNET, section 3.2. A queue is *armed* or *polled*. Frames of an armed queue, after the
//! queue's own count or time, mark it polled and raise the interrupt; a polled queue raises
//! none, its producer goes on being written. The thread re-arms by a mailbox write with the
//! index up to which it has taken frames: what the queue holds beyond is reported at once, so
//! nothing can fall between "empty" and "re-armed".
//!
//! ```text
//!   armed ── count or time: status line, interrupt ──► polled ─┐ count or time: status line
//!     ▲                                                  │ ▲───┘
//!     └────────── re-arm, all taken ─────────────────────┘
//!                 re-arm, more is there: status line, interrupt, polled again
//! ```

use super::queue::Queue;
use super::{Queues, Receive, send_returns};
use crate::io::IoA;
use crate::io::deadline::SlotA;
use crate::io::note::{WriteKind, WriteNote};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Transfers of a report: return BDs to the end of the slots, behind it, what a run adds, and
/// the status line.
pub(super) const TRANSFERS: u32 = 5;

/// When the host wants to hear of a queue, and where.
#[derive(Clone, Copy, Debug)]
pub struct Notify {
    /// The status line.
    pub(super) status: HostAddress,
    /// Frames after which the host is told.
    threshold: u32,
    /// Microseconds after which it is told.
    ticks: u32,
    /// When that time is over; armed while frames are unreported.
    at: u32,
    armed: bool,
}

impl Notify {
    /// Not open.
    pub const UNUSED: Notify = Notify {
        status: HostAddress { high: 0, low: 0 },
        threshold: 1,
        ticks: 0,
        at: 0,
        armed: false,
    };

    /// With the status line at `status`; 0 microseconds is "at once", 0 frames "by time only".
    pub const fn configured(status: HostAddress, ticks: u32, frames: u32) -> Notify {
        /// The longest time: the counter's comparison is signed (reference 7).
        const LONGEST: u32 = 1 << 30;
        Notify {
            status,
            threshold: match (ticks, frames) {
                (0, _) => 1,
                (_, 0) => u32::MAX,
                (_, frames) => frames,
            },
            ticks: if ticks < LONGEST { ticks } else { LONGEST },
            ..Notify::UNUSED
        }
    }

    /// The queue got frames: its bit if the host is to be told now, else 0, and it is told when
    /// the time is over.
    #[inline(always)]
    pub(super) fn judge<B: Dispatch>(&mut self, queue: &Queue, io: &mut IoA<B>) -> u32 {
        if queue.unreported >= self.threshold {
            return queue.bit();
        }
        if !self.armed && queue.unreported != 0 {
            self.arm(io);
        }
        0
    }

    /// The host is told when the time is over.
    #[inline(never)]
    fn arm<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        self.armed = true;
        self.at = timer::now(&mut io.bus).wrapping_add(self.ticks);
        if !io.is_armed(SlotA::Receive) {
            io.arm(SlotA::Receive, self.ticks);
        }
    }
}

/// Queues are due: their event goes on.
#[inline(always)]
pub(super) fn soon<B: Dispatch>(io: &mut IoA<B>) {
    io.bus.set(EventBit::UpdateReceiveReturnProducer);
}

/// Update receive return producer, in queue mode: all queues that are due, by count, time or
/// re-arming.
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
        let over = notify.armed && timer::reached(now, notify.at);
        if *due >> number & 1 == 0 && !over {
            if notify.armed {
                wait = wait.min(notify.at.wrapping_sub(now));
            }
            continue;
        }
        if !io.has_write_room(TRANSFERS) {
            return io.wait_for_descriptor(EventBit::UpdateReceiveReturnProducer);
        }
        *due &= !(1 << number);
        notify.armed = false;
        let _ = send_returns(queue, *host, io, 1);
        let (line, interrupts) = queue.report(&mut io.bus);
        let note = if interrupts {
            WriteNote::of(WriteKind::QueueStatus)
        } else {
            WriteNote::QUIET
        };
        io.put_words(notify.status, &line, note);
        let counters = &mut receive.counters;
        counters.return_updates = counters.return_updates.wrapping_add(1);
    }
    io.disarm(SlotA::Receive);
    if wait != u32::MAX {
        io.arm(SlotA::Receive, wait);
    }
    io.bus.clear(EventBit::UpdateReceiveReturnProducer);
}
