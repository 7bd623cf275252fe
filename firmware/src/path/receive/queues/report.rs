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

use super::queue::Queue;
use super::{MANY, Queues, Receive, send_returns_here};
use crate::io::IoA;
use crate::io::deadline::SlotA;
use crate::io::note::{WriteKind, WriteNote};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// When and where the host wants reports of a queue. 32 bytes, so that a queue's number becomes its
/// place by a shift.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Notify {
    /// The status line.
    pub(super) status: HostAddress,
    /// Frames after which the queue is reported.
    threshold: u32,
    /// Microseconds after which the queue is reported.
    ticks: u32,
    /// The deadline of that time; armed while frames are unreported.
    at: u32,
    armed: bool,
    /// Frames that are processed together: no more than the host wants to have reported at once.
    pub(super) batch: u32,
}

impl Notify {
    /// Not open.
    pub const UNUSED: Notify = Notify {
        status: HostAddress { high: 0, low: 0 },
        threshold: 1,
        ticks: 0,
        at: 0,
        armed: false,
        batch: 1,
    };

    /// With the status line at `status`; 0 microseconds means "at once", 0 frames "by time only".
    pub const fn configured(status: HostAddress, ticks: u32, frames: u32) -> Notify {
        /// The longest time: the counter's comparison is signed (reference 7).
        const LONGEST: u32 = 1 << 30;
        let threshold = match (ticks, frames) {
            (0, _) => 1,
            (_, 0) => u32::MAX,
            (_, frames) => frames,
        };
        Notify {
            status,
            threshold,
            batch: if threshold < 2 * MANY {
                threshold
            } else {
                2 * MANY
            },
            ticks: if ticks < LONGEST { ticks } else { LONGEST },
            ..Notify::UNUSED
        }
    }

    /// Whether an expired time notifies the host.
    #[inline(always)]
    pub(super) fn is_armed(&self) -> bool {
        self.armed
    }

    /// The queue got frames and is settled: returns its bit if the host must be notified now, else
    /// 0; the timer notifies the host later.
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

    /// Arms the deadline of the next report.
    #[inline(never)]
    fn arm<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        self.armed = true;
        let now = timer::now(&mut io.bus);
        self.at = now.wrapping_add(self.ticks);
        // Another queue's time may be longer.
        io.arm_until(SlotA::Receive, now, self.at);
    }
}

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
        if !tell(queue, notify, *host, io) {
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
pub(super) fn tell<B: Dispatch>(
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
