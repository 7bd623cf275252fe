//! Frames that are written to the host while they arrive.
//!
//! ```text
//!            start                            R[C4]
//!              v                                v
//!   RX buffer  | headers | written | to be next |   what has not come
//!                           ===>  the process's memory
//! ```
//!
//! `R[E0]` bit 2 says that a frame arrives; it begins behind the last one. When its headers are there
//! and name an endpoint with a buffer of one piece, its data is written in chunks behind `R[C4]`. The
//! last chunk waits for the frame's end: its CRC, and that it is the frame that was followed. So
//! nothing is completed that the MAC or the sum does not vouch for, and what has been written of a
//! frame that turns out to be bad is overwritten by the next one. Fragments are
//! [written so](super::early_part), too, where nothing is yet.
//!
//! CPU A looks when there is nothing else to do: [Follow Frame](super::events::follow) has the lowest
//! priority. It is set while descriptors are posted, unless the host wants frames whole. Short frames
//! are not to wait for a look to end: between two looks CPU A waits for other events. The event is
//! cleared while a frame arrives whose length says that it is short, and while RDMA has others.

use super::chunk::chunk;
use super::completion::Reporter;
use super::datagram::{Datagram, REACH};
use super::delivery::TRANSFERS;
use super::headers::{ETHERNET, HEADERS};
use super::receiver::{Arrival, Receiver};
use super::{EudpA, wait_for_writes};
use crate::io::{IoA, filter};
use crate::path::receive::frame::{CRC, wrapped};
use crate::path::receive::{Receive, guarded};
use frame_pipeline::{rdma, recv};
use tigon2_chip::bits::MacRxState;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::{Arriving, ReceivedFrame};

/// Bytes that have to be there before headers are looked at: whole words.
const LOOK: u32 = 48;
/// Bytes of the longest packet that is written as a whole: of such a one there is too little to write
/// early.
const LEAST: u32 = 2048;
/// Times that other events are looked for between two looks: 170 cycles, in which 240 bytes come.
const BETWEEN: u32 = 12;
/// Bytes that no frame has.
const NO_FRAME: u32 = 0x4000;

/// What a frame's end is for a frame that was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It has to wait for the write channel.
    Waits,
    /// RDMA has the frame.
    Taken,
    /// RDMA has it no more: the frame goes the way of all.
    Passed,
}

impl Receiver {
    /// Whether RDMA has a frame that arrives.
    #[inline(always)]
    pub fn is_through(&self) -> bool {
        self.recv.is_in(recv::State::RecvThrough)
    }

    /// An event of RECV, and what it tells RDMA; in SRAM, of events that come rarely.
    #[inline(never)]
    fn report_event<B: Dispatch>(
        &mut self,
        event: recv::Event,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
    ) {
        self.hear(event, reporter, io);
        if let Some(signal) = self.work.signal.take() {
            self.step(signal, reporter, io);
        }
    }

    /// The frame that begins at `start` is followed.
    #[inline(never)]
    fn follow_from<B: Dispatch>(&mut self, start: u32, reporter: &mut Reporter, io: &mut IoA<B>) {
        if !reporter.follows {
            // The host wants them whole from now on.
            return io.bus.clear(EventBit::FollowFrame);
        }
        self.arrival = Arrival {
            start,
            // What headers are read of has to lie in one piece.
            is_passed: start > PACKET_MEMORY_END - REACH,
            ..Arrival::NONE
        };
        self.hear(recv::Event::Begun, reporter, io);
    }

    /// A frame has ended, or was written: CPU A looks what arrives, unless RDMA has others. A frame
    /// that is followed is its only one.
    #[inline(always)]
    pub(super) fn look_on<B: Dispatch>(&self, reporter: &Reporter, io: &mut IoA<B>) {
        let looks = reporter.follows && !(self.recv.is_in(recv::State::Idle) && self.is_busy());
        io.bus.set_to(EventBit::FollowFrame, looks);
    }

    /// The frame that was followed is none.
    #[inline(never)]
    fn forget<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        if !self.recv.is_in(recv::State::Idle) {
            self.work.is_good = false;
            self.report_event(recv::Event::GaveUp, reporter, io);
        }
    }
}

/// Looks whether a frame arrives, and waits for the next look, or for another event: that has to be
/// seen as soon as without this one. Returns whether there is nothing but a frame that has ended.
#[inline(always)]
pub(super) fn look<B: Dispatch>(
    receive: &mut Receive,
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
) -> bool {
    if guarded::arriving(receive, io) == Arriving::Frame && begin(receive, reporter, receiver, io) {
        return false;
    }
    for _ in 0..BETWEEN {
        let others = io.bus.others(Cpu::A, EventBit::FollowFrame);
        if others != 0 {
            return others == EventBit::ReceiveComplete.mask();
        }
    }
    false
}

/// Looks at the frame that is followed.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
#[inline(never)]
pub(super) fn glance<B: Dispatch>(
    receive: &mut Receive,
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
) {
    match guarded::arriving(receive, io) {
        // Receive Complete sees to it first.
        Arriving::Ended => {}
        Arriving::Frame if receiver.arrival.is_passed => {}
        Arriving::Frame => grown(reporter, receiver, io, receive.base()),
        Arriving::Nothing => receiver.forget(reporter, io),
    }
}

/// A frame arrives: begins to follow it, if it is worth that. Returns whether it has begun, or whether
/// there is too little of it to tell.
#[inline(always)]
fn begin<B: Dispatch>(
    receive: &mut Receive,
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
) -> bool {
    let start = guarded::next_start(receive, io);
    // If the buffer's end is in between, this may look too early: `open` looks again.
    if io.bus.read(Register::RxProducer).wrapping_sub(start) < LOOK {
        return true;
    }
    if packet(&mut io.bus, receive.base(), start) <= LEAST {
        io.bus.clear(EventBit::FollowFrame);
        return false;
    }
    receiver.follow_from(start, reporter, io);
    true
}

/// Bytes of the IPv4 packet of the frame that begins at `start`.
#[inline(always)]
fn packet<B: Dispatch>(bus: &mut B, base: u32, start: u32) -> u32 {
    bus.load(wrapped(base, start + ETHERNET + 2)) >> 16
}

/// No frame is followed from now on.
pub(super) fn rest<B: Dispatch>(reporter: &mut Reporter, io: &mut IoA<B>) {
    reporter.follows = false;
    io.bus.clear(EventBit::FollowFrame);
}

/// The frame that arrives has grown.
#[inline(always)]
fn grown<B: Dispatch>(
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
    base: u32,
) {
    let filled = io.bus.read(Register::RxProducer);
    let there = distance(base, receiver.arrival.start, filled);
    if there < receiver.arrival.seen || is_given_up(io) {
        return receiver.forget(reporter, io);
    }
    if there > NO_FRAME {
        // After a reset nothing says where the first frame begins.
        receiver.arrival.is_passed = true;
        return;
    }
    receiver.arrival.seen = there;
    if receiver.is_through() {
        let Arrival {
            shorter, is_part, ..
        } = receiver.arrival;
        if is_part && !receiver.is_part_open(io) {
            return receiver.forget(reporter, io);
        }
        if receiver.rdma.is_in(rdma::State::FineGrainedRdmaDone) && io.has_write_room(TRANSFERS) {
            let Datagram { length, .. } = receiver.work.flights.oldest().datagram;
            receiver.work.chunk = chunk(length, receiver.work.written, there + shorter);
            if receiver.work.chunk != 0 {
                receiver.hear(recv::Event::Grown, reporter, io);
                receiver.step(rdma::Event::More, reporter, io);
            }
        }
    } else if there >= LOOK {
        open(reporter, receiver, io, base);
    }
}

/// Its headers are there.
#[inline(never)]
fn open<B: Dispatch>(reporter: &mut Reporter, receiver: &mut Receiver, io: &mut IoA<B>, base: u32) {
    let Arrival {
        start, mut seen, ..
    } = receiver.arrival;
    if receiver.is_busy() || receiver.waits {
        // It would not be the only one.
        receiver.arrival.is_passed = true;
        return;
    }
    let mark = mark(&mut io.bus, start);
    if !receiver.arrival.is_judged || mark != receiver.arrival.mark {
        receiver.arrival.is_judged = true;
        receiver.arrival.mark = mark;
        look_at_headers(reporter, receiver, io, base);
        if receiver.arrival.is_passed || !receiver.arrival.is_part {
            return;
        }
        // That took a while.
        seen = distance(base, start, io.bus.read(Register::RxProducer));
    }
    let Arrival {
        shorter, is_part, ..
    } = receiver.arrival;
    let work = &mut receiver.work;
    let Datagram {
        endpoint, length, ..
    } = work.flights.next().datagram;
    let chunk = chunk(length, 0, seen + shorter);
    if chunk == 0 || !io.has_write_room(TRANSFERS) {
        return;
    }
    let has_memory = if is_part {
        receiver.choose_part(io)
    } else {
        reporter.open >> endpoint & 1 != 0
            && reporter.has_next(io, endpoint)
            && work.choose(reporter, io)
    };
    if !has_memory {
        receiver.arrival.is_passed = true;
        return;
    }
    let work = &mut receiver.work;
    work.start = start - shorter;
    work.base = base;
    work.written = 0;
    work.chunk = chunk;
    work.is_good = true;
    receiver.hear(recv::Event::Grown, reporter, io);
    receiver.step(rdma::Event::Opened, reporter, io);
}

/// Judges the frame that arrives by its headers.
#[inline(never)]
fn look_at_headers<B: Dispatch>(
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
    base: u32,
) {
    let start = receiver.arrival.start;
    let bus = &mut io.bus;
    receiver.arrival.shorter = 0;
    receiver.arrival.is_part = false;
    // Whether its length is the frame's shows at its end.
    let may_be_ours = packet(bus, base, start) > LEAST && !filter::is_of_group(bus, start);
    let datagram = &mut receiver.work.flights.next().datagram;
    receiver.arrival.is_passed = !may_be_ours;
    if may_be_ours && !judge(datagram, reporter, bus, (start, base)) {
        receiver.arrival.is_passed = !receiver.judge_part(reporter, io, start, NO_FRAME);
    }
}

/// What tells a frame from another one, of whose headers the first [`REACH`] bytes lie in one piece:
/// its length, identification and UDP checksum. The MAC may drop a frame without a word, and CPU A look
/// again only when the next one has come as far. A fragment's [IP sum](Receiver::mark) counts, too.
#[inline(always)]
fn mark<B: Dispatch>(bus: &mut B, start: u32) -> u32 {
    bus.load(start + ETHERNET + 2)
        .wrapping_add(bus.load(start + HEADERS - 2))
}

/// Whether headers are right, and an endpoint's.
#[inline(always)]
fn judge<B: Dispatch>(
    datagram: &mut Datagram,
    reporter: &Reporter,
    bus: &mut B,
    (start, base): (u32, u32),
) -> bool {
    let endpoint = datagram.take(reporter, bus, start, u32::MAX, base);
    endpoint.is_some() && datagram.is_right
}

/// A frame has ended while RDMA has one that arrived: most often that one.
#[cfg_attr(
    all(target_arch = "mips", not(feature = "transitions")),
    unsafe(link_section = ".scratch_a.system")
)]
#[inline(never)]
pub fn ended<B: Dispatch>(
    receiver: &mut Receiver,
    reporter: &mut Reporter,
    io: &mut IoA<B>,
    frame: &ReceivedFrame,
) -> End {
    let is_other = frame.start != receiver.arrival.start
        || mark(&mut io.bus, frame.start) != receiver.arrival.mark;
    if is_other || is_given_up(io) {
        receiver.forget(reporter, io);
        return End::Passed;
    }
    let Arrival {
        shorter, is_part, ..
    } = receiver.arrival;
    let bytes = HEADERS - shorter + receiver.work.flights.oldest().datagram.length + CRC;
    receiver.work.is_good =
        frame.errors == 0 && frame.length >= bytes && (!is_part || receiver.is_part_open(io));
    if !receiver.work.is_good {
        receiver.report_event(recv::Event::Ended, reporter, io);
        return End::Passed;
    }
    if receiver.rdma.defers(rdma::Event::LastGood) || !io.has_write_room(TRANSFERS) {
        wait_for_writes(io);
        return End::Waits;
    }
    receiver.hear(recv::Event::Ended, reporter, io);
    receiver.end(reporter, io);
    if is_part {
        receiver.note_part(io);
    }
    End::Taken
}

/// A frame has ended that is not an endpoint's.
#[inline(always)]
pub fn passed<B: Dispatch>(receiver: &mut Receiver, reporter: &mut Reporter, io: &mut IoA<B>) {
    if receiver.recv.is_in(recv::State::Recv) {
        receiver.work.is_good = false;
        receiver.report_event(recv::Event::Ended, reporter, io);
    }
}

/// The MAC raises an attention: it may have given a frame up.
#[inline(always)]
pub fn given_up<B: Dispatch>(eudp: &mut EudpA, io: &mut IoA<B>) {
    if let Some((reporter, receiver)) = eudp.parts() {
        receiver.forget(reporter, io);
        receiver.look_on(reporter, io);
    }
}

/// Whether the MAC says that it has given a frame up, for lack of room or of a signal.
#[inline(always)]
fn is_given_up<B: Dispatch>(io: &mut IoA<B>) -> bool {
    let given_up = MacRxState::new()
        .with_buffer_attention(true)
        .with_sync_attention(true);
    io.bus.read(Register::MacRxState) & given_up.into_bits() != 0
}

/// Bytes from `start` to `end` in the receive buffer at `base`.
const fn distance(base: u32, start: u32, end: u32) -> u32 {
    if end >= start {
        end - start
    } else {
        end.wrapping_sub(start)
            .wrapping_add(PACKET_MEMORY_END - base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_go_round_the_buffer() {
        let base = 0x18_0000;
        assert_eq!(distance(base, base, base), 0);
        assert_eq!(distance(base, base + 8, base + 64), 56);
        assert_eq!(distance(base, PACKET_MEMORY_END - 8, base + 16), 24);
    }
}
