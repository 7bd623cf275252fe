//! Records on the socket to a reader: frames, and one end record.
//!
//! ```text
//!   byte 0      kind: 1 frame out, 2 frame in, 3 end
//!   bytes 4-7   length of what follows the header; 0 at the end
//!   bytes 8-15  frame: microseconds since the epoch; end: frames that were written
//!   bytes 16-23 end: frames that were dropped
//! ```
//!
//! All numbers are big-endian.

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Longest frame in a record, in bytes.
pub const MOST_FRAME: usize = 16 * 1024;
/// Bytes before the frame.
const HEADER: usize = 24;
/// Number of the last record.
const END: u8 = 3;

/// The direction of a frame, from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// To the wire.
    Out,
    /// From the wire.
    In,
}

impl Direction {
    const fn kind(self) -> u8 {
        match self {
            Self::Out => 1,
            Self::In => 2,
        }
    }

    const fn of_kind(kind: u8) -> Option<Self> {
        match kind {
            1 => Some(Self::Out),
            2 => Some(Self::In),
            _ => None,
        }
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<B = Vec<u8>> {
    /// A frame.
    Frame {
        /// Which way it went.
        direction: Direction,
        /// When the driver handled it, since the epoch.
        time: Duration,
        /// Its bytes, without CRC.
        bytes: B,
    },
    /// The last record.
    End {
        /// Frames that were written.
        frames: u64,
        /// Frames that found no room in the reader's queue.
        dropped: u64,
    },
}

impl<B: AsRef<[u8]>> Record<B> {
    /// Writes the record.
    ///
    /// # Errors
    /// What the sink says.
    pub fn write(&self, sink: &mut impl Write) -> io::Result<()> {
        let (kind, bytes, numbers) = match self {
            Self::Frame {
                direction,
                time,
                bytes,
            } => {
                let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
                (direction.kind(), bytes.as_ref(), [micros, 0])
            }
            Self::End { frames, dropped } => (END, &[][..], [*frames, *dropped]),
        };
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let [first, second] = numbers;
        let words = [
            &[kind, 0, 0, 0][..],
            &length.to_be_bytes(),
            &first.to_be_bytes(),
            &second.to_be_bytes(),
        ];
        sink.write_all(&words.concat())?;
        sink.write_all(bytes)
    }
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// `InvalidData` for bytes that are no record; the source's errors.
    pub fn read(source: &mut impl Read) -> io::Result<Self> {
        let mut header = [0; HEADER];
        source.read_exact(&mut header)?;
        let [kind, _, _, _, a, b, c, d, rest @ ..] = header;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let (halves, _) = rest.as_chunks::<8>();
        let [first, second] = [0, 1].map(|half| {
            let bytes = halves.get(half).copied().unwrap_or_default();
            u64::from_be_bytes(bytes)
        });
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        if kind == END && length == 0 {
            return Ok(Self::End {
                frames: first,
                dropped: second,
            });
        }
        let direction = Direction::of_kind(kind);
        let direction = direction.ok_or_else(|| wrong(format!("a record of kind {kind}")))?;
        if length > MOST_FRAME {
            return Err(wrong(format!("a frame of {length} bytes")));
        }
        let mut bytes = vec![0; length];
        source.read_exact(&mut bytes)?;
        Ok(Self::Frame {
            direction,
            time: Duration::from_micros(first),
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(record: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.write(&mut bytes).expect("room");
        bytes
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let frame = |direction, bytes| Record::Frame {
            direction,
            time: Duration::from_micros(1_700_000_000_123_456),
            bytes,
        };
        for record in [
            frame(Direction::Out, vec![1, 2, 3]),
            frame(Direction::In, Vec::new()),
            frame(Direction::In, vec![7; MOST_FRAME]),
            Record::End {
                frames: 1 << 40,
                dropped: 3,
            },
        ] {
            let bytes = written(&record);
            assert_eq!(Record::read(&mut bytes.as_slice()).expect("whole"), record);
            let cut = Record::read(&mut &bytes[..bytes.len() - 1]);
            let kind = cut.map_err(|error| error.kind());
            assert_eq!(kind, Err(io::ErrorKind::UnexpectedEof));
        }
    }

    /// Neither side believes the other's lengths.
    #[test]
    fn what_is_no_record_is_refused() {
        let end = Record::End {
            frames: 0,
            dropped: 0,
        };
        for (place, value) in [(0, 0), (0, 4), (0, 255), (4, 1), (7, 1)] {
            let mut bytes = written(&end);
            bytes[place] = value;
            let read = Record::read(&mut bytes.as_slice());
            let kind = read.map_err(|error| error.kind());
            assert_eq!(kind, Err(io::ErrorKind::InvalidData), "{place} {value}");
        }
    }
}
