//! CPU A's deadlines, and its period of housekeeping.

use super::IoA;
use crate::io::deadline::SlotA;
use crate::memory::layout::SPINE;
use tigon2_chip::Cpu;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

impl<B: Dispatch> IoA<B> {
    /// Starts housekeeping.
    pub fn start_timer(&mut self) {
        let now = timer::now(&mut self.bus);
        self.deadlines.start(now);
        self.set_timer(now);
    }

    /// Arms a slot.
    #[inline(always)]
    pub fn arm(&mut self, slot: SlotA, ticks: u32) {
        let now = timer::now(&mut self.bus);
        self.deadlines.arm(slot as usize, now, ticks);
        self.set_timer(now);
    }

    /// Arms a slot for a time after `now`, unless it is due before.
    #[inline(always)]
    pub fn arm_until(&mut self, slot: SlotA, now: u32, time: u32) {
        if self.deadlines.arm_until(slot as usize, time) {
            self.set_timer(now);
        }
    }

    /// Whether a slot is armed.
    #[inline(always)]
    pub fn is_armed(&self, slot: SlotA) -> bool {
        self.deadlines.is_armed(slot as usize)
    }

    /// Disarms a slot.
    #[inline(always)]
    pub fn disarm(&mut self, slot: SlotA) {
        self.deadlines.disarm(slot as usize);
    }

    /// Whether a slot is due; if so, disarms it.
    #[inline(always)]
    pub fn take_due(&mut self, slot: SlotA, now: u32) -> bool {
        self.deadlines.take(slot as usize, now)
    }

    /// Whether housekeeping is due.
    #[inline(always)]
    pub fn take_period(&mut self, now: u32) -> bool {
        self.deadlines.take_period(now)
    }

    /// Leaves out `turns` turns of housekeeping, unless somebody [has it done](Self::hasten) before.
    #[inline(always)]
    pub const fn rest(&mut self, turns: u32) {
        self.deadlines.rest(turns);
    }

    /// Something waits for housekeeping: has it done within a millisecond. Only with SPINE is it not
    /// in any case.
    #[inline(always)]
    pub fn hasten(&mut self) {
        if SPINE != 0 {
            self.hasten_period();
        }
    }

    #[inline(never)]
    fn hasten_period(&mut self) {
        let now = timer::now(&mut self.bus);
        self.deadlines.hasten(now);
        self.set_timer(now);
    }

    /// Sets the chip's timer reference to the first deadline.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
    #[inline(never)]
    pub fn set_timer(&mut self, now: u32) {
        let first = self.deadlines.first();
        self.bus.arm(Cpu::A, now, first);
    }
}
