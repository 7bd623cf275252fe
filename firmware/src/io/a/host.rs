//! What the host is told by CPU A: interrupts and events.

use super::IoA;
use crate::memory::layout::SPINE;
use host_interface::event::{Event, EventCode};
use tigon2_chip::Cpu;
use tigon2_hal::events::Dispatch;

impl<B: Dispatch> IoA<B> {
    /// Raises the interrupt if the host can take it now, else defers it.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
    #[inline(never)]
    pub fn raise_interrupt(&mut self) {
        if SPINE == 0 {
            return self.interrupt.raise(&mut self.bus);
        }
        if self.interrupt.avoids(&mut self.bus) {
            return self.avoid_interrupt();
        }
        self.interrupt.raise_now(&mut self.bus);
    }

    /// Housekeeping raises the interrupt that was deferred.
    #[inline(never)]
    fn avoid_interrupt(&mut self) {
        self.interrupt.avoided();
        self.hasten();
    }

    /// Whether an interrupt is deferred.
    pub const fn defers_interrupt(&self) -> bool {
        self.interrupt.is_deferred()
    }

    /// Raises a deferred interrupt if the host can take it now.
    #[inline(always)]
    pub fn raise_deferred(&mut self) {
        if self.interrupt.is_deferred() {
            self.raise_interrupt();
        }
    }

    /// Reports an event to the host, now or when there is room.
    #[inline(never)]
    pub fn post(&mut self, event: EventCode, code: u16) {
        let [word, _] = Event::new(event, code).pack();
        self.post_word(word);
    }

    /// The same with the event's word.
    #[inline(never)]
    pub fn post_word(&mut self, word: u32) {
        self.outbox.post(&mut self.bus, word);
        // CPU A's own doorbell: its handler sends the event.
        self.rare_work = true;
        self.bus.ring(Cpu::A);
        self.hasten();
    }

    /// Reports an error to the host; `code` is one of the error codes.
    #[inline(never)]
    pub fn post_error(&mut self, code: u16) {
        crate::memory::statistics::count!(self.bus, event_error);
        self.post(EventCode::Error, code);
    }
}
