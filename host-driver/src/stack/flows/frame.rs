//! What the stack reads of a frame to find its connection. It decides nothing by this but who
//! processes the frame: smoltcp checks lengths and sums again.

use std::hash::{Hash, Hasher};
use std::net::Ipv4Addr;

const ETHERNET_HEADER: usize = 14;
const TCP: u8 = 6;

/// A connection by its addresses and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) peer: Ipv4Addr,
    pub(super) own: Ipv4Addr,
    pub(super) peer_port: u16,
    pub(super) port: u16,
}

/// What a card hashes of its frames, in the same order.
impl Hash for Flow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut input = [0; 12];
        input[..4].copy_from_slice(&self.peer.octets());
        input[4..8].copy_from_slice(&self.own.octets());
        input[8..10].copy_from_slice(&self.peer_port.to_be_bytes());
        input[10..].copy_from_slice(&self.port.to_be_bytes());
        state.write(&input);
    }
}

/// A segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) flow: Flow,
    pub(super) sequence: u32,
    /// What it acknowledges.
    pub(super) acknowledged: Option<u32>,
    /// It opens a connection: SYN without ACK and RST.
    pub(super) opens: bool,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A TCP segment to the own address.
    Tcp(Segment),
    /// An ARP packet.
    Arp,
    /// Anything else.
    Other,
}

/// Sorts a frame.
pub(super) fn sort(frame: &[u8], own: Ipv4Addr) -> Kind {
    segment(frame, own).unwrap_or_else(|| match frame.get(12..14) {
        Some([0x08, 0x06]) => Kind::Arp,
        _ => Kind::Other,
    })
}

fn segment(frame: &[u8], own: Ipv4Addr) -> Option<Kind> {
    let word = |bytes: &[u8], at: usize| {
        let two = bytes.get(at..at + 2)?;
        Some(u16::from_be_bytes(two.try_into().ok()?))
    };
    let address = |bytes: &[u8], at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(four))
    };
    if word(frame, 12)? != 0x0800 {
        return None;
    }
    let packet = frame.get(ETHERNET_HEADER..)?;
    let first = *packet.first()?;
    // More fragments, or not the first one.
    let fragment = word(packet, 6)? & 0x3FFF != 0;
    if first >> 4 != 4 || fragment || *packet.get(9)? != TCP || address(packet, 16)? != own {
        return None;
    }
    let tcp = packet.get(usize::from(first & 0xF) * 4..)?;
    let double = |at| Some(u32::from(word(tcp, at)?) << 16 | u32::from(word(tcp, at + 2)?));
    let sequence = double(4)?;
    let flags = tcp.get(13)?;
    let acknowledged = double(8)?;
    let flow = Flow {
        peer: address(packet, 12)?,
        own,
        peer_port: word(tcp, 0)?,
        port: word(tcp, 2)?,
    };
    let opens = flags & 0b1_0110 == 0b0_0010;
    Some(Kind::Tcp(Segment {
        flow,
        sequence,
        acknowledged: (flags & 0b1_0000 != 0).then_some(acknowledged),
        opens,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

    fn syn() -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[23] = TCP;
        frame[26..30].copy_from_slice(&[10, 77, 0, 2]);
        frame[30..34].copy_from_slice(&[10, 77, 0, 1]);
        frame[34..38].copy_from_slice(&[0xC3, 0x50, 0, 80]);
        frame[38..42].copy_from_slice(&[1, 2, 3, 4]);
        frame[47] = 2;
        frame
    }

    #[test]
    fn a_syn_names_its_flow() {
        let flow = Flow {
            peer: Ipv4Addr::new(10, 77, 0, 2),
            own: OWN,
            peer_port: 50_000,
            port: 80,
        };
        let segment = Segment {
            flow,
            sequence: 0x0102_0304,
            acknowledged: None,
            opens: true,
        };
        assert_eq!(sort(&syn(), OWN), Kind::Tcp(segment));
        let mut acknowledged = syn();
        acknowledged[47] = 0x12;
        let segment = Segment {
            acknowledged: Some(0),
            opens: false,
            ..segment
        };
        assert_eq!(sort(&acknowledged, OWN), Kind::Tcp(segment));
    }

    #[test]
    fn fragments_and_foreign_packets_belong_to_no_connection() {
        let mut fragment = syn();
        fragment[20] = 0x20;
        assert_eq!(sort(&fragment, OWN), Kind::Other);
        assert_eq!(sort(&syn(), Ipv4Addr::new(10, 77, 0, 3)), Kind::Other);
        let mut arp = syn();
        arp[13] = 6;
        assert_eq!(sort(&arp, OWN), Kind::Arp);
    }

    proptest! {
        #[test]
        fn no_frame_makes_it_panic(mut frame in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(kind) = frame.get_mut(12..15) {
                kind.copy_from_slice(&[8, 0, 0x4F]);
            }
            sort(&frame, OWN);
        }
    }
}
