//! What RDMA does with a fragment: writes it where it belongs, and completes its datagram.
//!
//! ```text
//!   frame        | headers | data         |
//!                             v     v
//!   descriptor   | piece 0        | piece 1 ...     |
//! ```
//!
//! The rows are those of every frame. A fragment's `Complete` completes the descriptor only if all
//! bytes are there, and only then its sum is looked at.

use super::assembly::State;
use super::completion::Reporter;
use super::delivery::{FREES, Work};
use super::expiry::fail;
use super::flight::Flight;
use super::part::Part;
use super::pieces::UDP;
use super::receiver::{Receiver, fault};
use super::{bump, word};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::path::receive::frame::wrapped;
use frame_pipeline::{Step, World, rdma};
use host_interface::eudp::{BlockWord, Refusal};
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

impl Receiver {
    /// An event of RDMA that has a fragment.
    #[inline(always)]
    fn step_part<B: Dispatch>(
        &mut self,
        event: rdma::Event,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        let work = &mut self.work;
        let mut card = Parts { work, reporter, io };
        if !matches!(self.rdma.step(event, &mut card), Step::Taken(_)) {
            fault(&mut io.bus);
        }
    }

    /// Writes a fragment.
    #[inline(always)]
    pub(super) fn write_part<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        self.step_part(rdma::Event::Waiting, reporter, io);
    }

    /// The write channel has written a fragment, and summed it.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
    #[inline(never)]
    pub(super) fn part_written<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        sum: u32,
    ) {
        let Part { assembly, .. } = self.work.part;
        let bus = &mut io.bus;
        self.work.data = assembly.add(bus, sum);
        // Its endpoint may have been closed meanwhile.
        self.work.part.is_last = self.work.part.is_last && assembly.state(bus) == State::Open;
        // As it always is: a compiler leaves other states' rows alone.
        if self.rdma.is_in(rdma::State::CoarseGrainedRdma) {
            self.step_part(rdma::Event::Written, reporter, io);
        } else {
            fault(&mut io.bus);
        }
        self.part_ends();
    }

    /// The host's memory cannot be written.
    #[inline(never)]
    pub(super) fn part_failed<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        self.step_part(rdma::Event::Failed, reporter, io);
        self.part_ends();
    }

    #[inline(always)]
    fn part_ends(&mut self) {
        self.work.part.clear();
        if !self.work.is_unreported {
            self.work.flights.go_on();
        }
    }
}

/// The card, for a handler's time, while RDMA has a fragment.
struct Parts<'a, B: Dispatch> {
    work: &'a mut Work,
    reporter: &'a mut Reporter,
    io: &'a mut IoA<B>,
}

impl<B: Dispatch> World<rdma::Rdma> for Parts<'_, B> {
    #[inline(always)]
    fn holds(&mut self, condition: rdma::Condition) -> bool {
        match condition {
            rdma::Condition::BufferPosted => true,
            rdma::Condition::Sumless
            | rdma::Condition::Completed
            | rdma::Condition::EnoughHere
            | rdma::Condition::MoreQueued => false,
            rdma::Condition::SumRight => {
                let Part {
                    assembly, is_last, ..
                } = self.work.part;
                !is_last || !assembly.from(&mut self.io.bus).1 || self.work.data == 0xFFFF
            }
        }
    }

    #[inline(always)]
    fn act(&mut self, action: rdma::Action) {
        match action {
            rdma::Action::WriteWhole => self.write(),
            rdma::Action::Complete if self.work.part.is_last => self.complete(),
            rdma::Action::Leave => self.give_up(Refusal::BadSum),
            rdma::Action::Fail => self.give_up(Refusal::BadRegion),
            _ => {}
        }
    }
}

impl<B: Dispatch> Parts<'_, B> {
    /// Queues the transfers of the fragment's data, into the pieces where it belongs.
    #[inline(always)]
    fn write(&mut self) {
        let Part {
            assembly,
            mut local,
            at: mut skip,
            bytes: mut left,
            ..
        } = self.work.part;
        let io = &mut *self.io;
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
            local = wrapped(self.work.base, local + bytes);
            if left == 0 {
                transfer.state |= Sum::STORED;
                transfer.note = WriteNote::DATAGRAM.word();
                io.write_ring.store_sum(&mut io.bus);
                io.put_awaited(&transfer);
            } else {
                io.write_ring.put(&mut io.bus, &transfer);
            }
        }
    }

    /// All of the datagram is there.
    #[inline(never)]
    fn complete(&mut self) {
        let Part { assembly, .. } = self.work.part;
        let bus = &mut self.io.bus;
        let (port, is_summed) = assembly.from(bus);
        let Flight {
            datagram, cookie, ..
        } = self.work.flights.next();
        datagram.length = assembly.length(bus).unwrap_or(UDP) - UDP;
        datagram.is_summed = is_summed;
        datagram.is_right = true;
        datagram.address = assembly.source(bus);
        datagram.port = port;
        *cookie = assembly.cookie(bus);
        assembly.enter(bus, State::Spent);
        self.work.flights.take_alone();
        self.work.is_unreported = true;
    }

    /// The sum is wrong, or the memory cannot be written.
    #[inline(never)]
    fn give_up(&mut self, refusal: Refusal) {
        bump(&mut self.io.bus, word(BlockWord::Refused) + refusal as u32);
        let Part { assembly, .. } = self.work.part;
        if assembly.state(&mut self.io.bus) == State::Open {
            fail(self.reporter, self.io, assembly);
        }
    }
}
