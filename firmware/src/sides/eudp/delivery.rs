//! What the rows of RECV and RDMA do on the card.

use super::completion::{Entry, Reporter};
use super::datagram::{Datagram, HEADERS};
use super::part::Part;
use super::pieces::{Pieces, piece};
use super::sums::folded;
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::memory::layout::EUDP_BLOCK;
use crate::path::receive::frame;
use frame_pipeline::{World, rdma, recv};
use host_interface::eudp::{
    DescriptorWord, Kind, Refusal, SEGMENTS, SLOTS, Status, Verdict, receive_slot,
};
use tigon2_chip::HostAddress;
use tigon2_chip::bits::DmaState;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Transfers of a datagram, and its completion.
pub const TRANSFERS: u32 = SEGMENTS + 1;
/// The same with the completions of all useless descriptors that may stand in front of its own.
pub const CHOICE: u32 = SLOTS - 1 + TRANSFERS;
/// The bit by which a transfer frees what it has moved in the receive buffer.
pub(super) const FREES: u32 = DmaState::new().with_free_rx_buffer(true).into_bits();

/// The datagram in RDMA.
// In this order: in another one CPU A stores a register more for each datagram.
#[derive(Debug)]
#[repr(C)]
pub struct Work {
    /// What its headers say.
    pub datagram: Datagram,
    /// The frame, where it begins.
    pub start: u32,
    /// Where the receive buffer begins.
    pub base: u32,
    /// Where it goes to in the host's memory, unless that is in several pieces.
    host: HostAddress,
    /// The pieces, if it is.
    pieces: Pieces,
    is_scattered: bool,
    /// The descriptor's word.
    cookie: u32,
    /// The sum of what the write channel has moved.
    pub data: u32,
    /// Why the datagram is refused, if it is.
    pub refused: Option<Refusal>,
    /// Whether a completion found no write descriptor.
    pub is_unreported: bool,
    /// Whether the end of RECV's frame says that it can be taken. RDMA may have an older frame.
    pub is_good: bool,
    /// Bytes of data that were queued of a frame that arrives, and those that are to be next.
    pub written: u32,
    /// See [`written`](Self::written).
    pub chunk: u32,
    /// What RECV tells RDMA.
    pub signal: Option<rdma::Event>,
    /// The fragment that is written, if it is one.
    pub part: Part,
}

impl Work {
    /// None.
    pub const NONE: Work = Work {
        datagram: Datagram::NONE,
        start: 0,
        base: 0,
        host: HostAddress { high: 0, low: 0 },
        pieces: Pieces::NONE,
        is_scattered: false,
        cookie: 0,
        data: 0,
        refused: None,
        is_unreported: false,
        is_good: false,
        written: 0,
        chunk: 0,
        signal: None,
        part: Part::NONE,
    };

    /// Whether its place in the host's memory is one piece.
    #[inline(always)]
    pub const fn is_one_piece(&self) -> bool {
        !self.is_scattered
    }

    /// The word of the descriptor that was chosen.
    pub(super) const fn cookie(&self) -> u32 {
        self.cookie
    }

    /// That of one that was chosen before.
    pub(super) const fn set_cookie(&mut self, cookie: u32) {
        self.cookie = cookie;
    }

    /// The pieces of the descriptor that was chosen by [`choose_pieces`](Self::choose_pieces).
    pub(super) const fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// Takes the endpoint's next descriptor, if it has one that is fit.
    #[inline(always)]
    pub fn choose<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        let Datagram {
            endpoint, length, ..
        } = self.datagram;
        let Some(queue) = reporter.queues.get_mut(endpoint as usize) else {
            return;
        };
        if queue.received == queue.filled {
            self.refused = Some(Refusal::NoBuffer);
            return;
        }
        let bus = &mut io.bus;
        let descriptor = barrier(EUDP_BLOCK + receive_slot(endpoint, queue.received));
        let shape = bus.load(descriptor + DescriptorWord::Shape as u32);
        if shape >> 24 == 1 {
            // Most are one piece of memory.
            let at = descriptor + DescriptorWord::Data as u32;
            let (what, offset) = (bus.load(at), bus.load(at + 4));
            if let Some(piece) = piece(bus, endpoint, what >> 16, offset, what & 0xFFFF)
                && piece.bytes >= length
            {
                self.cookie = bus.load(descriptor + DescriptorWord::Cookie as u32);
                self.host = piece.host;
                self.is_scattered = false;
                return;
            }
        }
        self.choose_pieces(reporter, io);
    }

    /// The same of any descriptors.
    #[inline(never)]
    pub(super) fn choose_pieces<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        let Datagram {
            endpoint, length, ..
        } = self.datagram;
        self.is_scattered = true;
        while let Some(queue) = reporter.queues.get_mut(endpoint as usize)
            && queue.received != queue.filled
        {
            let descriptor = EUDP_BLOCK + receive_slot(endpoint, queue.received);
            let bus = &mut io.bus;
            let shape = bus.load(descriptor + DescriptorWord::Shape as u32);
            self.cookie = bus.load(descriptor + DescriptorWord::Cookie as u32);
            match self.pieces.take(bus, endpoint, descriptor, shape >> 24) {
                Ok(room) if room >= length => return,
                Ok(_) => {
                    // Too short for this one: it may be long enough for the next.
                    self.refused = Some(Refusal::BadRegion);
                    return;
                }
                Err(status) => self.reject(reporter, io, status),
            }
        }
        self.refused = Some(Refusal::NoBuffer);
    }

    /// The endpoint's next descriptor is of no use.
    #[inline(never)]
    fn reject<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>, status: Status) {
        let endpoint = self.datagram.endpoint;
        if let Some(queue) = reporter.queues.get_mut(endpoint as usize) {
            queue.received = queue.received.wrapping_add(1) & 0xFFFF;
        }
        let entry = Entry {
            cookie: self.cookie,
            kind: Kind::Received,
            status: status as u32,
            ..Entry::NONE
        };
        // The caller has seen room for as many as there are slots.
        let _ = reporter.complete_one(io, endpoint, &entry);
    }

    /// Reports the datagram.
    #[inline(always)]
    pub fn report<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        let Datagram {
            endpoint,
            length,
            is_summed,
            address,
            port,
            ..
        } = self.datagram;
        let verdict = if is_summed {
            Verdict::Right as u32
        } else {
            Verdict::Absent as u32
        };
        let entry = Entry {
            cookie: self.cookie,
            kind: Kind::Received,
            status: Status::Done as u32,
            length,
            address,
            port: port << 16 | verdict,
        };
        self.is_unreported = reporter.complete_one(io, endpoint, &entry).is_err();
    }
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
            rdma::Condition::SumRight => {
                let Datagram { is_summed, sum, .. } = self.work.datagram;
                !is_summed || folded(sum + self.work.data) == 0xFFFF
            }
        }
    }

    #[inline(always)]
    fn act(&mut self, action: rdma::Action) {
        match action {
            rdma::Action::WriteWhole => self.write(),
            rdma::Action::Complete => {
                let endpoint = self.work.datagram.endpoint;
                if let Some(queue) = self.reporter.queues.get_mut(endpoint as usize) {
                    queue.received = queue.received.wrapping_add(1) & 0xFFFF;
                }
                self.work.report(self.reporter, self.io);
            }
            rdma::Action::Forget => self.work.refused = None,
            rdma::Action::Leave => {
                let why = self.work.refused.unwrap_or(Refusal::BadSum);
                self.work.refused = Some(why);
            }
            rdma::Action::WriteChunk => self.write_chunk(0),
            rdma::Action::WriteRest => {
                let Work {
                    datagram, written, ..
                } = &*self.work;
                self.work.chunk = datagram.length - written;
                self.io.write_ring.store_sum(&mut self.io.bus);
                self.write_chunk(Sum::STORED);
            }
            rdma::Action::Nothing | rdma::Action::Drop | rdma::Action::Close => {}
        }
    }
}

impl<B: Dispatch> Card<'_, B> {
    /// Queues the transfers of the datagram's data.
    #[inline(always)]
    fn write(&mut self) {
        let Work {
            start,
            base,
            host,
            datagram,
            is_scattered,
            ..
        } = &*self.work;
        if datagram.length == 0 {
            return;
        }
        if *is_scattered {
            return self.scatter();
        }
        let io = &mut *self.io;
        io.write_ring.store_sum(&mut io.bus);
        let transfer = Transfer {
            host: *host,
            local: frame::wrapped(*base, start + HEADERS),
            length: datagram.length,
            state: io.states.data & !FREES | Sum::ON | Sum::BEGINS | Sum::STORED,
            note: WriteNote::DATAGRAM.word(),
        };
        io.put_awaited(&transfer);
    }

    /// Queues the next part of a datagram that arrives; the write channel goes on with its sum.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
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

    /// The same into several pieces of memory.
    #[inline(never)]
    fn scatter(&mut self) {
        let Work {
            start,
            base,
            pieces,
            datagram,
            ..
        } = &*self.work;
        let mut local = frame::wrapped(*base, start + HEADERS);
        let mut left = datagram.length;
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
                transfer.state |= Sum::STORED;
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
