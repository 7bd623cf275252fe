//! When a queue is reported: by count, or by time.

use super::super::returns::MANY;
use super::queue::Queue;
use crate::io::IoA;
use crate::io::deadline::SlotA;
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
    pub(super) threshold: u32,
    /// Microseconds after which the queue is reported.
    pub(super) ticks: u32,
    /// The deadline of that time; armed while frames are unreported.
    pub(super) at: u32,
    pub(super) armed: bool,
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
