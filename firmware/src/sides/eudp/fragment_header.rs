//! What the headers of a fragment say.

use super::assembly::{Key, PAYLOAD_MAX};
use super::datagram::REACH;
use super::headers::{ETHERNET, HEADERS, IP, UDP};
use super::sums::{folded, halves};
use crate::io::IoA;
use crate::path::receive::frame::CRC;
use crate::path::receive::guarded;
use host_interface::eudp::POOL;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// Where a fragment begins, in units of 8 bytes.
pub(super) const OFFSET: u32 = 0x1FFF;
/// The VLAN in an endpoint's port, and in a pool's.
pub(super) const VLAN: u32 = 0xFFFF_0000 & !POOL;
/// More fragments follow.
pub(super) const MORE: u32 = 0x2000;

/// What was done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is no fragment for an endpoint.
    Passed,
    /// It has to wait; what it waits for calls again.
    Waits,
    /// It was seen to.
    Taken,
    /// It is in the write channel's queue, which frees its room.
    Queued,
}

/// What a fragment's IP header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) key: Key,
    /// Where it begins in the IP payload.
    pub(super) from: u32,
    /// Behind its last byte.
    pub(super) end: u32,
    /// Whether it is the last one.
    pub(super) is_end: bool,
    /// The sum of its addresses.
    addresses: u32,
    /// The source's port, if it is the first one.
    pub(super) port: u32,
}

impl Header {
    /// Reads that of a frame without a tag, for this card's own address; `None` if it is no fragment
    /// of a UDP datagram, does not lie in one piece, or is wrong in itself.
    #[inline(always)]
    pub(super) fn in_one_piece<B: Bus>(bus: &mut B, frame: &ReceivedFrame) -> Option<Header> {
        if frame.start > PACKET_MEMORY_END - REACH {
            return None;
        }
        let flags = bus.load(frame.start + 20);
        if flags & (MORE | OFFSET) << 16 == 0 || flags & 0xFF != 17 {
            return None;
        }
        Header::of(bus, frame, flags, |address| address)
    }

    /// Reads that of a frame for this card's own address; `flags` is the word of it that says that it
    /// is a fragment. `None` if it is wrong in itself.
    #[inline(always)]
    pub(super) fn of<B: Bus>(
        bus: &mut B,
        frame: &ReceivedFrame,
        flags: u32,
        at: impl Fn(u32) -> u32,
    ) -> Option<Header> {
        let start = frame.start;
        let mut word = |offset: u32| bus.load(at(start + offset));
        let (first, packet, source) = (word(12), word(16), word(24));
        let (middle, last) = (word(28), word(32));
        let addresses = (source & 0xFFFF) + halves(middle) + (last >> 16);
        let sum = (first & 0xFFFF) + halves(packet) + halves(flags) + (source >> 16) + addresses;
        let (length, identification) = (packet >> 16, packet & 0xFFFF);
        let bytes = length.wrapping_sub(IP);
        let from = (flags >> 16 & OFFSET) << 3;
        let end = from.wrapping_add(bytes);
        let is_end = flags & MORE << 16 == 0;
        if first & 0xFFFF_FF00 != 0x0800_4500
            || folded(sum) != 0xFFFF
            || length <= IP
            || length > frame.length - CRC - ETHERNET
            || !is_end && bytes & 7 != 0
            || end > PAYLOAD_MAX
        {
            return None;
        }
        Some(Header {
            key: Key {
                source: source << 16 | middle >> 16,
                destination: middle << 16 | last >> 16,
                identification,
            },
            from,
            end,
            is_end,
            addresses,
            port: last & 0xFFFF,
        })
    }
}

/// What a fragment's headers say.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) ip: Header,
    /// The destination's port and the length of all, if it is the first one: as in the UDP header.
    pub(super) ports: u32,
    /// Its VLAN, in bits 31:16; 0 for none.
    pub(super) vlan: u32,
    /// The sum of the pseudo-header and of the UDP header.
    pub(super) sum: u32,
    pub(super) is_summed: bool,
}

impl Fragment {
    /// None.
    pub(super) const NONE: Fragment = Fragment {
        ip: Header {
            key: Key::NONE,
            from: 0,
            end: 0,
            is_end: false,
            addresses: 0,
            port: 0,
        },
        ports: 0,
        vlan: 0,
        sum: 0,
        is_summed: false,
    };

    /// Reads a frame's headers; `None` if it is no fragment of a UDP datagram, or is wrong in itself.
    #[inline(always)]
    pub(super) fn of<B: Dispatch>(
        io: &mut IoA<B>,
        frame: &ReceivedFrame,
        (vlan, flags): (u32, u32),
        at: impl Fn(u32) -> u32,
    ) -> Option<Fragment> {
        // One with a tag was judged where that is.
        if vlan == 0 && !guarded::is_own(io, frame, HEADERS) {
            return None;
        }
        let header = Header::of(&mut io.bus, frame, flags, &at)?;
        Some(Fragment::with(&mut io.bus, header, frame.start, vlan, at))
    }

    /// Reads the UDP header behind an IP header.
    #[inline(always)]
    pub(super) fn with<B: Bus>(
        bus: &mut B,
        ip: Header,
        start: u32,
        vlan: u32,
        at: impl Fn(u32) -> u32,
    ) -> Fragment {
        let (ports, check) = (bus.load(at(start + 36)), bus.load(at(start + 40)) >> 16);
        let udp = ports & 0xFFFF;
        Fragment {
            ip,
            ports,
            vlan,
            sum: folded(ip.addresses + 17 + udp + ip.port + halves(ports) + check),
            is_summed: check != 0,
        }
    }

    /// The destination's port, with the VLAN, if it is the first one.
    pub(super) const fn destination_port(&self) -> u32 {
        self.vlan | self.ports >> 16
    }

    /// Whether it is a UDP header alone.
    pub(super) const fn is_header(&self) -> bool {
        self.ip.end == UDP
    }

    /// Whether it has the UDP header.
    pub(super) const fn is_first(&self) -> bool {
        self.ip.from == 0
    }

    /// Bytes of the IP payload, if it says so.
    pub(super) const fn length(&self) -> Option<u32> {
        if self.is_first() {
            return Some(self.ports & 0xFFFF);
        }
        if self.ip.is_end {
            Some(self.ip.end)
        } else {
            None
        }
    }
}
