//! Inspects a frame's headers and computes the seed of its checksum.
//!
//! Hardware reference, sections 6.5 and 14; host/NIC software interface, "Checksum conventions".
//! The DMA channel sums all bytes of a frame that it moves, but the host wants the sum of the
//! datagram:
//!
//! ```text
//! | Ethernet header | IP header, TCP/UDP header, data | padding |
//! |  left out       |  summed                         | left out|
//! ```
//!
//! A valid IP header has the sum 0xFFFF, which is zero in one's complement, so it can stay in the
//! sum. The complement of what has to be left out goes into the *seed* with which the channel
//! begins its sum; so does the pseudo-header unless the host adds it itself.

use super::frame::{HEADER, TAG, wrapped};
use host_interface::bd::BdFlags;
use host_interface::info::RcbFlags;
use tigon2_chip::mac::VLAN_TYPE;
use tigon2_hal::Bus;

/// The flag by which a ring requests VLAN tag stripping.
pub(super) const VLAN: u32 = RcbFlags::new().with_vlan_assist(true).into_bits() as u32;
const TRANSPORT: u32 = RcbFlags::new().with_transport_checksum(true).into_bits() as u32;
const IP: u32 = RcbFlags::new().with_ip_checksum(true).into_bits() as u32;
const NO_PSEUDO: u32 = RcbFlags::new().with_no_pseudo_header(true).into_bits() as u32;
const SNAP: u32 = RcbFlags::new().with_snap_checksum(true).into_bits() as u32;

const TAGGED: u32 = BdFlags::new().with_vlan_tag(true).into_bits() as u32;
const TRANSPORT_SUMMED: u32 = BdFlags::new().with_transport_checksum(true).into_bits() as u32;
const IP_SUMMED: u32 = BdFlags::new().with_ip_checksum(true).into_bits() as u32;
const FRAGMENT: u32 = BdFlags::new().with_ip_fragment(true).into_bits() as u32;
const LAST_FRAGMENT: u32 = BdFlags::new().with_ip_fragment_end(true).into_bits() as u32;

/// The EtherType of IP.
const IPV4: u32 = 0x0800;
/// The largest type field that is a length: IEEE 802.3.
const LENGTH_MAX: u32 = 1500;
/// The first two bytes of an LLC header for SNAP, and the four that follow.
const LLC: (u32, u32) = (0xAAAA, 0x0300_0000);
/// Bytes of LLC and SNAP headers.
const SNAP_BYTES: u32 = 8;
const TCP: u32 = 6;
const UDP: u32 = 17;
/// Shortest IP header.
const IP_HEADER: u32 = 20;
/// More fragments follow; and the same with the offset.
const MORE_FRAGMENTS: u32 = 0x2000;
const FRAGMENT_BITS: u32 = 0x3FFF;
/// Longest padding that is inspected: a frame of 60 bytes has less.
const PADDING_MAX: u32 = 64;

/// How far the inspected headers may reach from the start of a frame: type, tag, SNAP, the longest
/// IP header and the place of a UDP checksum.
pub(super) const REACH: u32 = 128;

/// The result of the inspection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    /// Bytes stripped from the frame's start, if a tag was removed.
    pub stripped: u32,
    /// The stripped tag.
    pub tag: u32,
    /// BD flags.
    pub flags: u32,
    /// Sum of the IP header: 0xFFFF is correct.
    pub ip_sum: u32,
    /// Whether the datagram needs a checksum.
    pub summed: bool,
    /// The initial value of the sum.
    pub seed: u32,
    /// Bytes after the datagram, without CRC.
    pub padding: u32,
}

impl Headers {
    /// Nothing to do.
    pub const NOTHING: Headers = Headers {
        stripped: 0,
        tag: 0,
        flags: 0,
        ip_sum: 0,
        summed: false,
        seed: 0,
        padding: 0,
    };

    /// Clears the sums: the host gets only a part of the frame.
    pub fn forget_sums(&mut self) {
        self.flags &= TAGGED;
        self.ip_sum = 0;
        self.summed = false;
    }

    /// Leaves the padding at NIC address `at` out of the sum. Linux wants the sum of all delivered
    /// bytes, other drivers that of the datagram. If the padding makes a difference, the flag is
    /// not set, and drivers that ignore the flag find the datagram's sum.
    #[inline(always)]
    pub fn leave_out_padding<B: Bus>(&mut self, bus: &mut B, base: u32, at: u32) {
        if self.padding > PADDING_MAX {
            return self.forget_sums();
        }
        let sum = sum_of(bus, base, at, self.padding);
        if sum != 0 && sum != 0xFFFF {
            self.flags &= !TRANSPORT_SUMMED;
            self.leave_out(sum);
        }
    }

    /// Leaves bytes with this sum out of the datagram's sum.
    #[inline(always)]
    pub fn leave_out(&mut self, sum: u32) {
        self.seed = fold(self.seed + (!sum & 0xFFFF));
    }
}

/// Inspects a frame of `length` bytes without CRC whose headers are contiguous.
#[inline(always)]
pub(super) fn look<B: Bus>(bus: &mut B, wants: u32, start: u32, length: u32) -> Headers {
    look_through(bus, wants, start, length, |address| address)
}

/// As [`look`], for a frame whose headers may wrap at the end of the receive buffer, which begins
/// at `base`.
#[inline(never)]
pub(super) fn look_round<B: Bus>(
    bus: &mut B,
    wants: u32,
    start: u32,
    length: u32,
    base: u32,
) -> Headers {
    look_through(bus, wants, start, length, |address| wrapped(base, address))
}

/// One function, layer by layer, so that what a header says is in registers for the next one:
/// parts of it would hand over a dozen values.
#[inline(always)]
fn look_through<B: Bus>(
    bus: &mut B,
    wants: u32,
    mut start: u32,
    mut length: u32,
    at: impl Fn(u32) -> u32,
) -> Headers {
    let mut headers = Headers::NOTHING;
    let a = bus.load(at(start));
    let b = bus.load(at(start + 4));
    let c = bus.load(at(start + 8));
    // The type, and after it the first two bytes of its payload.
    let mut word = bus.load(at(start + 12));
    if wants & VLAN != 0 && word >> 16 == u32::from(VLAN_TYPE) && length >= HEADER + TAG {
        // The addresses move over the tag (14, second section 19, C).
        bus.store(at(start + 4), a);
        bus.store(at(start + 8), b);
        bus.store(at(start + 12), c);
        headers.tag = word & 0xFFFF;
        headers.flags = TAGGED;
        headers.stripped = TAG;
        start += TAG;
        length -= TAG;
        word = bus.load(at(start + 12));
    }
    if wants & (TRANSPORT | IP) == 0 {
        return headers;
    }
    let mut before = fold(add(add(a, b), c)) + (word >> 16);
    let mut ip = start + HEADER;
    if wants & SNAP != 0 && word >> 16 <= LENGTH_MAX {
        let rest = bus.load(at(start + 16));
        if (word & 0xFFFF, rest) == LLC {
            word = bus.load(at(start + 20));
            before += LLC.0 + (LLC.1 >> 16) + (word >> 16);
            ip += SNAP_BYTES;
        }
    }
    // The first halfword of an IP header is in `word`; the words that follow are aligned.
    let bytes = (word >> 6) & 0x3C;
    if word >> 12 != IPV4 << 4 | 4 || bytes < IP_HEADER || length < ip - start + IP_HEADER {
        return headers;
    }
    let total_and_id = bus.load(at(ip + 2));
    let total = total_and_id >> 16;
    let end = ip - start + total;
    if total < bytes || end > length {
        return headers;
    }
    let fragment_and_protocol = bus.load(at(ip + 6));
    let protocol = fragment_and_protocol & 0xFF;
    let fragment = (fragment_and_protocol >> 16) & FRAGMENT_BITS;
    if fragment != 0 {
        headers.flags |= FRAGMENT;
        if fragment & MORE_FRAGMENTS == 0 {
            headers.flags |= LAST_FRAGMENT;
        }
    }
    let transport = wants & TRANSPORT != 0 && (protocol == TCP || protocol == UDP);
    let pseudo = transport && wants & NO_PSEUDO == 0;
    let mut pseudo_sum = 0;
    if wants & IP != 0 || pseudo {
        let sum_and_source = bus.load(at(ip + 10));
        let source_and_destination = bus.load(at(ip + 14));
        let destination = bus.load(at(ip + 18)) >> 16;
        if wants & IP != 0 {
            let mut sum = add(word & 0xFFFF, total_and_id);
            sum = add(sum, fragment_and_protocol);
            sum = add(sum, sum_and_source);
            sum = add(sum, source_and_destination);
            sum = fold(sum) + destination;
            for offset in (IP_HEADER..bytes).step_by(2) {
                sum += u32::from(bus.load_half(at(ip + offset)));
            }
            headers.ip_sum = fold(sum);
            headers.flags |= IP_SUMMED;
        }
        pseudo_sum = fold(source_and_destination) + (sum_and_source & 0xFFFF) + destination;
        pseudo_sum += protocol + (total - bytes);
    }
    if !transport {
        return headers;
    }
    headers.seed = !fold(before) & 0xFFFF;
    if pseudo {
        // A fragment has no sum of the whole datagram, and a datagram without a checksum needs
        // none.
        let none = protocol == UDP && bus.load_half(at(ip + bytes + 6)) == 0;
        if fragment != 0 || none {
            return headers;
        }
        headers.seed = fold(headers.seed + pseudo_sum);
    }
    headers.flags |= TRANSPORT_SUMMED;
    headers.summed = true;
    headers.padding = length - end;
    headers
}

/// The one's-complement sum of bytes in the receive buffer, as the channel would compute it: an
/// odd address is a low byte (6.5, C). The scratch pad has no room for it.
#[inline(never)]
pub(super) fn sum_of<B: Bus>(bus: &mut B, base: u32, at: u32, bytes: u32) -> u32 {
    let mut at = wrapped(base, at);
    let mut left = bytes;
    let mut sum = 0;
    if at & 1 != 0 && left != 0 {
        sum = u32::from(bus.load_byte(at));
        at = wrapped(base, at + 1);
        left -= 1;
    }
    while left > 1 {
        sum += u32::from(bus.load_half(at));
        at = wrapped(base, at + 2);
        left -= 2;
    }
    if left != 0 {
        sum += u32::from(bus.load_byte(at)) << 8;
    }
    fold(sum)
}

/// One's-complement sum of words.
#[inline(always)]
const fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u32
}

/// The sum of a word's halves, with the carry.
#[inline(always)]
const fn fold(sum: u32) -> u32 {
    let sum = (sum >> 16) + (sum & 0xFFFF);
    (sum >> 16) + (sum & 0xFFFF)
}
