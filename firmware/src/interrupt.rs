//! Interrupts to the host.
//!
//! Hardware reference, section 8. An interrupt is raised only if none is pending, the
//! host is not in its handler (mailbox 0) and does not mask (gencom). What is held back
//! for one of the latter two is made up for when the host lets go.

use crate::SideA;
use host_interface::OperatingMode;
use host_interface::gencom::Gencom;
use tigon2_chip::Register;
use tigon2_chip::bits::{MiscHostControl, MiscLocalControl};
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::events::Dispatch;

/// What the host wants to be interrupted for, and what it still has to hear.
#[derive(Debug)]
pub struct Interrupt {
    /// Send consumer updates.
    pub for_send: bool,
    /// Receive return producer updates.
    pub for_receive: bool,
    /// Events.
    pub for_events: bool,
    /// An interrupt was held back.
    owed: bool,
}

impl Interrupt {
    /// All wanted, none owed.
    pub const fn new() -> Interrupt {
        Interrupt {
            for_send: true,
            for_receive: true,
            for_events: true,
            owed: false,
        }
    }

    /// Takes the wishes from the operating mode.
    pub const fn configure(&mut self, mode: OperatingMode) {
        self.for_send = !mode.no_transmit_interrupts();
        self.for_receive = !mode.no_receive_interrupts();
        self.for_events = !mode.no_event_interrupts();
    }
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt::new()
    }
}

/// Raises the interrupt if the host can take one now, or remembers it.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
pub fn raise<B: Dispatch>(a: &mut SideA<B>) {
    let bus = &mut a.bus;
    let in_handler = bus.load(Mailbox::HostInterrupt.nic_address()) != 0;
    if in_handler || bus.load(Gencom::MaskInterrupts.nic_address()) != 0 {
        a.interrupt.owed = true;
        a.counters.avoided = a.counters.avoided.wrapping_add(1);
        return;
    }
    a.interrupt.owed = false;
    let pending = MiscHostControl::new()
        .with_interrupt_pending(true)
        .into_bits();
    if bus.read(Register::MiscHostControl) & pending != 0 {
        a.counters.avoided = a.counters.avoided.wrapping_add(1);
        return;
    }
    let strobe = MiscLocalControl::new()
        .with_raise_interrupt(true)
        .into_bits();
    bus.modify(Register::MiscLocalControl, strobe, strobe);
    a.counters.interrupts = a.counters.interrupts.wrapping_add(1);
}

/// The host may have let go: raises what is owed.
#[inline(always)]
pub fn make_up<B: Dispatch>(a: &mut SideA<B>) {
    if a.interrupt.owed {
        raise(a);
    }
}
