//! A fragment that is written while it arrives.
//!
//! ```text
//!   datagram     | all of this is there | chunk | chunk |            | this, too |
//!                                       ^ the fragment begins here
//!   receive buffer         | headers    | chunk | chunk |   what has not come
//! ```
//!
//! Its CRC is known at its end, so it may be written early only where nothing is yet: a damaged frame
//! must not spoil what a good one has filled. Behind the [predicted](super::predicted) place nothing
//! is. For any other one the row of its datagram tells, if there is one: so the fragment with which a
//! datagram begins is written when it is whole, and so is one that is there. To find its place takes the
//! time of a chunk or two, so one that CPU A sees too late is left for its end, too.
//!
//! The row learns of the bytes at the frame's end alone. If the datagram is given up before that, its
//! memory is the process's again, and nothing more is written.
//!
//! For [`arrival`](super::arrival) a fragment is a datagram; the headers of all but the first are
//! 8 bytes shorter.

use super::answers::Answers;
use super::assembly::{Assembly, Noted};
use super::completion::Reporter;
use super::fragment::{fits, note_said};
use super::fragment_header::{Fragment, Header};
use super::headers::{ETHERNET, UDP};
use super::part::Part;
use super::receiver::{Receiver, fault};
use super::recorded::Recorder;
use crate::io::IoA;
use frame_pipeline::rdma;
use tigon2_chip::HostAddress;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Bytes of a fragment out of order that have to be still to come: so many do until its place is found.
const LEFT: u32 = 3072;
/// Where the word with the IP header's sum is.
const SUM: u32 = ETHERNET + 10;

impl Receiver {
    /// Whether the frame that arrives at `start` is a fragment that may be written now, by its headers.
    /// Whether its length is the frame's shows at its end, of which `longest` is the latest.
    #[inline(never)]
    pub(super) fn judge_part<B: Dispatch>(
        &mut self,
        reporter: &Reporter,
        io: &mut IoA<B>,
        start: u32,
        longest: u32,
    ) -> bool {
        let frame = ReceivedFrame {
            start,
            length: longest,
            errors: 0,
        };
        let Some(header) = Header::in_one_piece(&mut io.bus, &frame) else {
            return false;
        };
        self.arrival.is_part = true;
        self.mark = io.bus.load(start + SUM);
        self.arrival.shorter = if header.from == 0 { 0 } else { UDP };
        let next = self.predicted.next(&mut io.bus, &header, start);
        self.arrival.is_next = next.is_some();
        let place = match next {
            Some(next) => Some((next.part, next.endpoint, next.host, next.bytes)),
            None if header.end - header.from < self.arrival.seen + LEFT => None,
            None => {
                self.early = Fragment::with(&mut io.bus, header, start, 0, |address| address);
                self.free_place(reporter, io)
            }
        };
        let Some((part, endpoint, host, bytes)) = place else {
            return false;
        };
        self.work.host = host;
        let flight = self.work.flights.next();
        flight.set_part(endpoint, part);
        flight.datagram.length = bytes;
        // So no completion goes with the data.
        flight.datagram.is_summed = true;
        true
    }

    /// Where the fragment out of order goes, whose it is, and its bytes, if its datagram is known and
    /// nothing is there yet.
    #[inline(never)]
    fn free_place<B: Dispatch>(
        &self,
        reporter: &Reporter,
        io: &mut IoA<B>,
    ) -> Option<(Part, u32, HostAddress, u32)> {
        let fragment = &self.early;
        let Header { key, from, end, .. } = &fragment.ip;
        let bus = &mut io.bus;
        let assembly = if self.recent.is_open_for(bus, key) {
            self.recent
        } else if self.knows_fragments {
            Assembly::find(bus, key).filter(|found| found.is_open(bus))?
        } else {
            return None;
        };
        let endpoint = assembly.endpoint(bus);
        if reporter.vlan_of(endpoint) != fragment.vlan
            || fits(reporter, bus, fragment, assembly).is_err()
            || !assembly.is_free(bus, *from, *end)
        {
            return None;
        }
        let bytes = end - from - if fragment.is_first() { UDP } else { 0 };
        let host = assembly.place(bus, from.saturating_sub(UDP), bytes)?;
        let part = Part {
            assembly,
            is_last: false,
        };
        Some((part, endpoint, host, bytes))
    }

    /// RDMA begins with the fragment that was judged, unless its datagram was given up since.
    #[inline(never)]
    pub(super) fn choose_part<B: Dispatch>(&mut self, io: &mut IoA<B>) -> bool {
        let part = self.work.flights.next().part();
        let is_open = self.is_open(io, part);
        if is_open {
            self.work.flights.take_alone();
        }
        is_open
    }

    /// Whether the datagram of the fragment that RDMA has is still put together, and no other frame in
    /// its place.
    #[inline(never)]
    pub(super) fn is_part_open<B: Dispatch>(&mut self, io: &mut IoA<B>) -> bool {
        let part = self.work.flights.oldest().part();
        self.is_open(io, part)
    }

    #[inline(always)]
    fn is_open<B: Dispatch>(&self, io: &mut IoA<B>, part: Option<Part>) -> bool {
        let start = self.arrival.start;
        let bus = &mut io.bus;
        part.is_some_and(|part| part.assembly.is_open(bus)) && bus.load(start + SUM) == self.mark
    }

    /// The frame has ended well: its bytes count as there, unless the write channel has failed.
    #[inline(never)]
    pub(super) fn note_part<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        if !self.rdma.is_in(rdma::State::RdmaLastFragment) {
            return;
        }
        let flight = self.work.flights.oldest();
        let length = flight.datagram.length;
        let Some(part) = flight.part() else {
            return;
        };
        if !self.arrival.is_next {
            return self.note_out_of_order(io, part.assembly);
        }
        self.recent = part.assembly;
        self.predicted.advance(&mut io.bus, part, length);
    }

    /// The same of one that was not the next.
    #[inline(never)]
    fn note_out_of_order<B: Dispatch>(&mut self, io: &mut IoA<B>, assembly: Assembly) {
        let (bus, fragment) = (&mut io.bus, &self.early);
        note_said(bus, assembly, fragment);
        if assembly.fill(bus, fragment.ip.from, fragment.ip.end) != Noted::New {
            fault(bus);
        }
        let flight = self.work.flights.oldest();
        let part = Part {
            assembly,
            is_last: assembly.is_whole(bus),
        };
        flight.set_part(flight.endpoint(), part);
        self.predicted.forget(assembly);
        if fragment.is_first() || self.recent == assembly {
            self.predicted.expect(bus, assembly, fragment);
        }
        self.recent = assembly;
    }

    /// The write channel has written a chunk of the fragment, or its rest, and summed all of it.
    #[inline(never)]
    pub(super) fn early_part_written<B: Dispatch>(
        &mut self,
        part: Part,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        sum: u32,
    ) {
        if self.rdma.is_in(rdma::State::RdmaLastFragment) {
            let (is_last, answers) = part.ended(&mut io.bus, sum, false);
            let recorder = Recorder::of(&mut io.bus);
            let action = answers.step(&mut self.rdma, rdma::Event::Written, recorder);
            return self.part_done(part, is_last, action, reporter, io);
        }
        let recorder = Recorder::of(&mut io.bus);
        match Answers::NONE.step(&mut self.rdma, rdma::Event::Written, recorder) {
            Some(rdma::Action::Nothing) => {}
            Some(rdma::Action::Forget) => self.work.flights.finish(),
            _ => fault(&mut io.bus),
        }
    }
}
