//! The frame in work: where it lies, its headers, its parts.
//!
//! ```text
//!   start                 lead                                  length
//!   | headers | data      | part        | part        | part   |
//!   0        42                1024          2048       1025..2048
//! ```
//!
//! The headers come from the address handle's row; CPU B stores them into the transmit buffer, and
//! the read channel brings the data behind them. A frame that is cut through has a first part and
//! a few others; none is so short that the wire ends before a missing part is seen.
//!
//! Most datagrams are one frame whose data is in one piece: [`whole`](super::whole) makes these. Those
//! with data in the descriptor are [sent at once](super::sender), others come from a [`Job`].

pub use super::flags::{AHEAD, GATHERED, LAST, LEADS, SUMMED, WANTS_SUM, WHOLE};
use super::headers::{ETHERNET, HEADERS, IP, UDP};
use super::job::Job;
use super::lead::{self, LEAD, REST, SHORTEST, part_end};
use super::rows::Handle;
use super::sums::folded;
use super::word;
use crate::io::IoB;
use crate::path::send::SendPath;
use host_interface::eudp::{BlockWord, LEAD_OF_BUS, SEGMENTS};
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// The most parts of a frame.
const PARTS: u32 = 5;
/// The most transfers of a frame, which may end a part or a piece, and of what is summed ahead of it.
pub const TRANSFERS: u32 = PARTS + 2 * SEGMENTS;
/// How often a transfer of a frame that leaves is tried.
const TRIES: u32 = 3;
/// More packets of the datagram follow, in the IP header's flags.
const MORE: u32 = 0x2000;

/// The frame in work.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Where it begins in the transmit buffer.
    pub start: u32,
    /// Its bytes, without CRC.
    pub length: u32,
    /// Those of its headers.
    pub headers: u32,
    /// Where its data begins in the datagram's.
    pub(super) data: u32,
    /// The end of its first part.
    pub lead: u32,
    /// Parts that have not arrived: of a frame that is not in SDMA yet, that which is fetched ahead.
    pub missing: u32,
    /// Up to where its parts have arrived in their order.
    pub here: u32,
    /// How often one of its transfers failed.
    pub failures: u32,
    /// Whose it is.
    pub endpoint: u32,
    /// NIC address of its descriptor.
    pub descriptor: u32,
    /// The sum of the pseudo-header and of the UDP header.
    pub udp_sum: u32,
    /// What is to be done with it: the constants of [`flags`](super::flags).
    pub flags: u32,
    /// Where its data is in the host's memory, unless it is gathered.
    pub host: HostAddress,
    /// Its VLAN tag, in bits 31:16, which the MAC puts in; 0 for none.
    pub tag: u32,
    /// The number of its descriptor.
    pub number: u32,
}

/// Bytes of a frame.
const BYTES: u32 = size_of::<Frame>() as u32;
// The chip cannot multiply.
const _: () = assert!(BYTES.is_power_of_two());

/// The frame in SDMA, and the one behind it.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    both: [Frame; 2],
    /// Where that in SDMA is, in bytes: so its address needs no shift.
    now: u32,
}

impl Frames {
    /// None.
    pub const NONE: Frames = Frames {
        both: [Frame::NONE; 2],
        now: 0,
    };

    #[inline(always)]
    const fn at(&mut self, bytes: u32) -> &mut Frame {
        &mut self.both[(bytes >> BYTES.trailing_zeros() & 1) as usize]
    }

    /// That in SDMA.
    #[inline(always)]
    pub const fn now(&mut self) -> &mut Frame {
        self.at(self.now)
    }

    /// The one behind it.
    #[inline(always)]
    pub const fn next(&mut self) -> &mut Frame {
        self.at(self.now ^ BYTES)
    }

    /// That which has just arrived: in front of that in SDMA if this has `begun` since.
    #[inline(always)]
    pub const fn arrived(&mut self, begun: bool) -> &mut Frame {
        self.at(self.now ^ (begun as u32) << BYTES.trailing_zeros())
    }

    /// The next one takes the place of that in SDMA.
    #[inline(always)]
    pub const fn turn(&mut self) {
        self.now ^= BYTES;
    }
}

impl Frame {
    /// None.
    pub const NONE: Frame = Frame {
        start: 0,
        length: 0,
        headers: 0,
        data: 0,
        lead: 0,
        missing: 0,
        here: 0,
        failures: 0,
        endpoint: 0,
        descriptor: 0,
        udp_sum: 0,
        flags: 0,
        host: HostAddress { high: 0, low: 0 },
        tag: 0,
        number: 0,
    };

    /// Whether it has all of these flags.
    #[inline(always)]
    pub const fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// The job's next frame, at its place, with its headers; `whole` if it leaves when it is whole.
    #[inline(always)]
    pub fn begin<B: Dispatch>(
        &mut self,
        job: &mut Job,
        handle: &Handle,
        whole: bool,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) {
        let is_first = job.at == 0;
        let header = if is_first { UDP } else { 0 };
        self.headers = ETHERNET + IP + header;
        self.data = job.at + header - UDP;
        self.length = ETHERNET + IP + job.payload();
        self.start = send.place_frame(self.length);
        self.endpoint = job.endpoint;
        self.descriptor = job.descriptor;
        self.number = job.number;
        self.tag = handle.tag();
        let is_followed = job.is_followed();
        self.put_headers(job, is_followed, handle, io);
        if is_first {
            io.bus.store(self.start + ETHERNET + IP + 2, job.udp);
            io.bus.store(self.start + HEADERS - 2, 0);
            self.udp_sum = job.udp_sum;
        }
        self.flags = job.flags[usize::from(!is_first)];
        match job.pieces.only() {
            Some(piece) => self.host = piece.host.plus(self.data),
            None => self.find(job),
        }
        self.lead = self.length;
        if !whole {
            self.settle_in_front(io);
        }
        if !job.advance(is_followed) {
            self.flags |= LAST;
        }
    }

    /// The same as [`settle`](Self::settle) of a frame whose turn it is, in SRAM.
    #[inline(never)]
    fn settle_in_front<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        self.settle(false, io);
    }

    /// Finds its data in one of several pieces of memory.
    #[inline(never)]
    fn find(&mut self, job: &Job) {
        let (_, piece) = job.pieces.at(self.data);
        self.host = piece.host;
        if piece.bytes < self.length - self.headers {
            self.flags |= GATHERED;
        }
    }

    /// Chooses its first part, when all else is known.
    #[inline(always)]
    pub fn settle<B: Dispatch>(&mut self, whole: bool, io: &mut IoB<B>) {
        self.lead = self.length;
        if !whole && !self.has(WANTS_SUM) && self.length > SHORTEST {
            self.choose_lead(io);
        }
    }

    #[inline(never)]
    fn choose_lead<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        self.here = 0;
        self.failures = 0;
        let lead = match io.bus.load(word(BlockWord::Lead)) {
            LEAD_OF_BUS => lead::of(lead::bus_of(&mut io.bus), self.length),
            lead => lead,
        };
        if lead >= LEAD && self.length >= lead.saturating_add(REST) {
            self.flags &= !WHOLE;
            self.lead = lead;
        }
    }

    /// Whether it may leave before it is whole.
    pub const fn may_be_cut(&self) -> bool {
        self.lead < self.length
    }

    /// It leaves when it is whole.
    pub const fn keep_whole(&mut self) {
        self.lead = self.length;
    }

    /// The end of the part behind the first one that begins at `from`.
    #[inline(always)]
    pub fn end_of(&self, from: u32) -> u32 {
        part_end(self.length, from)
    }

    /// The end of the part that has just arrived and begins at `from`.
    #[inline(always)]
    pub fn arrived_to(&self, from: u32) -> u32 {
        if self.missing == 0 {
            self.length
        } else if from == 0 {
            self.lead
        } else {
            self.end_of(from)
        }
    }

    /// Its data is not tried to be had any more.
    pub const fn give_up(&mut self) {
        self.failures = TRIES;
    }

    /// Whether its data cannot be had: it ends as it is, and nobody is addressed by it.
    pub const fn is_given_up(&self) -> bool {
        self.failures >= TRIES
    }

    #[inline(always)]
    fn put_headers<B: Dispatch>(
        &self,
        job: &Job,
        is_followed: bool,
        handle: &Handle,
        io: &mut IoB<B>,
    ) {
        let (bus, to) = (&mut io.bus, self.start);
        let packet = (self.length - ETHERNET) << 16 | job.identification;
        let more = if is_followed { MORE } else { 0 };
        handle.put(bus, to, packet, more | job.at >> 3);
    }

    /// Stores the UDP checksum of a datagram whose data has this sum.
    #[inline(always)]
    pub fn put_sum<B: Bus>(&self, data: u32, bus: &mut B) {
        put_sum(bus, self.start, self.udp_sum + data);
    }
}

/// Stores the UDP checksum of the datagram in the frame at `start`, of whose header, pseudo-header and
/// data this is the sum.
#[inline(always)]
pub fn put_sum<B: Bus>(bus: &mut B, start: u32, sum: u32) {
    let sum = folded(sum);
    // RFC 768: 0 says that there is none, so the other zero.
    let sum = !sum - u32::from(sum == 0xFFFF);
    bus.store_half(start + HEADERS - 2, sum as u16);
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    fn parts(lead: u32, length: u32) -> Vec<u32> {
        let frame = Frame {
            lead,
            length,
            ..Frame::NONE
        };
        let mut ends = Vec::from([lead]);
        while let Some(&end) = ends.last()
            && end != length
        {
            ends.push(frame.end_of(end));
        }
        ends
    }

    #[test]
    fn no_part_behind_the_first_is_short() {
        assert_eq!(parts(1514, 1514), [1514]);
        assert_eq!(parts(640, 1514), [640, 1514]);
        assert_eq!(parts(640, 2176), [640, 2176]);
        assert_eq!(parts(640, 2177), [640, 1664, 2177]);
        assert_eq!(parts(640, 9014), [640, 1664, 3712, 9014]);
        assert_eq!(parts(1536, 9014), [1536, 3584, 9014]);
        for length in SHORTEST + 1..=9014 {
            for lead in (LEAD..=length - REST).step_by(64) {
                let ends = parts(lead, length);
                let sizes = ends.windows(2).map(|pair| pair[1] - pair[0]);
                assert!(sizes.min() >= Some(REST), "{ends:?}");
                assert!(ends.len() as u32 <= PARTS, "{ends:?}");
            }
        }
    }
}
