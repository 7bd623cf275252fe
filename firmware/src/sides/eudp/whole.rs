//! Datagrams that are one frame, with data in one piece or in the descriptor: most of them.
//!
//! Their descriptor is judged and their headers are stored in one go, from registers.

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

impl Frame {
    /// Takes a descriptor, and makes its frame; `whole` if it leaves when it is whole. One function,
    /// as its words stay in registers from the descriptor to the headers.
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
    ) -> Result<(), Other> {
        let bus = &mut io.bus;
        let from = next.descriptor;
        let to = bus.load(from + DescriptorWord::To as u32);
        let shape = bus.load(from + DescriptorWord::Shape as u32);
        let length = shape & 0xFFFF;
        let (payload, handle) = (UDP + length, to >> 24);
        if shape >> 25 != 0 || payload > next.most() {
            return Err(Other::Job);
        }
        let refused = Err(Other::Refused(Status::BadDescriptor));
        let row = barrier(EUDP_BLOCK + handle_word(handle & (HANDLES - 1), HandleWord::Headers));
        let of = |word: HandleWord| row + word as u32 - HandleWord::Headers as u32;
        let mine = next.endpoint + 1;
        if handle >= HANDLES || bus.load(of(HandleWord::Owner)) != mine {
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
            self.flags = if next.is_summed() {
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
        let start = send.place_frame(HEADERS + length);
        self.start = start;
        self.length = HEADERS + length;
        self.headers = HEADERS;
        self.endpoint = next.endpoint;
        self.descriptor = from;
        self.tag = bus.load(of(HandleWord::Tag));
        let port = to & 0xFFFF;
        if next.is_summed() {
            self.udp_sum = bus.load(of(HandleWord::UdpSum)) + port + (payload << 1);
        }
        // Loads go first: each would wait for the stores in front of it.
        let number = bus.load(of(HandleWord::Identification)) & 0xFFFF;
        let sum = bus.load(of(HandleWord::IpSum)) + (IP + payload) + number;
        let sum = !folded(sum) & 0xFFFF;
        let [a, b, c] = [bus.load(row), bus.load(row + 4), bus.load(row + 8)];
        let [d, e] = [bus.load(row + 12), bus.load(row + 20) & 0xFFFF];
        let f = sum << 16 | bus.load(row + 24) & 0xFFFF;
        let [g, h] = [bus.load(row + 28), bus.load(row + 32)];
        bus.store(of(HandleWord::Identification), number + 1);
        bus.store(start, a);
        bus.store(start + 4, b);
        bus.store(start + 8, c);
        bus.store(start + 12, d);
        bus.store(start + 16, (IP + payload) << 16 | number);
        bus.store(start + 20, e);
        bus.store(start + 24, f);
        bus.store(start + 28, g);
        bus.store(start + 32, h);
        bus.store(start + 36, port << 16 | payload);
        if !self.has(FETCHED) {
            let data = from + DescriptorWord::Data as u32;
            let sum = put_inline(bus, data, start, length);
            if next.is_summed() {
                self.put_sum(sum, io);
            }
        } else {
            bus.store(start + 40, 0);
        }
        self.settle(whole, io);
        Ok(())
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
