//! CPU A's events that concern endpoints.

use super::completion::{Reporter, report};
use super::datagram::Datagram;
use super::delivery::FREES;
use super::headers::HEADERS;
use super::receiver::{Receiver, Taken};
use super::{EudpA, arrival, command, fast_path, fragment, vlan, wait_for_writes};
use crate::io::note::WriteNote;
use crate::io::{Failed, IoA};
use crate::memory::overlay;
use crate::path::receive::queues::Queues;
use crate::path::receive::{Receive, frame, guarded};
use crate::sides::spine::{self, Spine};
use arrival::End;
use fragment::Outcome;
use frame_pipeline::{rdma, recv};
use host_interface::eudp::{CompletionWord, Kind, Status};
use tigon2_chip::dma::DmaDescriptorAt;
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::Finished;
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

/// Follow Frame: looks at what arrives. Most often that is nothing, or nothing of interest. All that it
/// does often is in CPU A's pad, so that CPU B has the SRAM for itself.
#[inline(always)]
pub fn follow<B: Dispatch>(receive: &mut Receive, eudp: &mut EudpA, io: &mut IoA<B>) {
    let Some((reporter, receiver)) = eudp.parts() else {
        return;
    };
    if !receiver.recv.is_in(recv::State::Idle) {
        return arrival::glance(receive, reporter, receiver, io);
    }
    if arrival::look(receive, reporter, receiver, io) {
        // Sooner than by its event.
        complete_some(receive, reporter, receiver, io);
    }
}

/// Receive complete with endpoints.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
#[inline(never)]
fn complete_some<B: Dispatch>(
    receive: &mut Receive,
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
) {
    let base = receive.base();
    let mut waits = false;
    'frames: for _ in 0..frame::FRAMES {
        let full = receiver.is_full(io);
        if full && !receiver.is_through() {
            waits = true;
            break;
        }
        let Some(arrived) = guarded::oldest(receive, io) else {
            break;
        };
        'taken: {
            if full {
                match arrival::ended(receiver, reporter, io, &arrived) {
                    End::Waits => break 'frames,
                    End::Taken => break 'taken,
                    End::Passed => continue 'frames,
                }
            }
            if !guarded::is_own(io, &arrived, HEADERS) {
                return host_some(receive, reporter, receiver, io);
            }
            let start = arrived.start;
            let datagram = &mut receiver.work.flights.next().datagram;
            let bytes = arrived.length.wrapping_sub(frame::CRC);
            let Some(endpoint) = datagram.take(reporter, &mut io.bus, start, bytes, base) else {
                let outcome = if receiver.take_in_order(reporter, io, &arrived) {
                    Outcome::Queued
                } else {
                    fragment::arrived(receiver, reporter, io, &arrived, (base, 0))
                };
                match outcome {
                    Outcome::Passed => return host_some(receive, reporter, receiver, io),
                    Outcome::Waits => break 'frames,
                    Outcome::Taken => break 'taken,
                    Outcome::Queued => {
                        guarded::let_go_with_data(receive, io);
                        continue 'frames;
                    }
                }
            };
            if !reporter.has_next(io, endpoint) {
                // CPU B calls again.
                io.bus.clear(EventBit::ReceiveComplete);
                break 'frames;
            }
            match fast_path::take(receiver, reporter, io, endpoint, (start, base)) {
                Taken::Queued => {
                    guarded::let_go_with_data(receive, io);
                    continue 'frames;
                }
                Taken::Alone => {}
                Taken::No => {
                    waits = true;
                    break 'frames;
                }
            }
        }
        guarded::let_go(receive, io, arrived);
    }
    if waits {
        receiver.waits = true;
        wait_for_writes(io);
    }
    guarded::finish_own(receive, io);
    receiver.look_on(reporter, io);
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
            Outcome::Queued => {
                guarded::let_go_with_data(receive, io);
                continue;
            }
        }
        arrival::passed(receiver, reporter, io);
        let bytes = arrived.length.wrapping_sub(frame::CRC);
        // The first one was looked at.
        let wanted = number != 0
            && guarded::is_own(io, &arrived, HEADERS)
            && datagram
                .take_round(reporter, &mut io.bus, arrived.start, bytes, base)
                .is_some();
        if wanted || !guarded::pass_on(receive, io) {
            break;
        }
    }
    guarded::finish(receive, io);
    receiver.look_on(reporter, io);
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
        match self.work.flights.oldest().part() {
            Some(part) => self.part_failed(part, reporter, io),
            None => self.step(rdma::Event::Failed, reporter, io),
        }
    }
}

/// DMA write attention: the transfer at `failed` of a datagram has failed. The others of it mean
/// nothing any more. RDMA hears of it behind what was written before, when DMA Write Complete is due.
#[inline(never)]
pub fn failed<B: Dispatch>(io: &mut IoA<B>, failed: u32) {
    let mut next = io.write_ring.oldest();
    let mut is_written = true;
    while let Some(descriptor) = next {
        next = io.write_ring.behind(descriptor);
        is_written &= descriptor != failed;
        let note = WriteNote::of_word(io.write_ring.note(descriptor));
        if !note.is_of_datagram() {
            continue;
        }
        if !is_written || note.is_datagram() {
            io.write_ring.set_note(descriptor, WriteNote::QUIET.word());
        }
        if !note.is_datagram() {
            continue;
        }
        io.has_ended();
        if is_written {
            let note = note.word();
            let sum = Finished { note, descriptor }.sum(&mut io.bus);
            io.note_datagram(sum);
            continue;
        }
        io.note_failed_datagram();
        free_room(io, descriptor);
        spoil_completion(io, descriptor);
        break;
    }
    io.await_writes();
}

/// The last transfer of a datagram, or one in front of it, has failed: its completion says so, if it
/// is queued behind.
fn spoil_completion<B: Dispatch>(io: &mut IoA<B>, last: u32) {
    if let Some(behind) = io.write_ring.behind(last)
        && WriteNote::of_word(io.write_ring.note(behind)).is_completion()
    {
        let entry = io.bus.load(DmaDescriptorAt(behind).local());
        let kind_and_status = (Kind::Received as u32) << 16 | Status::Unwritable as u32;
        io.bus.store(
            entry + CompletionWord::KindAndStatus as u32,
            kind_and_status,
        );
        io.bus.store(entry + CompletionWord::Length as u32, 0);
    }
}

/// Frees the room of a frame whose transfer at `descriptor` was to do that, unless one behind it does.
fn free_room<B: Dispatch>(io: &mut IoA<B>, descriptor: u32) {
    let at = DmaDescriptorAt(descriptor);
    let end = io.bus.load(at.local()) + (io.bus.load(at.length()) & 0xFFFF);
    let mut next = Some(descriptor);
    let mut freeing = 0;
    while let Some(descriptor) = next {
        freeing += u32::from(io.bus.load(DmaDescriptorAt(descriptor).state()) & FREES != 0);
        next = io.write_ring.behind(descriptor);
    }
    if freeing == 1 && io.bus.load(at.state()) & FREES != 0 {
        io.free_later(end);
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
    loop {
        if receiver.work.is_unreported {
            receiver.work.report(reporter, io);
            if receiver.work.is_unreported {
                break;
            }
        }
        match io.take_datagram() {
            None => break,
            Some(Err(Failed)) => receiver.failed(reporter, io),
            Some(Ok(sum)) => match receiver.work.flights.oldest().part() {
                Some(part) => receiver.part_written(part, reporter, io, sum),
                None => fast_path::written(receiver, reporter, io, sum),
            },
        }
    }
    // A frame may have waited for a write descriptor.
    io.bus.set(EventBit::ReceiveComplete);
    receiver.look_on(reporter, io);
    report(reporter, io);
    if core::mem::take(&mut receiver.waits) {
        // The next frame was only waiting for this one.
        complete_some(receive, reporter, receiver, io);
    }
}
