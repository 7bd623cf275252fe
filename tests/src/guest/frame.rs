//! A frame observed on the cable.

use std::borrow::Cow;

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Sent by the card.
    FromCard,
    /// Given to the card.
    ToCard,
}

/// A frame that passed the cable, without CRC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Which way it went.
    pub way: Way,
    /// Its bytes.
    pub frame: Vec<u8>,
}

/// EtherTypes that are told apart here.
pub mod ether_type {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// Address resolution.
    pub const ARP: u16 = 0x0806;
    /// Flow control between two MACs.
    pub const PAUSE: u16 = 0x8808;
    /// A VLAN tag.
    pub const VLAN: u16 = 0x8100;
}

/// Bytes of destination and source.
const STATIONS: usize = 12;
/// Bytes of destination, source and EtherType.
const HEADER: usize = 14;
/// Bytes of a VLAN tag.
const TAG: usize = 4;
/// Longest ordinary frame without tag and CRC.
const ORDINARY: usize = 1514;
/// Bytes of an ARP message for IPv4 over Ethernet.
const ARP_BYTES: usize = 28;

impl Sight {
    fn half(&self, at: usize) -> Option<u16> {
        let bytes = self.frame.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Where it goes to.
    pub fn destination(&self) -> [u8; 6] {
        self.station(0)
    }

    /// Where it comes from.
    pub fn source(&self) -> [u8; 6] {
        self.station(6)
    }

    fn station(&self, at: usize) -> [u8; 6] {
        let found = self.frame.get(at..at + 6);
        found.and_then(|b| b.try_into().ok()).unwrap_or_default()
    }

    /// Whether it goes to everybody.
    pub fn is_broadcast(&self) -> bool {
        self.destination() == [0xFF; 6]
    }

    /// Whether it goes to more than one station.
    pub fn is_group(&self) -> bool {
        self.destination()[0] & 1 != 0
    }

    /// The VLAN of its tag, if it has one.
    pub fn vlan(&self) -> Option<u16> {
        let tagged = self.half(12)? == ether_type::VLAN;
        tagged
            .then(|| self.half(HEADER))
            .flatten()
            .map(|t| t & 0xFFF)
    }

    /// What it carries, behind the tag if it has one.
    pub fn ether_type(&self) -> u16 {
        self.half(self.header() - 2).unwrap_or(0)
    }

    fn header(&self) -> usize {
        HEADER + if self.vlan().is_some() { TAG } else { 0 }
    }

    /// Its IPv4 protocol number, if it is IPv4.
    pub fn protocol(&self) -> Option<u8> {
        (self.ether_type() == ether_type::IPV4)
            .then(|| self.frame.get(self.header() + 9).copied())
            .flatten()
    }

    /// Its ICMP type, if it is a whole or the first part of an ICMP message: 8 asks
    /// for an echo and 0 is one.
    pub fn icmp(&self) -> Option<u8> {
        let first = self.half(self.header() + 6)? & 0x1FFF == 0;
        (first && self.protocol() == Some(1))
            .then(|| self.frame.get(self.header() + 20).copied())
            .flatten()
    }

    /// Whether it is longer than an ordinary frame.
    pub fn is_jumbo(&self) -> bool {
        self.frame.len() > self.header() - HEADER + ORDINARY
    }

    /// Its length before a MAC padded it, as far as its headers tell.
    pub fn unpadded(&self) -> usize {
        let header = self.header();
        let told = match self.ether_type() {
            ether_type::IPV4 => self
                .half(header + 2)
                .map(|total| header + usize::from(total)),
            ether_type::ARP => Some(header + ARP_BYTES),
            _ => None,
        };
        told.unwrap_or(self.frame.len()).min(self.frame.len())
    }
}

/// A frame with a tag put in: priority 0.
pub fn tag(frame: &[u8], vlan: u16) -> Vec<u8> {
    let at = STATIONS.min(frame.len());
    let mut tagged = frame[..at].to_vec();
    tagged.extend(ether_type::VLAN.to_be_bytes());
    tagged.extend(vlan.to_be_bytes());
    tagged.extend(&frame[at..]);
    tagged
}

/// A frame with its tag taken out, and the VLAN that it named.
pub fn untag(frame: &[u8]) -> (Option<u16>, Cow<'_, [u8]>) {
    let sight = Sight {
        way: Way::FromCard,
        frame: frame[..frame.len().min(HEADER + TAG)].to_vec(),
    };
    match sight.vlan() {
        Some(vlan) => (
            Some(vlan),
            Cow::Owned([&frame[..STATIONS], &frame[STATIONS + TAG..]].concat()),
        ),
        None => (None, Cow::Borrowed(frame)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(destination: [u8; 6], rest: &[u8], length: usize) -> Sight {
        let mut frame = destination.to_vec();
        frame.extend([2, 0, 0, 0, 0, 1]);
        frame.extend(rest);
        frame.resize(length, 0);
        Sight {
            way: Way::FromCard,
            frame,
        }
    }

    #[test]
    fn a_tagged_ping_is_read_behind_its_tag() {
        let rest = [0x81, 0, 0x20, 5, 8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1];
        let frame = sight([2, 0, 0, 0, 0, 2], &rest, 64);
        assert_eq!(frame.vlan(), Some(5));
        assert_eq!(frame.ether_type(), ether_type::IPV4);
        assert_eq!(frame.protocol(), Some(1));
        assert_eq!(frame.icmp(), Some(0), "an echo");
        assert_eq!(frame.unpadded(), 18 + 28);
        assert!(!frame.is_group() && !frame.is_jumbo());
    }

    #[test]
    fn arp_is_shorter_than_its_frame() {
        let frame = sight([0xFF; 6], &[8, 6], 60);
        assert!(frame.is_broadcast() && frame.is_group());
        assert_eq!((frame.unpadded(), frame.vlan()), (42, None));
    }

    #[test]
    fn a_tag_alone_makes_no_jumbo_frame() {
        let tagged = sight([2; 6], &[0x81, 0, 0, 5, 0x88, 0xB5], 1518);
        assert!(!tagged.is_jumbo());
        assert!(sight([2; 6], &[0x88, 0xB5], 1515).is_jumbo());
    }

    #[test]
    fn a_tag_that_is_put_in_can_be_taken_out() {
        let plain = sight([2; 6], &[8, 0, 0x45], 60).frame;
        let tagged = tag(&plain, 5);
        assert_eq!(tagged.len(), 64);
        let (vlan, back) = untag(&tagged);
        assert_eq!((vlan, &*back), (Some(5), &plain[..]));
        assert_eq!(untag(&plain), (None, Cow::Borrowed(&plain[..])));
    }

    #[test]
    fn nonsense_is_no_panic() {
        for length in 0..18 {
            let stump = tag(&[0x55; 60], 5)[..length].to_vec();
            assert_eq!(untag(&stump).0.is_some(), length >= 16);
            assert!(tag(&stump, 5).len() >= 4);
        }
        let nothing = Sight {
            way: Way::ToCard,
            frame: Vec::new(),
        };
        assert_eq!((nothing.unpadded(), nothing.vlan()), (0, None));
        assert_eq!(nothing.protocol(), None);
        assert_eq!(
            sight([2; 6], &[8, 0, 0x45, 0, 0xFF, 0xFF], 60).unpadded(),
            60
        );
    }
}
