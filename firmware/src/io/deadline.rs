//! Deadlines of a CPU: the housekeeping period, and slots that paths arm.
//!
//! Hardware reference, section 7. The chip has one timer reference for each CPU, which always
//! holds the first deadline. The timer handlers (`sides::timer`) act on the deadlines.

use tigon2_hal::timer;

/// Microseconds between two turns of housekeeping.
pub const PERIOD: u32 = 1000;

/// One deadline, in microseconds of the chip's counter.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    time: u32,
    armed: bool,
}

impl Deadline {
    /// A deadline that is not armed.
    pub const NONE: Deadline = Deadline {
        time: 0,
        armed: false,
    };

    /// `ticks` microseconds after `now`.
    #[inline(always)]
    const fn after(now: u32, ticks: u32) -> Deadline {
        Deadline {
            time: now.wrapping_add(ticks),
            armed: true,
        }
    }

    /// Whether it is armed.
    #[inline(always)]
    pub const fn is_armed(&self) -> bool {
        self.armed
    }

    /// Disarms it.
    #[inline(always)]
    pub const fn disarm(&mut self) {
        self.armed = false;
    }

    /// Whether it has passed; if so, disarms it.
    pub fn take(&mut self, now: u32) -> bool {
        let due = self.armed && timer::reached(now, self.time);
        if due {
            self.armed = false;
        }
        due
    }

    /// Arms it for every `ticks` microseconds: one period after a deadline that was just taken,
    /// else from `now` on, unless the armed deadline is within `ticks`.
    pub fn repeat(&mut self, now: u32, due: bool, ticks: u32) {
        if due {
            self.time = self.time.wrapping_add(ticks);
        }
        // The first deadline, a late one, and one that was set with a longer period.
        let left = self.time.wrapping_sub(now);
        if !(due || self.armed) || left == 0 || left > ticks {
            self.time = now.wrapping_add(ticks);
        }
        self.armed = true;
    }

    /// The earlier of a time and this deadline.
    #[inline(always)]
    fn or_earlier(self, time: u32) -> u32 {
        let sooner = (self.time.wrapping_sub(time) as i32) < 0;
        if self.armed && sooner {
            self.time
        } else {
            time
        }
    }
}

/// Deadlines of CPU A that paths arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotA {
    /// Reporting the return producer index.
    Receive,
}

/// Deadlines of CPU B that paths arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotB {
    /// Reporting the send consumer index.
    Send,
    /// Checking whether the transmit buffer has room again.
    Room,
    /// Looking whether the run of an extension is still the same; only with SPINE. With E-UDP:
    /// trying a frame again that found no room.
    Watch,
    /// When the wire may come to bytes that have not arrived; only with E-UDP.
    Part,
}

/// The period and `N` slots.
#[derive(Debug)]
pub struct Deadlines<const N: usize> {
    /// When housekeeping is due next.
    period: u32,
    slots: [Deadline; N],
}

impl<const N: usize> Deadlines<N> {
    /// None is armed.
    pub const fn new() -> Deadlines<N> {
        Deadlines {
            period: 0,
            slots: [Deadline::NONE; N],
        }
    }

    /// Starts housekeeping.
    pub const fn start(&mut self, now: u32) {
        self.period = now.wrapping_add(PERIOD);
    }

    /// Arms a slot for `ticks` microseconds from `now` on.
    #[inline(always)]
    pub fn arm(&mut self, slot: usize, now: u32, ticks: u32) {
        if let Some(deadline) = self.slots.get_mut(slot) {
            *deadline = Deadline::after(now, ticks);
        }
    }

    /// Arms a slot for a time, unless it is armed for an earlier one. Returns whether it was not.
    #[inline(always)]
    pub fn arm_until(&mut self, slot: usize, time: u32) -> bool {
        match self.slots.get_mut(slot) {
            Some(deadline) if deadline.or_earlier(time) == time => {
                (deadline.time, deadline.armed) = (time, true);
                true
            }
            _ => false,
        }
    }

    /// Whether a slot is armed.
    #[inline(always)]
    pub fn is_armed(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(Deadline::is_armed)
    }

    /// Disarms a slot.
    #[inline(always)]
    pub fn disarm(&mut self, slot: usize) {
        if let Some(deadline) = self.slots.get_mut(slot) {
            deadline.disarm();
        }
    }

    /// Whether a slot is due; if so, disarms it.
    #[inline(always)]
    pub fn take(&mut self, slot: usize, now: u32) -> bool {
        let deadline = self.slots.get_mut(slot);
        deadline.is_some_and(|deadline| deadline.take(now))
    }

    /// Whether housekeeping is due; if so, starts the next period.
    #[inline(always)]
    pub fn take_period(&mut self, now: u32) -> bool {
        let due = timer::reached(now, self.period);
        if due {
            let next = self.period.wrapping_add(PERIOD);
            let late = timer::reached(now, next);
            self.period = if late { now.wrapping_add(PERIOD) } else { next };
        }
        due
    }

    /// Leaves out `turns` turns of housekeeping.
    #[inline(always)]
    pub const fn rest(&mut self, turns: u32) {
        self.period = self.period.wrapping_add(turns * PERIOD);
    }

    /// Has housekeeping done within a period, if turns of it are left out.
    pub const fn hasten(&mut self, now: u32) {
        let soon = now.wrapping_add(PERIOD);
        if timer::reached(self.period, soon) {
            self.period = soon;
        }
    }

    /// Lets housekeeping wait until `time`, if it is due before that.
    #[inline(always)]
    pub const fn put_off(&mut self, time: u32) {
        if timer::reached(time, self.period) {
            self.period = time;
        }
    }

    /// The first deadline.
    #[inline(always)]
    pub fn first(&self) -> u32 {
        let earlier = |time, deadline: &Deadline| deadline.or_earlier(time);
        self.slots.iter().fold(self.period, earlier)
    }
}

impl<const N: usize> Default for Deadlines<N> {
    fn default() -> Deadlines<N> {
        Deadlines::new()
    }
}
