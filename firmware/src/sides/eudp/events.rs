//! CPU A's events that concern endpoints.

use super::completion::{Reporter, report};
use super::datagram::{Datagram, HEADERS};
use super::delivery::CHOICE;
use super::receiver::Receiver;
use super::{EudpA, arrival, command, fragment, vlan, wait_for_writes};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::memory::overlay;
use crate::path::receive::queues::Queues;
use crate::path::receive::{Receive, frame, guarded};
use crate::sides::spine::{self, Spine};
use arrival::End;
use fragment::Outcome;
use frame_pipeline::rdma;
use host_interface::eudp::Refusal;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Receive complete: some frames.
#[inline(always)]
pub fn complete<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    spine: &mut Spine,
    eudp: &mut EudpA,
    io: &mut IoA<B>,
) {
    if !overlay::LEADS
        && let Some((reporter, receiver)) = eudp.parts()
        && (reporter.open != 0 || receiver.is_through())
    {
        return complete_some(receive, reporter, receiver, io);
    }
    spine::complete(receive, queues, spine, io);
}

/// The same while endpoints are open or extensions loaded: where CPU A's jump table leads then.
#[inline(always)]
pub fn complete_beside<B: Dispatch>(
    receive: &mut Receive,
    spine: &mut Spine,
    eudp: &mut EudpA,
    io: &mut IoA<B>,
) {
    if let Some((reporter, receiver)) = eudp.parts() {
        return complete_some(receive, reporter, receiver, io);
    }
    spine::complete_beside(receive, spine, io);
}

/// The same with endpoints.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
fn complete_some<B: Dispatch>(
    receive: &mut Receive,
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
) {
    let base = receive.base();
    for _ in 0..frame::FRAMES {
        let Some(arrived) = guarded::oldest(receive, io) else {
            break;
        };
        if receiver.is_through() {
            match arrival::ended(receiver, reporter, io, &arrived) {
                End::Waits => break,
                End::Taken => {
                    guarded::let_go(receive, io, arrived);
                    continue;
                }
                End::Passed => {}
            }
        }
        let start = arrived.start;
        let busy = receiver.is_busy() || !io.has_write_room(CHOICE);
        if receiver.looked_at != start {
            let bytes = arrived.length.wrapping_sub(frame::CRC);
            let next = if busy {
                &mut receiver.next
            } else {
                &mut receiver.work.datagram
            };
            if !guarded::is_own(io, &arrived, HEADERS)
                || !next.take(reporter, &mut io.bus, start, bytes, base)
            {
                receiver.looked_at = 0;
                match fragment::arrived(receiver, reporter, io, &arrived, (base, 0)) {
                    Outcome::Passed => return host_some(receive, reporter, receiver, io),
                    Outcome::Waits => break,
                    Outcome::Taken => {
                        guarded::let_go(receive, io, arrived);
                        if receiver.is_busy() {
                            // Another fragment is not looked at before it can be taken.
                            wait_for_writes(io);
                            break;
                        }
                        continue;
                    }
                }
            }
            if busy {
                receiver.looked_at = start;
            }
        } else if !busy {
            receiver.looked_at = 0;
            receiver.work.datagram.copy(&receiver.next);
        }
        if busy {
            wait_for_writes(io);
            break;
        }
        if !reporter.has_next(io, receiver.work.datagram.endpoint) {
            // CPU B calls again.
            io.bus.clear(EventBit::ReceiveComplete);
            break;
        }
        receiver.take(reporter, io, start, base);
        guarded::let_go(receive, io, arrived);
    }
    guarded::finish_own(receive, io);
}

/// Frames of the host's and fragments for endpoints, until one is an endpoint's datagram. That one
/// stays the oldest, and the event set.
#[inline(never)]
fn host_some<B: Dispatch>(
    receive: &mut Receive,
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
) {
    let base = receive.base();
    let mut datagram = Datagram::NONE;
    for number in 0..frame::FRAMES {
        let Some(arrived) = guarded::oldest(receive, io) else {
            break;
        };
        match of_endpoint(receiver, reporter, io, &arrived, base) {
            Outcome::Passed => {}
            Outcome::Waits => break,
            Outcome::Taken => {
                guarded::let_go(receive, io, arrived);
                continue;
            }
        }
        arrival::passed(receiver, reporter, io);
        let bytes = arrived.length.wrapping_sub(frame::CRC);
        // The first one was looked at.
        let wanted = number != 0
            && guarded::is_own(io, &arrived, HEADERS)
            && datagram.take_round(reporter, &mut io.bus, arrived.start, bytes, base);
        if wanted || !guarded::pass_on(receive, io) {
            break;
        }
    }
    guarded::finish(receive, io);
}

/// Sees to the oldest frame if it is a fragment or has a VLAN tag, and is for an endpoint. A frame
/// with a tag is no fragment where these are looked for.
#[inline(always)]
fn of_endpoint<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    base: u32,
) -> Outcome {
    match fragment::arrived(receiver, reporter, io, frame, (base, 0)) {
        Outcome::Passed => vlan::arrived(receiver, reporter, io, frame, base),
        outcome => outcome,
    }
}

impl Receiver {
    /// The host's memory cannot be written.
    #[inline(never)]
    pub fn failed<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        self.work.refused = Some(Refusal::BadRegion);
        if self.work.part.any() {
            self.part_failed(reporter, io);
        } else {
            self.step(rdma::Event::Failed, reporter, io);
        }
        io.bus.set(EventBit::ReceiveComplete);
    }
}

/// DMA write attention: the transfer at `descriptor` of a datagram has failed. The others of it mean
/// nothing any more.
#[inline(never)]
pub fn failed<B: Dispatch>(eudp: &mut EudpA, io: &mut IoA<B>, descriptor: u32) {
    let mut next = Some(descriptor);
    while let Some(descriptor) = next {
        let note = WriteNote::of_word(io.write_ring.note(descriptor));
        if note.is_of_datagram() {
            io.write_ring.set_note(descriptor, WriteNote::QUIET.word());
        }
        if note.is_datagram() {
            io.has_ended();
        }
        next = io.write_ring.behind(descriptor);
    }
    if let Some((reporter, receiver)) = eudp.parts() {
        receiver.failed(reporter, io);
    }
}

/// Doorbell A: descriptors are done, or CPU B knows of an endpoint.
#[inline(always)]
pub fn called<B: Dispatch>(eudp: &mut EudpA, io: &mut IoA<B>) {
    let Some((reporter, receiver)) = eudp.parts() else {
        return;
    };
    if reporter.open != 0 {
        report(reporter, io);
    }
    if reporter.asked != 0 {
        reporter.supplied(io);
    }
    if reporter.command != 0 {
        command::answer(reporter, receiver, io);
    }
}

/// DMA Write Complete: what it has found, and what waits for a write descriptor.
#[inline(always)]
pub fn written<B: Dispatch>(receive: &mut Receive, eudp: &mut EudpA, io: &mut IoA<B>) {
    if let Some((reporter, receiver)) = eudp.parts()
        && reporter.open | reporter.command != 0
    {
        written_some(receive, reporter, receiver, io);
    }
}

#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
fn written_some<B: Dispatch>(
    receive: &mut Receive,
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
) {
    if let Some(sum) = io.take_datagram() {
        if receiver.work.part.any() {
            receiver.part_written(reporter, io, sum);
        } else {
            receiver.written(reporter, io, sum);
        }
    }
    receiver.report(reporter, io);
    // A frame may have waited for a write descriptor.
    io.bus.set(EventBit::ReceiveComplete);
    report(reporter, io);
    if receiver.has_next() {
        // The next frame was only waiting for this one.
        complete_some(receive, reporter, receiver, io);
    }
}
