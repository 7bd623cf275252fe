//! Mailboxes: the host's doorbells.
//!
//! Hardware reference, section 8. The handler clears the bit before it reads the word: if the host
//! writes in between, the bit is set again. No update is lost; at worst the handler sees a value
//! twice.

use super::{SideA, command, eudp, spine};
use crate::io::buffer_ring::RingId;
use crate::io::loadable;
use crate::memory::layout::{EUDP, QUEUES, SPINE};
use crate::path::receive::{self, queues};
use host_interface::eudp::MAILBOX as MAILBOX_OF_DATAGRAMS;
use host_interface::queue::QUEUES_MAX;
use host_interface::queue::block::{BUFFER_MAILBOX, REARM_MAILBOX};
use host_interface::spine::{MAILBOX, peer};
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

/// The mailboxes that frames and interrupts of classic mode use.
const OFTEN: u32 = RECEIVE | Mailbox::SendProducer.mask() | Mailbox::HostInterrupt.mask();

/// The mailboxes of E-UDP's endpoints, in firmware that has them.
const OF_DATAGRAMS: u32 = u32::MAX << MAILBOX_OF_DATAGRAMS;

/// The mailboxes that are looked at one by one only if one of them has been written.
const SELDOM: u32 = !(OFTEN
    | if SPINE == 0 {
        0
    } else {
        spine::fetch::OF_ENDPOINTS | OF_PEER
    }
    | if EUDP == 0 { 0 } else { OF_DATAGRAMS });

/// The mailbox of the other card on the bus, in firmware that has one.
const OF_PEER: u32 = 1 << peer::MAILBOX;

/// Mailbox.
#[inline(always)]
pub fn handle<B: Dispatch>(a: &mut SideA<B>) {
    let bus = &mut a.io.bus;
    let pending = bus.read(Register::MailboxEventA);
    bus.write(Register::MailboxEventA, pending);
    if SPINE != 0 && pending & OF_PEER != 0 {
        // First: a frame waits for CPU B.
        spine::peer::rung(&mut a.spine, &mut a.io);
    }
    if pending & Mailbox::SendProducer.mask() != 0 {
        // CPU B reads the word itself.
        a.io.ring_b();
    }
    if pending & RECEIVE != 0 {
        receive_producer(a, pending, Mailbox::StandardProducer, RingId::Standard);
        receive_producer(a, pending, Mailbox::MiniProducer, RingId::Mini);
        receive_producer(a, pending, Mailbox::JumboProducer, RingId::Jumbo);
    }
    if EUDP != 0 && eudp::supply::is_concerned(&mut a.eudp, pending) {
        eudp::command::rung(&mut a.eudp, &mut a.io, pending);
    }
    if pending & Mailbox::HostInterrupt.mask() != 0 {
        a.io.raise_deferred();
    }
    if pending & SELDOM != 0 {
        others(a, pending);
    }
}

/// The other mailboxes, behind one test: those of queues, commands and loaded handlers.
#[inline(never)]
fn others<B: Dispatch>(a: &mut SideA<B>, pending: u32) {
    if SPINE != 0 && pending & 1 << MAILBOX != 0 {
        spine::load::command(&mut a.spine, &mut a.io);
    }
    if QUEUES != 0 && pending & OF_QUEUES != 0 {
        let (produced, rearmed) = (pending >> BUFFER_MAILBOX, pending >> REARM_MAILBOX);
        queues::mailboxes(&mut a.queues, &mut a.io, produced, rearmed);
    }
    if pending & Mailbox::CommandProducer.mask() != 0 {
        command::run(a);
    }
    loadable::rung(&mut a.io.bus, pending);
}

/// Takes the producer of one ring if the host has written it.
#[inline(always)]
fn receive_producer<B: Dispatch>(a: &mut SideA<B>, pending: u32, mailbox: Mailbox, id: RingId) {
    if pending & mailbox.mask() != 0 {
        let producer = a.io.bus.load(mailbox.nic_address());
        receive::host_produced(&mut a.receive, &mut a.io, id, producer);
    }
}
