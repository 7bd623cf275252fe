//! The microsecond counter, its reference, and delays.
//!
//! Hardware reference, section 7.

use crate::Bus;
use embedded_hal::delay::DelayNs;
use tigon2_chip::{Cpu, Register};

/// The free running counter in microseconds; it wraps after 71 minutes.
#[inline(always)]
pub fn now<B: Bus>(bus: &mut B) -> u32 {
    bus.read(Register::Timer)
}

/// Whether the counter has reached `deadline`, for deadlines less than 35 minutes away.
#[inline(always)]
pub const fn reached(now: u32, deadline: u32) -> bool {
    now.wrapping_sub(deadline) as i32 >= 0
}

/// Sets the CPU's timer event to `deadline`, or to the next moments if that has passed: silicon
/// may compare for equality, so a past reference is never written.
#[inline(always)]
pub fn arm<B: Bus>(bus: &mut B, cpu: Cpu, now: u32, deadline: u32) {
    /// Microseconds within which the register write certainly takes effect.
    const SOON: u32 = 2;
    let earliest = now.wrapping_add(SOON);
    let reference = if reached(earliest, deadline) {
        earliest
    } else {
        deadline
    };
    bus.write(Register::timer_reference(cpu), reference);
}

/// Busy waiting on the counter, whose microsecond is 86 core clocks: 2 % short at 88 MHz.
#[derive(Debug)]
pub struct Delay<'a, B: Bus>(
    /// The bus for reads of the counter.
    pub &'a mut B,
);

impl<B: Bus> DelayNs for Delay<'_, B> {
    /// Waits at least `ns` nanoseconds, rounded up to between one and two times as much:
    /// the chip cannot divide, so 512 takes the place of 1000.
    fn delay_ns(&mut self, ns: u32) {
        self.delay_us((ns >> 9) + 1);
    }

    fn delay_us(&mut self, us: u32) {
        let start = now(self.0);
        // One more, since the first may be nearly over.
        while now(self.0).wrapping_sub(start) <= us {}
    }

    fn delay_ms(&mut self, ms: u32) {
        for _ in 0..ms {
            self.delay_us(1000);
        }
    }
}
