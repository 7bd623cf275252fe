//! A fragment that is written while it arrives: the one that is next in line.
//!
//! ```text
//!   datagram     | all of this is there | chunk | chunk |            |
//!                                       ^ the next fragment begins here
//!   receive buffer         | headers    | chunk | chunk |   what has not come
//! ```
//!
//! Its CRC is known at its end, so it may be written early only where nothing is yet: a damaged frame
//! must not spoil what a good one has filled. Behind the [predicted](super::predicted) place nothing
//! is. So a first fragment, one out of order and the same one again are written when they are whole.
//! The datagram's row learns of the bytes at the frame's end alone. If the datagram is given up before
//! that, its memory is the process's again, and nothing more is written.
//!
//! For [`arrival`](super::arrival) a fragment is a datagram whose headers are 8 bytes shorter.

use super::answers::Answers;
use super::completion::Reporter;
use super::fragment_header::Header;
use super::part::Part;
use super::receiver::{Receiver, fault};
use super::recorded::Recorder;
use crate::io::IoA;
use frame_pipeline::rdma;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

impl Receiver {
    /// Whether the frame that arrives at `start` is the next fragment, by its headers. Whether its
    /// length is the frame's shows at its end, of which `longest` is the latest.
    #[inline(never)]
    pub(super) fn judge_part<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        start: u32,
        longest: u32,
    ) -> bool {
        let bus = &mut io.bus;
        let frame = ReceivedFrame {
            start,
            length: longest,
            errors: 0,
        };
        let Some(header) = Header::in_one_piece(bus, &frame) else {
            return false;
        };
        let Some(next) = self.predicted.next(bus, &header, start) else {
            return false;
        };
        let datagram = &mut self.work.flights.next().datagram;
        datagram.length = next.bytes;
        // So no completion goes with the data.
        datagram.is_summed = true;
        true
    }

    /// RDMA begins with the fragment that was judged, unless its datagram was given up since.
    #[inline(never)]
    pub(super) fn choose_part<B: Dispatch>(&mut self, io: &mut IoA<B>) -> bool {
        let length = self.work.flights.next().datagram.length;
        let Some(next) = self.predicted.of_length(&mut io.bus, length) else {
            return false;
        };
        self.work.flights.next().set_part(next.endpoint, next.part);
        self.work.begin_at(next.host);
        true
    }

    /// Whether the datagram of the fragment that RDMA has is still put together.
    #[inline(never)]
    pub(super) fn is_part_open<B: Dispatch>(&mut self, io: &mut IoA<B>) -> bool {
        let part = self.work.flights.oldest().part();
        part.is_some_and(|part| part.assembly.is_open(&mut io.bus))
    }

    /// The frame has ended well: its bytes count as there.
    #[inline(never)]
    pub(super) fn note_part<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        let flight = self.work.flights.oldest();
        let length = flight.datagram.length;
        if let Some(part) = flight.part() {
            self.recent = part.assembly;
            self.predicted.advance(&mut io.bus, part, length);
        }
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
