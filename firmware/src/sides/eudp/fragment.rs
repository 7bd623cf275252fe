//! Fragments of datagrams for endpoints: CPU A puts them together in the process's memory.
//!
//! ```text
//!   IP payload   | UDP header | data                               |
//!   fragments    |   first, says the ports   | 2nd  |  3rd  | last, says the length
//!                             v              v      v       v
//!   descriptor                | piece 0          | piece 1 ...     |
//! ```
//!
//! Each is a frame of RECV's and RDMA's: written when it is whole, and summed by the write channel.
//! Its data goes where it belongs at once, and the next fragment is taken meanwhile. The descriptor
//! is completed when all bytes are there and the sum of the fragments is right.
//!
//! Who gets a datagram is known from its first fragment. If another one comes before that, it is
//! placed on trial in the memory of the only endpoint that is *connected* to the source
//! ([`EndpointWord::Connected`]), or else in the [pool](super::pool). If there is neither, all of that
//! datagram's fragments go to the host, whose kernel puts them together.
//!
//! Most fragments do not come here: the [first](super::first) one of a datagram that begins with it, and
//! the one that is [next in line](super::predicted). While endpoints are open CPU A's pad has the code
//! for these. All else is in SRAM, with what a datagram needs once: [`context`].

use super::assembly::{Assembly, Noted};
use super::completion::Reporter;
use super::context;
use super::datagram::REACH;
use super::expiry;
pub use super::fragment_header::Outcome;
use super::fragment_header::{Fragment, MORE, OFFSET, VLAN};
use super::headers::{ETHERNET, IP, UDP};
use super::part::Part;
use super::placement::Place;
use super::pool;
use super::receiver::Receiver;
use super::{bump, wait_for_writes, word};
use crate::io::IoA;
use crate::path::receive::frame::wrapped;
use frame_pipeline::recv;
use host_interface::eudp::{BlockWord, Refusal};
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Sees to the oldest frame if it is a fragment of a datagram for an endpoint. `base` is the receive
/// buffer's; with a VLAN in bits 31:16, `frame` begins where it would without its tag, and is this
/// card's own.
#[inline(always)]
pub fn arrived<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    (base, vlan): (u32, u32),
) -> Outcome {
    let flags = io.bus.load(wrapped(base, frame.start + 20));
    if flags & (MORE | OFFSET) << 16 == 0 {
        return Outcome::Passed;
    }
    arrived_one(receiver, reporter, io, frame, (base, vlan, flags))
}

#[inline(never)]
fn arrived_one<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    place: (u32, u32, u32),
) -> Outcome {
    if frame.start > PACKET_MEMORY_END - REACH {
        return arrived_round(receiver, reporter, io, frame, place);
    }
    arrived_at(receiver, reporter, io, frame, place, |address| address)
}

/// The same of a frame that goes round the buffer's end.
#[inline(never)]
fn arrived_round<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    place: (u32, u32, u32),
) -> Outcome {
    let base = place.0;
    arrived_at(receiver, reporter, io, frame, place, |address| {
        wrapped(base, address)
    })
}

#[inline(always)]
fn arrived_at<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
    (base, vlan, flags): (u32, u32, u32),
    at: impl Fn(u32) -> u32,
) -> Outcome {
    if flags & 0xFF != 17 {
        return Outcome::Passed;
    }
    // Whosever it is: looking at it twice takes longer than the host may wait.
    if receiver.is_full(io) {
        wait_for_writes(io);
        return Outcome::Waits;
    }
    let Some(fragment) = Fragment::of(io, frame, (vlan, flags), at) else {
        return Outcome::Passed;
    };
    see_to(receiver, reporter, io, &fragment, (frame.start, base))
}

#[inline(never)]
fn see_to<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    fragment: &Fragment,
    place: (u32, u32),
) -> Outcome {
    if fragment.is_header() && receiver.is_busy() {
        // It has nothing to write, and is done at once: no other may be in front of it.
        wait_for_writes(io);
        return Outcome::Waits;
    }
    // Most are of the same datagram as the one before.
    let recent = receiver.recent;
    let is_recent = recent.is_open_for(&mut io.bus, &fragment.ip.key)
        && reporter.vlan_of(recent.endpoint(&mut io.bus)) == fragment.vlan;
    if !is_recent {
        match context::find(receiver, reporter, io, fragment) {
            Ok(assembly) => receiver.recent = assembly,
            Err(outcome) => return outcome,
        }
    }
    let assembly = receiver.recent;
    receiver.predicted.forget(assembly);
    if fragment.is_first()
        && let Err(outcome) = pool::claim(receiver, reporter, io, fragment)
    {
        return outcome;
    }
    let outcome = take(receiver, reporter, io, fragment, place);
    if is_recent || fragment.is_first() {
        let predicted = &mut receiver.predicted;
        predicted.expect(&mut io.bus, assembly, fragment);
    }
    outcome
}

/// A fragment of the datagram that is put together.
#[inline(always)]
fn take<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    fragment: &Fragment,
    (start, base): (u32, u32),
) -> Outcome {
    let assembly = receiver.recent;
    match judge(reporter, &mut io.bus, fragment, assembly) {
        Ok(Noted::New) => {}
        Ok(_) => {
            receiver.drop_fragment(reporter, io, Refusal::Duplicate);
            return Outcome::Taken;
        }
        Err(refusal) => {
            receiver.give_up(reporter, io, refusal);
            return Outcome::Taken;
        }
    }
    let bus = &mut io.bus;
    note_said(bus, assembly, fragment);
    let header = if fragment.is_first() { UDP } else { 0 };
    let place = Place {
        base,
        local: wrapped(base, start + ETHERNET + IP + header),
        at: fragment.ip.from.saturating_sub(UDP),
        bytes: fragment.ip.end - fragment.ip.from - header,
    };
    let part = Part {
        assembly,
        is_last: assembly.is_whole(bus),
    };
    receiver.write_part(io, part, &place);
    if place.bytes == 0 {
        // There is nothing to write.
        receiver.part_written(part, reporter, io, 0);
        return Outcome::Taken;
    }
    Outcome::Queued
}

/// Notes what a fragment that is there says of its datagram.
#[inline(never)]
pub(super) fn note_said<B: Bus>(bus: &mut B, assembly: Assembly, fragment: &Fragment) {
    if fragment.is_first() {
        assembly.set_from(bus, fragment.ip.port, fragment.is_summed);
        assembly.add(bus, fragment.sum);
    }
    if let Some(length) = fragment.length() {
        assembly.set_length(bus, length);
    }
}

/// Whether a first fragment is for the endpoint that has its datagram.
#[inline(never)]
fn is_in_place<B: Bus>(
    reporter: &Reporter,
    bus: &mut B,
    fragment: &Fragment,
    assembly: Assembly,
) -> bool {
    let port = fragment.destination_port();
    let found = reporter.find(fragment.ip.key.destination, port);
    if found == Some(assembly.endpoint(bus)) {
        return true;
    }
    let claim = assembly.claim(bus);
    claim.is_some_and(|claim| found == Some(claim.endpoint))
}

/// Whether a fragment fits what is known of its datagram.
#[inline(never)]
pub(super) fn fits<B: Bus>(
    reporter: &Reporter,
    bus: &mut B,
    fragment: &Fragment,
    assembly: Assembly,
) -> Result<(), Refusal> {
    let says = fragment.length();
    let known = assembly.length(bus);
    if says.is_some() && known.is_some() && says != known {
        return Err(Refusal::BadHeader);
    }
    let reach = assembly.reach(bus).max(fragment.ip.end);
    let length = says.or(known);
    if length.is_some_and(|length| length < reach || length < UDP) {
        return Err(Refusal::BadHeader);
    }
    if length.unwrap_or(reach).saturating_sub(UDP) > assembly.room(bus) {
        return Err(Refusal::BadRegion);
    }
    if fragment.is_first() && !is_in_place(reporter, bus, fragment, assembly) {
        return Err(Refusal::Misplaced);
    }
    Ok(())
}

/// The same, and notes that it is there.
#[inline(always)]
fn judge<B: Bus>(
    reporter: &Reporter,
    bus: &mut B,
    fragment: &Fragment,
    assembly: Assembly,
) -> Result<Noted, Refusal> {
    fits(reporter, bus, fragment, assembly)?;
    if assembly.extend(bus, fragment.ip.from, fragment.ip.end) {
        return Ok(Noted::New);
    }
    match assembly.fill(bus, fragment.ip.from, fragment.ip.end) {
        Noted::Overlap => Err(Refusal::Overlap),
        Noted::Full => Err(Refusal::NoContext),
        noted => Ok(noted),
    }
}

impl Receiver {
    /// A fragment that is of no use.
    #[inline(never)]
    pub(super) fn let_pass<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        self.work.is_good = false;
        self.hear(recv::Event::Ended, reporter, io);
    }

    /// The same, counted.
    #[inline(never)]
    pub(super) fn drop_fragment<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        refusal: Refusal,
    ) {
        self.let_pass(reporter, io);
        bump(&mut io.bus, word(BlockWord::Refused) + refusal as u32);
    }

    /// A fragment that is of no use, and its datagram is given up.
    #[inline(never)]
    pub(super) fn give_up<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        refusal: Refusal,
    ) {
        self.let_pass(reporter, io);
        expiry::give_up(reporter, io, self.recent, refusal);
    }
}

impl Reporter {
    /// An endpoint's VLAN, in bits 31:16.
    #[inline(always)]
    pub(super) fn vlan_of(&self, endpoint: u32) -> u32 {
        let queue = self.queues.get(endpoint as usize);
        queue.map_or(0, |queue| queue.port & VLAN)
    }
}
