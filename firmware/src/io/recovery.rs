//! Which CPU recovers a DMA channel: one at a time.
//!
//! Both work on the assist's registers then. A lock of `spin` would exclude the other one, too, and
//! does in the plain images (`sides/recovery.rs`), but each of its tries takes the chip's semaphore,
//! which is also what letting go takes. A CPU that tries without a pause has the semaphore for half of
//! the time; where the CPUs take turns of a length that fits, the other one never gets it to let go.
//! With these words, letting go is a store:
//!
//! ```text
//!   CPU A   wants = 1; while B wants: wants = 0, waits for B, wants = 1
//!   CPU B   wants = 1; waits until A does not want
//! ```
//!
//! Stores reach SRAM in a CPU's order, and loads wait for them (hardware reference, 3.5), so one of the
//! two sees the other's word. If both want at once, CPU B is first.

use super::{IoA, IoB};
use crate::memory::layout::{EUDP, SPINE};
use crate::memory::shared::{RECOVERS_A, RECOVERS_B};
use tigon2_hal::events::Dispatch;

/// Whether these words are used: the plain images have `spin`, and stay as they are.
pub const WORDS: bool = EUDP != 0 || SPINE != 0;

impl<B: Dispatch> IoA<B> {
    /// Waits until CPU B does not recover, which waits from now on.
    #[inline(always)]
    pub fn begin_recovery(&mut self) {
        if WORDS {
            self.want_recovery();
        }
    }

    #[inline(never)]
    fn want_recovery(&mut self) {
        let bus = &mut self.bus;
        loop {
            RECOVERS_A.set(&self.me, bus, 1);
            if RECOVERS_B.get(bus) == 0 {
                return;
            }
            RECOVERS_A.set(&self.me, bus, 0);
            while RECOVERS_B.get(bus) != 0 {}
        }
    }

    /// CPU B may recover.
    #[inline(always)]
    pub fn end_recovery(&mut self) {
        if WORDS {
            RECOVERS_A.set(&self.me, &mut self.bus, 0);
        }
    }
}

impl<B: Dispatch> IoB<B> {
    /// Waits until CPU A does not recover, which waits from now on.
    #[inline(always)]
    pub fn begin_recovery(&mut self) {
        if WORDS {
            self.want_recovery();
        }
    }

    #[inline(never)]
    fn want_recovery(&mut self) {
        let bus = &mut self.bus;
        RECOVERS_B.set(&self.me, bus, 1);
        while RECOVERS_A.get(bus) != 0 {}
    }

    /// CPU A may recover.
    #[inline(always)]
    pub fn end_recovery(&mut self) {
        if WORDS {
            RECOVERS_B.set(&self.me, &mut self.bus, 0);
        }
    }
}
