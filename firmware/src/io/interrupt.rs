//! Interrupts to the host.
//!
//! Hardware reference, section 8. The firmware raises an interrupt only if none is pending, the
//! host is not in its handler (mailbox 0) and the host does not mask it (gencom). In the latter
//! two cases it defers the interrupt until the host permits it.

use super::note::WriteKind;
use host_interface::OperatingMode;
use host_interface::gencom::Gencom;
use tigon2_chip::Register;
use tigon2_chip::bits::{MiscHostControl, MiscLocalControl};
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::Bus;

/// The kinds of transfers that an interrupt follows in an operating mode, as bits.
const fn wanted(mode: OperatingMode) -> u32 {
    const fn bit(kind: WriteKind, masked: bool) -> u32 {
        if masked { 0 } else { 1 << kind as u32 }
    }
    let receive = mode.no_receive_interrupts();
    bit(WriteKind::SendIndex, mode.no_transmit_interrupts())
        | bit(WriteKind::ReturnIndex, receive)
        | bit(WriteKind::QueueStatus, receive)
        | bit(WriteKind::EventIndex, mode.no_event_interrupts())
}

/// Which interrupts the host wants, and which are deferred.
#[derive(Debug)]
pub struct Interrupt {
    /// A bit for each kind of transfer that an interrupt follows. One word for all of them: a
    /// match of the kinds would be a jump table in SRAM.
    wanted: u32,
    deferred: bool,
    raised: u32,
    avoided: u32,
}

impl Interrupt {
    /// All wanted, none deferred.
    pub const fn new() -> Interrupt {
        Interrupt {
            wanted: wanted(OperatingMode::new()),
            deferred: false,
            raised: 0,
            avoided: 0,
        }
    }

    /// Takes the interrupts that the operating mode requests.
    pub const fn configure(&mut self, mode: OperatingMode) {
        self.wanted = wanted(mode);
    }

    /// Whether an interrupt follows a transfer of this kind.
    #[inline(always)]
    pub const fn follows(&self, kind: WriteKind) -> bool {
        self.wanted >> kind as u32 & 1 != 0
    }

    /// Whether an interrupt is deferred.
    #[inline(always)]
    pub const fn is_deferred(&self) -> bool {
        self.deferred
    }

    /// The numbers of interrupts raised and suppressed.
    pub const fn counts(&self) -> (u32, u32) {
        (self.raised, self.avoided)
    }

    /// Resets the counts.
    pub const fn clear_counts(&mut self) {
        self.raised = 0;
        self.avoided = 0;
    }

    /// Raises an interrupt if the host can take it now, else defers it.
    #[inline(always)]
    pub fn raise<B: Bus>(&mut self, bus: &mut B) {
        if self.avoids(bus) {
            return self.avoided();
        }
        self.raise_now(bus);
    }

    /// Defers an interrupt if the host cannot take it now. Returns whether that is so, or there is
    /// one.
    #[inline(always)]
    pub fn avoids<B: Bus>(&mut self, bus: &mut B) -> bool {
        let in_handler = bus.load(Mailbox::HostInterrupt.nic_address()) != 0;
        self.deferred = in_handler || bus.load(Gencom::MaskInterrupts.nic_address()) != 0;
        let pending = MiscHostControl::new()
            .with_interrupt_pending(true)
            .into_bits();
        self.deferred || bus.read(Register::MiscHostControl) & pending != 0
    }

    /// Counts an interrupt that is not raised.
    #[inline(always)]
    pub const fn avoided(&mut self) {
        self.avoided = self.avoided.wrapping_add(1);
    }

    /// Raises an interrupt that is not [avoided](Self::avoids).
    #[inline(always)]
    pub fn raise_now<B: Bus>(&mut self, bus: &mut B) {
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
