//! Finds addresses and ports in a frame.
//!
//! ```text
//!  0            12     14 (+4 for each tag)
//!  | addresses  | type | IP header, options | extension headers | TCP or UDP |
//!                      ip                                       ports
//! ```
//!
//! All fields lie at an offset 2 above a multiple of 4: tags and IPv4 options are multiples of 4
//! bytes, extension headers of 8.

use crate::frame::Frame;

/// The most extension headers of a datagram. A sender needs at most five (RFC 8200, 4.1); a frame
/// has room for a thousand, which would take longer than the frame itself.
pub const EXTENSIONS_MAX: u32 = 8;

/// Offset of the first type field.
const TYPE: u32 = 12;
/// Bytes of a tag, and most tags.
const TAG: u32 = 4;
const TAGS_MAX: u32 = 2;
/// Types: 802.1Q, 802.1ad, IPv4, IPv6.
const CUSTOMER_TAG: u32 = 0x8100;
const SERVICE_TAG: u32 = 0x88A8;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86DD;
/// Bytes of the shortest IPv4 header, and of an IPv6 header.
pub(crate) const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;
/// "More fragments" and the offset, without DF.
pub(crate) const FRAGMENT_BITS: u32 = 0x3FFF;
/// The same bits in an IPv6 fragment header: the offset and M; the two bits between are reserved.
const IPV6_FRAGMENT_BITS: u32 = 0xFFF9;

pub(crate) const TCP: u32 = 6;
pub(crate) const UDP: u32 = 17;
/// Bytes of the fixed headers.
pub(crate) const TCP_HEADER: u32 = 20;
pub(crate) const UDP_HEADER: u32 = 8;
/// Extension headers, by their numbers.
const HOP_BY_HOP: u32 = 0;
const ROUTING: u32 = 43;
const FRAGMENT: u32 = 44;
const DESTINATION: u32 = 60;

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A datagram in a frame: its header fits, and everything that the header announces is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The version.
    pub version: Version,
    /// Offset of the IP header.
    pub header: u32,
    /// Offset of what follows header and options.
    pub payload: u32,
    /// Offset after the datagram.
    pub end: u32,
}

impl Network {
    /// Offset of the source address; the destination address follows it.
    #[inline]
    pub const fn addresses(&self) -> u32 {
        match self.version {
            Version::V4 => self.header + 12,
            Version::V6 => self.header + 8,
        }
    }

    /// Bytes of both addresses.
    #[inline]
    pub const fn addresses_bytes(&self) -> u32 {
        match self.version {
            Version::V4 => 8,
            Version::V6 => 32,
        }
    }
}

/// The payload of a datagram, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A whole TCP segment; offset of its ports.
    Tcp(u32),
    /// A whole UDP datagram; offset of its ports.
    Udp(u32),
    /// A fragment, or another protocol: only addresses are used.
    Other,
}

/// The datagram in a frame of `length` bytes; `None` if there is none that is complete and
/// consistent.
pub fn network<F: Frame>(frame: &mut F, length: u32) -> Option<Network> {
    let mut at = TYPE;
    if length < at + 2 {
        return None;
    }
    let mut kind = frame.half(at);
    let mut tags = 0;
    while tags < TAGS_MAX && (kind == CUSTOMER_TAG || kind == SERVICE_TAG) {
        at += TAG;
        if length < at + 2 {
            return None;
        }
        kind = frame.half(at);
        tags += 1;
    }
    let header = at + 2;
    let (version, payload, end) = match kind {
        IPV4 if length >= header + IPV4_HEADER => {
            let first = frame.half(header);
            let bytes = (first >> 6) & 0x3C;
            let total = frame.half(header + 2);
            if first >> 12 != 4 || bytes < IPV4_HEADER || total < bytes {
                return None;
            }
            (Version::V4, header + bytes, header + total)
        }
        IPV6 if length >= header + IPV6_HEADER => {
            if frame.half(header) >> 12 != 6 {
                return None;
            }
            let payload = header + IPV6_HEADER;
            (Version::V6, payload, payload + frame.half(header + 4))
        }
        _ => return None,
    };
    if end > length {
        return None;
    }
    Some(Network {
        version,
        header,
        payload,
        end,
    })
}

/// The payload of a datagram; `None` if it is truncated or inconsistent.
pub fn transport<F: Frame>(frame: &mut F, network: &Network) -> Option<Transport> {
    match network.version {
        Version::V4 => {
            if frame.half(network.header + 6) & FRAGMENT_BITS != 0 {
                return Some(Transport::Other);
            }
            let protocol = frame.half(network.header + 8) & 0xFF;
            ports(protocol, network.payload, network.end)
        }
        Version::V6 => {
            let next = frame.half(network.header + 6) >> 8;
            if next == TCP || next == UDP {
                return ports(next, network.payload, network.end);
            }
            behind_extensions(frame, next, network.payload, network.end)
        }
    }
}

/// Skips the extension headers from `at` on, the first of which has type `next`.
fn behind_extensions<F: Frame>(
    frame: &mut F,
    mut next: u32,
    mut at: u32,
    end: u32,
) -> Option<Transport> {
    let mut seen = 0;
    loop {
        if !matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION) {
            return ports(next, at, end);
        }
        // Hop-by-hop options come first or not at all (RFC 8200, 4.1).
        if seen == EXTENSIONS_MAX || next == HOP_BY_HOP && seen != 0 || end < at + 8 {
            return None;
        }
        let first = frame.half(at);
        let bytes = if next == FRAGMENT {
            if frame.half(at + 2) & IPV6_FRAGMENT_BITS != 0 {
                return Some(Transport::Other);
            }
            8
        } else {
            8 * (first & 0xFF) + 8
        };
        at += bytes;
        if at > end {
            return None;
        }
        next = first >> 8;
        seen += 1;
    }
}

/// The payload whose header is at `at`; `None` if the header is truncated.
fn ports(protocol: u32, at: u32, end: u32) -> Option<Transport> {
    match protocol {
        TCP if at + TCP_HEADER <= end => Some(Transport::Tcp(at)),
        UDP if at + UDP_HEADER <= end => Some(Transport::Udp(at)),
        TCP | UDP => None,
        _ => Some(Transport::Other),
    }
}
