//! The fragment that is next in line, by header prediction as of TCP.
//!
//! ```text
//!   IP payload   | first | 2nd | 3rd |                        |
//!                  all of this is there ^ the next one begins here
//! ```
//!
//! Most fragments of a datagram come one behind the other. Of the next one all is known but its
//! length, so its headers are compared with what they should say, and its data goes behind what is
//! there. Its datagram has a length that is known, and one piece of memory.
//!
//! Any other fragment takes the way of [`fragment`](super::fragment), which then
//! [expects](Predicted::expect) the one behind it.

use super::assembly::{Assembly, State};
use super::datagram::{ETHERNET, REACH};
use super::fragment_header::{Fragment, MORE, OFFSET};
use super::part::Part;
use super::pieces::IP;
use super::sums::{folded, halves};
use crate::path::receive::frame::CRC;
use tigon2_chip::HostAddress;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::mac::ReceivedFrame;

/// Bytes of the headers of a fragment that is not the first one.
const HEADERS: u32 = ETHERNET + IP;
/// No place of a fragment.
const NOWHERE: u32 = u32::MAX;

/// What the next fragment's headers should say.
#[derive(Debug)]
pub struct Predicted {
    /// Its datagram.
    assembly: Assembly,
    /// Whose that is.
    endpoint: u32,
    /// Where it begins in the IP payload, in units of 8 bytes.
    place: u32,
    /// Bytes of the IP payload.
    length: u32,
    /// Words of its headers that are known, or half of which is.
    words: [u32; 5],
    /// The sum of what is known of the IP header.
    sum: u32,
    /// Where its data goes.
    host: HostAddress,
}

/// The fragment that was next in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// What RDMA has of it.
    pub part: Part,
    /// Whose it is.
    pub endpoint: u32,
    /// Where its data goes.
    pub host: HostAddress,
    /// Where its data begins in NIC memory, if the receive buffer does not end before.
    pub local: u32,
    /// Its bytes of data.
    pub bytes: u32,
}

impl Predicted {
    /// No fragment.
    pub(super) const NONE: Predicted = Predicted {
        assembly: Assembly::FIRST,
        endpoint: 0,
        place: NOWHERE,
        length: 0,
        words: [0; 5],
        sum: 0,
        host: HostAddress { high: 0, low: 0 },
    };

    /// Forgets the next fragment of a datagram: another one has come.
    #[inline(always)]
    pub(super) fn forget(&mut self, assembly: Assembly) {
        if self.assembly == assembly {
            self.place = NOWHERE;
        }
    }

    /// Expects the fragment behind this one, whose frame begins at `start`: if all in front of it is
    /// there.
    #[inline(never)]
    pub(super) fn expect<B: Bus>(
        &mut self,
        bus: &mut B,
        assembly: Assembly,
        fragment: &Fragment,
        start: u32,
    ) {
        if fragment.vlan != 0 || start > PACKET_MEMORY_END - REACH {
            return;
        }
        let Some((length, host)) = assembly.in_line(bus, fragment.end) else {
            return;
        };
        let words = [12, 16, 24, 28, 32].map(|offset| bus.load(start + offset));
        let [first, packet, source, middle, last] = words;
        let known = (first & 0xFFFF) + (packet & 0xFFFF) + (source & 0xFFFF);
        *self = Predicted {
            assembly,
            endpoint: assembly.endpoint(bus),
            place: fragment.end >> 3,
            length,
            words,
            sum: known + halves(middle) + (last >> 16),
            host,
        };
    }

    /// Takes a frame, for this card's own address, if it is the next fragment.
    #[inline(always)]
    pub(super) fn take<B: Bus>(&mut self, bus: &mut B, frame: &ReceivedFrame) -> Option<Taken> {
        if frame.start > PACKET_MEMORY_END - REACH {
            return None;
        }
        let flags = bus.load(frame.start + 20);
        if flags >> 16 & OFFSET != self.place {
            return None;
        }
        let end = self.end(bus, frame, flags)?;
        let assembly = self.assembly;
        if assembly.state(bus) != State::Open {
            return None;
        }
        let (host, bytes) = (self.host, end - (self.place << 3));
        let is_last = end == self.length;
        self.host = host.plus(bytes);
        self.place = if is_last { NOWHERE } else { end >> 3 };
        assembly.grow(bus, end);
        Some(Taken {
            part: Part { assembly, is_last },
            endpoint: self.endpoint,
            host,
            local: frame.start + HEADERS,
            bytes,
        })
    }

    /// Whether a fragment's headers say what they should; `flags` is the word of them that has its
    /// place. Returns where it ends in the IP payload.
    #[inline(always)]
    fn end<B: Bus>(&self, bus: &mut B, frame: &ReceivedFrame, flags: u32) -> Option<u32> {
        let start = frame.start;
        let mut word = |offset| bus.load(start + offset);
        let (first, packet, source) = (word(12), word(16), word(24));
        let (middle, last) = (word(28), word(32));
        let [a, b, c, d, e] = self.words;
        let halves_differ = (packet ^ b | source ^ c) & 0xFFFF | (last ^ e) >> 16;
        let differ = first ^ a | middle ^ d | halves_differ | flags & 0xFF ^ 17;
        let length = packet >> 16;
        let sum = self.sum + length + halves(flags) + (source >> 16);
        let bytes = length.wrapping_sub(IP);
        let end = (self.place << 3).wrapping_add(bytes);
        let fits = if flags & MORE << 16 == 0 {
            end == self.length
        } else {
            bytes & 7 == 0 && end < self.length
        };
        let is_next = differ == 0
            && fits
            && length > IP
            && length <= frame.length - CRC - ETHERNET
            && folded(sum) == 0xFFFF;
        is_next.then_some(end)
    }
}
