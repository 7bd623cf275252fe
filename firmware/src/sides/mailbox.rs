//! Mailboxes: the host's doorbells.
//!
//! Hardware reference, section 8. The bit is cleared before the word is read: a write of
//! the host in between sets the bit again, so no update is lost; at worst a value is seen
//! twice.

use super::{SideA, command};
use crate::io::buffer_ring::RingId;
use crate::path::receive;
use tigon2_chip::Register;
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::events::Dispatch;

/// The mailboxes of the receive rings' producers.
const RECEIVE: u32 =
    Mailbox::StandardProducer.mask() | Mailbox::JumboProducer.mask() | Mailbox::MiniProducer.mask();

/// Mailbox.
#[inline(always)]
pub fn handle<B: Dispatch>(a: &mut SideA<B>) {
    let bus = &mut a.io.bus;
    let pending = bus.read(Register::MailboxEventA);
    bus.write(Register::MailboxEventA, pending);
    if pending & Mailbox::SendProducer.mask() != 0 {
        // CPU B reads the word itself.
        a.io.ring_b();
    }
    if pending & RECEIVE != 0 {
        receive_producers(a, pending);
    }
    if pending & Mailbox::HostInterrupt.mask() != 0 {
        a.io.raise_deferred();
    }
    if pending & Mailbox::CommandProducer.mask() != 0 {
        command::run(a);
    }
}

#[inline(always)]
fn receive_producers<B: Dispatch>(a: &mut SideA<B>, pending: u32) {
    for (mailbox, id) in [
        (Mailbox::StandardProducer, RingId::Standard),
        (Mailbox::MiniProducer, RingId::Mini),
        (Mailbox::JumboProducer, RingId::Jumbo),
    ] {
        if pending & mailbox.mask() != 0 {
            let producer = a.io.bus.load(mailbox.nic_address());
            receive::host_produced(&mut a.receive, &mut a.io, id, producer);
        }
    }
}
