//! Frames for handlers, and frames of the host's beside them.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, Icmpv4Packet, Icmpv4Repr,
    IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr,
};

/// The peer at the other end of the wire.
pub const PEER: [u8; 6] = [0x02, 0x54, 0x47, 0, 0, 2];
/// EtherType of frames that no handler wants: that of loopback tests.
pub const PLAIN: u16 = 0x9000;
/// EtherType of frames for handlers.
pub const WANTED: u16 = 0x88B6;
/// Shortest frame without CRC.
const SHORTEST: usize = 60;
/// The addresses at both ends.
const HOST_ADDRESS: Ipv4Address = Ipv4Address::new(10, 77, 0, 1);
const PEER_ADDRESS: Ipv4Address = Ipv4Address::new(10, 77, 0, 2);

/// Frames for a handler, by what a guard looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An echo request.
    Ping,
    /// A datagram to a UDP port.
    Datagram(u16),
    /// A frame with EtherType [`WANTED`], and these two bytes behind it.
    Typed(u16),
}

impl Kind {
    /// A frame of about `bytes` bytes, with a number in it.
    pub fn frame(self, station: [u8; 6], number: u16, bytes: usize) -> Vec<u8> {
        let data: Vec<u8> = (0..bytes.saturating_sub(42))
            .map(|at| (at ^ usize::from(number)) as u8)
            .collect();
        let mut frame = match self {
            Kind::Ping => ping(station, number, &data),
            Kind::Datagram(port) => datagram(station, port, &data),
            Kind::Typed(word) => {
                let mut frame = plain(station, PEER, WANTED, number.into(), bytes.max(SHORTEST));
                if let Some(place) = frame.get_mut(14..16) {
                    place.copy_from_slice(&word.to_be_bytes());
                }
                frame
            }
        };
        frame.resize(frame.len().max(SHORTEST), 0);
        frame
    }
}

/// A frame of any EtherType, all of whose bytes depend on a number.
pub fn plain(
    destination: [u8; 6],
    source: [u8; 6],
    kind: u16,
    number: u32,
    length: usize,
) -> Vec<u8> {
    let mut frame = Vec::with_capacity(length);
    frame.extend(destination);
    frame.extend(source);
    frame.extend(kind.to_be_bytes());
    frame.extend(number.to_be_bytes());
    let mut state = number.wrapping_mul(0x9E37_79B9) | 1;
    while frame.len() < length {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        frame.push(state as u8);
    }
    frame
}

fn ethernet(station: [u8; 6]) -> EthernetRepr {
    EthernetRepr {
        src_addr: EthernetAddress(PEER),
        dst_addr: EthernetAddress(station),
        ethertype: EthernetProtocol::Ipv4,
    }
}

/// An IPv4 packet in a frame; `fill` writes what it carries.
fn packet(
    station: [u8; 6],
    protocol: IpProtocol,
    length: usize,
    fill: impl FnOnce(&mut [u8], &ChecksumCapabilities),
) -> Vec<u8> {
    let (ethernet, sums) = (ethernet(station), ChecksumCapabilities::default());
    let ip = Ipv4Repr {
        src_addr: PEER_ADDRESS,
        dst_addr: HOST_ADDRESS,
        next_header: protocol,
        payload_len: length,
        hop_limit: 64,
    };
    let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + length];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut frame);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    ip.emit(&mut packet, &sums);
    fill(packet.payload_mut(), &sums);
    bytes
}

fn ping(station: [u8; 6], number: u16, data: &[u8]) -> Vec<u8> {
    let icmp = Icmpv4Repr::EchoRequest {
        ident: 0x5449,
        seq_no: number,
        data,
    };
    packet(
        station,
        IpProtocol::Icmp,
        icmp.buffer_len(),
        |bytes, sums| icmp.emit(&mut Icmpv4Packet::new_unchecked(bytes), sums),
    )
}

fn datagram(station: [u8; 6], port: u16, data: &[u8]) -> Vec<u8> {
    let udp = UdpRepr {
        src_port: 40_000,
        dst_port: port,
    };
    let length = udp.header_len() + data.len();
    packet(station, IpProtocol::Udp, length, |bytes, sums| {
        let mut datagram = UdpPacket::new_unchecked(bytes);
        let (from, to) = (PEER_ADDRESS.into(), HOST_ADDRESS.into());
        let fill = |payload: &mut [u8]| payload.copy_from_slice(data);
        udp.emit(&mut datagram, &from, &to, data.len(), fill, sums);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_long_as_asked_for_and_what_guards_want() {
        let station = [2; 6];
        for bytes in [60, 61, 700, 1514] {
            for kind in [Kind::Ping, Kind::Datagram(7), Kind::Typed(5)] {
                assert_eq!(kind.frame(station, 3, bytes).len(), bytes, "{kind:?}");
            }
        }
        let ping = Kind::Ping.frame(station, 3, 100);
        assert_eq!((&ping[12..15], ping[23]), (&[8, 0, 0x45][..], 1));
        let datagram = Kind::Datagram(7).frame(station, 3, 100);
        assert_eq!((datagram[23], &datagram[36..38]), (17, &[0, 7][..]));
        let typed = Kind::Typed(5).frame(station, 3, 60);
        assert_eq!(typed[12..16], [0x88, 0xB6, 0, 5]);
    }
}
