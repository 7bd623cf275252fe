//! Whole datagrams that go into one piece of memory: most of them.
//!
//! They take the rows of all, but what these ask for is known here, and nothing is laid down that a
//! register holds.

use super::answers::{Answers, Good};
use super::completion::Reporter;
use super::headers::HEADERS;
use super::receiver::{Receiver, Taken, fault};
use super::recorded::{RECV, Recorder, note};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::path::receive::frame::wrapped;
use frame_pipeline::{Step, rdma, recv};
use host_interface::eudp::Refusal;
use tigon2_chip::HostAddress;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// Takes the datagram for an endpoint whose headers are the next ones. Its frame begins at `start`.
#[inline(always)]
pub(super) fn take<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    endpoint: u32,
    (start, base): (u32, u32),
) -> Taken {
    let work = &mut receiver.work;
    let (are_completed, are_more) = (work.flights.are_completed(), work.flights.are_more());
    let flight = work.flights.next();
    let length = flight.datagram.length;
    // One whose completion may go with another one counts as one with a sum.
    let waits = are_more && work.pairs.are_for(length);
    let is_sumless = are_completed && !flight.datagram.is_summed && !waits;
    if flight.datagram.is_right
        && length != 0
        && let Some(queue) = reporter.queues.get_mut(endpoint as usize)
        && let Some(host) = flight.take_descriptor(queue, &mut io.bus)
    {
        let ended = receiver.recv.step(recv::Event::Ended, &mut Good);
        note(&mut io.bus, RECV, ended);
        let answers = Answers {
            is_posted: true,
            is_sumless,
            ..Answers::NONE
        };
        let action = answers.step(
            &mut receiver.rdma,
            rdma::Event::Waiting,
            Recorder::of(&mut io.bus),
        );
        write(io, host, wrapped(base, start + HEADERS), length);
        let flights = &mut receiver.work.flights;
        if action == Some(rdma::Action::WriteWholeAndComplete) {
            flights.complete(queue, io, WriteNote::COMPLETION);
            queue.finish();
        }
        flights.take();
        if !matches!((ended, action), (Step::Taken(_), Some(_))) {
            fault(&mut io.bus);
        }
        return Taken::Queued;
    }
    receiver.take_slowly(reporter, io, (start, base))
}

/// Queues all data of a frame, which lies at `local` in the receive buffer. The transfer frees the
/// frame's room, and all in front of it.
#[inline(always)]
pub(super) fn write<B: Dispatch>(io: &mut IoA<B>, host: HostAddress, local: u32, length: u32) {
    io.write_ring.store_sum(&mut io.bus);
    let transfer = Transfer {
        host,
        local,
        length,
        state: io.states.data | Sum::ON | Sum::BEGINS | Sum::STORED,
        note: WriteNote::DATAGRAM.word(),
    };
    io.put_awaited(&transfer);
}

/// The write channel has written what it had of the oldest datagram, and summed it.
#[inline(always)]
pub(super) fn written<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    sum: u32,
) {
    let Receiver { rdma, work, .. } = receiver;
    let flights = &mut work.flights;
    let answers = Answers {
        is_completed: flights.is_oldest_completed(),
        is_right: flights.oldest().datagram.has_sum(sum),
        are_more: flights.are_more(),
        ..Answers::NONE
    };
    let recorder = Recorder::of(&mut io.bus);
    #[expect(
        clippy::if_same_then_else,
        reason = "in the first arm a compiler leaves that state's rows alone"
    )]
    let action = if rdma.is_in(rdma::State::CoarseGrainedRdma) {
        answers.step(rdma, rdma::Event::Written, recorder)
    } else {
        answers.step(rdma, rdma::Event::Written, recorder)
    };
    match action {
        Some(rdma::Action::Finish) => flights.finish_completed(),
        Some(rdma::Action::Complete) => work.complete(reporter, io),
        Some(rdma::Action::Leave) => work.leave(reporter, io, Refusal::BadSum),
        Some(rdma::Action::Forget) => work.forget(reporter, io),
        Some(_) => {}
        None => fault(&mut io.bus),
    }
}
