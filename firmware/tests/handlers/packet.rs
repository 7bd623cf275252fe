//! IPv4 packets as a host passes them, and as they must appear on the wire.
//!
//! The checksums here are computed by the textbook, over the bytes of a contiguous packet.

use crate::machine::{MAC, PEER};

/// TCP's protocol number.
pub const TCP: u8 = 6;
/// UDP's protocol number.
pub const UDP: u8 = 17;

/// A packet to be made.
#[derive(Clone, Debug)]
pub struct Packet {
    /// What lies between the addresses and IP: tags, the type, a SNAP header.
    pub kind: Vec<u8>,
    /// Words of IP options.
    pub options: u8,
    pub protocol: u8,
    /// Flags and fragment offset.
    pub fragment: u16,
    /// Bytes of data behind the transport header.
    pub data: usize,
    /// Bytes behind the datagram.
    pub padding: usize,
    pub seed: u32,
}

impl Packet {
    pub fn new(protocol: u8, data: usize, seed: u32) -> Packet {
        Packet {
            kind: vec![0x08, 0x00],
            options: 0,
            protocol,
            fragment: 0,
            data,
            padding: 0,
            seed,
        }
    }

    fn ip(&self) -> usize {
        12 + self.kind.len()
    }

    fn transport(&self) -> usize {
        self.ip() + 20 + 4 * usize::from(self.options)
    }

    /// Where the transport's checksum is.
    pub fn field(&self) -> usize {
        self.transport() + if self.protocol == TCP { 16 } else { 6 }
    }

    /// Where the IP header's checksum is.
    pub fn ip_field(&self) -> usize {
        self.ip() + 10
    }

    fn end(&self) -> usize {
        let header = if self.protocol == TCP { 20 } else { 8 };
        self.transport() + header + self.data
    }

    /// The frame as it belongs on the wire.
    pub fn wire(&self) -> Vec<u8> {
        let mut frame = self.bare();
        let ip = sum(&frame[self.ip()..self.transport()]);
        put(&mut frame, self.ip_field(), !ip);
        let pseudo = self.pseudo(&frame);
        put(&mut frame, self.field(), 0);
        let whole = add(pseudo, sum(&frame[self.transport()..self.end()]));
        let checksum = match !whole {
            0 if self.protocol == UDP => 0xFFFF,
            checksum => checksum,
        };
        put(&mut frame, self.field(), checksum);
        frame
    }

    /// The frame of a host that put the sum of the pseudo-header where the transport's
    /// checksum belongs and made the IP header's checksum itself, as Linux does.
    pub fn with_pseudo_sum(&self) -> Vec<u8> {
        let mut frame = self.wire();
        let pseudo = self.pseudo(&frame);
        put(&mut frame, self.field(), pseudo);
        frame
    }

    /// The frame of a host that leaves all to the card: junk in both fields.
    pub fn with_junk(&self) -> Vec<u8> {
        let mut frame = self.wire();
        put(&mut frame, self.ip_field(), 0xDEAD);
        put(&mut frame, self.field(), 0xBEEF);
        frame
    }

    fn bare(&self) -> Vec<u8> {
        let mut frame = [PEER.as_slice(), &MAC, &self.kind].concat();
        let (ip, transport) = (self.ip(), self.transport());
        let mut state = self.seed.wrapping_mul(2_654_435_761) | 1;
        while frame.len() < self.end() + self.padding {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            frame.push((state >> 24) as u8);
        }
        frame[ip] = 0x45 + self.options;
        put(&mut frame, ip + 2, (self.end() - ip) as u16);
        put(&mut frame, ip + 6, self.fragment);
        frame[ip + 9] = self.protocol;
        put(&mut frame, ip + 10, 0);
        if self.protocol == UDP {
            put(&mut frame, transport + 4, (self.end() - transport) as u16);
        }
        frame
    }

    fn pseudo(&self, frame: &[u8]) -> u16 {
        let ip = self.ip();
        let addresses = sum(&frame[ip + 12..ip + 20]);
        let length = (self.end() - self.transport()) as u16;
        add(add(addresses, u16::from(self.protocol)), length)
    }
}

/// Adds with the carry brought round.
pub fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// The one's-complement sum of big-endian halfwords.
pub fn sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0, |total, pair| {
        add(
            total,
            u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]),
        )
    })
}

/// Stores a big-endian halfword.
pub fn put(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
