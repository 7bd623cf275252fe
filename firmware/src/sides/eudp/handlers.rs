//! CPU B's handlers while endpoints are open, and how it comes to them.
//!
//! ```text
//!   host's code  ── doorbell, an endpoint is open ──►  endpoints' code
//!   in the pad   ◄── doorbell, the last one is gone ──    in the pad
//! ```
//!
//! The entries are in [`events`](crate::events).

use super::EudpB;
use super::sender::Sender;
use crate::io::IoB;
use crate::io::buffer_ring::RingId;
use crate::io::deadline::SlotB;
use crate::io::note::ReadNote;
use crate::memory::layout::EUDP;
use crate::memory::overlay::{self, OverlayB};
use crate::memory::shared::EUDP_OPEN;
use crate::path::buffer_fetch::{self, BufferFetch};
use crate::path::send;
use crate::path::send::SendPath;
use crate::sides::{SideB, completion, cross_call, timer};
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::assist::Finished;
use tigon2_hal::events::Dispatch;

/// Doorbell B, in the host's code: the first endpoint is open.
#[inline(always)]
pub fn begin<B: Dispatch>(b: &mut SideB<B>) {
    if EUDP != 0 && EUDP_OPEN.get(&mut b.io.bus) != 0 {
        enter(b);
    }
}

#[inline(never)]
fn enter<B: Dispatch>(b: &mut SideB<B>) {
    if let Some(sender) = b.eudp.sender() {
        sender.follow(&mut b.send, &mut b.io);
        b.io.bus.set(EventBit::Mailbox);
        overlay::place_b(OverlayB::Endpoints);
    }
}

/// Doorbell B: an endpoint was opened or closed, the host's producers moved, or CPU A makes a cross
/// call.
#[inline(always)]
pub fn doorbell<B: Dispatch>(b: &mut SideB<B>) {
    b.io.bus.answer(Cpu::B);
    send::host_produced(&mut b.send, &mut b.io);
    buffer_fetch::host_produced(&mut b.buffer_fetch, &mut b.io);
    cross_call::answer(b);
    let Some(sender) = b.eudp.sender() else {
        return;
    };
    sender.called(&mut b.send, &mut b.io);
    if sender.is_closed() {
        b.io.bus.clear(EventBit::Mailbox);
        // The host's code has no use for them.
        b.io.disarm(SlotB::Watch);
        b.io.disarm(SlotB::Part);
        overlay::place_b(OverlayB::Host);
    }
}

/// Mailbox: an endpoint has descriptors. CPU A rings for what the host's own mailboxes say.
#[inline(always)]
pub fn mailbox<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>) {
    let pending = io.bus.read(Register::MailboxEventB);
    io.bus.write(Register::MailboxEventB, pending);
    if let Some(sender) = eudp.sender() {
        sender.rung(pending, send, io);
    }
}

/// DMA Read Complete.
#[inline(always)]
pub fn read_complete<B: Dispatch>(b: &mut SideB<B>) {
    let mut others = false;
    loop {
        let mut walk = b.io.read_ring.finished(&mut b.io.bus);
        if let Some(sender) = b.eudp.sender() {
            sender.looked(&mut b.io);
        }
        while let Some(done) = b.io.read_ring.take(&mut walk) {
            others |= see(b, done);
        }
        b.io.read_ring.acknowledge(&mut b.io.bus, walk);
        // The next part of a frame that is watched has a deadline.
        if !is_watching(&b.eudp) {
            break;
        }
        if b.io.read_ring.finished(&mut b.io.bus).is_empty() {
            if let Some(sender) = b.eudp.sender() {
                sender.set_deadline(&mut b.send, &mut b.io);
            }
            break;
        }
    }
    if others {
        host_complete(b);
    }
}

/// A transfer is done. Returns whether it was not an endpoint's.
#[inline(always)]
fn see<B: Dispatch>(b: &mut SideB<B>, done: Finished) -> bool {
    let is_part = ReadNote::of_word(done.note).is_part();
    if !is_part {
        completion::read_slowly(b, done);
    } else if let Some(sender) = b.eudp.sender() {
        sender.arrived(&mut b.send, &mut b.io, &done);
    }
    !is_part
}

/// Something of the host's has arrived.
#[inline(never)]
fn host_complete<B: Dispatch>(b: &mut SideB<B>) {
    send::data_first(&b.send, &mut b.io);
    if let Some(sender) = b.eudp.sender() {
        sender.go_on(&mut b.send, &mut b.io);
    }
}

/// The timer: the wire may have come to a part that is missing, or there may be room again.
#[inline(always)]
pub fn timer<B: Dispatch>(b: &mut SideB<B>) {
    if let Some(sender) = b.eudp.sender() {
        sender.due(&mut b.send, &mut b.io);
    }
    timer::send_deadlines(b);
}

/// Fetches BDs of a ring of the host's.
pub fn standard_bds<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    buffer_fetch::fetch_slowly(fetch, io, RingId::Standard);
}

/// See [`standard_bds`].
pub fn mini_bds<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    buffer_fetch::fetch_slowly(fetch, io, RingId::Mini);
}

/// See [`standard_bds`].
pub fn jumbo_bds<B: Dispatch>(fetch: &mut BufferFetch, io: &mut IoB<B>) {
    buffer_fetch::fetch_slowly(fetch, io, RingId::Jumbo);
}

/// Whether a frame leaves that has to be watched: handlers that take long wait.
#[inline(always)]
pub fn is_watching(eudp: &EudpB) -> bool {
    eudp.0.first().is_some_and(Sender::is_watching)
}

/// DMA read attention: a transfer of a frame, the one at `descriptor`, has failed.
#[inline(never)]
pub fn failed<B: Dispatch>(
    eudp: &mut EudpB,
    send: &mut SendPath,
    io: &mut IoB<B>,
    descriptor: u32,
) {
    if let Some(sender) = eudp.sender() {
        sender.failed(send, io, descriptor);
    }
}
