//! Captures: reads and writes frames in pcap files.
//!
//! [`FrameReader`] reads classic pcap and pcapng; [`FrameWriter`] writes classic pcap with
//! microsecond time stamps. Only Ethernet captures are accepted. A truncated frame is an error,
//! because replaying it would send something that never was on the wire.

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
        /// The system's error.
        error: io::Error,
    },
    /// The contents are not those of a capture.
    #[error("{path}: not a usable capture: {error}")]
    Format {
        /// The file.
        path: String,
        /// The reader's error.
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
    /// A frame was truncated when it was captured.
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
    /// Whether the capture went into a pipe whose reader has gone.
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

/// A sink with two handles, for [`PcapWriter`] and for [`FrameWriter`].
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
    /// Creates (or overwrites) a capture file.
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
    /// Starts a capture on any sink; messages use `name`.
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

    /// Flushes everything that was written so far to the sink.
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

    /// Ends the capture and flushes it to the file.
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

/// The current time in the captures' format.
#[must_use]
pub fn now() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
