//! Captures: frames read from and written to pcap files.
//!
//! [`FrameReader`] takes classic pcap and pcapng, [`FrameWriter`] writes classic
//! pcap with microsecond time stamps. Only Ethernet captures are accepted, and a
//! frame that the capture cut short is an error: replaying it would put something
//! on the wire that never was there.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, Endianness, PcapError};
use thiserror::Error;

/// First bytes of a pcapng file (the type of its section header block).
const PCAPNG_MAGIC: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// Why a capture cannot be used.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file cannot be opened, read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// The contents are not those of a capture.
    #[error("{path}: not a usable capture: {error}")]
    Format {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: PcapError,
    },
    /// The capture was not made on Ethernet.
    #[error("{path}: holds {link:?} packets, not Ethernet frames")]
    LinkType {
        /// The file.
        path: String,
        /// Its link type.
        link: DataLink,
    },
    /// A frame was cut when it was captured.
    #[error("{path}: frame {number} was cut to {kept} of {original} bytes when captured")]
    Cut {
        /// The file.
        path: String,
        /// Number of the frame, from 1.
        number: u64,
        /// Bytes in the file.
        kept: usize,
        /// Bytes on the wire.
        original: u32,
    },
}

impl CaptureError {
    /// Whether the capture went into a pipe at whose other end nobody reads any more.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        let error = match self {
            Self::File { error, .. } => error,
            Self::Format {
                error: PcapError::IoError(error),
                ..
            } => error,
            _ => return false,
        };
        error.kind() == io::ErrorKind::BrokenPipe
    }
}

/// A frame of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFrame {
    /// When it was captured, since the epoch.
    pub time: Duration,
    /// Its bytes, without CRC.
    pub bytes: Vec<u8>,
}

enum Format {
    Classic(PcapReader<BufReader<File>>),
    NextGeneration(Box<PcapNgReader<BufReader<File>>>),
}

/// Reads the frames of a capture in order.
pub struct FrameReader {
    path: String,
    format: Format,
    number: u64,
}

impl FrameReader {
    /// Opens a capture.
    ///
    /// # Errors
    /// [`CaptureError`] if it cannot be read, or is no Ethernet capture.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let file_error = |error| CaptureError::File {
            path: name.clone(),
            error,
        };
        let format_error = |error| CaptureError::Format {
            path: name.clone(),
            error,
        };
        let mut file = File::open(path).map_err(file_error)?;
        let mut magic = [0; 4];
        let next_generation = match file.read_exact(&mut magic) {
            Ok(()) => magic == PCAPNG_MAGIC,
            Err(_) => false,
        };
        file.seek(SeekFrom::Start(0)).map_err(file_error)?;
        let file = BufReader::new(file);
        let format = if next_generation {
            Format::NextGeneration(Box::new(PcapNgReader::new(file).map_err(format_error)?))
        } else {
            let reader = PcapReader::new(file).map_err(format_error)?;
            let link = reader.header().datalink;
            if link != DataLink::ETHERNET {
                return Err(CaptureError::LinkType { path: name, link });
            }
            Format::Classic(reader)
        };
        Ok(Self {
            path: name,
            format,
            number: 0,
        })
    }

    /// The next frame, or None at the end.
    ///
    /// # Errors
    /// [`CaptureError`] if the file is damaged or the frame was cut.
    pub fn next_frame(&mut self) -> Result<Option<CapturedFrame>, CaptureError> {
        let raw = match &mut self.format {
            Format::Classic(reader) => match reader.next_packet() {
                None => None,
                Some(packet) => {
                    let packet = packet.map_err(|error| format_error(&self.path, error))?;
                    Some((packet.timestamp, packet.orig_len, packet.data.into_owned()))
                }
            },
            Format::NextGeneration(reader) => next_generation(reader, &self.path)?,
        };
        let Some((time, original, bytes)) = raw else {
            return Ok(None);
        };
        self.number += 1;
        if bytes.len() != original as usize {
            return Err(CaptureError::Cut {
                path: self.path.clone(),
                number: self.number,
                kept: bytes.len(),
                original,
            });
        }
        Ok(Some(CapturedFrame { time, bytes }))
    }
}

fn format_error(path: &str, error: PcapError) -> CaptureError {
    CaptureError::Format {
        path: path.to_owned(),
        error,
    }
}

type RawFrame = (Duration, u32, Vec<u8>);

fn next_generation(
    reader: &mut PcapNgReader<BufReader<File>>,
    path: &str,
) -> Result<Option<RawFrame>, CaptureError> {
    loop {
        let frame = match reader.next_block() {
            None => return Ok(None),
            Some(Err(error)) => return Err(format_error(path, error)),
            Some(Ok(Block::EnhancedPacket(packet))) => (
                packet.interface_id,
                (
                    packet.timestamp,
                    packet.original_len,
                    packet.data.into_owned(),
                ),
            ),
            Some(Ok(Block::SimplePacket(packet))) => (
                0,
                (
                    Duration::ZERO,
                    packet.original_len,
                    packet.data.into_owned(),
                ),
            ),
            Some(Ok(_)) => continue,
        };
        let (interface, frame) = frame;
        match reader.interfaces().get(interface as usize) {
            Some(description) if description.linktype != DataLink::ETHERNET => {
                return Err(CaptureError::LinkType {
                    path: path.to_owned(),
                    link: description.linktype,
                });
            }
            _ => return Ok(Some(frame)),
        }
    }
}

/// A sink of which [`PcapWriter`] has one handle and [`FrameWriter`] the other.
struct Shared<W>(Arc<Mutex<W>>);

impl<W: Write> Shared<W> {
    fn with<T>(&self, act: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        let sink = self.0.lock();
        act(&mut *sink.map_err(|_| io::Error::other("the sink has panicked"))?)
    }
}

impl<W: Write> Write for Shared<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|sink| sink.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(W::flush)
    }
}

/// Writes frames to a classic pcap file.
pub struct FrameWriter<W: Write> {
    path: String,
    writer: PcapWriter<Shared<W>>,
    sink: Shared<W>,
    frames: u64,
}

impl FrameWriter<BufWriter<File>> {
    /// Makes (or overwrites) a capture file.
    ///
    /// # Errors
    /// [`CaptureError`] if it cannot be written.
    pub fn create(path: &Path) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|error| CaptureError::File {
            path: name.clone(),
            error,
        })?;
        Self::new(BufWriter::new(file), name)
    }
}

impl<W: Write> FrameWriter<W> {
    /// Starts a capture on any sink; `name` is for messages.
    ///
    /// # Errors
    /// [`CaptureError`] if the header cannot be written.
    pub fn new(sink: W, name: String) -> Result<Self, CaptureError> {
        let header = PcapHeader {
            datalink: DataLink::ETHERNET,
            endianness: Endianness::native(),
            ..PcapHeader::default()
        };
        let sink = Arc::new(Mutex::new(sink));
        let writer = PcapWriter::with_header(Shared(sink.clone()), header)
            .map_err(|error| format_error(&name, error))?;
        Ok(Self {
            path: name,
            writer,
            sink: Shared(sink),
            frames: 0,
        })
    }

    /// Appends a frame with a time stamp since the epoch.
    ///
    /// # Errors
    /// [`CaptureError`] if it cannot be written, or is longer than a capture holds.
    pub fn write(&mut self, time: Duration, bytes: &[u8]) -> Result<(), CaptureError> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.writer
            .write_packet(&PcapPacket::new(time, length, bytes))
            .map_err(|error| format_error(&self.path, error))?;
        self.frames += 1;
        Ok(())
    }

    /// Frames written so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Lets a reader of the sink see what was written so far.
    ///
    /// # Errors
    /// [`CaptureError`] if it cannot be written.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        let path = &self.path;
        self.sink.flush().map_err(|error| CaptureError::File {
            path: path.clone(),
            error,
        })
    }

    /// Ends the capture: what is buffered reaches the file.
    ///
    /// # Errors
    /// [`CaptureError`] if the rest cannot be written.
    pub fn finish(mut self) -> Result<W, CaptureError> {
        self.flush()?;
        let Self {
            path, writer, sink, ..
        } = self;
        drop(writer);
        let sink = Arc::into_inner(sink.0).and_then(|sink| sink.into_inner().ok());
        sink.ok_or_else(|| CaptureError::File {
            path,
            error: io::Error::other("the sink has panicked"),
        })
    }
}

/// The present time as captures count it.
#[must_use]
pub fn now() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("room for it");
        file.flush().expect("room for it");
        file
    }

    #[test]
    fn frames_come_back_byte_for_byte_and_in_order() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let frames: Vec<Vec<u8>> = (1..=60u8)
            .map(|n| (0..usize::from(n) * 25).map(|i| n ^ i as u8).collect())
            .collect();
        let mut writer = FrameWriter::create(file.path()).unwrap();
        for (index, frame) in frames.iter().enumerate() {
            writer
                .write(Duration::from_micros(index as u64), frame)
                .unwrap();
        }
        assert_eq!(writer.frames(), 60);
        writer.finish().unwrap();

        let mut reader = FrameReader::open(file.path()).unwrap();
        for (index, frame) in frames.iter().enumerate() {
            let read = reader.next_frame().unwrap().expect("one frame more");
            assert_eq!(&read.bytes, frame);
            assert_eq!(read.time, Duration::from_micros(index as u64));
        }
        assert_eq!(reader.next_frame().unwrap(), None);
    }

    #[test]
    fn what_is_no_capture_is_refused() {
        let text = write_file(b"this is not a capture, it only lies in a file of that name");
        assert!(matches!(
            FrameReader::open(text.path()),
            Err(CaptureError::Format { .. })
        ));
        let empty = write_file(b"");
        assert!(FrameReader::open(empty.path()).is_err());
        assert!(matches!(
            FrameReader::open(Path::new("/nonexistent/capture.pcap")),
            Err(CaptureError::File { .. })
        ));
    }

    #[test]
    fn a_capture_of_another_link_type_is_refused() {
        let header = PcapHeader {
            datalink: DataLink::RAW,
            ..PcapHeader::default()
        };
        let bytes = PcapWriter::with_header(Vec::new(), header)
            .unwrap()
            .into_writer();
        let file = write_file(&bytes);
        assert!(matches!(
            FrameReader::open(file.path()),
            Err(CaptureError::LinkType {
                link: DataLink::RAW,
                ..
            })
        ));
    }

    #[test]
    fn a_frame_that_was_cut_is_an_error() {
        let mut writer = PcapWriter::new(Vec::new()).unwrap();
        writer
            .write_packet(&PcapPacket::new(Duration::ZERO, 100, &[1; 64]))
            .unwrap();
        let file = write_file(&writer.into_writer());
        let mut reader = FrameReader::open(file.path()).unwrap();
        assert!(matches!(
            reader.next_frame(),
            Err(CaptureError::Cut {
                number: 1,
                kept: 64,
                original: 100,
                ..
            })
        ));
    }

    #[test]
    fn a_file_that_ends_in_the_middle_of_a_frame_is_an_error() {
        let mut writer = FrameWriter::new(Vec::new(), "memory".into()).unwrap();
        writer.write(Duration::ZERO, &[7; 100]).unwrap();
        let bytes = writer.finish().unwrap();
        let file = write_file(&bytes[..bytes.len() - 10]);
        let mut reader = FrameReader::open(file.path()).unwrap();
        assert!(matches!(
            reader.next_frame(),
            Err(CaptureError::Format { .. })
        ));
    }
}
