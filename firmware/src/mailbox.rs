//! Mailboxes: the host's doorbells.
//!
//! Hardware reference, section 8. The bit is cleared before the word is read: a write of
//! the host in between sets the bit again, so no update is lost; at worst a value is seen
//! twice.

use crate::receive::rings::Which;
use crate::{Firmware, command, interrupt, receive, send};
use tigon2_chip::Register;
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::Bus;

/// The mailboxes of the receive rings' producers.
const RECEIVE: u32 =
    Mailbox::StandardProducer.mask() | Mailbox::JumboProducer.mask() | Mailbox::MiniProducer.mask();

/// Mailbox.
#[inline(always)]
pub fn handle<B: Bus>(firmware: &mut Firmware<B>) {
    let bus = &mut firmware.bus;
    let pending = bus.read(Register::MailboxEventA);
    bus.write(Register::MailboxEventA, pending);
    if pending & Mailbox::SendProducer.mask() != 0 {
        let producer = bus.load(Mailbox::SendProducer.nic_address());
        send::host_produced(firmware, producer);
    }
    if pending & RECEIVE != 0 {
        receive_producers(firmware, pending);
    }
    if pending & Mailbox::HostInterrupt.mask() != 0 {
        interrupt::make_up(firmware);
    }
    if pending & Mailbox::CommandProducer.mask() != 0 {
        command::run(firmware);
    }
}

#[inline(always)]
fn receive_producers<B: Bus>(firmware: &mut Firmware<B>, pending: u32) {
    for (mailbox, which) in [
        (Mailbox::StandardProducer, Which::Standard),
        (Mailbox::MiniProducer, Which::Mini),
        (Mailbox::JumboProducer, Which::Jumbo),
    ] {
        if pending & mailbox.mask() != 0 {
            let producer = firmware.bus.load(mailbox.nic_address());
            receive::host_produced(firmware, which, producer);
        }
    }
}
