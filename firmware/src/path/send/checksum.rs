//! Checksums of frames to send.
//!
//! Hardware reference, sections 6.5 and 13. The read channel sums the frame while it fetches it.
//! This module subtracts everything before TCP or UDP, adds the pseudo-header if the host did not,
//! and writes the transport's checksum into the transmit buffer before the MAC may send the frame.
//! Software alone computes the IP header's checksum.
//!
//! ```text
//!              0            14 (18 with 802.1Q)  + 4 * IHL         total length     end
//! frame        | Ethernet   | IP header          | TCP or UDP, data | padding       |
//! channel's    |<----------------------------- sum ------------------------------->|
//! subtracted   |<---------->|<- 0xFFFF, or sum ->|                  |<------------->|
//! ```
//!
//! Fields are read in place: a frame begins at a multiple of 8 bytes, so IP begins 2 bytes after a
//! word boundary.

use tigon2_hal::Bus;
use tigon2_hal::mac::TransmitBuffer;

/// All bytes that this module reads or writes, except the padding, lie within this distance from a
/// frame's start: they do not wrap (13). Vendor firmware has the same number; two VLAN tags, SNAP,
/// 60 bytes of IP and the TCP checksum's end are 108.
pub const HEADERS: u32 = 128;

const IPV4: u32 = 0x0800;
const TCP: u32 = 6;
const UDP: u32 = 17;
/// Types of the tags that may be in the frame itself: 802.1Q and 802.1ad.
const TAGS: [u32; 2] = [0x8100, 0x88A8];
/// Bytes of an Ethernet header, after which a tag may follow.
const ETHERNET: u32 = 14;
/// Largest value of the type field that is a length (IEEE 802.3).
const LENGTH_MAX: u32 = 1500;

/// The requested checksums of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The IP header's checksum. Otherwise the host's checksum is valid and the header sums to
    /// 0xFFFF (13, 16, C).
    pub ip: bool,
    /// The checksum of TCP or UDP.
    pub transport: bool,
    /// The host put the sum of the pseudo-header into the transport's field; otherwise the field's
    /// content does not matter.
    pub no_pseudo_header: bool,
    /// Inspect frames with a length and a SNAP header as well.
    pub snap: bool,
}

/// Writes the requested checksums into the frame of `length` bytes at `frame`, whose bytes sum to
/// `sum`. Leaves a frame unchanged that has none: not IPv4, a fragment, neither TCP nor UDP, or
/// truncated.
#[cfg_attr(
    all(target_arch = "mips", not(feature = "eudp")),
    unsafe(link_section = ".scratch_b.text")
)]
#[inline(never)]
pub fn patch<B: Bus>(
    bus: &mut B,
    buffer: &TransmitBuffer,
    frame: u32,
    length: u32,
    sum: u16,
    wanted: Wanted,
) {
    let mut ip = frame + ETHERNET;
    let types = bus.load(frame + 12);
    let mut front = halves(bus.load(frame)) + halves(bus.load(frame + 4));
    front += halves(bus.load(frame + 8)) + (types >> 16);
    if types >> 16 != IPV4 {
        match inner(bus, ip, types >> 16, wanted.snap) {
            Some((inner, more)) => {
                ip = inner;
                front += more;
            }
            None => return,
        }
    }

    let first = half(bus, ip);
    let header = first >> 6 & 0x3C;
    let total_and_id = bus.load(ip + 2);
    let total = total_and_id >> 16;
    let end = ip - frame + total;
    if first >> 12 != 4 || header < 20 || total < header || end > length {
        return;
    }
    let fragment_and_protocol = bus.load(ip + 6);
    if wanted.ip {
        let sum = header_sum(bus, ip, header);
        let old = half(bus, ip + 10);
        bus.store_half(ip + 10, !folded(sum + not(old)) as u16);
        front += sum;
    }
    // More fragments, or not the first.
    if !wanted.transport || fragment_and_protocol & 0x3FFF_0000 != 0 {
        return;
    }
    let protocol = fragment_and_protocol & 0xFF;
    let (field, least) = match protocol {
        TCP => (ip + header + 16, 20),
        UDP => (ip + header + 6, 8),
        _ => return,
    };
    let transport = total - header;
    if transport < least {
        return;
    }
    let mut rest = u32::from(sum) + not(folded(front));
    if end != length {
        rest += not(padding(bus, buffer, frame, end, length));
    }
    if !wanted.no_pseudo_header {
        rest += not(half(bus, field)) + protocol + transport;
        rest += half(bus, ip + 12) + halves(bus.load(ip + 14)) + half(bus, ip + 18);
    }
    // The sum of bytes that are not all 0 is 0xFFFF, never 0.
    let mut checksum = match folded(rest) {
        0 => 0,
        sum => !sum & 0xFFFF,
    };
    if checksum == 0 && protocol == UDP {
        // 0 means "none" (RFC 768).
        checksum = 0xFFFF;
    }
    bus.store_half(field, checksum as u16);
}

/// Finds IPv4 after tags and a SNAP header, where the type at `ip` - 2 is not IPv4. Returns where
/// it begins and the sum of the bytes since `ip`.
#[inline(never)]
fn inner<B: Bus>(bus: &mut B, mut ip: u32, mut kind: u32, snap: bool) -> Option<(u32, u32)> {
    let mut sum = 0;
    for _ in 0..2 {
        if !TAGS.contains(&kind) {
            break;
        }
        kind = half(bus, ip + 2);
        sum += half(bus, ip) + kind;
        ip += 4;
    }
    if snap && kind <= LENGTH_MAX {
        // DSAP and SSAP of SNAP, unnumbered information, no organisation.
        let (access, control) = (half(bus, ip), half(bus, ip + 2));
        if access == 0xAAAA && control == 0x0300 && half(bus, ip + 4) == 0 {
            kind = half(bus, ip + 6);
            sum += access + control + kind;
            ip += 8;
        }
    }
    (kind == IPV4).then_some((ip, sum))
}

/// The sum of an IP header's bytes.
#[inline(always)]
fn header_sum<B: Bus>(bus: &mut B, ip: u32, bytes: u32) -> u32 {
    let last = ip + bytes - 2;
    let mut sum = half(bus, ip) + half(bus, last);
    let mut at = ip + 2;
    while at < last {
        sum += halves(bus.load(at));
        at += 4;
    }
    sum
}

/// The folded sum of the bytes after the IP datagram: bytes `from..to` of the frame.
#[inline(never)]
fn padding<B: Bus>(bus: &mut B, buffer: &TransmitBuffer, frame: u32, from: u32, to: u32) -> u32 {
    let mut sum = 0;
    for at in from..to {
        let byte = u32::from(bus.load_byte(buffer.behind(frame, at)));
        sum += if at & 1 == 0 { byte << 8 } else { byte };
    }
    folded(sum)
}

#[inline(always)]
fn half<B: Bus>(bus: &mut B, address: u32) -> u32 {
    u32::from(bus.load_half(address))
}

/// The sum of the two halves of a word.
#[inline(always)]
const fn halves(word: u32) -> u32 {
    (word >> 16) + (word & 0xFFFF)
}

/// The complement of a folded sum, which subtracts it when added.
#[inline(always)]
const fn not(sum: u32) -> u32 {
    !sum & 0xFFFF
}

/// Folds the carries of a one's-complement sum.
#[inline(always)]
const fn folded(sum: u32) -> u32 {
    halves(halves(sum))
}
