//! Mailboxes: the host's doorbells.
//!
//! Hardware reference, section 8. The bit is cleared before the word is read: a write of
//! the host in between sets the bit again, so no update is lost; at worst a value is seen
//! twice.

use super::{SideA, command};
use crate::io::buffer_ring::RingId;
use crate::memory::layout::QUEUES;
use crate::path::receive::{self, queues};
use host_interface::queue::QUEUES_MAX;
use host_interface::queue::block::{BUFFER_MAILBOX, REARM_MAILBOX};
use tigon2_chip::Register;
use tigon2_chip::mailbox::Mailbox;
use tigon2_hal::events::Dispatch;

/// The mailboxes of the receive rings' producers.
const RECEIVE: u32 =
    Mailbox::StandardProducer.mask() | Mailbox::JumboProducer.mask() | Mailbox::MiniProducer.mask();

/// The mailboxes of the receive queues.
const OF_QUEUES: u32 = {
    let each = (1 << QUEUES_MAX) - 1;
    each << BUFFER_MAILBOX | each << REARM_MAILBOX
};

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
    if QUEUES != 0 && pending & OF_QUEUES != 0 {
        let (produced, rearmed) = (pending >> BUFFER_MAILBOX, pending >> REARM_MAILBOX);
        queues::mailboxes(&mut a.queues, &mut a.io, produced, rearmed);
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
