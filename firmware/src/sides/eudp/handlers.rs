//! CPU B's handlers while endpoints are open, and how it comes to them.
//!
//! ```text
//!   host's code  ── doorbell, an endpoint is open ──►  endpoints' code
//!   in the pad   ◄── doorbell, the last one is gone ──    in the pad
//! ```
//!
//! The entries are in [`events`](crate::events); the handlers that join endpoints with the host's
//! own frames are in [`endpoints`](crate::sides::endpoints).

use super::EudpB;
use super::sender::Sender;
use crate::io::IoB;
use crate::io::buffer_ring::RingId;
use crate::memory::layout::EUDP;
use crate::memory::overlay::{self, OverlayB};
use crate::memory::shared::EUDP_OPEN;
use crate::path::buffer_fetch::{self, BufferFetch};
use crate::path::send::SendPath;
use crate::sides::SideB;
use tigon2_chip::Register;
use tigon2_chip::events::EventBit;
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

/// Mailbox: an endpoint has descriptors. CPU A rings for what the host's own mailboxes say.
#[inline(always)]
pub fn mailbox<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>) {
    let pending = io.bus.read(Register::MailboxEventB);
    io.bus.write(Register::MailboxEventB, pending);
    if let Some(sender) = eudp.sender() {
        sender.rung(pending, send, io);
    }
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

/// DMA read attention: recovery may take longer than the frame that is watched has left, so the wire
/// stands meanwhile.
#[inline(never)]
pub fn stop<B: Dispatch>(eudp: &EudpB, send: &mut SendPath, io: &mut IoB<B>) {
    if is_watching(eudp) {
        send.reset(&mut io.bus, true);
    }
}

/// The end of it: SEND hears that its frame was cut off, if it has not yet.
#[inline(never)]
pub fn stopped<B: Dispatch>(eudp: &mut EudpB, send: &mut SendPath, io: &mut IoB<B>) {
    if let Some(sender) = eudp.sender() {
        sender.stopped(send, io);
    }
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
