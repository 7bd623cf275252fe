//! Cuts the stream of a socket into messages.
//!
//! One system call takes as much as the socket holds; the messages in it come out
//! together. A message may arrive in any number of pieces:
//!
//! ```text
//!   receive:  ....WWWW][WWWWWWWW][RRRR..        ] free ]
//!             completes   whole    begins: stays in the buffer
//! ```
//!
//! Descriptors belong to the message that holds the last byte of the piece they
//! came with: the kernel ends a read after the piece of a sender's call that
//! carried descriptors.

use crate::message::{HEADER_BYTES, Header, MAX_MESSAGE_BYTES, MAX_MESSAGE_FDS};
use crate::socket::{self, Received};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use thiserror::Error;
use zerocopy::FromBytes;

/// Bytes that one system call takes at most, unless a longer message is on its way.
const READ_BYTES: usize = 64 << 10;

/// One whole message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) header: Header,
    /// What follows the header.
    pub(crate) payload: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
    /// The peer sent more descriptors than [`MAX_MESSAGE_FDS`].
    pub(crate) fds_lost: bool,
}

/// Why a stream cannot be read any further.
#[derive(Debug, Error)]
pub(crate) enum FrameError {
    /// The peer has closed its side.
    #[error("closed")]
    Closed,
    /// The size in a header cannot be right, so the next header cannot be found.
    #[error("a message claims a size of {} bytes", .0.size)]
    Size(Header),
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] Errno),
}

/// The unfinished end of a stream.
#[derive(Debug)]
pub(crate) struct Framer {
    buffer: Vec<u8>,
    filled: usize,
    fds: Vec<OwnedFd>,
    fds_lost: bool,
}

impl Framer {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; READ_BYTES],
            filled: 0,
            fds: Vec::new(),
            fds_lost: false,
        }
    }

    /// Reads once from the socket and appends the messages that are complete to
    /// `out`. Reading nothing (no data there) is a success. Messages in front of
    /// an error are in `out` as well.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        out: &mut Vec<Message>,
    ) -> Result<(), FrameError> {
        let Received {
            bytes,
            fds,
            fds_lost,
        } = match socket::receive(socket, &mut self.buffer[self.filled..]) {
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(Errno::CONNRESET | Errno::PIPE) => return Err(FrameError::Closed),
            other => other?,
        };
        if bytes == 0 {
            return Err(FrameError::Closed);
        }
        self.filled += bytes;
        let before = out.len();
        let result = self.cut(out);
        self.assign(fds, fds_lost, &mut out[before..]);
        result
    }

    /// Moves whole messages from the buffer to `out`.
    fn cut(&mut self, out: &mut Vec<Message>) -> Result<(), FrameError> {
        let mut at = 0;
        let mut needed = READ_BYTES;
        let result = loop {
            let rest = &self.buffer[at..self.filled];
            let Ok((header, body)) = Header::read_from_prefix(rest) else {
                break Ok(());
            };
            let size = header.size as usize;
            if !(HEADER_BYTES..=MAX_MESSAGE_BYTES).contains(&size) {
                break Err(FrameError::Size(header));
            }
            let Some(payload) = body.get(..size - HEADER_BYTES) else {
                needed = size.max(READ_BYTES);
                break Ok(());
            };
            out.push(Message {
                header,
                payload: payload.to_vec(),
                // Descriptors of earlier pieces of this message.
                fds: std::mem::take(&mut self.fds),
                fds_lost: std::mem::take(&mut self.fds_lost),
            });
            at += size;
        };
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        // Always leaves room for at least one byte: an unfinished message is shorter
        // than `needed`.
        self.buffer.resize(needed, 0);
        result
    }

    /// Gives descriptors to the message that holds the last byte read.
    fn assign(&mut self, new: Vec<OwnedFd>, lost: bool, whole: &mut [Message]) {
        if new.is_empty() && !lost {
            return;
        }
        let (fds, fds_lost) = match whole.last_mut() {
            Some(last) if self.filled == 0 => (&mut last.fds, &mut last.fds_lost),
            _ => (&mut self.fds, &mut self.fds_lost),
        };
        fds.extend(new);
        *fds_lost |= lost || fds.len() > MAX_MESSAGE_FDS;
        fds.truncate(MAX_MESSAGE_FDS);
    }
}
