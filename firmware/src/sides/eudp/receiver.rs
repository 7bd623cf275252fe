//! Datagrams that arrive: RECV and RDMA on CPU A.
//!
//! A frame for an endpoint is stored by the MAC, judged, and its data written into the pieces of the
//! endpoint's next descriptor, by the write channel, which sums it meanwhile. The descriptor is
//! completed when the sum is right; otherwise it stays posted, and the next datagram overwrites what
//! is there. What is no whole UDP datagram for an endpoint goes the ways of all other frames.
//!
//! ```text
//!   MAC ── RECV: Ended ──► RDMA: Waiting ──► write channel ── Written ──► completion
//! ```
//!
//! No frame is written while it arrives yet: of the tables of RECV and RDMA the coarse rows run.

use super::completion::{Entry, Reporter};
use super::frame::folded;
use super::job::{IP, Pieces, UDP};
use super::{EudpA, bump, each, room, word};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::memory::layout::EUDP_BLOCK;
use crate::path::receive::guarded::{self, Look, Next};
use crate::path::receive::queues::Queues;
use crate::path::receive::{Receive, frame};
use crate::sides::spine::{self, Spine};
use frame_pipeline::{Machine, Step, World, rdma, recv};
use host_interface::eudp::{
    BlockWord, DescriptorWord, Kind, MAILBOX, Refusal, SEGMENTS, Status, Verdict, receive_slot,
};
use tigon2_chip::bits::DmaState;
use tigon2_chip::events::EventBit;
use tigon2_chip::mailbox;
use tigon2_chip::memory::MAILBOXES;
use tigon2_hal::Bus;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Bytes of all headers.
const HEADERS: u32 = ETHERNET + IP + UDP;
/// Transfers of a datagram, and its completion.
const TRANSFERS: u32 = SEGMENTS + 1;
/// More packets follow, or it is not the first one.
const FRAGMENT: u32 = 0x3FFF;
/// The bit by which a transfer frees what it has moved in the receive buffer.
const FREES: u32 = DmaState::new().with_free_rx_buffer(true).into_bits();

/// The datagram in work.
#[derive(Debug)]
pub struct Work {
    endpoint: u32,
    /// The frame, where it begins.
    start: u32,
    /// Where the receive buffer begins.
    base: u32,
    /// Bytes of the datagram's data.
    length: u32,
    pieces: Pieces,
    /// The sum of what the write channel does not see, and what the channel has summed.
    headers: u32,
    data: u32,
    /// Whether the sender has made a checksum.
    summed: bool,
    /// What the completion says.
    entry: Entry,
    /// Why the datagram is refused, if it is.
    refused: Option<Refusal>,
    /// Whether a completion found no write descriptor.
    unreported: bool,
}

/// RECV, RDMA and what they work on.
#[derive(Debug)]
pub struct Receiver {
    recv: Machine<recv::Recv>,
    rdma: Machine<rdma::Rdma>,
    work: Work,
}

impl Receiver {
    /// Nothing has arrived.
    pub const fn new() -> Receiver {
        Receiver {
            recv: Machine::new(),
            rdma: Machine::new(),
            work: Work {
                endpoint: 0,
                start: 0,
                base: 0,
                length: 0,
                pieces: Pieces::NONE,
                headers: 0,
                data: 0,
                summed: false,
                entry: Entry::NONE,
                refused: None,
                unreported: false,
            },
        }
    }

    /// Whether the datagram in work is an endpoint's.
    pub fn works_for(&self, endpoint: u32) -> bool {
        let busy = self.rdma.defers(rdma::Event::Closed) || self.work.unreported;
        busy && self.work.endpoint == endpoint
    }
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver::new()
    }
}

/// The card, for a handler's time.
struct Card<'a, B: Dispatch> {
    work: &'a mut Work,
    reporter: &'a mut Reporter,
    io: &'a mut IoA<B>,
}

/// Receive complete: some frames.
#[inline(always)]
pub fn complete<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    spine: &mut Spine,
    eudp: &mut EudpA,
    io: &mut IoA<B>,
) {
    if let Some((reporter, receiver)) = eudp.parts()
        && reporter.open != 0
    {
        return complete_some(receive, reporter, receiver, io);
    }
    spine::complete(receive, queues, spine, io);
}

/// The same with endpoints.
#[inline(never)]
fn complete_some<B: Dispatch>(
    receive: &mut Receive,
    reporter: &mut Reporter,
    receiver: &mut Receiver,
    io: &mut IoA<B>,
) {
    let base = receive.base();
    let mut left = frame::FRAMES;
    let mut look = Look::default();
    while left != 0 {
        let guard = Endpoints { reporter, base };
        let next = guarded::next(receive, io, &mut left, &mut look, &guard);
        let Next::Wanted(arrived, endpoint) = next else {
            break;
        };
        let busy = receiver.rdma.defers(rdma::Event::Waiting) || receiver.work.unreported;
        if busy || !io.has_write_room(TRANSFERS) {
            // What has been written calls again.
            io.bus.clear(EventBit::ReceiveComplete);
            io.await_writes();
            break;
        }
        if !reporter.look(io, endpoint) {
            // CPU B calls again.
            io.bus.clear(EventBit::ReceiveComplete);
            break;
        }
        receiver.take(reporter, io, endpoint, &arrived, base);
        guarded::let_go(receive, io, arrived);
        left -= 1;
    }
    guarded::finish(receive, io);
}

/// A word of the receive buffer, round its end.
#[inline(always)]
fn at<B: Bus>(bus: &mut B, base: u32, address: u32) -> u32 {
    bus.load(frame::wrapped(base, address))
}

/// Who wants datagrams. Most of those that arrive on such a card are for an endpoint, so all is
/// asked at the first look.
#[derive(Clone, Copy)]
struct Endpoints<'a> {
    reporter: &'a Reporter,
    base: u32,
}

impl guarded::Key for Endpoints<'_> {
    #[inline(always)]
    fn may_want<B: Bus>(self, bus: &mut B, start: u32) -> u32 {
        // A frame that is shorter goes another way.
        let found = find(self.reporter, bus, start, HEADERS, self.base);
        found.is_some().into()
    }
}

impl<'a> guarded::Guard for Endpoints<'a> {
    type Key = Endpoints<'a>;
    /// The endpoint.
    type Who = u32;

    #[inline(always)]
    fn key(&self) -> Endpoints<'a> {
        *self
    }

    #[inline(always)]
    fn find<B: Bus>(&self, bus: &mut B, start: u32, length: u32, base: u32) -> Option<u32> {
        find(self.reporter, bus, start, length, base)
    }
}

/// The endpoint that a frame of `length` bytes is for: a whole UDP datagram to its address and port.
#[inline(always)]
fn find<B: Bus>(
    reporter: &Reporter,
    bus: &mut B,
    start: u32,
    length: u32,
    base: u32,
) -> Option<u32> {
    if length < HEADERS || at(bus, base, start + 12) & 0xFFFF_FF00 != 0x0800_4500 {
        return None;
    }
    let packet = at(bus, base, start + 20);
    if packet & 0xFF != 17 || packet >> 16 & FRAGMENT != 0 {
        return None;
    }
    let port = at(bus, base, start + 36) >> 16;
    let high = at(bus, base, start + 28) << 16;
    let address = high | at(bus, base, start + 32) >> 16;
    each(reporter.open).find(|endpoint| {
        let queue = reporter.queues.get(*endpoint as usize);
        queue.is_some_and(|queue| queue.port == port && queue.address == address)
    })
}

impl Receiver {
    /// Takes a datagram's frame.
    fn take<B: Dispatch>(
        &mut self,
        reporter: &mut Reporter,
        io: &mut IoA<B>,
        endpoint: u32,
        frame: &ReceivedFrame,
        base: u32,
    ) {
        let work = &mut self.work;
        work.endpoint = endpoint;
        work.start = frame.start;
        work.base = base;
        work.refused = None;
        work.judge(&mut io.bus, frame.length - frame::CRC);
        let mut card = Card { work, reporter, io };
        let step = self.recv.step(recv::Event::Ended, &mut card);
        note(step, io);
        if self.work.refused.is_some() {
            return self.refuse(io);
        }
        self.work.choose(reporter, io);
        self.step(rdma::Event::Waiting, reporter, io);
        if self.work.length == 0 && self.rdma.defers(rdma::Event::Waiting) {
            // There is nothing to write.
            self.work.data = 0;
            self.step(rdma::Event::Written, reporter, io);
        }
    }

    /// The write channel has written a datagram, and summed it.
    pub fn written<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>, sum: u32) {
        self.work.data = sum;
        self.step(rdma::Event::Written, reporter, io);
        io.bus.set(EventBit::ReceiveComplete);
    }

    /// The host's memory cannot be written.
    pub fn failed<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        self.work.refused = Some(Refusal::BadRegion);
        self.step(rdma::Event::Failed, reporter, io);
        io.bus.set(EventBit::ReceiveComplete);
    }

    /// Reports what found no write descriptor.
    pub fn report<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        if self.work.unreported {
            let Work {
                endpoint, entry, ..
            } = &self.work;
            self.work.unreported = reporter.complete(io, *endpoint, entry).is_err();
            if !self.work.unreported {
                io.bus.set(EventBit::ReceiveComplete);
            }
        }
    }

    /// An event of RDMA. In CPU A's pad, where receive queues have their code in other firmware.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.low"))]
    #[inline(never)]
    fn step<B: Dispatch>(&mut self, event: rdma::Event, reporter: &mut Reporter, io: &mut IoA<B>) {
        let work = &mut self.work;
        let mut card = Card { work, reporter, io };
        let step = self.rdma.step(event, &mut card);
        note(step, io);
        self.refuse(io);
    }

    fn refuse<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        if let Some(refusal) = self.work.refused.take() {
            bump(&mut io.bus, word(BlockWord::Refused) + refusal as u32);
        }
    }
}

fn note<B: Dispatch>(step: Step, io: &mut IoA<B>) {
    if !matches!(step, Step::Taken(_)) {
        bump(&mut io.bus, word(BlockWord::Faults));
    }
}

impl Work {
    /// Judges the headers of a frame of `bytes` bytes, and takes from them what is needed later.
    fn judge<B: Bus>(&mut self, bus: &mut B, bytes: u32) {
        let (base, start) = (self.base, self.start);
        let mut of = |offset| at(bus, base, start + offset);
        let words = [of(12), of(16), of(20), of(24), of(28), of(32)];
        let [first, packet, flags, source, middle, last] = words;
        let halves = |word: u32| (word >> 16) + (word & 0xFFFF);
        let sum = (first & 0xFFFF) + halves(packet) + halves(flags) + halves(source);
        let sum = sum + halves(middle) + (last >> 16);
        let (ports, check) = (of(36), of(40) >> 16);
        let (packet, udp) = (packet >> 16, ports & 0xFFFF);
        let whole = packet >= IP + UDP && packet <= bytes - ETHERNET && udp == packet - IP;
        if folded(sum) != 0xFFFF || !whole {
            self.refused = Some(Refusal::BadHeader);
            return;
        }
        self.length = udp - UDP;
        self.summed = check != 0;
        let addresses = (source & 0xFFFF) + halves(middle) + (last >> 16);
        let header = (last & 0xFFFF) + halves(ports) + check;
        self.headers = folded(addresses + 17 + udp + header);
        self.entry = Entry {
            kind: Kind::Received,
            length: self.length,
            address: source << 16 | middle >> 16,
            port: (last & 0xFFFF) << 16
                | if self.summed {
                    Verdict::Right as u32
                } else {
                    Verdict::Absent as u32
                },
            ..Entry::NONE
        };
    }

    /// Takes the endpoint's next descriptor, if it has one that is fit.
    #[inline(never)]
    fn choose<B: Dispatch>(&mut self, reporter: &mut Reporter, io: &mut IoA<B>) {
        self.refused = Some(Refusal::NoBuffer);
        let filled = reporter.filled.get(self.endpoint as usize);
        let filled = filled.map_or(0, |filled| u32::from(*filled));
        while let Some(queue) = reporter.queues.get_mut(self.endpoint as usize)
            && queue.received != queue.produced
            && queue.received != filled
        {
            let descriptor = EUDP_BLOCK + receive_slot(self.endpoint, queue.received);
            let bus = &mut io.bus;
            let shape = bus.load(descriptor + DescriptorWord::Shape as u32);
            self.entry.cookie = bus.load(descriptor + DescriptorWord::Cookie as u32);
            let taken = self
                .pieces
                .take(bus, self.endpoint, descriptor, shape >> 24);
            match taken {
                Ok(room) if room >= self.length => {
                    self.refused = None;
                    return;
                }
                Ok(_) => {
                    // Too short for this one: it may be long enough for the next.
                    self.refused = Some(Refusal::BadRegion);
                    return;
                }
                Err(status) => {
                    queue.received = queue.received.wrapping_add(1) & 0xFFFF;
                    let refused = Entry {
                        status: status as u32,
                        length: 0,
                        ..self.entry
                    };
                    // The caller has seen room for more than one transfer.
                    let _ = reporter.complete(io, self.endpoint, &refused);
                }
            }
        }
    }
}

impl<B: Dispatch> World<recv::Recv> for Card<'_, B> {
    fn holds(&mut self, condition: recv::Condition) -> bool {
        match condition {
            recv::Condition::MayCut => false,
            // The MAC's errors were judged before the frame was looked at.
            recv::Condition::Good => self.work.refused.is_none(),
        }
    }

    /// Its room is freed by who takes it off the ring.
    fn act(&mut self, _: recv::Action) {}
}

impl<B: Dispatch> World<rdma::Rdma> for Card<'_, B> {
    #[inline(always)]
    fn holds(&mut self, condition: rdma::Condition) -> bool {
        match condition {
            rdma::Condition::BufferPosted => self.work.refused.is_none(),
            rdma::Condition::EnoughHere => false,
            rdma::Condition::SumRight => {
                let Work {
                    summed,
                    headers,
                    data,
                    ..
                } = *self.work;
                !summed || folded(headers + data) == 0xFFFF
            }
        }
    }

    #[inline(always)]
    fn act(&mut self, action: rdma::Action) {
        match action {
            rdma::Action::WriteWhole => self.write(),
            rdma::Action::Complete => {
                let Work {
                    endpoint, entry, ..
                } = *self.work;
                if let Some(queue) = self.reporter.queues.get_mut(endpoint as usize) {
                    queue.received = queue.received.wrapping_add(1) & 0xFFFF;
                }
                let reported = self.reporter.complete(self.io, endpoint, &entry);
                self.work.unreported = reported.is_err();
            }
            rdma::Action::Leave => {
                let why = self.work.refused.unwrap_or(Refusal::BadSum);
                self.work.refused = Some(why);
            }
            // Chunks are of frames that are written while they arrive.
            rdma::Action::Nothing
            | rdma::Action::WriteChunk
            | rdma::Action::WriteRest
            | rdma::Action::Drop
            | rdma::Action::Close => {}
        }
    }
}

impl<B: Dispatch> Card<'_, B> {
    /// Queues the transfers of the datagram's data.
    fn write(&mut self) {
        let Work {
            start,
            base,
            length,
            pieces,
            ..
        } = &*self.work;
        let mut local = frame::wrapped(*base, start + HEADERS);
        let mut left = *length;
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

/// DMA write attention: the transfer at `descriptor` of a datagram has failed. The others of it mean
/// nothing any more.
#[inline(never)]
pub fn failed<B: Dispatch>(eudp: &mut EudpA, io: &mut IoA<B>, descriptor: u32) {
    let mut next = Some(descriptor);
    while let Some(descriptor) = next {
        let note = WriteNote::of_word(io.write_ring.note(descriptor));
        if note.is_of_datagram() {
            io.write_ring.set_note(descriptor, WriteNote::QUIET.word());
        }
        if note.is_datagram() {
            io.has_ended();
        }
        next = io.write_ring.behind(descriptor);
    }
    if let Some((reporter, receiver)) = eudp.parts() {
        receiver.failed(reporter, io);
    }
}

/// Takes the producers of the endpoints whose mailboxes were rung.
pub fn rung<B: Dispatch>(reporter: &mut Reporter, io: &mut IoA<B>, rung: u32) {
    for endpoint in each(rung & reporter.open) {
        let at = MAILBOXES + mailbox::BYTES * (MAILBOX + endpoint) + 4;
        let producer = io.bus.load(at) & 0xFFFF;
        if let Some(queue) = reporter.queues.get_mut(endpoint as usize) {
            let waiting = producer.wrapping_sub(queue.received) & 0xFFFF;
            // No more than there is room for, whatever the process writes.
            let waiting = waiting.min(room(&mut io.bus, endpoint));
            queue.produced = queue.received.wrapping_add(waiting) & 0xFFFF;
        }
        reporter.look(io, endpoint);
    }
}

const _: () = assert!(Status::Done as u32 == 0);
