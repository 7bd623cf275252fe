//! The events of RECV and RDMA on CPU A: datagrams that arrive.
//!
//! A frame for an endpoint is stored by the MAC, judged, and its data written into the pieces of the
//! endpoint's next descriptor, by the write channel, which sums it meanwhile. The descriptor is
//! completed when the sum is right; otherwise it stays posted, and the next datagram overwrites what
//! is there. What is no whole UDP datagram for an endpoint goes the ways of all other frames.
//!
//! ```text
//!   MAC ── RECV: Ended ──► RDMA: Waiting ──► write channel ── Written ──► completion
//!       ── RECV: Begun, Grown ──► RDMA: Opened, More ──►      [`arrival`](super::arrival)
//! ```
//!
//! RDMA writes one datagram at a time. While it does, the next frame's headers are looked at.

use super::assembly::Assembly;
use super::completion::Reporter;
use super::datagram::Datagram;
use super::delivery::{Card, Work};
use super::{bump, word};
use crate::io::IoA;
use frame_pipeline::{Machine, Step, rdma, recv};
use host_interface::eudp::{BlockWord, Refusal};
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
}

impl Arrival {
    /// None.
    pub const NONE: Arrival = Arrival {
        start: 0,
        seen: 0,
        is_passed: false,
        is_judged: false,
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
    /// The number of a descriptor, whose frame is too short to be followed.
    pub(super) short: u32,
    /// What the headers of the oldest frame say.
    pub(super) next: Datagram,
    /// Where this begins; 0 if it was not looked at.
    pub(super) looked_at: u32,
    /// The row of the last fragment's datagram.
    pub(super) recent: Assembly,
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
            short: u32::MAX,
            next: Datagram::NONE,
            looked_at: 0,
            recent: Assembly::FIRST,
            knows_fragments: false,
        }
    }

    /// Whether the datagram in work is an endpoint's.
    pub fn works_for(&self, endpoint: u32) -> bool {
        let busy = self.rdma.defers(rdma::Event::Closed) || self.work.is_unreported;
        busy && self.work.datagram.endpoint == endpoint
    }

    /// Whether RDMA has a datagram.
    #[inline(always)]
    pub(super) fn is_busy(&self) -> bool {
        self.rdma.defers(rdma::Event::Waiting) || self.work.is_unreported
    }

    /// Whether a frame's headers are kept for later.
    #[inline(always)]
    pub(super) fn has_next(&self) -> bool {
        self.looked_at != 0
    }
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver::new()
    }
}

impl Receiver {
    /// Takes the datagram whose headers are in `work`.
    #[inline(always)]
    pub(super) fn take<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        start: u32,
        base: u32,
    ) {
        let work = &mut self.work;
        work.start = start;
        work.base = base;
        work.is_good = work.datagram.is_right;
        self.hear(recv::Event::Ended, reporter, io);
        if !self.work.datagram.is_right {
            self.work.refused = Some(Refusal::BadHeader);
            return self.refuse(io);
        }
        self.work.choose(reporter, io);
        self.step(rdma::Event::Waiting, reporter, io);
        if self.work.datagram.length == 0 && self.rdma.defers(rdma::Event::Waiting) {
            // There is nothing to write.
            self.written(reporter, io, 0);
        }
    }

    /// The write channel has written a datagram, and summed it.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
    #[inline(never)]
    pub fn written<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>, sum: u32) {
        self.work.data = sum;
        self.step(rdma::Event::Written, reporter, io);
    }

    /// An event of RECV.
    #[inline(always)]
    pub(super) fn hear<B: Dispatch>(
        &mut self,
        event: recv::Event,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        let work = &mut self.work;
        let mut card = Card { work, reporter, io };
        let step = self.recv.step(event, &mut card);
        note(step, io);
    }

    /// Reports what found no write descriptor.
    #[inline(always)]
    pub fn report<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        if self.work.is_unreported {
            self.report_again(reporter, io);
        }
    }

    #[inline(never)]
    fn report_again<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        self.work.report(reporter, io);
    }

    /// An event of RDMA.
    #[inline(always)]
    pub(super) fn step<B: Dispatch>(
        &mut self,
        event: rdma::Event,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        let work = &mut self.work;
        let mut card = Card { work, reporter, io };
        let step = self.rdma.step(event, &mut card);
        note(step, io);
        // A frame that still arrives is refused at its end.
        if self.work.refused.is_some() && !self.rdma.defers(rdma::Event::Waiting) {
            self.refuse(io);
        }
    }

    #[inline(never)]
    fn refuse<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        if let Some(refusal) = self.work.refused.take() {
            bump(&mut io.bus, word(BlockWord::Refused) + refusal as u32);
        }
    }
}

#[inline(always)]
fn note<B: Dispatch>(step: Step, io: &mut IoA<B>) {
    if !matches!(step, Step::Taken(_)) {
        bump(&mut io.bus, word(BlockWord::Faults));
    }
}
