//! CPU B's handlers that join endpoints with the host's own frames, while endpoints are open:
//! doorbell, finished reads, timer. The others are in [`eudp::handlers`](super::eudp::handlers).

use super::eudp::handlers::is_watching;
use super::eudp::sender::Sender;
use super::{SideB, completion, cross_call, timer};
use crate::io::IoB;
use crate::io::deadline::SlotB;
use crate::io::note::ReadNote;
use crate::memory::overlay::{self, OverlayB};
use crate::path::{buffer_fetch, send};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::{Finished, Walk};
use tigon2_hal::events::Dispatch;

/// Doorbell B: an endpoint was opened or closed, the host's producers moved, or CPU A makes a cross
/// call.
#[inline(always)]
pub fn doorbell<B: Dispatch>(b: &mut SideB<B>) {
    b.io.bus.answer(Cpu::B);
    // All of this takes longer than a frame's deadline may wait.
    if b.eudp.sender().is_some_and(Sender::puts_off) {
        return;
    }
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

/// Send Data Ready: the host's frames have the path if no endpoint has any. It stays lent behind an
/// endpoint's last frame, as lending it takes time.
#[inline(always)]
pub fn data_ready<B: Dispatch>(b: &mut SideB<B>) {
    if b.send.is_lent() && b.eudp.sender().is_some_and(|sender| sender.rests()) {
        b.send.take_back(&mut b.io);
    }
    send::data_ready(&mut b.send, &mut b.io);
    if let Some(sender) = b.eudp.sender() {
        sender.begin_turn(&b.send, &mut b.io);
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
            others |= see(b, done, &mut walk);
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
    if !is_watching(&b.eudp) {
        let_others(&mut b.io);
    }
}

/// Leaves other reads until all events of a lower priority have had their turn, if there are any:
/// while a process posts without a pause, its descriptors come as fast as they are sent. Send Data
/// Ready, the last one, has reads again.
#[inline(always)]
fn let_others<B: Dispatch>(io: &mut IoB<B>) {
    let event = EventBit::DmaReadComplete;
    if io.bus.others(Cpu::B, event) & (event.mask() - 1) != 0 {
        io.bus.clear(event);
        io.bus.set(EventBit::SendDataReady);
    }
}

/// A transfer is done. Returns whether it was not an endpoint's.
#[inline(always)]
fn see<B: Dispatch>(b: &mut SideB<B>, done: Finished, walk: &mut Walk) -> bool {
    if !ReadNote::of_word(done.note).is_part() {
        return completion::read_slowly(b, done);
    }
    if let Some(sender) = b.eudp.sender() {
        sender.arrived(&mut b.send, &mut b.io, done, walk);
    }
    false
}

/// Something of the host's has arrived.
#[inline(never)]
fn host_complete<B: Dispatch>(b: &mut SideB<B>) {
    if let Some(sender) = b.eudp.sender() {
        sender.go_on(&mut b.send, &mut b.io);
    }
}

/// The timer: the wire may have come to a part that is missing, or there may be room again.
#[inline(always)]
pub fn deadline<B: Dispatch>(b: &mut SideB<B>) {
    due(b);
    timer::send_deadlines(b);
    // The timer's next event comes two microseconds later at the least: a part's time may be over
    // before that.
    due(b);
}

#[inline(never)]
fn due<B: Dispatch>(b: &mut SideB<B>) {
    if let Some(sender) = b.eudp.sender() {
        sender.due(&mut b.send, &mut b.io);
    }
}
