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
//! others of up to four bus transactions each; none is so short that the wire ends before a missing
//! part is seen.

use super::job::{IP, Job, UDP};
use super::{lead, word};
use crate::io::IoB;
use crate::io::note::ReadNote;
use crate::io::states::Sum;
use crate::path::send::SendPath;
use host_interface::eudp::{BlockWord, DescriptorWord, HandleWord, LEAD_OF_BUS};
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Bytes of a part behind the first one: two bus transactions. CPU B sees to a part in no less than
/// 4 us, in which the bus brings more than one.
const PART: u32 = 1024;
/// From where on the bus is so far ahead of the wire that parts may be twice as long.
const FAR: u32 = 2048;
/// Bytes behind the first part that a frame needs to be cut through.
pub const REST: u32 = 512;
/// The shortest first part: the wire takes longer for it than the counter's microseconds.
pub const LEAD: u32 = 256;
/// The most transfers of a frame: one for each part and for each piece.
pub const TRANSFERS: u32 = 20 + 8;
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
    headers: u32,
    /// Where its data begins in the datagram's.
    data: u32,
    /// The end of its first part.
    lead: u32,
    /// Parts that have not arrived.
    pub missing: u32,
    /// Up to where its parts have arrived in their order.
    pub here: u32,
    /// How often one of its transfers failed.
    pub failures: u32,
    /// The bus that the card is in, see [`lead::bus_of`].
    pub bus: u32,
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
        bus: 0,
    };

    /// The job's next frame, at its place, with its headers, and its data if that is in the
    /// descriptor.
    pub fn begin<B: Dispatch>(&mut self, job: &Job, send: &mut SendPath, io: &mut IoB<B>) {
        let payload = job.payload();
        let udp = if job.at == 0 { UDP } else { 0 };
        self.headers = ETHERNET + IP + udp;
        self.data = if job.at == 0 { 0 } else { job.at - UDP };
        self.length = ETHERNET + IP + payload;
        self.start = send.place_frame();
        self.missing = 0;
        self.here = 0;
        self.failures = 0;
        let lead = match io.bus.load(word(BlockWord::Lead)) {
            LEAD_OF_BUS => lead::of(self.bus, self.length),
            lead => lead,
        };
        let whole = lead < LEAD || self.length < lead + REST;
        self.lead = if whole || !job.pieces.any() || job.summed && job.at == 0 {
            self.length
        } else {
            lead
        };
        self.put_headers(job, payload, io);
        if !job.pieces.any() {
            self.put_inline(job, io);
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

    /// Bytes of data that are to be fetched.
    const fn fetched(&self) -> u32 {
        self.length - self.headers
    }

    /// The end of the part that begins at `from`.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
    #[inline(never)]
    pub fn end_of(&self, from: u32) -> u32 {
        part_end(self.lead, self.length, from)
    }

    /// Queues its transfers, the first part and the others. Without data there is none.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
    #[inline(never)]
    pub fn fetch<B: Dispatch>(&mut self, job: &Job, send: &SendPath, io: &mut IoB<B>) {
        if !job.pieces.any() || self.fetched() == 0 {
            return;
        }
        let IoB {
            bus,
            read_ring,
            states,
            ..
        } = io;
        let (mut number, mut piece) = job.pieces.at(self.data);
        let mut queue = read_ring.open();
        let mut local = send.behind(self.start, self.headers);
        let mut state = states.data;
        if job.summed {
            state |= Sum::ON | Sum::BEGINS;
        }
        let (mut to, mut left) = (self.lead, self.lead - self.headers);
        loop {
            if piece.bytes == 0 {
                number += 1;
                piece = job.pieces.of(number);
            }
            let bytes = piece.bytes.min(left);
            left -= bytes;
            let mut note = ReadNote::PIECE;
            if left == 0 {
                note = ReadNote::PART;
                if job.summed && to == self.length {
                    state |= Sum::STORED;
                    queue.store_sum(bus);
                }
            }
            let transfer = Transfer {
                host: piece.host,
                local,
                length: bytes,
                state,
                note: note.word(),
            };
            queue.put(bus, &transfer);
            if left == 0 {
                self.missing += 1;
                if to == self.length {
                    break;
                }
                let end = self.end_of(to);
                (to, left) = (end, end - to);
            }
            state &= !Sum::BEGINS;
            piece = piece.behind(bytes);
            local = send.behind(local, bytes);
        }
    }

    /// Whether its data cannot be had: it ends as it is, and nobody is addressed by it.
    pub const fn is_given_up(&self) -> bool {
        self.failures >= TRIES
    }

    /// A part has arrived.
    #[inline(always)]
    pub fn arrived(&mut self) {
        self.missing -= 1;
        self.here = self.end_of(self.here);
    }

    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
    #[inline(never)]
    fn put_headers<B: Dispatch>(&self, job: &Job, payload: u32, io: &mut IoB<B>) {
        let bus = &mut io.bus;
        let row = job.handle;
        let of = |word: HandleWord| row + word as u32 - HandleWord::Headers as u32;
        let (mut from, mut to) = (row, self.start);
        // The addresses and the type; the rest follows with what changes.
        while from < row + 16 {
            let value = bus.load(from);
            bus.store(to, value);
            (from, to) = (from + 4, to + 4);
        }
        let packet = (IP + payload) << 16 | job.identification;
        let more = if job.is_followed() { MORE } else { 0 };
        let offset = more | job.at >> 3;
        let sum = bus.load(of(HandleWord::IpSum)) + (packet >> 16) + job.identification + offset;
        let sum = !folded(sum) & 0xFFFF;
        let lifetime = bus.load(row + 20) & 0xFFFF;
        let source = bus.load(row + 24) & 0xFFFF;
        bus.store(to, packet);
        bus.store(to + 4, offset << 16 | lifetime);
        bus.store(to + 8, sum << 16 | source);
        let words = [bus.load(row + 28), bus.load(row + 32)];
        bus.store(to + 12, words[0]);
        bus.store(to + 16, words[1]);
        if job.at == 0 {
            bus.store(to + 20, job.port << 16 | (UDP + job.length));
            bus.store(to + 24, 0);
        }
    }

    /// Copies the data out of the descriptor, two bytes off, and sums it.
    #[inline(never)]
    fn put_inline<B: Dispatch>(&self, job: &Job, io: &mut IoB<B>) {
        let bus = &mut io.bus;
        let data = job.descriptor + DescriptorWord::Data as u32;
        let mut to = self.start + ETHERNET + IP + UDP - 2;
        let (mut before, mut sum, mut at) = (0, 0, 0);
        while at < job.length {
            let mut value = bus.load(data + at);
            let left = job.length - at;
            if left < 4 {
                // What stands behind the data is nobody's to see.
                value &= !(u32::MAX >> (left << 3));
            }
            sum += (value >> 16) + (value & 0xFFFF);
            bus.store(to, before << 16 | value >> 16);
            before = value;
            (at, to) = (at + 4, to + 4);
        }
        bus.store(to, before << 16);
        if job.summed {
            self.put_sum(job, folded(sum), io);
        }
    }

    /// Stores the UDP checksum of a datagram whose data has this sum.
    #[inline(never)]
    pub fn put_sum<B: Dispatch>(&self, job: &Job, data: u32, io: &mut IoB<B>) {
        let bus = &mut io.bus;
        let length = UDP + job.length;
        let row = job.handle + HandleWord::UdpSum as u32 - HandleWord::Headers as u32;
        let sum = bus.load(row) + job.port + length + length + data;
        let sum = match !folded(sum) & 0xFFFF {
            // RFC 768: 0 says that there is none.
            0 => 0xFFFF,
            sum => sum,
        };
        bus.store_half(self.start + ETHERNET + IP + UDP - 2, sum as u16);
    }
}

/// The end of the part that begins at `from`, of a frame of `length` bytes.
#[inline(always)]
pub const fn part_end(lead: u32, length: u32, from: u32) -> u32 {
    if from == 0 {
        return lead;
    }
    let left = length - from;
    let part = if from >= FAR { PART << 1 } else { PART };
    if left <= part {
        length
    } else if left < part + part / 2 {
        // Two halves, so that the last one is not short.
        from + ((left / 2 + 7) & !7)
    } else {
        from + part
    }
}

/// A one's-complement sum in 16 bits.
#[inline(always)]
pub const fn folded(sum: u32) -> u32 {
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (sum & 0xFFFF) + (sum >> 16)
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
        let mut ends = Vec::new();
        while ends.last() != Some(&length) {
            ends.push(frame.end_of(ends.last().copied().unwrap_or(0)));
        }
        ends
    }

    #[test]
    fn no_part_behind_the_first_is_short() {
        assert_eq!(parts(1514, 1514), [1514]);
        assert_eq!(parts(640, 1514), [640, 1514]);
        assert_eq!(parts(640, 2000), [640, 1320, 2000]);
        assert_eq!(parts(640, 9014), [640, 1664, 2688, 4736, 6784, 7904, 9014]);
        for length in 1152..=9014 {
            let ends = parts(640, length);
            let sizes = ends.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(sizes.min() >= Some(504), "{ends:?}");
            assert!(ends.len() < 20, "{ends:?}");
        }
    }
}
