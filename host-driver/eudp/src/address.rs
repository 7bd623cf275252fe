//! Address handles: the headers of what is sent, as the card keeps them.
//!
//! ```text
//!   0        6        12     14                 34       42
//!   | to     | from   | 0800 | IPv4, 20 bytes   | UDP    |
//! ```

use host_interface::eudp::HandleWord;
use std::net::Ipv4Addr;

/// Where datagrams go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The station on the wire that has the address, or leads there.
    pub station: [u8; 6],
    /// The address.
    pub address: Ipv4Addr,
    /// Routers that a packet may pass.
    pub lifetime: u8,
    /// A datagram that needs more than one packet is refused, with
    /// [`SendError::NeedsFragments`](crate::SendError::NeedsFragments), and no router on the way makes
    /// fragments: the packets say Don't Fragment.
    pub dont_fragment: bool,
}

/// An address handle of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressHandle {
    pub(crate) number: u32,
    pub(crate) dont_fragment: bool,
}

/// Bytes of the IP and the UDP header in front of a datagram's data.
pub(crate) const PACKET_HEADERS: u32 = 20 + 8;

/// The headers of an address handle, and the sums of what does not change in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    bytes: [u8; 44],
}

/// Words of a row that the broker writes.
const WORDS: usize = HandleWord::Tag as usize / 4 + 1;

impl Headers {
    /// From a local station, address and port to a destination.
    pub fn new(station: [u8; 6], address: Ipv4Addr, port: u16, to: &Destination) -> Headers {
        let mut bytes = [0; 44];
        bytes[..6].copy_from_slice(&to.station);
        bytes[6..12].copy_from_slice(&station);
        bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
        let flags = if to.dont_fragment { 0x40 } else { 0 };
        bytes[20..24].copy_from_slice(&[flags, 0, to.lifetime, 17]);
        bytes[26..30].copy_from_slice(&address.octets());
        bytes[30..34].copy_from_slice(&to.address.octets());
        bytes[34..36].copy_from_slice(&port.to_be_bytes());
        Headers { bytes }
    }

    /// The row of a handle that is nobody's yet, in words; its frames are in a VLAN, or in none.
    pub(crate) fn row(&self, vlan: Option<u16>) -> [u32; WORDS] {
        let mut row = [0; WORDS];
        let words = self.bytes.chunks_exact(4);
        for (word, bytes) in row.iter_mut().zip(words) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        // Addresses and port are in both sums; the protocol is a byte of the pseudo-header.
        row[HandleWord::IpSum as usize / 4] = self.sum(14..34);
        row[HandleWord::UdpSum as usize / 4] = fold(self.sum(26..36) + 17);
        row[HandleWord::Tag as usize / 4] = vlan.map_or(0, |vlan| u32::from(vlan) << 16);
        row
    }

    fn sum(&self, range: std::ops::Range<usize>) -> u32 {
        let pairs = self.bytes[range].chunks_exact(2);
        fold(
            pairs
                .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
                .sum(),
        )
    }
}

fn fold(sum: u32) -> u32 {
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (sum & 0xFFFF) + (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_headers_and_their_sums() {
        let to = Destination {
            station: [2, 0, 0, 0, 0, 9],
            address: Ipv4Addr::new(10, 0, 0, 2),
            lifetime: 64,
            dont_fragment: false,
        };
        let from = Ipv4Addr::new(10, 0, 0, 1);
        let row = Headers::new([2, 0, 0, 0, 0, 1], from, 4711, &to).row(Some(5));
        assert_eq!(row[0], 0x0200_0000);
        assert_eq!(row[3], 0x0800_4500);
        assert_eq!(row[5], 64 << 8 | 17);
        assert_eq!(row[8] & 0xFFFF, 4711);
        assert_eq!(row[14], 0);
        assert_eq!(row[15], 5 << 16);
        assert_eq!(row[11], 0x4500 + (64 << 8) + 17 + 0x0A00 + 1 + 0x0A00 + 2);
        assert_eq!(row[12], 0x0A00 + 1 + 0x0A00 + 2 + 4711 + 17);
    }
}
