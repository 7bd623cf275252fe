//! Distinguishable UDP datagrams, and the sink that checks them.
//!
//! ```text
//!   | Ethernet 14 | IPv4 20 | UDP 8 | number 8 | bytes that depend on number and place |
//! ```

use super::arrivals::Mix;
use etherparse::PacketBuilder;
use thiserror::Error;

/// Bytes of the headers.
pub const HEADERS: usize = 14 + 20 + 8;
/// Smallest datagram: its number.
pub const SMALLEST: usize = 8;
/// Largest datagram of a standard frame.
pub const LARGEST: usize = 1472;

/// Bytes that are made at once, a multiple of 8.
const LINE: usize = 64;

/// Locally administered: the peer at the other end of the wire.
pub const PEER: [u8; 6] = [0x02, 0x54, 0x47, 0, 0, 2];

/// What is wrong with a frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Mismatch {
    /// It does not begin with the headers that were sent.
    #[error("a frame of {length} bytes has headers that nobody sent")]
    Headers {
        /// Its length.
        length: usize,
    },
    /// It comes twice or behind a later one.
    #[error("datagram {number} came where {expected} or a later one was expected")]
    Order {
        /// Its number.
        number: u64,
        /// The number behind the last one.
        expected: u64,
    },
    /// Its length or its bytes are not those of its number.
    #[error("datagram {number} differs from byte {offset} on")]
    Bytes {
        /// Its number.
        number: u64,
        /// The first byte of the frame that differs.
        offset: usize,
    },
}

/// A flow of datagrams.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The headers of each size.
    headers: Vec<(usize, Vec<u8>)>,
    mix: Mix,
    next: u64,
}

impl Flow {
    /// Datagrams of `bytes` (at least [`SMALLEST`]) from one station to another.
    pub fn new(source: [u8; 6], destination: [u8; 6], bytes: usize) -> Flow {
        Flow::mixed(source, destination, &Mix::only(bytes))
    }

    /// Datagrams of several sizes.
    pub fn mixed(source: [u8; 6], destination: [u8; 6], mix: &Mix) -> Flow {
        let headers = mix.sizes().map(|bytes| {
            let bytes = bytes.max(SMALLEST);
            (bytes, Flow::headers(source, destination, bytes))
        });
        Flow {
            headers: headers.collect(),
            mix: mix.clone(),
            next: 0,
        }
    }

    fn headers(source: [u8; 6], destination: [u8; 6], bytes: usize) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2(source, destination)
            .ipv4([10, 77, 0, source[5]], [10, 77, 0, destination[5]], 64)
            .udp(5001, 5002);
        let mut frame = Vec::with_capacity(HEADERS + bytes);
        builder
            .write(&mut frame, &vec![0; bytes])
            .expect("writing to memory does not fail");
        frame.truncate(HEADERS);
        // Without UDP checksum: the sink checks every byte itself.
        frame[HEADERS - 2..].fill(0);
        frame
    }

    /// Bytes of datagram `number`.
    fn bytes(&self, number: u64) -> usize {
        self.mix.size(number).max(SMALLEST)
    }

    /// The next frame.
    pub fn frame(&mut self) -> Vec<u8> {
        let number = self.next;
        self.next += 1;
        self.numbered(number)
    }

    /// Frame `number`.
    pub fn numbered(&self, number: u64) -> Vec<u8> {
        let bytes = self.bytes(number);
        let mut frame = Vec::with_capacity(HEADERS + bytes);
        if let Some((_, headers)) = self.headers.iter().find(|(size, _)| *size == bytes) {
            frame.extend_from_slice(headers);
        }
        frame.extend_from_slice(&number.to_be_bytes());
        // Every bit of the number decides some bit of every eight bytes.
        let seed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        let mut line: [u8; LINE] =
            std::array::from_fn(|place| seed[place % 8].wrapping_add(place as u8));
        let mut left = bytes - SMALLEST;
        while left >= LINE {
            frame.extend_from_slice(&line);
            line = line.map(|byte| byte.wrapping_add(LINE as u8));
            left -= LINE;
        }
        frame.extend_from_slice(&line[..left]);
        frame
    }
}

/// Receives a flow.
#[derive(Clone, Debug)]
pub struct Sink {
    flow: Flow,
    received: u64,
    bytes: u64,
    expected: u64,
}

impl Sink {
    /// The sink of a flow like this one.
    pub fn new(flow: Flow) -> Sink {
        Sink {
            flow,
            received: 0,
            bytes: 0,
            expected: 0,
        }
    }

    /// Takes a frame.
    ///
    /// # Errors
    /// [`Mismatch`] if it is not one of the flow, not whole, or not in order. Numbers may
    /// be missing: they were dropped, see [`missing`](Self::missing).
    pub fn take(&mut self, frame: &[u8]) -> Result<(), Mismatch> {
        let number = self.number(frame)?;
        if number < self.expected {
            return Err(Mismatch::Order {
                number,
                expected: self.expected,
            });
        }
        let right = self.flow.numbered(number);
        // Short frames come padded.
        if !frame.starts_with(&right) {
            let differs = frame.iter().zip(&right).position(|(a, b)| a != b);
            return Err(Mismatch::Bytes {
                number,
                offset: differs.unwrap_or(frame.len()),
            });
        }
        self.expected = number + 1;
        self.received += 1;
        self.bytes += (right.len() - HEADERS) as u64;
        Ok(())
    }

    /// The number in a frame of this flow.
    fn number(&self, frame: &[u8]) -> Result<u64, Mismatch> {
        let foreign = Mismatch::Headers {
            length: frame.len(),
        };
        let number = self.flow.headers.iter().find_map(|(_, headers)| {
            let rest = frame.strip_prefix(headers.as_slice())?;
            rest.first_chunk()
        });
        number.map_or(Err(foreign), |number| Ok(u64::from_be_bytes(*number)))
    }

    /// How many frames came.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of the datagrams that came.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many of those up to the last one did not come.
    pub fn missing(&self) -> u64 {
        self.expected - self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::arrivals::IMIX;

    fn flow(bytes: usize) -> Flow {
        Flow::new([2, 0, 0, 0, 0, 1], PEER, bytes)
    }

    #[test]
    fn a_sink_takes_what_was_sent_padded_or_not() {
        for bytes in [18, 100, LARGEST] {
            let mut flow = flow(bytes);
            let mut sink = Sink::new(flow.clone());
            for _ in 0..300 {
                let mut frame = flow.frame();
                assert_eq!(frame.len(), HEADERS + bytes);
                frame.resize(frame.len().max(60), 0);
                assert_eq!(sink.take(&frame), Ok(()));
            }
            assert_eq!((sink.received(), sink.missing()), (300, 0));
        }
    }

    /// The sizes follow from the numbers, so the sink knows them also behind a loss.
    #[test]
    fn a_sink_takes_a_mix_and_knows_each_one_s_size() {
        let mut flow = Flow::mixed([2, 0, 0, 0, 0, 1], PEER, &Mix::new(&IMIX));
        let mut sink = Sink::new(flow.clone());
        let mut bytes = 0;
        for number in 0..300 {
            let frame = flow.frame();
            if number % 3 != 0 {
                bytes += (frame.len() - HEADERS) as u64;
                assert_eq!(sink.take(&frame), Ok(()));
            }
        }
        assert_eq!((sink.received(), sink.missing()), (200, 100));
        assert_eq!(sink.bytes(), bytes);
        let mut other = flow.numbered(400);
        other.truncate(other.len() - 1);
        assert!(sink.take(&other).is_err(), "a byte is missing");
    }

    #[test]
    fn a_sink_notices_any_changed_byte_and_any_disorder() {
        let flow = flow(64);
        let mut sink = Sink::new(flow.clone());
        for byte in 0..HEADERS + 64 {
            let mut frame = flow.numbered(7);
            frame[byte] ^= 0x10;
            assert!(sink.take(&frame).is_err(), "byte {byte}");
        }
        let whole = flow.numbered(9);
        assert!(sink.take(&whole[..HEADERS + 63]).is_err());
        assert!(sink.take(&whole[..20]).is_err());
        assert_eq!(sink.take(&whole), Ok(()));
        assert_eq!(sink.missing(), 9);
        assert!(matches!(sink.take(&whole), Err(Mismatch::Order { .. })));
    }

    #[test]
    fn the_headers_are_those_of_an_ip_stack() {
        let frame = flow(100).numbered(0);
        let packet = etherparse::SlicedPacket::from_ethernet(&frame).expect("a packet");
        let Some(etherparse::TransportSlice::Udp(udp)) = packet.transport else {
            panic!("not UDP");
        };
        assert_eq!(usize::from(udp.length()), 8 + 100);
    }
}
