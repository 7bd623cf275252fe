//! A peer that sends arbitrary bytes.

use super::LONG;
use rustix::cmsg_space;
use rustix::fd::BorrowedFd;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::Path;
use vfio_user_nic::Errno;
use vfio_user_nic::message::{Command, DmaMap, HEADER_BYTES, Header, flags};
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub const INVAL: u32 = Errno::INVAL.raw_os_error() as u32;
pub const OPNOTSUPP: u32 = Errno::OPNOTSUPP.raw_os_error() as u32;

/// A right map of a page at 0x1000, to be read and written.
pub const MAP: DmaMap = DmaMap {
    argsz: 32,
    flags: 3,
    offset: 0,
    address: 0x1000,
    size: 0x1000,
};

/// A message with a right size.
pub fn framed(id: u16, command: u16, flags: u32, payload: &[u8]) -> Vec<u8> {
    let size = (HEADER_BYTES + payload.len()) as u32;
    let mut bytes = Header {
        id,
        command,
        size,
        flags,
        error: 0,
    }
    .as_bytes()
    .to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

/// A command with a payload of one structure.
pub fn command(command: Command, payload: &(impl IntoBytes + Immutable + ?Sized)) -> Vec<u8> {
    framed(7, command as u16, flags::COMMAND, payload.as_bytes())
}

/// The VERSION message of a good client.
pub fn version() -> Vec<u8> {
    command(
        Command::Version,
        b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":8}}\0".as_slice(),
    )
}

/// A connection without manners.
pub struct Raw {
    pub stream: UnixStream,
}

impl Raw {
    pub fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Self { stream }
    }

    /// A connection after a good VERSION.
    pub fn negotiated(path: &Path) -> Self {
        let mut raw = Self::connect(path);
        raw.send(&version());
        let (header, _) = raw.reply().unwrap();
        assert_eq!((header.flags, header.error), (flags::REPLY, 0));
        raw
    }

    /// Sends bytes; the server may have hung up in the middle.
    pub fn send(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes) {
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            other => other.unwrap(),
        }
    }

    /// Sends bytes in one call, with descriptors.
    pub fn send_with(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        assert!(self.try_send_with(bytes, fds), "the server has hung up");
    }

    /// The same; `false` if the server has hung up.
    pub fn try_send_with(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
        let mut space = vec![MaybeUninit::uninit(); cmsg_space!(ScmRights(64))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
        let io = [IoSlice::new(bytes)];
        match sendmsg(&self.stream, &io, &mut ancillary, SendFlags::NOSIGNAL) {
            Err(Errno::PIPE | Errno::CONNRESET) => false,
            sent => {
                assert_eq!(sent.unwrap(), bytes.len());
                true
            }
        }
    }

    /// The next message of the server; `None` once it has hung up.
    pub fn reply(&mut self) -> Option<(Header, Vec<u8>)> {
        let mut bytes = [0; HEADER_BYTES];
        match self.stream.read_exact(&mut bytes) {
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                return None;
            }
            other => other.unwrap(),
        }
        let header = Header::read_from_bytes(&bytes).unwrap();
        let mut payload = vec![0; header.size as usize - HEADER_BYTES];
        self.stream.read_exact(&mut payload).unwrap();
        Some((header, payload))
    }

    /// The errno of the next reply, which has nothing else in it; `None` once the
    /// server has hung up.
    pub fn errno(&mut self) -> Option<u32> {
        let (header, payload) = self.reply()?;
        assert_eq!(header.flags & flags::TYPE, flags::REPLY);
        if header.flags & flags::ERROR == 0 {
            return Some(0);
        }
        assert!(payload.is_empty(), "an error reply is a header alone");
        Some(header.error)
    }
}
