//! Splits the byte stream of a socket into messages.
//!
//! One system call reads as much as the socket holds and returns all messages in it. A message may
//! arrive in any number of pieces:
//!
//! ```text
//!   receive:  ....WWWW][WWWWWWWW][RRRR..        ] free ]
//!             completes   whole    begins: stays in the buffer
//! ```
//!
//! Descriptors belong to the message that contains the last byte of the piece they came with: the
//! kernel ends a read after a piece that carries descriptors.

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

    /// Has a message begun that has not ended?
    pub(crate) fn is_within_message(&self) -> bool {
        self.filled > 0 || !self.fds.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Command, encode};
    use crate::socket::{send_some, wait};
    use proptest::prelude::*;
    use rustix::event::PollFlags;
    use rustix::fd::AsFd;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::time::{Duration, Instant};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    }

    fn send(socket: &OwnedFd, mut bytes: &[u8], mut fds: &[BorrowedFd<'_>]) {
        let deadline = Some(Instant::now() + Duration::from_secs(5));
        while !bytes.is_empty() {
            wait(socket.as_fd(), PollFlags::OUT, None, deadline).unwrap();
            let sent = send_some(socket.as_fd(), bytes, fds).unwrap();
            (bytes, fds) = (&bytes[sent..], &[]);
        }
    }

    fn message(id: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&mut bytes, id, Command::RegionWrite, 0, payload, &[]);
        bytes
    }

    /// The kernel ends a read after the piece that had descriptors: messages in
    /// front of it in the same read must not get them.
    #[test]
    fn descriptors_go_to_the_message_they_came_with() {
        let (ours, theirs) = pair();
        let fd = theirs.as_fd();
        send(&theirs, &message(1, &[]), &[]);
        send(&theirs, &message(2, &[]), &[fd]);
        send(&theirs, &message(3, &[]), &[fd, fd]);
        send(&theirs, &message(4, &[]), &[]);
        // One that comes in two pieces, each with descriptors.
        let split = message(5, &[0; 10]);
        send(&theirs, &split[..20], &[fd]);
        send(&theirs, &split[20..], &[fd, fd]);
        let (mut framer, mut out) = (Framer::new(), Vec::new());
        while out.len() < 5 {
            framer.receive(ours.as_fd(), &mut out).unwrap();
        }
        let fds: Vec<_> = out.iter().map(|m| (m.header.id, m.fds.len())).collect();
        assert_eq!(fds, [(1, 0), (2, 1), (3, 2), (4, 0), (5, 3)]);
    }

    #[test]
    fn pieces_cannot_collect_descriptors_without_end() {
        let (ours, theirs) = pair();
        for byte in message(1, &[0; 4]) {
            send(&theirs, &[byte], &[theirs.as_fd()]);
        }
        let (mut framer, mut out) = (Framer::new(), Vec::new());
        while out.is_empty() {
            framer.receive(ours.as_fd(), &mut out).unwrap();
        }
        assert_eq!(out[0].fds.len(), MAX_MESSAGE_FDS);
        assert!(out[0].fds_lost);
    }

    #[test]
    fn messages_in_front_of_a_bad_one_are_delivered() {
        let (ours, theirs) = pair();
        let mut bytes = [message(1, &[7]), message(2, &[])].concat();
        bytes.extend_from_slice(&[0xff; HEADER_BYTES]);
        send(&theirs, &bytes, &[]);
        let (mut framer, mut out) = (Framer::new(), Vec::new());
        let error = framer.receive(ours.as_fd(), &mut out).unwrap_err();
        assert!(matches!(error, FrameError::Size(header) if header.size == u32::MAX));
        assert_eq!(out.len(), 2);
        assert_eq!(out[0].payload, [7]);
    }

    proptest! {
        /// However a stream is cut, the same messages come out.
        #[test]
        fn cuts_do_not_matter(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
            cuts in prop::collection::vec(1usize..200, 1..20),
            large in 0usize..200_000,
        ) {
            let (ours, theirs) = pair();
            let mut payloads = payloads;
            payloads.push(vec![0x5a; large]);
            let stream: Vec<u8> = payloads.iter().flat_map(|p| message(3, p)).collect();
            let (mut framer, mut out) = (Framer::new(), Vec::new());
            let mut at = 0;
            for cut in cuts.iter().copied().chain(std::iter::repeat(50_000)) {
                let end = stream.len().min(at + cut);
                send(&theirs, &stream[at..end], &[]);
                at = end;
                framer.receive(ours.as_fd(), &mut out).unwrap();
                if at == stream.len() {
                    break;
                }
            }
            while out.len() < payloads.len() {
                framer.receive(ours.as_fd(), &mut out).unwrap();
            }
            let got: Vec<_> = out.into_iter().map(|m| m.payload).collect();
            prop_assert_eq!(got, payloads);
        }
    }
}
