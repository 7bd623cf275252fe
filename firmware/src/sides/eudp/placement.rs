//! What RDMA does with a fragment: writes it where it belongs, and completes its datagram.
//!
//! ```text
//!   frame        | headers | data         |
//!                             v     v
//!   descriptor   | piece 0        | piece 1 ...     |
//! ```
//!
//! The rows are those of every frame. A fragment's `Complete` completes the descriptor only if all
//! bytes are there, and only then its sum is looked at. The write channel works in order, so the
//! fragments that were taken before are written then.

use super::answers::{Answers, Good};
use super::assembly::{Assembly, State};
use super::completion::Reporter;
use super::datagram::Datagram;
use super::delivery::FREES;
use super::expiry::give_up;
use super::fast_path;
use super::flight::Flight;
use super::fragment_header::Header;
use super::headers::UDP;
use super::part::Part;
use super::pooled;
use super::receiver::{Receiver, fault};
use super::recorded::{RECV, Recorder, note};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::path::receive::frame::wrapped;
use frame_pipeline::{Step, rdma, recv};
use host_interface::eudp::Refusal;
use tigon2_hal::Bus;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Where a fragment's data is, and where it belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Where the receive buffer begins.
    pub base: u32,
    /// Where the data begins in it.
    pub local: u32,
    /// Where the data belongs in the datagram's.
    pub at: u32,
    /// Its bytes.
    pub bytes: u32,
}

impl Part {
    /// It is written, and `sum` is its data's. Returns whether its datagram is whole with it, and what
    /// RDMA's rows ask.
    #[inline(always)]
    pub(super) fn ended<B: Bus>(&self, bus: &mut B, sum: u32, are_more: bool) -> (bool, Answers) {
        let assembly = self.assembly;
        let data = assembly.add(bus, sum);
        // Its datagram may have been given up meanwhile, or its endpoint closed.
        let is_last = self.is_last && assembly.is_open(bus);
        let answers = Answers {
            is_right: !is_last || !assembly.from(bus).1 || data == 0xFFFF,
            are_more,
            ..Answers::NONE
        };
        (is_last, answers)
    }
}

impl Receiver {
    /// A frame has ended well that is a fragment: writes it.
    #[inline(always)]
    pub(super) fn write_part<B: Dispatch>(&mut self, io: &mut IoA<B>, part: Part, place: &Place) {
        let endpoint = part.assembly.endpoint(&mut io.bus);
        self.begin_part(endpoint, part, io);
        queue(part.assembly, io, place);
    }

    /// Takes the oldest frame, which is for this card's own address, if it is the fragment that is
    /// next in line, or the first one of a datagram. Returns whether it is in the write channel's
    /// queue, which has room.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
    #[inline(never)]
    pub(super) fn take_in_order<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        frame: &ReceivedFrame,
    ) -> bool {
        let Some(header) = Header::in_one_piece(&mut io.bus, frame) else {
            return false;
        };
        let taken = if header.from == 0 {
            self.take_first(reporter, io, header, frame.start)
        } else {
            self.predicted.take(&mut io.bus, &header, frame.start)
        };
        let Some(taken) = taken else {
            return false;
        };
        self.recent = taken.part.assembly;
        self.begin_part(taken.endpoint, taken.part, io);
        fast_path::write(io, taken.host, taken.local, taken.bytes);
        true
    }

    /// RECV and RDMA hear of a frame that is a fragment for an endpoint. Its transfers come next.
    #[inline(always)]
    fn begin_part<B: Dispatch>(&mut self, endpoint: u32, part: Part, io: &mut IoA<B>) {
        self.work.flights.next().set_part(endpoint, part);
        let ended = self.recv.step(recv::Event::Ended, &mut Good);
        note(&mut io.bus, RECV, ended);
        let answers = Answers {
            is_posted: true,
            ..Answers::NONE
        };
        let action = answers.step(
            &mut self.rdma,
            rdma::Event::Waiting,
            Recorder::of(&mut io.bus),
        );
        self.work.flights.take();
        if !matches!((ended, action), (Step::Taken(_), Some(_))) {
            fault(&mut io.bus);
        }
    }

    /// The write channel has written the oldest fragment, and summed it.
    #[cfg_attr(
        all(target_arch = "mips", not(feature = "transitions")),
        unsafe(link_section = ".scratch_a.system")
    )]
    #[inline(never)]
    pub(super) fn part_written<B: Dispatch>(
        &mut self,
        part: Part,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        sum: u32,
    ) {
        // In this state, of which a compiler leaves the rows alone, unless it was not whole.
        if !self.rdma.is_in(rdma::State::CoarseGrainedRdma) {
            return self.early_part_written(part, reporter, io, sum);
        }
        let are_more = self.work.flights.are_more();
        let (is_last, answers) = part.ended(&mut io.bus, sum, are_more);
        let recorder = Recorder::of(&mut io.bus);
        let action = answers.step(&mut self.rdma, rdma::Event::Written, recorder);
        self.part_done(part, is_last, action, reporter, io);
    }

    /// RDMA is done with the oldest fragment; `is_last` if its datagram is whole with it.
    #[inline(always)]
    pub(super) fn part_done<B: Dispatch>(
        &mut self,
        part: Part,
        is_last: bool,
        action: Option<rdma::Action>,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        match action {
            Some(rdma::Action::Complete) if is_last => {
                return self.complete_assembly(part.assembly, reporter, io);
            }
            Some(rdma::Action::Complete) => {}
            Some(rdma::Action::Leave) => give_up(reporter, io, part.assembly, Refusal::BadSum),
            _ => fault(&mut io.bus),
        }
        self.work.flights.finish();
    }

    /// The host's memory cannot be written.
    #[inline(never)]
    pub(super) fn part_failed<B: Dispatch>(
        &mut self,
        part: Part,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        let answers = Answers {
            are_more: self.work.flights.are_more(),
            ..Answers::NONE
        };
        match answers.step(
            &mut self.rdma,
            rdma::Event::Failed,
            Recorder::of(&mut io.bus),
        ) {
            Some(rdma::Action::Fail) => give_up(reporter, io, part.assembly, Refusal::BadRegion),
            // The rest of its frame is let pass.
            Some(rdma::Action::Nothing) => return,
            Some(rdma::Action::Forget) => {}
            _ => fault(&mut io.bus),
        }
        self.work.flights.finish();
    }

    /// All of the datagram is there.
    #[inline(never)]
    fn complete_assembly<B: Dispatch>(
        &mut self,
        assembly: Assembly,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        let bus = &mut io.bus;
        if assembly.is_claimed(bus) {
            pooled::complete(reporter, io, assembly);
            return self.work.flights.finish();
        }
        let (port, is_summed) = assembly.from(bus);
        *self.work.flights.oldest() = Flight {
            datagram: Datagram {
                endpoint: assembly.endpoint(bus),
                length: assembly.length(bus).unwrap_or(UDP) - UDP,
                sum: 0,
                is_summed,
                is_right: true,
                address: assembly.source(bus),
                port,
            },
            cookie: assembly.cookie(bus),
            segment: [0; 2],
        };
        assembly.enter(bus, State::Spent);
        self.work.is_unreported = true;
        self.work.report(reporter, io);
    }
}

/// Queues the transfers of a fragment's data, into the pieces where it belongs. The last one frees
/// the frame's room, and all in front of it.
#[inline(always)]
fn queue<B: Dispatch>(assembly: Assembly, io: &mut IoA<B>, place: &Place) {
    let Place {
        base,
        mut local,
        at: mut skip,
        bytes: mut left,
    } = *place;
    let mut state = io.states.data & !FREES | Sum::ON | Sum::BEGINS;
    let mut number = 0;
    while left != 0
        && let Some((host, there)) = assembly.piece(&mut io.bus, number)
    {
        number += 1;
        if skip >= there {
            skip -= there;
            continue;
        }
        let bytes = left.min(there - skip);
        left -= bytes;
        let mut transfer = Transfer {
            host: host.plus(skip),
            local,
            length: bytes,
            state,
            note: WriteNote::DATAGRAM_PIECE.word(),
        };
        skip = 0;
        state &= !Sum::BEGINS;
        local = wrapped(base, local + bytes);
        if left == 0 {
            transfer.state |= Sum::STORED | io.states.data & FREES;
            transfer.note = WriteNote::DATAGRAM.word();
            io.write_ring.store_sum(&mut io.bus);
            io.put_awaited(&transfer);
        } else {
            io.write_ring.put(&mut io.bus, &transfer);
        }
    }
}
