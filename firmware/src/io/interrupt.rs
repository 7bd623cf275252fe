//! Interrupts to the host.
//!
//! Hardware reference, section 8. An interrupt is raised only if none is pending, the
//! host is not in its handler (mailbox 0) and does not mask (gencom). What is held back
//! for one of the latter two is deferred: it is raised when the host lets go.

use host_interface::OperatingMode;
use host_interface::gencom::Gencom;
use tigon2_chip::Register;
use tigon2_chip::bits::{MiscHostControl, MiscLocalControl};
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::Bus;

/// What the host wants to be interrupted for, and what was deferred.
#[derive(Debug)]
pub struct Interrupt {
    /// Send consumer updates.
    pub for_send: bool,
    /// Receive return producer updates.
    pub for_receive: bool,
    /// Events.
    pub for_events: bool,
    deferred: bool,
    raised: u32,
    avoided: u32,
}

impl Interrupt {
    /// All wanted, none deferred.
    pub const fn new() -> Interrupt {
        Interrupt {
            for_send: true,
            for_receive: true,
            for_events: true,
            deferred: false,
            raised: 0,
            avoided: 0,
        }
    }

    /// Takes what the operating mode asks for.
    pub const fn configure(&mut self, mode: OperatingMode) {
        self.for_send = !mode.no_transmit_interrupts();
        self.for_receive = !mode.no_receive_interrupts();
        self.for_events = !mode.no_event_interrupts();
    }

    /// Whether one was deferred.
    #[inline(always)]
    pub const fn is_deferred(&self) -> bool {
        self.deferred
    }

    /// How many were raised, and how many were not.
    pub const fn counts(&self) -> (u32, u32) {
        (self.raised, self.avoided)
    }

    /// Counts from zero on.
    pub const fn clear_counts(&mut self) {
        self.raised = 0;
        self.avoided = 0;
    }

    /// Raises one if the host can take it now, or defers it.
    #[inline(always)]
    pub fn raise<B: Bus>(&mut self, bus: &mut B) {
        let in_handler = bus.load(Mailbox::HostInterrupt.nic_address()) != 0;
        self.deferred = in_handler || bus.load(Gencom::MaskInterrupts.nic_address()) != 0;
        let pending = MiscHostControl::new()
            .with_interrupt_pending(true)
            .into_bits();
        if self.deferred || bus.read(Register::MiscHostControl) & pending != 0 {
            self.avoided = self.avoided.wrapping_add(1);
            return;
        }
        let strobe = MiscLocalControl::new()
            .with_raise_interrupt(true)
            .into_bits();
        bus.modify(Register::MiscLocalControl, strobe, strobe);
        self.raised = self.raised.wrapping_add(1);
    }
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt::new()
    }
}
