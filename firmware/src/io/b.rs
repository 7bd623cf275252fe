//! CPU B's resources: the read channel, and the ways to CPU A.

use super::deadline::{Deadlines, SlotB};
use super::states::ReadStates;
use crate::memory::layout::{EUDP, SPINE};
use crate::memory::shared::{ERRORS, OfB};
use tigon2_chip::Cpu;
use tigon2_chip::memory::block;
use tigon2_hal::assist::DescriptorRing;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// CPU B's io.
#[derive(Debug)]
pub struct IoB<B: Dispatch> {
    /// The chip, with its pending events.
    pub bus: B,
    /// The token that permits writes to CPU B's shared words.
    pub me: OfB,
    /// State words of transfers.
    pub states: ReadStates,
    /// Transfers from the host.
    pub read_ring: DescriptorRing<B::ReadChannel>,
    /// The armed deadlines.
    deadlines: Deadlines<{ 2 + SPINE + 2 * EUDP }>,
    /// With SPINE, whether a deadline had passed when the timer was set.
    is_behind: [bool; SPINE],
}

impl<B: Dispatch> IoB<B> {
    /// The state before the host has configured anything.
    pub const fn new(bus: B, read: B::ReadChannel) -> IoB<B> {
        IoB {
            bus,
            me: OfB::new(),
            states: ReadStates::new(0, true, true),
            read_ring: DescriptorRing::new(read),
            deadlines: Deadlines::new(),
            is_behind: [false; SPINE],
        }
    }

    /// Places the read ring in the descriptor and buffer block with base K.
    pub fn place(&mut self, block: u32) {
        self.read_ring.place(block + block::DMA_READ_RING);
    }

    /// Rings CPU A.
    #[inline(always)]
    pub fn ring_a(&mut self) {
        self.bus.ring(Cpu::A);
    }

    /// Reports a configuration error to the host: CPU A posts the error event.
    #[inline(never)]
    pub fn post_error(&mut self) {
        let errors = ERRORS.get(&mut self.bus).wrapping_add(1);
        ERRORS.set(&self.me, &mut self.bus, errors);
        self.ring_a();
    }

    /// Starts housekeeping.
    pub fn start_timer(&mut self) {
        let now = timer::now(&mut self.bus);
        self.deadlines.start(now);
        self.set_timer(now);
    }

    /// Arms a slot.
    #[inline(always)]
    pub fn arm(&mut self, slot: SlotB, ticks: u32) {
        let now = timer::now(&mut self.bus);
        self.deadlines.arm(slot as usize, now, ticks);
        self.set_timer(now);
    }

    /// Arms a slot for `ticks` microseconds from now, unless it is due before.
    #[inline(never)]
    pub fn arm_within(&mut self, slot: SlotB, ticks: u32) {
        let now = timer::now(&mut self.bus);
        if self
            .deadlines
            .arm_until(slot as usize, now.wrapping_add(ticks))
        {
            self.set_timer(now);
        }
    }

    /// Arms a slot for a time, when the counter shows `now`.
    #[inline(always)]
    pub fn arm_at(&mut self, slot: SlotB, now: u32, time: u32) {
        let ticks = time.wrapping_sub(now);
        self.deadlines.arm(slot as usize, now, ticks);
        self.set_timer(now);
    }

    /// Arms a slot for `ticks` microseconds after `now` and leaves the timer to
    /// [`set_timer`](Self::set_timer).
    #[inline(always)]
    pub fn arm_unset(&mut self, slot: SlotB, now: u32, ticks: u32) {
        self.deadlines.arm(slot as usize, now, ticks);
    }

    /// Whether a slot is armed.
    #[inline(always)]
    pub fn is_armed(&self, slot: SlotB) -> bool {
        self.deadlines.is_armed(slot as usize)
    }

    /// Disarms a slot.
    #[inline(always)]
    pub fn disarm(&mut self, slot: SlotB) {
        self.deadlines.disarm(slot as usize);
    }

    /// Whether a slot is due; if so, disarms it.
    #[inline(always)]
    pub fn take_due(&mut self, slot: SlotB, now: u32) -> bool {
        self.deadlines.take(slot as usize, now)
    }

    /// Whether a deadline had passed already when the timer was set; only with SPINE.
    #[inline(always)]
    pub fn is_behind(&self) -> bool {
        self.is_behind.first().is_some_and(|behind| *behind)
    }

    /// Whether housekeeping is due.
    #[inline(always)]
    pub fn take_period(&mut self, now: u32) -> bool {
        self.deadlines.take_period(now)
    }

    /// Lets housekeeping wait until `time`, if it is due before that. Who asks sets a deadline next.
    #[inline(always)]
    pub const fn put_off_housekeeping(&mut self, time: u32) {
        self.deadlines.put_off(time);
    }

    /// Sets the chip's timer reference to the first deadline.
    ///
    /// With SPINE a period may be as short as the timer's own handler is long, and the timer's event
    /// goes before nearly all others. So what CPU B has done since `now` takes as long again at
    /// least before the event: the way back to the dispatch loop is shorter than the search for
    /// the first deadline, and another handler has its turn.
    #[cfg_attr(
        all(target_arch = "mips", not(feature = "eudp")),
        unsafe(link_section = ".scratch_b.text")
    )]
    #[inline(never)]
    pub fn set_timer(&mut self, now: u32) {
        let first = self.deadlines.first();
        if let Some(behind) = self.is_behind.first_mut() {
            *behind = timer::reached(now, first);
            let end = timer::now(&mut self.bus);
            let took = end.wrapping_sub(now);
            return timer::arm(&mut self.bus, Cpu::B, end.wrapping_add(took), first);
        }
        self.bus.arm(Cpu::B, now, first);
    }
}
