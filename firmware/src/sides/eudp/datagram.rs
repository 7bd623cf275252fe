//! What the headers of a received frame say.
//!
//! ```text
//!    0        14    16  18  20    22  23  24   26      30        34    36    38   40
//!   | stations | 45 | length | id | fragment | ttl | 17 | sum | source | destination | ports | length | sum |
//! ```
//!
//! Each word is loaded once: from the MAC's buffer, which ends behind any of them.

use super::completion::Reporter;
use super::headers::{ETHERNET, HEADERS, IP, UDP};
use super::sums::{folded, halves};
use crate::path::receive::frame::wrapped;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;

/// Bytes from a frame's start to the end of the words that are looked at.
pub(super) const REACH: u32 = HEADERS + 2;
/// More packets follow, or it is not the first one.
const FRAGMENT: u32 = 0x3FFF;

/// A whole UDP datagram for an endpoint.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Datagram {
    /// Whose it is.
    pub endpoint: u32,
    /// Bytes of data.
    pub length: u32,
    /// The sum of the pseudo-header and of the UDP header.
    pub sum: u16,
    /// Whether its sender has made a checksum.
    pub is_summed: bool,
    /// Whether lengths and the sum of the IP header are right.
    pub is_right: bool,
    /// The source's address.
    pub address: u32,
    /// The source's port.
    pub port: u32,
}

impl Datagram {
    /// None.
    pub const NONE: Datagram = Datagram {
        endpoint: 0,
        length: 0,
        sum: 0,
        is_summed: false,
        is_right: false,
        address: 0,
        port: 0,
    };

    /// Whether its checksum is right, if it has one and `data` is the sum of its data.
    #[inline(always)]
    pub const fn has_sum(&self, data: u32) -> bool {
        !self.is_summed || folded(self.sum as u32 + data) == 0xFFFF
    }

    /// Takes what a frame of `bytes` bytes without CRC says that begins at `start`, and returns its
    /// endpoint; `None` if it is no whole datagram to an endpoint's address and port.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
    #[inline(never)]
    pub fn take<B: Bus>(
        &mut self,
        reporter: &Reporter,
        bus: &mut B,
        start: u32,
        bytes: u32,
        base: u32,
    ) -> Option<u32> {
        if start <= PACKET_MEMORY_END - REACH {
            self.judge(reporter, (bytes, 0), |offset| bus.load(start + offset))
        } else {
            self.take_round(reporter, bus, start, bytes, base)
        }
    }

    /// The same of a frame that goes round the buffer's end.
    #[inline(never)]
    pub fn take_round<B: Bus>(
        &mut self,
        reporter: &Reporter,
        bus: &mut B,
        start: u32,
        bytes: u32,
        base: u32,
    ) -> Option<u32> {
        self.take_tagged(reporter, bus, start, bytes, (base, 0))
    }

    /// The same of a frame in a VLAN, bits 31:16, that begins at `start` if its tag does not count.
    #[inline(never)]
    pub fn take_tagged<B: Bus>(
        &mut self,
        reporter: &Reporter,
        bus: &mut B,
        start: u32,
        bytes: u32,
        (base, vlan): (u32, u32),
    ) -> Option<u32> {
        self.judge(reporter, (bytes, vlan), |offset| {
            bus.load(wrapped(base, start + offset))
        })
    }

    #[inline(always)]
    fn judge(
        &mut self,
        reporter: &Reporter,
        (bytes, vlan): (u32, u32),
        mut word: impl FnMut(u32) -> u32,
    ) -> Option<u32> {
        let first = word(12);
        if first & 0xFFFF_FF00 != 0x0800_4500 {
            return None;
        }
        let flags = word(20);
        if flags & 0xFF != 17 || flags >> 16 & FRAGMENT != 0 {
            return None;
        }
        let (middle, last, ports) = (word(28), word(32), word(36));
        let address = middle << 16 | last >> 16;
        let endpoint = reporter.find(address, vlan | ports >> 16)?;
        let (packet, source, check) = (word(16), word(24), word(40) >> 16);
        self.endpoint = endpoint;
        self.address = source << 16 | middle >> 16;
        self.port = last & 0xFFFF;
        let udp = ports & 0xFFFF;
        self.length = udp.wrapping_sub(UDP);
        self.is_summed = check != 0;
        let addresses = (source & 0xFFFF) + halves(middle) + (last >> 16);
        self.sum = folded(addresses + 17 + udp + (last & 0xFFFF) + halves(ports) + check) as u16;
        let sum = (first & 0xFFFF) + halves(packet) + halves(flags) + (source >> 16) + addresses;
        let packet = packet >> 16;
        let whole = packet >= IP + UDP && packet <= bytes - ETHERNET && udp == packet - IP;
        self.is_right = whole && folded(sum) == 0xFFFF;
        Some(endpoint)
    }
}
