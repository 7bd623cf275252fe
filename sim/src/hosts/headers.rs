//! Parses the headers that the host reads before the stack: the packet's flow.

use smoltcp::wire::{EthernetFrame, IpProtocol, Ipv4Packet, TcpPacket, UdpPacket};

/// A connection as the server knows it: the client's address and port, and its own port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// The client's address.
    pub client: [u8; 4],
    /// The client's port.
    pub port: u16,
    /// The server's port.
    pub service: u16,
}

/// What a received frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A TCP segment; `opens` if it asks for a connection.
    Tcp {
        /// Whose.
        flow: Flow,
        /// SYN without ACK.
        opens: bool,
    },
    /// A UDP datagram.
    Udp {
        /// The port that it goes to.
        service: u16,
    },
    /// Something else.
    Other,
}

/// Looks at a frame.
pub fn look(frame: &[u8]) -> Kind {
    fn parse(frame: &[u8]) -> Option<Kind> {
        let frame = EthernetFrame::new_checked(frame).ok()?;
        let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
        match packet.next_header() {
            IpProtocol::Tcp => {
                let segment = TcpPacket::new_checked(packet.payload()).ok()?;
                let flow = Flow {
                    client: packet.src_addr().octets(),
                    port: segment.src_port(),
                    service: segment.dst_port(),
                };
                let opens = segment.syn() && !segment.ack();
                Some(Kind::Tcp { flow, opens })
            }
            IpProtocol::Udp => {
                let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
                let service = datagram.dst_port();
                Some(Kind::Udp { service })
            }
            _ => None,
        }
    }
    parse(frame).unwrap_or(Kind::Other)
}

/// The destination address of an IPv4 frame.
pub fn destination(frame: &[u8]) -> Option<[u8; 4]> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    Some(packet.dst_addr().octets())
}

/// The source address of an IPv4 frame.
pub fn source(frame: &[u8]) -> Option<[u8; 4]> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    Some(packet.src_addr().octets())
}
