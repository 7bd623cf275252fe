//! What the rows of RECV and RDMA do on the card.

use super::completion::{Entry, Reporter};
use super::datagram::Datagram;
use super::expiry::give_up;
use super::flight::{DEPTH, Flight, Flights};
use super::headers::HEADERS;
use super::pair::Pairs;
use super::pieces::Pieces;
use super::{bump, word};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::memory::layout::EUDP_BLOCK;
use crate::path::receive::frame;
use frame_pipeline::{World, rdma, recv};
use host_interface::eudp::{
    BlockWord, DescriptorWord, Kind, Refusal, SEGMENTS, SLOTS, Status, pieces_of, receive_slot,
    to_word,
};
use tigon2_chip::HostAddress;
use tigon2_chip::bits::DmaState;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// Transfers of a datagram, and its completion.
pub const TRANSFERS: u32 = SEGMENTS + 1;
/// The same with the completions of all useless descriptors that may stand in front of its own, and
/// of the datagrams that are written.
pub const CHOICE: u32 = SLOTS - 1 + TRANSFERS + DEPTH;
/// The bit by which a transfer frees what it has moved in the receive buffer.
pub(super) const FREES: u32 = DmaState::new().with_free_rx_buffer(true).into_bits();

/// What RDMA works on.
#[derive(Debug)]
#[repr(C)]
pub struct Work {
    /// Its datagrams.
    pub flights: Flights,
    /// Where the frame begins of one that is alone.
    pub start: u32,
    /// Where the receive buffer begins.
    pub base: u32,
    /// Where a datagram that arrives goes to in the host's memory.
    pub(super) host: HostAddress,
    /// The pieces of one that is alone otherwise.
    pieces: Pieces,
    /// The sum of what the write channel has moved.
    pub data: u32,
    /// Why a datagram is refused, if it is.
    pub refused: Option<Refusal>,
    /// Whether the oldest datagram is complete, or one in front of it, and its completion waits for a
    /// write descriptor.
    pub is_unreported: bool,
    /// The completion that waits for another one.
    pub(super) pairs: Pairs,
    /// Whether the end of RECV's frame says that it can be taken. RDMA may have an older frame.
    pub is_good: bool,
    /// Bytes of data that were queued of a frame that arrives, and those that are to be next.
    pub written: u32,
    /// See [`written`](Self::written).
    pub chunk: u32,
    /// What RECV tells RDMA.
    pub signal: Option<rdma::Event>,
}

impl Work {
    /// None.
    pub const NONE: Work = Work {
        flights: Flights::NONE,
        start: 0,
        base: 0,
        host: HostAddress { high: 0, low: 0 },
        pieces: Pieces::NONE,
        data: 0,
        refused: None,
        is_unreported: false,
        pairs: Pairs::NONE,
        is_good: false,
        written: 0,
        chunk: 0,
        signal: None,
    };

    /// The pieces of the descriptor that was chosen by [`choose_pieces`](Self::choose_pieces).
    pub(super) const fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Takes the endpoint's next descriptor for a frame that arrives, if it has one of one piece that
    /// is fit.
    pub(super) fn choose<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) -> bool {
        let flight = self.flights.next();
        let Some(queue) = reporter.queues.get_mut(flight.datagram.endpoint as usize) else {
            return false;
        };
        let Some(host) = flight.take_descriptor(queue, &mut io.bus) else {
            return false;
        };
        self.host = host;
        self.flights.take_alone();
        true
    }

    /// Takes the endpoint's next descriptor for a datagram that is alone, if it has one that is fit.
    #[inline(never)]
    pub(super) fn choose_pieces<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        let flight = self.flights.next();
        let Datagram {
            endpoint, length, ..
        } = flight.datagram;
        flight.segment = [0; 2];
        while let Some(queue) = reporter.queues.get_mut(endpoint as usize)
            && queue.received != queue.filled
        {
            let descriptor = EUDP_BLOCK + receive_slot(endpoint, queue.received);
            let bus = &mut io.bus;
            let to = bus.load(descriptor + DescriptorWord::To as u32);
            flight.cookie = bus.load(descriptor + DescriptorWord::Cookie as u32);
            match self.pieces.take(bus, endpoint, descriptor, pieces_of(to)) {
                Ok(room) if room >= length => {
                    queue.take();
                    return;
                }
                Ok(_) => {
                    // Too short for this one: it may be long enough for the next.
                    self.refused = Some(Refusal::BadRegion);
                    return;
                }
                Err(status) => {
                    queue.take();
                    queue.finish();
                    reject(reporter, io, flight, status);
                }
            }
        }
        self.refused = Some(Refusal::NoBuffer);
    }

    /// The oldest datagram is complete: its completion is queued if there is a write descriptor. If there is
    /// none, it is to be [reported](Self::report) later.
    #[inline(always)]
    pub(super) fn complete<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        let Datagram {
            endpoint, length, ..
        } = self.flights.oldest().datagram;
        let Some(queue) = reporter.queues.get_mut(endpoint as usize) else {
            return;
        };
        queue.finish();
        if self.pairs.are_for(length) {
            return self.complete_long(queue, io);
        }
        self.is_unreported = !io.has_write_room(1);
        if self.is_unreported {
            return self.flights.stop();
        }
        self.flights.complete(queue, io, WriteNote::QUIET);
        self.flights.finish_completed();
    }

    /// The oldest datagram's memory cannot be written.
    #[inline(never)]
    fn fail<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        if let Some(part) = self.flights.oldest().part() {
            give_up(reporter, io, part.assembly, Refusal::BadRegion);
            return self.flights.finish();
        }
        self.refuse(io, Refusal::BadRegion);
        if self.flights.is_oldest_completed() {
            // What is queued says so.
            return self.flights.finish_completed();
        }
        let flight = self.flights.oldest();
        flight.spoil();
        if let Some(queue) = reporter.queues.get_mut(flight.endpoint() as usize) {
            queue.finish();
        }
        self.is_unreported = true;
        self.report(reporter, io);
    }

    /// Queues the completion of the datagram that is alone, behind its data. There is room.
    #[inline(never)]
    fn complete_ahead<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        let endpoint = self.flights.oldest().datagram.endpoint;
        if let Some(queue) = reporter.queues.get_mut(endpoint as usize) {
            self.flights.complete(queue, io, WriteNote::COMPLETION);
            queue.finish();
        }
    }

    /// The oldest datagram is refused.
    #[inline(never)]
    pub(super) fn leave<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        otherwise: Refusal,
    ) {
        self.refuse(io, otherwise);
        self.post_again(reporter, io);
        self.complete_held(reporter, io);
    }

    /// The oldest datagram is none.
    #[inline(never)]
    pub(super) fn forget<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        if self.flights.oldest().part().is_some() {
            // Its datagram has the descriptor.
            return self.flights.finish();
        }
        self.refused = None;
        self.post_again(reporter, io);
    }

    /// The oldest datagram gets no completion: its descriptor is posted again, as the next one.
    #[inline(always)]
    fn post_again<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        let Flight {
            datagram,
            cookie,
            segment: [what, offset],
        } = *self.flights.oldest();
        let endpoint = datagram.endpoint;
        if let Some(queue) = reporter.queues.get_mut(endpoint as usize) {
            queue.give_back();
            if what != 0 {
                // The slot is that of the last one that was taken, who needs it no more.
                let descriptor = EUDP_BLOCK + receive_slot(endpoint, queue.received);
                let bus = &mut io.bus;
                bus.store(descriptor + DescriptorWord::Cookie as u32, cookie);
                bus.store(descriptor + DescriptorWord::To as u32, to_word(1, 0, 0));
                bus.store(descriptor + DescriptorWord::Data as u32, what);
                bus.store(descriptor + DescriptorWord::Data as u32 + 4, offset);
            }
        }
        self.flights.finish();
    }

    /// Counts the refusal.
    #[inline(never)]
    pub(super) fn refuse<B: Dispatch>(&mut self, io: &mut IoA<B>, otherwise: Refusal) {
        let refusal = self.refused.take().unwrap_or(otherwise);
        bump(&mut io.bus, word(BlockWord::Refused) + refusal as u32);
    }
}

/// The descriptor of a datagram is of no use, and is off its queue.
#[inline(never)]
fn reject<B: Dispatch>(reporter: &mut Reporter, io: &mut IoA<B>, flight: &Flight, status: Status) {
    let entry = Entry {
        cookie: flight.cookie,
        kind: Kind::Received,
        status: status as u32,
        ..Entry::NONE
    };
    // The caller has seen room for as many as there are slots.
    let _ = reporter.complete_one(io, flight.datagram.endpoint, &entry);
}

/// The card, for a handler's time.
pub struct Card<'a, B: Dispatch> {
    /// What the machines work on.
    pub work: &'a mut Work,
    /// Completions.
    pub reporter: &'a mut Reporter,
    /// CPU A's resources.
    pub io: &'a mut IoA<B>,
}

impl<B: Dispatch> World<recv::Recv> for Card<'_, B> {
    #[inline(always)]
    fn holds(&mut self, condition: recv::Condition) -> bool {
        match condition {
            recv::Condition::MayCut => self.work.chunk != 0,
            recv::Condition::Good => self.work.is_good,
        }
    }

    /// Its room is freed by who takes it off the ring.
    #[inline(always)]
    fn act(&mut self, action: recv::Action) {
        self.work.signal = match action {
            recv::Action::Open => Some(rdma::Event::Opened),
            recv::Action::TellMore => Some(rdma::Event::More),
            recv::Action::TellLast => Some(rdma::Event::LastGood),
            recv::Action::TellBad | recv::Action::TellGone => Some(rdma::Event::Gone),
            recv::Action::Nothing
            | recv::Action::Follow
            | recv::Action::QueueWhole
            | recv::Action::Discard => None,
        };
    }
}

impl<B: Dispatch> World<rdma::Rdma> for Card<'_, B> {
    #[inline(always)]
    fn holds(&mut self, condition: rdma::Condition) -> bool {
        match condition {
            rdma::Condition::BufferPosted => self.work.refused.is_none(),
            rdma::Condition::EnoughHere => self.work.chunk != 0,
            rdma::Condition::Sumless => !self.work.flights.oldest().datagram.is_summed,
            rdma::Condition::Completed => self.work.flights.is_oldest_completed(),
            rdma::Condition::SumRight => {
                let data = self.work.data;
                self.work.flights.oldest().datagram.has_sum(data)
            }
            rdma::Condition::MoreQueued => self.work.flights.are_more(),
        }
    }

    #[inline(always)]
    fn act(&mut self, action: rdma::Action) {
        match action {
            rdma::Action::WriteWhole | rdma::Action::WriteWholeAndComplete => {
                self.work.flights.take_alone();
                self.scatter();
                if action == rdma::Action::WriteWholeAndComplete {
                    self.work.complete_ahead(self.reporter, self.io);
                }
            }
            rdma::Action::Complete => self.work.complete(self.reporter, self.io),
            rdma::Action::Forget => self.work.forget(self.reporter, self.io),
            rdma::Action::Leave => self.work.leave(self.reporter, self.io, Refusal::BadSum),
            rdma::Action::Drop => self.work.refuse(self.io, Refusal::NoBuffer),
            rdma::Action::WriteChunk => self.write_chunk(0),
            rdma::Action::WriteRest => self.write_rest(),
            rdma::Action::WriteRestAndComplete => {
                self.write_rest();
                self.work.complete_ahead(self.reporter, self.io);
            }
            rdma::Action::Finish => self.work.flights.finish_completed(),
            rdma::Action::Fail => self.work.fail(self.reporter, self.io),
            rdma::Action::Nothing | rdma::Action::Close => {}
        }
    }
}

impl<B: Dispatch> Card<'_, B> {
    /// Queues the rest of a datagram that has arrived.
    #[inline(always)]
    fn write_rest(&mut self) {
        let length = self.work.flights.oldest().datagram.length;
        self.work.chunk = length - self.work.written;
        self.io.write_ring.store_sum(&mut self.io.bus);
        self.write_chunk(Sum::STORED);
    }

    /// Queues the next part of a datagram that arrives; the write channel goes on with its sum.
    #[cfg_attr(
        all(target_arch = "mips", not(feature = "transitions")),
        unsafe(link_section = ".scratch_a.over")
    )]
    #[inline(never)]
    fn write_chunk(&mut self, last: u32) {
        let Work {
            start,
            base,
            host,
            written,
            chunk,
            ..
        } = *self.work;
        let begins = if written == 0 { Sum::BEGINS } else { 0 };
        let transfer = Transfer {
            host: host.plus(written),
            local: frame::wrapped(base, start + HEADERS + written),
            length: chunk,
            state: self.io.states.data & !FREES | Sum::ON | begins | last,
            note: WriteNote::DATAGRAM.word(),
        };
        self.io.put_awaited(&transfer);
        self.work.written = written + chunk;
        self.work.chunk = 0;
    }

    /// Queues the transfers of a datagram's data into the pieces of memory.
    #[inline(never)]
    fn scatter(&mut self) {
        let mut left = self.work.flights.oldest().datagram.length;
        let Work {
            start,
            base,
            pieces,
            ..
        } = &*self.work;
        let mut local = frame::wrapped(*base, start + HEADERS);
        let mut state = self.io.states.data & !FREES | Sum::ON | Sum::BEGINS;
        let mut number = 0;
        while left != 0 {
            let piece = pieces.of(number);
            let bytes = piece.bytes.min(left);
            left -= bytes;
            let mut transfer = Transfer {
                host: piece.host,
                local,
                length: bytes,
                state,
                note: WriteNote::DATAGRAM_PIECE.word(),
            };
            if left == 0 {
                transfer.state |= Sum::STORED | self.io.states.data & FREES;
                transfer.note = WriteNote::DATAGRAM.word();
                self.io.write_ring.store_sum(&mut self.io.bus);
                self.io.put_awaited(&transfer);
            } else {
                self.io.write_ring.put(&mut self.io.bus, &transfer);
            }
            state &= !Sum::BEGINS;
            local = frame::wrapped(*base, local + bytes);
            number += 1;
        }
    }
}
