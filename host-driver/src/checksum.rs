//! Internet checksums that card and host compute together.
//!
//! The card sums the bytes that it moves; a flag of the ring decides who adds the pseudo-header
//! (Host/NIC software interface, "Checksum conventions"). [`prepare`] prepares a frame for a card
//! that completes its checksums; [`check`] checks a received frame by the card's sums. Sums are
//! one's-complement sums of big-endian 16-bit words, not inverted, unless stated otherwise.

use crate::nic::{ChecksumOffload, ReceivedChecksums, SendOptions};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Bytes of a VLAN tag within the frame.
const TAG: usize = 4;
/// EtherType of IPv4.
const IPV4: u16 = 0x0800;
/// EtherType of a VLAN tag.
const VLAN: u16 = 0x8100;
/// IPv4 protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Adds two sums, or a word to a sum.
#[must_use]
pub const fn add(left: u16, right: u16) -> u16 {
    let (sum, carry) = left.overflowing_add(right);
    sum + carry as u16
}

/// The sum of bytes, the first of them the upper half of a word.
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
        [high] => u64::from(*high) << 8,
        _ => 0,
    });
    let mut total: u64 = words.sum();
    while total > 0xFFFF {
        total = (total >> 16) + (total & 0xFFFF);
    }
    total as u16
}

/// Zero has two forms in one's complement, and both mean a correct checksum.
const fn is_zero(sum: u16) -> bool {
    sum == 0 || sum == 0xFFFF
}

/// The parts of a frame that matter to checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// Offset of the IPv4 header, and of what follows it.
    network: usize,
    transport: usize,
    /// End of the IPv4 packet; padding may follow.
    end: usize,
    protocol: u8,
    fragment: bool,
}

fn word(bytes: &[u8], offset: usize) -> Option<u16> {
    let pair = bytes.get(offset..offset + 2)?;
    Some(u16::from_be_bytes([*pair.first()?, *pair.get(1)?]))
}

impl Layout {
    /// The layout of a complete IPv4 packet; None for anything else.
    fn of(frame: &[u8]) -> Option<Self> {
        let mut network = ETHERNET;
        let mut kind = word(frame, 12)?;
        if kind == VLAN {
            kind = word(frame, 16)?;
            network += TAG;
        }
        let version = *frame.get(network)?;
        if kind != IPV4 || version >> 4 != 4 {
            return None;
        }
        let transport = network + usize::from(version & 0xF) * 4;
        let end = network + usize::from(word(frame, network + 2)?);
        if transport < network + 20 || end < transport || end > frame.len() {
            return None;
        }
        Some(Self {
            network,
            transport,
            end,
            protocol: *frame.get(network + 9)?,
            // More fragments, or not the first.
            fragment: word(frame, network + 6)? & 0x3FFF != 0,
        })
    }

    /// Offset of the checksum field of TCP or UDP.
    fn field(&self) -> Option<usize> {
        let offset = match self.protocol {
            TCP => 16,
            UDP => 6,
            _ => return None,
        };
        let field = self.transport + offset;
        (!self.fragment && field + 2 <= self.end).then_some(field)
    }

    /// The sum of the pseudo-header.
    fn pseudo(&self, frame: &[u8]) -> u16 {
        let addresses = frame.get(self.network + 12..self.network + 20);
        let length = (self.end - self.transport) as u16;
        add(
            add(sum(addresses.unwrap_or(&[])), u16::from(self.protocol)),
            length,
        )
    }
}

/// Prepares a frame for a card that computes these checksums: clears or fills in the fields that
/// the card will complete, and returns the requests to set in the BD. Frames without such fields
/// stay unchanged.
pub fn prepare(frame: &mut [u8], offload: ChecksumOffload) -> SendOptions {
    let mut options = SendOptions::default();
    let Some(layout) = Layout::of(frame) else {
        return options;
    };
    if offload.ip
        && let Some(field) = frame.get_mut(layout.network + 10..layout.network + 12)
    {
        field.fill(0);
        options.ip_checksum = true;
    }
    if offload.transport
        && let Some(field) = layout.field()
    {
        let start = if offload.no_pseudo_header {
            layout.pseudo(frame)
        } else {
            0
        };
        if let Some(field) = frame.get_mut(field..field + 2) {
            field.copy_from_slice(&start.to_be_bytes());
            options.transport_checksum = true;
        }
    }
    options
}

/// The result of checking a frame by the card's sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Whether the TCP or UDP checksum is correct; None if the card computed no sum, or the frame
    /// has no such checksum.
    pub transport: Option<bool>,
    /// Whether the IPv4 header checksum is correct; None as above.
    pub ip: Option<bool>,
}

impl Verdict {
    /// Whether no error is known.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.transport != Some(false) && self.ip != Some(false)
    }
}

/// Checks a received frame (without CRC) by the card's sums, with the receive rings' settings.
/// Does not read the payload.
///
/// The card sums everything after the Ethernet header, including padding. A correct IPv4 header
/// adds nothing to the sum, so it does not matter whether the card has left it out.
#[must_use]
pub fn check(frame: &[u8], sums: ReceivedChecksums, offload: ChecksumOffload) -> Verdict {
    let Some(layout) = Layout::of(frame) else {
        return Verdict::default();
    };
    let ip = sums.ip.map(is_zero);
    let transport = sums.transport.and_then(|made| {
        let field = layout.field()?;
        if layout.protocol == UDP && word(frame, field)? == 0 {
            // The sender computed no checksum.
            return None;
        }
        let mut total = made;
        if offload.no_pseudo_header {
            total = add(total, layout.pseudo(frame));
        }
        // Padding was summed, but does not belong to the datagram.
        let mut padding = sum(frame.get(layout.end..).unwrap_or(&[]));
        if (layout.end - layout.network) % 2 == 1 {
            padding = padding.swap_bytes();
        }
        Some(is_zero(add(total, !padding)))
    });
    Verdict { transport, ip }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram of 5 bytes in a frame, checksums right; from RFC 1071's method
    /// done by hand below.
    fn frame(padding: usize) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00]);
        frame.extend([0x45, 0, 0, 33, 0, 1, 0x40, 0, 64, 17, 0, 0]);
        frame.extend([10, 84, 0, 1, 10, 84, 0, 2]);
        frame.extend([0x04, 0xD2, 0x16, 0x2E, 0, 13, 0, 0]);
        frame.extend([1, 2, 3, 4, 5]);
        let header = !sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&header.to_be_bytes());
        let layout = Layout::of(&frame).expect("IPv4");
        let datagram = !add(sum(&frame[34..]), layout.pseudo(&frame));
        frame[40..42].copy_from_slice(&datagram.to_be_bytes());
        frame.extend(std::iter::repeat_n(0xA5, padding));
        frame
    }

    fn made(frame: &[u8], pseudo: bool) -> ReceivedChecksums {
        let mut transport = sum(&frame[14..]);
        if pseudo {
            transport = add(transport, Layout::of(frame).expect("IPv4").pseudo(frame));
        }
        ReceivedChecksums {
            transport: Some(transport),
            ip: Some(sum(&frame[14..34])),
        }
    }

    #[test]
    fn sums_fold_their_carries_and_pad_with_zero() {
        assert_eq!(sum(&[0xFF, 0xFF, 0x00, 0x01]), 1);
        assert_eq!(sum(&[0x12, 0x34, 0x56]), 0x6834);
        assert_eq!(sum(&[]), 0);
        assert_eq!(add(0xFFFF, 0xFFFF), 0xFFFF);
    }

    #[test]
    fn a_good_frame_is_good_with_and_without_pseudo_header_and_padding() {
        for padding in [0, 1, 13] {
            let frame = frame(padding);
            for (offload, pseudo) in [
                (ChecksumOffload::LINUX, false),
                (ChecksumOffload::FULL, true),
            ] {
                let verdict = check(&frame, made(&frame, pseudo), offload);
                assert_eq!(verdict.transport, Some(true), "{padding} {pseudo}");
                assert_eq!(verdict.ip, Some(true));
            }
        }
    }

    #[test]
    fn a_changed_byte_is_noticed_in_its_own_sum() {
        let mut frame = frame(0);
        frame[44] ^= 1;
        let verdict = check(&frame, made(&frame, false), ChecksumOffload::LINUX);
        assert_eq!((verdict.transport, verdict.ip), (Some(false), Some(true)));
        assert!(!verdict.is_good());
    }

    #[test]
    fn a_prepared_frame_lacks_only_the_sum_of_the_whole_datagram() {
        let good = frame(0);
        for offload in [ChecksumOffload::LINUX, ChecksumOffload::FULL] {
            let mut prepared = good.clone();
            prepared[24..26].copy_from_slice(&good[24..26]);
            let options = prepare(&mut prepared, offload);
            assert!(options.transport_checksum);
            assert_eq!(options.ip_checksum, offload.ip);
            // What the card does.
            let layout = Layout::of(&prepared).expect("IPv4");
            let mut total = sum(&prepared[34..]);
            if !offload.no_pseudo_header {
                total = add(total, layout.pseudo(&prepared));
            }
            prepared[40..42].copy_from_slice(&(!total).to_be_bytes());
            if offload.ip {
                let header = !sum(&prepared[14..34]);
                prepared[24..26].copy_from_slice(&header.to_be_bytes());
            }
            assert_eq!(prepared, good);
        }
    }

    #[test]
    fn what_is_no_whole_datagram_is_left_alone() {
        let good = frame(0);
        let mut arp = good.clone();
        arp[13] = 6;
        let mut fragment = good.clone();
        fragment[20] = 0x20;
        let mut long = good.clone();
        long[16] = 0xFF;
        for (what, mut frame) in [
            ("ARP", arp),
            ("fragment", fragment),
            ("longer than the frame", long),
            ("short", good[..20].to_vec()),
            ("empty", Vec::new()),
        ] {
            let before = frame.clone();
            let options = prepare(&mut frame, ChecksumOffload::LINUX);
            assert_eq!(options, SendOptions::default(), "{what}");
            assert_eq!(frame, before, "{what}");
            let sums = ReceivedChecksums {
                transport: Some(0x1234),
                ip: None,
            };
            let verdict = check(&frame, sums, ChecksumOffload::LINUX);
            assert_eq!(verdict.transport, None, "{what}");
        }
    }
}
