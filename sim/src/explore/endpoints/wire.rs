//! The datagrams of a story on the wire.

use crate::explore::EndpointFault;
use crate::workload::datagram::PEER as STATION;
use std::net::Ipv4Addr;

/// Bytes of the headers in front of a datagram's data.
const ETHERNET: usize = 14;
const IP: usize = 20;
const UDP: usize = 8;
/// Addresses of the card's host, and of the peers': their last byte is the endpoint's number.
const HERE: [u8; 4] = [10, 0, 0, 1];
const PEERS: [u8; 3] = [10, 0, 1];

/// The data of datagram `number` of a flow.
pub(super) fn datagram(flow: u8, number: u32, length: usize) -> Vec<u8> {
    let mut seed = number.wrapping_mul(0x9E37_79B9) ^ u32::from(flow).wrapping_mul(0x85EB_CA6B);
    let byte = |_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    };
    (0..length).map(byte).collect()
}

/// Who sends a datagram to the card's host, and to which endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) station: [u8; 6],
    /// The last byte of the peer's address.
    pub(super) peer: u8,
    pub(super) peer_port: u16,
    pub(super) port: u16,
}

/// The address of a peer.
pub(super) fn peer_address(peer: u8) -> Ipv4Addr {
    let [a, b, c] = PEERS;
    Ipv4Addr::new(a, b, c, peer)
}

/// A frame with a datagram to the card's host.
pub(super) fn inbound(way: Way, is_summed: bool, data: &[u8]) -> Vec<u8> {
    let mut frame = packet(way, is_summed, data);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The same without what is behind the packet.
fn packet(way: Way, is_summed: bool, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET + IP + UDP];
    frame[..6].copy_from_slice(&way.station);
    frame[6..12].copy_from_slice(&STATION);
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    let length = (UDP + data.len()) as u16;
    frame[16..18].copy_from_slice(&(IP as u16 + length).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..29].copy_from_slice(&PEERS);
    frame[29] = way.peer;
    frame[30..34].copy_from_slice(&HERE);
    frame[34..36].copy_from_slice(&way.peer_port.to_be_bytes());
    frame[36..38].copy_from_slice(&way.port.to_be_bytes());
    frame[38..40].copy_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(data);
    put_header_sum(&mut frame);
    if !is_summed {
        return frame;
    }
    let check = match !sum(&frame[26..], 17 + u32::from(length)) {
        0 => 0xFFFF,
        check => check,
    };
    frame[40..42].copy_from_slice(&check.to_be_bytes());
    frame
}

/// Stores the sum of a frame's IP header.
fn put_header_sum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let header = !sum(&frame[ETHERNET..ETHERNET + IP], 0);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
}

/// The frames of a datagram in fragments with `most` bytes of IP payload, in order.
pub(super) fn parted(
    way: Way,
    is_summed: bool,
    data: &[u8],
    (id, most): (u16, usize),
) -> Vec<Vec<u8>> {
    let whole = packet(way, is_summed, data);
    let (headers, payload) = whole.split_at(ETHERNET + IP);
    let last = (payload.len() - 1) / most;
    let parts = payload.chunks(most).enumerate();
    let frames = parts.map(|(number, part)| {
        let mut frame = headers.to_vec();
        let bytes = (IP + part.len()) as u16;
        frame[16..18].copy_from_slice(&bytes.to_be_bytes());
        frame[18..20].copy_from_slice(&id.to_be_bytes());
        let more = if number == last { 0 } else { 0x2000 };
        let place = more | (number * most / 8) as u16;
        frame[20..22].copy_from_slice(&place.to_be_bytes());
        put_header_sum(&mut frame);
        frame.extend_from_slice(part);
        frame.resize(frame.len().max(60), 0);
        frame
    });
    frames.collect()
}

/// The one's-complement sum of some bytes and of what else is to be summed.
fn sum(bytes: &[u8], more: u32) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum = words.fold(more, |sum, word| sum + word);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// An IP packet of a datagram.
#[derive(Debug)]
pub(super) struct Part {
    id: u16,
    offset: usize,
    more: bool,
    payload: Vec<u8>,
}

/// The endpoint's number and the packet, if a frame from the card is an endpoint's.
pub(super) fn outbound(frame: &[u8]) -> Option<(u8, Part)> {
    if frame.get(12..16)? != [8, 0, 0x45, 0] || frame.get(30..33)? != PEERS {
        return None;
    }
    let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    if sum(&frame[ETHERNET..ETHERNET + IP], 0) != 0xFFFF {
        return None;
    }
    let end = ETHERNET + usize::from(half(16));
    let part = Part {
        id: half(18),
        offset: usize::from(half(20) & 0x1FFF) * 8,
        more: half(20) & 0x2000 != 0,
        payload: frame.get(ETHERNET + IP..end)?.to_vec(),
    };
    Some((frame[33], part))
}

/// The datagram whose packets come.
#[derive(Debug, Default)]
pub(super) struct Assembled {
    id: Option<u16>,
    parts: Vec<Part>,
}

impl Assembled {
    /// A packet comes: of the datagram before, whose memory was gone, there are no more if this is
    /// another one's.
    pub(super) fn give_up_for(&mut self, part: &Part) {
        if self.id.is_some_and(|id| id != part.id) {
            *self = Assembled::default();
        }
    }

    /// A packet comes; the data, if the datagram is whole.
    pub(super) fn take(&mut self, part: Part) -> Result<Option<Vec<u8>>, EndpointFault> {
        if self.id.is_some_and(|id| id != part.id) {
            return Err(EndpointFault::Mixed);
        }
        self.id = Some(part.id);
        self.parts.push(part);
        self.parts.sort_by_key(|part| part.offset);
        let mut whole = Vec::new();
        let mut more = true;
        for part in &self.parts {
            if part.offset < whole.len() {
                return Err(EndpointFault::Mixed);
            }
            if part.offset != whole.len() {
                return Ok(None);
            }
            whole.extend_from_slice(&part.payload);
            more = part.more;
        }
        if more {
            return Ok(None);
        }
        self.id = None;
        self.parts.clear();
        judged(&whole)
    }
}

/// The data of a whole datagram whose length and checksum are right.
fn judged(datagram: &[u8]) -> Result<Option<Vec<u8>>, EndpointFault> {
    let half = |at: usize| datagram.get(at..at + 2).map(|two| [two[0], two[1]]);
    let length = half(4).map(u16::from_be_bytes);
    let check = half(6).map(u16::from_be_bytes);
    if length.map(usize::from) != Some(datagram.len()) {
        return Err(EndpointFault::Frame(datagram.len()));
    }
    // The peers differ in what the sum does not see here: it is judged with both addresses.
    if check != Some(0) && !is_right(datagram) {
        return Err(EndpointFault::Sum);
    }
    Ok(Some(datagram[UDP..].to_vec()))
}

/// Whether a checksum is right for one of the two peers.
fn is_right(datagram: &[u8]) -> bool {
    let length = datagram.len() as u32;
    (0..2).any(|number| {
        let mut addresses = HERE.to_vec();
        addresses.extend_from_slice(&PEERS);
        addresses.push(number);
        let pseudo = u32::from(sum(&addresses, 17 + length));
        sum(datagram, pseudo) == 0xFFFF
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_become_a_datagram_in_any_order() {
        let mut datagram = vec![0, 1, 0, 2, 0, 28, 0, 0];
        datagram.extend([7; 20]);
        let part = |offset: usize, more| Part {
            id: 3,
            offset,
            more,
            payload: datagram[offset..if more { offset + 16 } else { 28 }].to_vec(),
        };
        let mut assembled = Assembled::default();
        assert!(matches!(assembled.take(part(16, false)), Ok(None)));
        let whole = assembled.take(part(0, true));
        assert!(matches!(whole, Ok(Some(data)) if data == [7; 20]));
    }

    #[test]
    fn a_frame_to_the_card_has_right_sums() {
        let way = Way {
            station: [2; 6],
            peer: 0,
            peer_port: 6,
            port: 5,
        };
        let frame = inbound(way, true, b"abc");
        assert_eq!(sum(&frame[14..34], 0), 0xFFFF);
        let udp = u32::from(u16::from_be_bytes([frame[38], frame[39]]));
        assert_eq!(sum(&frame[26..45], 17 + udp), 0xFFFF);
    }

    #[test]
    fn fragments_to_the_card_are_the_datagram() {
        let way = Way {
            station: [2; 6],
            peer: 1,
            peer_port: 6,
            port: 5,
        };
        let data: Vec<u8> = (0..100).collect();
        let frames = parted(way, true, &data, (7, 48));
        assert_eq!(frames.len(), 3);
        let mut payload = Vec::new();
        for (frame, place) in frames.iter().zip([0x2000, 0x2006, 0x000C]) {
            assert_eq!(sum(&frame[14..34], 0), 0xFFFF);
            assert_eq!(frame[18..22], [0, 7, (place >> 8) as u8, place as u8]);
            let end = ETHERNET + usize::from(frame[17]);
            payload.extend_from_slice(&frame[ETHERNET + IP..end]);
        }
        assert_eq!(payload, packet(way, true, &data)[34..]);
    }
}
