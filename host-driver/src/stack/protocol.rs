//! The measuring protocol between two in-process stacks.
//!
//! TCP: a *sink* receives bytes until the sender closes its half, then answers with a
//! [`SinkReport`]; a *source* sends as many bytes as the client requests in its first eight bytes.
//! UDP: datagrams with a header of 24 bytes.
//!
//! ```text
//! UDP  0 magic | 4 kind | 8 sequence number (64 bits) | 16 number (64 bits) | 24 filler
//! ```
//!
//! All numbers are big-endian. The content of a stream is a function of the position, so lost,
//! duplicated and changed bytes are found.

use serde::Serialize;

/// TCP port that discards bytes.
pub const SINK_PORT: u16 = 5001;
/// TCP port that sends bytes.
pub const SOURCE_PORT: u16 = 5002;
/// UDP port that counts datagrams, and sends them on request.
pub const DATAGRAM_PORT: u16 = 5003;
/// Bytes of a [`SinkReport`].
pub const SINK_REPORT_BYTES: usize = 16;
/// Bytes of the header of a datagram.
pub const HEADER_BYTES: usize = 24;
/// Largest UDP payload that fits a packet of 9000 bytes.
pub const LARGEST_PAYLOAD: usize = 8972;

const MAGIC: u32 = 0x5447_5554;

/// The pattern's period: a prime, which divides no buffer or segment size.
const PERIOD: u64 = 251;

/// The byte of a stream at a position.
#[must_use]
pub fn stream_byte(position: u64) -> u8 {
    (position % PERIOD) as u8
}

/// Fills a buffer with the stream's bytes from a position on.
pub fn fill(position: u64, out: &mut [u8]) {
    let mut value = stream_byte(position);
    for byte in out {
        *byte = value;
        value = if u64::from(value) == PERIOD - 1 {
            0
        } else {
            value + 1
        };
    }
}

/// Counts the bytes that differ from the stream.
#[must_use]
pub fn differing(position: u64, bytes: &[u8]) -> u64 {
    let mut value = stream_byte(position);
    let mut count = 0;
    for byte in bytes {
        count += u64::from(*byte != value);
        value = if u64::from(value) == PERIOD - 1 {
            0
        } else {
            value + 1
        };
    }
    count
}

/// What a TCP sink has received when the sender closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SinkReport {
    /// Bytes that came.
    pub bytes: u64,
    /// Wrong bytes among them.
    pub corrupt: u64,
}

impl SinkReport {
    /// Encodes it.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SINK_REPORT_BYTES] {
        let mut out = [0; SINK_REPORT_BYTES];
        out[..8].copy_from_slice(&self.bytes.to_be_bytes());
        out[8..].copy_from_slice(&self.corrupt.to_be_bytes());
        out
    }

    /// Decodes it.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; SINK_REPORT_BYTES]) -> Self {
        Self {
            bytes: number(bytes, 0),
            corrupt: number(bytes, 8),
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    if let Some(field) = bytes.get(at..at + 8) {
        eight.copy_from_slice(field);
    }
    u64::from_be_bytes(eight)
}

/// The purpose of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One of a numbered run.
    Data,
    /// The run is over; `number` is how many there were. The answer is a report.
    End,
    /// `sequence` datagrams of a run have come; `number` of their bytes differed.
    Report,
    /// Requests `sequence` datagrams, one each `number` nanoseconds, each as long as this one.
    Request,
}

/// The header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Its purpose.
    pub kind: Kind,
    /// See [`Kind`]; in data, the place in the run.
    pub sequence: u64,
    /// See [`Kind`]; in data, the run's number.
    pub number: u64,
}

impl Datagram {
    /// Writes the header and fills the rest of the buffer. False if the buffer is
    /// shorter than a header.
    pub fn write(self, out: &mut [u8]) -> bool {
        let Some((header, filler)) = out.split_at_mut_checked(HEADER_BYTES) else {
            return false;
        };
        let kind: u32 = match self.kind {
            Kind::Data => 1,
            Kind::End => 2,
            Kind::Report => 3,
            Kind::Request => 4,
        };
        header[0..4].copy_from_slice(&MAGIC.to_be_bytes());
        header[4..8].copy_from_slice(&kind.to_be_bytes());
        header[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        header[16..24].copy_from_slice(&self.number.to_be_bytes());
        fill(self.sequence, filler);
        true
    }

    /// Parses the header and counts wrong bytes of the filler. None if it is no datagram of this
    /// protocol.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<(Self, u64)> {
        let (header, filler) = bytes.split_at_checked(HEADER_BYTES)?;
        let word = |at: usize| number(header, at) >> 32;
        if word(0) != u64::from(MAGIC) {
            return None;
        }
        let kind = match word(4) {
            1 => Kind::Data,
            2 => Kind::End,
            3 => Kind::Report,
            4 => Kind::Request,
            _ => return None,
        };
        let datagram = Self {
            kind,
            sequence: number(header, 8),
            number: number(header, 16),
        };
        Some((datagram, differing(datagram.sequence, filler)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_found_intact_or_not() {
        let mut buffer = [0; 1000];
        fill(12_345, &mut buffer);
        assert_eq!(differing(12_345, &buffer), 0);
        assert_eq!(buffer[0], stream_byte(12_345));
        assert_eq!(buffer[999], stream_byte(13_344));
        buffer[500] ^= 1;
        assert_eq!(differing(12_345, &buffer), 1);
        assert!(differing(12_346, &buffer) > 990, "a lost byte shifts all");
    }

    #[test]
    fn datagrams_come_back_and_strangers_do_not() {
        let datagram = Datagram {
            kind: Kind::Request,
            sequence: 0x0102_0304_0506_0708,
            number: 9,
        };
        let mut bytes = [0; 100];
        assert!(datagram.write(&mut bytes));
        assert_eq!(Datagram::read(&bytes), Some((datagram, 0)));
        assert!(!datagram.write(&mut [0; HEADER_BYTES - 1]));
        assert_eq!(Datagram::read(&bytes[..HEADER_BYTES - 1]), None);
        bytes[0] ^= 1;
        assert_eq!(Datagram::read(&bytes), None);
    }

    #[test]
    fn reports_come_back() {
        let report = SinkReport {
            bytes: u64::MAX - 1,
            corrupt: 3,
        };
        assert_eq!(SinkReport::from_bytes(&report.to_bytes()), report);
    }
}
