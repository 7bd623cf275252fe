//! Commands of the host: open, close.
//!
//! [`host_interface::eudp`]. CPU A takes them, CPU B follows, and the answer comes when both know.

use super::arrival;
use super::completion::{Completions, Reporter};
use super::receiver::Receiver;
use super::recorded;
use super::{EudpA, each, mailbox_word, word};
use super::{assembly, expiry};
use crate::io::IoA;
use crate::memory::layout::EUDP_BLOCK;
use crate::memory::overlay;
use crate::memory::shared::{EUDP_KNOWN, EUDP_OPEN};
use host_interface::eudp::{
    self, BLOCK_BYTES, BlockWord, COMMAND_MAILBOX, Command, DESCRIPTORS_MAX, DescriptorWord,
    ENDPOINTS, EndpointWord, MAILBOX, Outcome, SLOTS, endpoint_word, receive_slot, send_slot,
};
use host_interface::extension::Extension;
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// The most entries of a completion queue.
const COMPLETIONS_MAX: u32 = 1 << 16;

/// Describes the block to the host, before anything is open.
pub fn describe<B: Bus>(bus: &mut B) {
    for at in (EUDP_BLOCK..EUDP_BLOCK + BLOCK_BYTES).step_by(4) {
        bus.store(at, 0);
    }
    assembly::clear(bus);
    for (at, value) in [
        (BlockWord::Layout, eudp::LAYOUT),
        (BlockWord::Mailbox, COMMAND_MAILBOX),
        (BlockWord::Doorbells, MAILBOX),
    ] {
        bus.store(word(at), value);
    }
    recorded::describe(bus);
    bus.store(Extension::Eudp.nic_address(), EUDP_BLOCK);
}

/// The host has rung mailboxes of endpoints, or that of commands.
#[inline(never)]
pub fn rung<B: Dispatch>(eudp: &mut EudpA, io: &mut IoA<B>, pending: u32) {
    let Some((reporter, receiver)) = eudp.parts() else {
        return;
    };
    if pending >> MAILBOX != 0 {
        // The other half is CPU B's, which has a register of its own.
        reporter.rung(io, pending >> MAILBOX);
    }
    if pending & 1 << COMMAND_MAILBOX != 0 {
        receiver.work.pairs.choose(&mut io.bus);
        take(reporter, io);
    }
}

fn take<B: Dispatch>(reporter: &mut Reporter, io: &mut IoA<B>) {
    let asked = io.bus.load(word(BlockWord::Command));
    if asked == reporter.answered || reporter.command != 0 {
        return;
    }
    let endpoint = io.bus.load(word(BlockWord::Argument));
    reporter.command = asked;
    let done = match Command::from_number(asked & 0xFFFF) {
        None => Err(Outcome::NoCommand),
        Some(_) if endpoint >= ENDPOINTS => Err(Outcome::NoEndpoint),
        Some(Command::Open) => open(reporter, io, endpoint),
        Some(Command::Close) => close(reporter, io, endpoint),
    };
    match done {
        Ok(()) => {
            io.bus.store(word(BlockWord::Result), Outcome::Done as u32);
            reporter.awaited = reporter.open;
            EUDP_OPEN.set(&io.me, &mut io.bus, reporter.open);
            io.ring_b();
        }
        Err(outcome) => {
            io.bus.store(word(BlockWord::Result), outcome as u32);
            finish(reporter, io);
        }
    }
}

fn open<B: Dispatch>(
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    endpoint: u32,
) -> Result<(), Outcome> {
    if reporter.open & 1 << endpoint != 0 {
        return Err(Outcome::WrongState);
    }
    let bus = &mut io.bus;
    let row = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Address);
    let mut of = |word: EndpointWord| bus.load(row + word as u32);
    let queue = Completions {
        base: HostAddress {
            high: of(EndpointWord::CompletionsHigh),
            low: of(EndpointWord::CompletionsLow),
        },
        mask: of(EndpointWord::Completions).wrapping_sub(1),
        address: of(EndpointWord::Address),
        port: of(EndpointWord::Port),
        ..Completions::NONE
    };
    let entries = queue.mask.wrapping_add(1);
    let usable = entries.is_power_of_two() && entries <= COMPLETIONS_MAX;
    if queue.base.is_null() || queue.base.low & 7 != 0 || !usable {
        return Err(Outcome::NoCompletions);
    }
    let descriptors = of(EndpointWord::Descriptors);
    let queues = descriptors == 0
        || descriptors.is_power_of_two() && (SLOTS..=DESCRIPTORS_MAX).contains(&descriptors);
    if !queues || of(EndpointWord::QueuesLow) & 7 != 0 {
        return Err(Outcome::NoQueues);
    }
    let taken = each(reporter.open).any(|other| {
        let other = reporter.queues.get(other as usize);
        other.is_some_and(|other| other.port == queue.port && other.address == queue.address)
    });
    if taken {
        return Err(Outcome::PortTaken);
    }
    bus.store(row + EndpointWord::Sent as u32, 0);
    bus.store(row + EndpointWord::Reported as u32, 0);
    bus.store(row + EndpointWord::Filled as u32, 0);
    // The producers of an endpoint before this one.
    bus.store(mailbox_word(endpoint), 0);
    // What was posted to an endpoint before this one.
    for number in 0..SLOTS {
        for slot in [send_slot(endpoint, number), receive_slot(endpoint, number)] {
            bus.store(EUDP_BLOCK + slot + DescriptorWord::Status as u32, 0);
        }
    }
    if let Some(place) = reporter.queues.get_mut(endpoint as usize) {
        *place = queue;
    }
    if reporter.open == 0 {
        overlay::place_a(overlay::Receiver::Other);
    }
    reporter.open |= 1 << endpoint;
    reporter.enough &= !(1 << endpoint);
    Ok(())
}

fn close<B: Dispatch>(
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    endpoint: u32,
) -> Result<(), Outcome> {
    if reporter.open & 1 << endpoint == 0 {
        return Err(Outcome::WrongState);
    }
    reporter.open &= !(1 << endpoint);
    expiry::close(&mut io.bus, endpoint);
    Ok(())
}

/// Answers a command that CPU B has followed, when what was queued for the host has been written.
///
/// A close that has to wait is looked at again in the next millisecond. CPU A must not ring itself
/// for it: what the close waits for are events of lower priority than a doorbell.
#[cold]
#[inline(never)]
pub fn answer<B: Dispatch>(reporter: &mut Reporter, receiver: &Receiver, io: &mut IoA<B>) {
    if EUDP_KNOWN.get(&mut io.bus) != reporter.awaited {
        return;
    }
    let endpoint = io.bus.load(word(BlockWord::Argument));
    let bit = 1 << (endpoint & 31);
    let is_closed = reporter.open & bit == 0;
    let is_in_work = receiver.works_for(endpoint) || reporter.asked & bit != 0;
    if is_closed && (is_in_work || !io.all_written()) {
        return;
    }
    if reporter.open == 0 {
        arrival::rest(reporter, io);
        overlay::place_a(overlay::Receiver::Classic);
    }
    finish(reporter, io);
}

/// Each millisecond: looks again at a command that waits for its answer, and at datagrams whose
/// fragments do not come.
#[inline(always)]
pub fn look_again<B: Dispatch>(eudp: &mut EudpA, io: &mut IoA<B>) {
    if let Some((reporter, receiver)) = eudp.parts()
        && reporter.command != 0
    {
        answer(reporter, receiver, io);
    }
    expiry::expire(eudp, io);
}

fn finish<B: Dispatch>(reporter: &mut Reporter, io: &mut IoA<B>) {
    reporter.answered = core::mem::take(&mut reporter.command);
    let answer = reporter.answered;
    io.bus.store(word(BlockWord::Answer), answer);
}
