//! Whole datagrams that go into one piece of memory: most of them.
//!
//! They take the rows of all, but what these ask for is known here, and nothing is laid down that a
//! register holds.

use super::completion::Reporter;
use super::datagram::HEADERS;
use super::flight::Flights;
use super::receiver::{Receiver, Taken, fault};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::path::receive::frame::wrapped;
use frame_pipeline::{Step, World, rdma, recv};
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
    let flight = receiver.work.flights.next();
    let length = flight.datagram.length;
    if flight.datagram.is_right
        && length != 0
        && let Some(queue) = reporter.queues.get_mut(endpoint as usize)
        && let Some(host) = flight.take_descriptor(queue, &mut io.bus)
    {
        let mut datagram = Plain {
            host,
            local: wrapped(base, start + HEADERS),
            length,
            io,
        };
        let ended = receiver.recv.step(recv::Event::Ended, &mut datagram);
        let taken = receiver.rdma.step(rdma::Event::Waiting, &mut datagram);
        if !matches!((ended, taken), (Step::Taken(_), Step::Taken(_))) {
            fault(&mut io.bus);
        }
        receiver.work.flights.take();
        return Taken::Queued;
    }
    receiver.take_slowly(reporter, io, (start, base))
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
    let mut written = Written {
        flights: &mut work.flights,
        sum,
        action: rdma::Action::Nothing,
    };
    #[expect(
        clippy::if_same_then_else,
        reason = "in the first arm a compiler leaves that state's rows alone"
    )]
    let step = if rdma.is_in(rdma::State::CoarseGrainedRdma) {
        rdma.step(rdma::Event::Written, &mut written)
    } else {
        rdma.step(rdma::Event::Written, &mut written)
    };
    let action = written.action;
    if !matches!(step, Step::Taken(_)) {
        fault(&mut io.bus);
    }
    // Here and not in `act`, which a compiler would expand for each row.
    match action {
        rdma::Action::Complete => work.complete(reporter),
        rdma::Action::Leave => work.leave(reporter, io, Refusal::BadSum),
        rdma::Action::Forget => work.forget(reporter, io),
        _ => {}
    }
}

/// Datagrams of which the oldest was written, and what is to be done with it.
struct Written<'a> {
    flights: &'a mut Flights,
    sum: u32,
    action: rdma::Action,
}

impl World<rdma::Rdma> for Written<'_> {
    #[inline(always)]
    fn holds(&mut self, condition: rdma::Condition) -> bool {
        match condition {
            rdma::Condition::SumRight => self.flights.oldest().datagram.has_sum(self.sum),
            rdma::Condition::MoreQueued => self.flights.are_more(),
            rdma::Condition::BufferPosted | rdma::Condition::EnoughHere => false,
        }
    }

    #[inline(always)]
    fn act(&mut self, action: rdma::Action) {
        self.action = action;
    }
}

/// A datagram that is right, and has a descriptor.
struct Plain<'a, B: Dispatch> {
    host: HostAddress,
    local: u32,
    length: u32,
    io: &'a mut IoA<B>,
}

impl<B: Dispatch> World<recv::Recv> for Plain<'_, B> {
    #[inline(always)]
    fn holds(&mut self, condition: recv::Condition) -> bool {
        matches!(condition, recv::Condition::Good)
    }

    /// RDMA takes it at once.
    #[inline(always)]
    fn act(&mut self, _: recv::Action) {}
}

impl<B: Dispatch> World<rdma::Rdma> for Plain<'_, B> {
    #[inline(always)]
    fn holds(&mut self, condition: rdma::Condition) -> bool {
        matches!(condition, rdma::Condition::BufferPosted)
    }

    /// Queues the transfer of its data, which frees the frame's room, and all in front of it.
    #[inline(always)]
    fn act(&mut self, _: rdma::Action) {
        let Plain {
            host,
            local,
            length,
            ref mut io,
        } = *self;
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
}
