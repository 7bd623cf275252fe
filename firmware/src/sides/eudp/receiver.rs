//! The events of RECV and RDMA on CPU A: datagrams that arrive.
//!
//! A frame for an endpoint is stored by the MAC, judged, and its data written into the pieces of the
//! endpoint's next descriptor, by the write channel, which sums it meanwhile. The descriptor is
//! completed when the sum is right; otherwise it stays posted, and the next datagram overwrites what
//! is there. The completion of a datagram without a sum is queued with its data. What is no whole UDP
//! datagram for an endpoint goes the ways of all other frames.
//!
//! ```text
//!   MAC ── RECV: Ended ──► RDMA: Waiting ──► write channel ── Written ──► completion
//!       ── RECV: Begun, Grown ──► RDMA: Opened, More ──►      [`arrival`](super::arrival)
//! ```
//!
//! RDMA may have four whole datagrams or fragments: while the write channel works on one, CPU A takes
//! the next. A datagram for several pieces of memory, or that is written while it arrives, is alone.

use super::answers::Answers;
use super::assembly::Assembly;
use super::completion::Reporter;
use super::datagram::Datagram;
use super::delivery::{CHOICE, Card, Work};
use super::fragment_header::Fragment;
use super::predicted::Predicted;
use super::recorded::{self, RDMA, RECV, Recorder};
use super::{bump, word};
use crate::io::IoA;
use frame_pipeline::{Machine, Step, World, rdma, recv};
use host_interface::eudp::{BlockWord, Refusal};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// A frame that arrives.
#[derive(Debug)]
pub struct Arrival {
    /// Where it begins.
    pub(super) start: u32,
    /// How much of it was there at the last look.
    pub(super) seen: u32,
    /// Whether it is to be taken as a whole.
    pub(super) is_passed: bool,
    /// Whether its headers were looked at, and are in the work.
    pub(super) is_judged: bool,
    /// What tells it from another one that begins at the same place, if it was judged.
    pub(super) mark: u32,
    /// By how many bytes they are shorter than a datagram's: [`UDP`](super::headers::UDP) if they are a
    /// fragment's that is not the first.
    pub(super) shorter: u32,
    /// Whether it is a fragment, if it was judged.
    pub(super) is_part: bool,
    /// Whether that is the [predicted](super::predicted) one.
    pub(super) is_next: bool,
}

impl Arrival {
    /// None.
    pub const NONE: Arrival = Arrival {
        start: 0,
        seen: 0,
        is_passed: false,
        is_judged: false,
        mark: 0,
        shorter: 0,
        is_part: false,
        is_next: false,
    };
}

/// RECV, RDMA and what they work on.
#[derive(Debug)]
pub struct Receiver {
    pub(super) recv: Machine<recv::Recv>,
    pub(super) rdma: Machine<rdma::Rdma>,
    pub(super) work: Work,
    /// The frame that arrives.
    pub(super) arrival: Arrival,
    /// Whether frames may wait for RDMA.
    pub(super) waits: bool,
    /// The row of the last fragment's datagram.
    pub(super) recent: Assembly,
    /// The row that was taken last.
    pub(super) newest: Assembly,
    /// The fragment that is next in line.
    pub(super) predicted: Predicted,
    /// The fragment that arrives out of order.
    pub(super) early: Fragment,
    /// The sum of the IP header of one that arrives, in bits 31:16: that of others of its datagram differs.
    pub(super) mark: u32,
    /// Whether any datagram is known of which fragments came.
    pub(super) knows_fragments: bool,
}

impl Receiver {
    /// Nothing has arrived.
    pub const fn new() -> Receiver {
        Receiver {
            recv: Machine::new(),
            rdma: Machine::new(),
            work: Work::NONE,
            arrival: Arrival::NONE,
            waits: false,
            recent: Assembly::FIRST,
            newest: Assembly::FIRST,
            predicted: Predicted::NONE,
            early: Fragment::NONE,
            mark: 0,
            knows_fragments: false,
        }
    }

    /// Whether RDMA has a datagram of an endpoint's.
    pub fn works_for(&self, endpoint: u32) -> bool {
        let mut flights = self.work.flights.each();
        flights.any(|flight| flight.endpoint() == endpoint) || self.work.pairs.hold_for(endpoint)
    }

    /// Whether RDMA has a datagram.
    #[inline(always)]
    pub(super) fn is_busy(&self) -> bool {
        !self.rdma.is_in(rdma::State::Idle) || self.work.is_unreported
    }

    /// Whether RDMA can take no datagram now: what it has written calls again.
    #[inline(always)]
    pub(super) fn is_full<B: Dispatch>(&self, io: &mut IoA<B>) -> bool {
        self.work.flights.room() == 0 || !io.has_write_room(CHOICE)
    }
}

/// What came of a frame for an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It waits until RDMA has nothing else.
    No,
    /// It is refused, or alone in RDMA.
    Alone,
    /// It is in the write channel's queue, which frees its room.
    Queued,
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver::new()
    }
}

impl Receiver {
    /// Takes the datagram whose headers are the next ones, alone: one with several pieces of memory,
    /// without data, or that is refused. It waits until RDMA has no other, unless its headers are
    /// wrong.
    #[inline(never)]
    pub(super) fn take_slowly<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        (start, base): (u32, u32),
    ) -> Taken {
        let Datagram {
            is_right, length, ..
        } = self.work.flights.next().datagram;
        if is_right && self.is_busy() {
            return Taken::No;
        }
        let work = &mut self.work;
        work.start = start;
        work.base = base;
        work.is_good = is_right;
        self.hear(recv::Event::Ended, reporter, io);
        if !is_right {
            self.work.refuse(io, Refusal::BadHeader);
            return Taken::Alone;
        }
        self.work.choose_pieces(reporter, io);
        self.step(rdma::Event::Waiting, reporter, io);
        if length == 0 && !self.rdma.is_in(rdma::State::Idle) {
            // There is nothing to write.
            self.work.data = 0;
            self.step(rdma::Event::Written, reporter, io);
            self.work.report(reporter, io);
        }
        Taken::Alone
    }

    /// An event of RECV.
    #[cfg_attr(not(feature = "transitions"), inline(always))]
    #[cfg_attr(feature = "transitions", inline(never))]
    pub(super) fn hear<B: Dispatch>(
        &mut self,
        event: recv::Event,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        let work = &mut self.work;
        let mut card = Card { work, reporter, io };
        let step = self.recv.step(event, &mut card);
        note(RECV, step, io);
    }

    /// The frame that was followed has ended well: RDMA hears of it.
    #[inline(always)]
    pub(super) fn end<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        let Receiver { rdma, work, .. } = self;
        let answers = Answers {
            is_sumless: !work.flights.oldest().datagram.is_summed,
            ..Answers::NONE
        };
        match answers.step(rdma, rdma::Event::LastGood, Recorder::of(&mut io.bus)) {
            Some(action) => World::<rdma::Rdma>::act(&mut Card { work, reporter, io }, action),
            None => fault(&mut io.bus),
        }
    }

    /// An event of RDMA.
    #[cfg_attr(not(feature = "transitions"), inline(always))]
    #[cfg_attr(feature = "transitions", inline(never))]
    pub(super) fn step<B: Dispatch>(
        &mut self,
        event: rdma::Event,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        let work = &mut self.work;
        let mut card = Card { work, reporter, io };
        let step = self.rdma.step(event, &mut card);
        note(RDMA, step, io);
    }
}

#[inline(always)]
fn note<B: Dispatch>(machine: usize, step: Step, io: &mut IoA<B>) {
    recorded::note(&mut io.bus, machine, step);
    if !matches!(step, Step::Taken(_)) {
        fault(&mut io.bus);
    }
}

/// A transition that a table excludes.
#[inline(never)]
pub(super) fn fault<B: Bus>(bus: &mut B) {
    bump(bus, word(BlockWord::Faults));
}
