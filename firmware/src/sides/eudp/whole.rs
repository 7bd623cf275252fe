//! Datagrams that are one frame, with data in one piece or in the descriptor: most of them.
//!
//! Their descriptor is judged in one go, and their headers are stored in another, from registers: in
//! between their data may be asked for.

use super::frame::{ETHERNET, FETCHED, Frame, LAST, SUMMED, WANTS_SUM, WHOLE, put_inline};
use super::job::{self, Next};
use super::pieces::{IP, UDP};
use super::sums::folded;
use crate::io::IoB;
use crate::memory::layout::EUDP_BLOCK;
use crate::path::send::SendPath;
use host_interface::eudp::{
    DescriptorWord, HANDLES, HandleWord, INLINE_BYTES, REGIONS, RegionWord, Status, handle_word,
    region_word,
};
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Bytes of all headers.
const HEADERS: u32 = ETHERNET + IP + UDP;

/// Why a frame was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// The datagram is none of these.
    Job,
    /// The descriptor is refused.
    Refused(Status),
}

/// What a frame's headers are made from, once its descriptor is judged.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// NIC address of the address handle's row.
    row: u32,
    /// The other's port.
    port: u32,
    is_summed: bool,
}

impl Headers {
    #[inline(always)]
    const fn at(&self, word: HandleWord) -> u32 {
        self.row + word as u32 - HandleWord::Headers as u32
    }
}

impl Frame {
    /// Takes a descriptor: finds the place of its frame, and its data; `whole` if it leaves when it
    /// is whole. Its headers may come while its data is fetched.
    ///
    /// # Errors
    /// [`Other`], and nothing has happened.
    #[inline(always)]
    pub fn take<B: Dispatch>(
        &mut self,
        next: &Next,
        whole: bool,
        send: &mut SendPath,
        io: &mut IoB<B>,
    ) -> Result<Headers, Other> {
        let bus = &mut io.bus;
        let from = next.descriptor;
        let to = bus.load(from + DescriptorWord::To as u32);
        let shape = bus.load(from + DescriptorWord::Shape as u32);
        let length = shape & 0xFFFF;
        let handle = to >> 24;
        if shape >> 25 != 0 || UDP + length > next.most() {
            return Err(Other::Job);
        }
        let refused = Err(Other::Refused(Status::BadDescriptor));
        let headers = Headers {
            row: barrier(EUDP_BLOCK + handle_word(handle & (HANDLES - 1), HandleWord::Headers)),
            port: to & 0xFFFF,
            is_summed: next.is_summed(),
        };
        let mine = next.endpoint + 1;
        if handle >= HANDLES || bus.load(headers.at(HandleWord::Owner)) != mine {
            return refused;
        }
        self.flags = LAST | WHOLE;
        if shape >> 24 != 0 {
            let what = bus.load(from + DescriptorWord::Data as u32);
            let offset = bus.load(from + DescriptorWord::Data as u32 + 4);
            let region = what >> 16;
            let row = EUDP_BLOCK + region_word(region & (REGIONS - 1), RegionWord::High);
            let row = barrier(row);
            let mut word = |word: RegionWord| bus.load(row + word as u32 - RegionWord::High as u32);
            let (there, owner) = (word(RegionWord::Bytes), word(RegionWord::Owner));
            let (high, low) = (word(RegionWord::High), word(RegionWord::Low));
            let fits = offset <= there && length <= there - offset && length != 0;
            if !fits || what & 0xFFFF != length || owner != mine || region >= REGIONS {
                return refused;
            }
            let (low, carry) = low.overflowing_add(offset);
            self.host.high = high.wrapping_add(u32::from(carry));
            self.host.low = low;
            self.flags = if headers.is_summed {
                LAST | WHOLE | FETCHED | SUMMED | WANTS_SUM
            } else {
                LAST | WHOLE | FETCHED
            };
        } else if length > INLINE_BYTES {
            return refused;
        }
        if !SendPath::has_link(bus) {
            return Err(Other::Refused(Status::LinkDown));
        }
        self.start = send.place_frame(HEADERS + length);
        self.length = HEADERS + length;
        self.headers = HEADERS;
        self.endpoint = next.endpoint;
        self.descriptor = from;
        self.settle(whole, io);
        Ok(headers)
    }

    /// Stores its headers, from registers, and its data, if that is in the descriptor.
    #[inline(always)]
    pub fn put_whole_headers<B: Dispatch>(&mut self, headers: &Headers, io: &mut IoB<B>) {
        let Headers { row, port, .. } = *headers;
        let bus = &mut io.bus;
        let (start, packet) = (self.start, self.length - ETHERNET);
        let payload = packet - IP;
        self.tag = bus.load(headers.at(HandleWord::Tag));
        if headers.is_summed {
            self.udp_sum = bus.load(headers.at(HandleWord::UdpSum)) + port + (payload << 1);
        }
        // Loads go first: each would wait for the stores in front of it.
        let number = bus.load(headers.at(HandleWord::Identification)) & 0xFFFF;
        let sum = bus.load(headers.at(HandleWord::IpSum)) + packet + number;
        let sum = !folded(sum) & 0xFFFF;
        let [a, b, c] = [bus.load(row), bus.load(row + 4), bus.load(row + 8)];
        let [d, e] = [bus.load(row + 12), bus.load(row + 20) & 0xFFFF];
        let f = sum << 16 | bus.load(row + 24) & 0xFFFF;
        let [g, h] = [bus.load(row + 28), bus.load(row + 32)];
        bus.store(headers.at(HandleWord::Identification), number + 1);
        bus.store(start, a);
        bus.store(start + 4, b);
        bus.store(start + 8, c);
        bus.store(start + 12, d);
        bus.store(start + 16, packet << 16 | number);
        bus.store(start + 20, e);
        bus.store(start + 24, f);
        bus.store(start + 28, g);
        bus.store(start + 32, h);
        bus.store(start + 36, port << 16 | payload);
        if self.has(FETCHED) {
            // The first two bytes of data behind the sum may be there already.
            bus.store_half(start + 40, 0);
        } else {
            let data = self.descriptor + DescriptorWord::Data as u32;
            let sum = put_inline(bus, data, start, self.length - HEADERS);
            if headers.is_summed {
                self.put_sum(sum, io);
            }
        }
    }
}

impl Next {
    /// Bytes of an IP packet's payload that a frame takes.
    #[inline(always)]
    const fn most(&self) -> u32 {
        self.shape & job::MOST
    }

    /// Whether the datagram has a UDP checksum.
    #[inline(always)]
    const fn is_summed(&self) -> bool {
        self.shape & job::SUMMED != 0
    }
}
