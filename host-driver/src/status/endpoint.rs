//! A message endpoint in a process that does not drive the card.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use serde_json::Value;
use spine_linker::endpoint::{Endpoint, HandlerOf, NotSent, Received, RingSizes};

use super::client::ANSWER;
use super::request::Request;
use crate::dma::{DmaError, DmaMemory, PAGE_BYTES};

/// Longest answer with a file.
const LONGEST: usize = 4096;

/// An endpoint of this process, at the card that another process drives.
#[derive(Debug)]
pub struct Application {
    rings: Endpoint<DmaMemory>,
    /// The same memory, and where in it the screen is.
    screen: DmaMemory,
    screen_at: Range<usize>,
    number: u32,
    stream: UnixStream,
}

impl Application {
    /// Asks the driver that listens at `path` for an endpoint, whose messages handlers of these
    /// domains may get. With `unload` the domains go when this process does.
    ///
    /// # Errors
    /// If nothing answers, or with the driver's own words.
    pub fn open(
        path: &Path,
        sizes: RingSizes,
        domains: &[u32],
        unload: bool,
    ) -> io::Result<Application> {
        Application::open_with(path, sizes, domains, unload, None)
    }

    /// The same, with a screen of `bytes` bytes that handlers of a domain write to
    /// ([`read_screen`](Self::read_screen)).
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn open_screen(
        path: &Path,
        sizes: RingSizes,
        domain: u32,
        bytes: u32,
    ) -> io::Result<Application> {
        Application::open_with(path, sizes, &[domain], false, Some((domain, bytes)))
    }

    fn open_with(
        path: &Path,
        sizes: RingSizes,
        domains: &[u32],
        unload: bool,
        screen: Option<(u32, u32)>,
    ) -> io::Result<Application> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(ANSWER))?;
        let request = Request::OpenEndpoint {
            slots: sizes.slots,
            bulk: sizes.bulk,
            domains: domains.to_vec(),
            unload,
            screen,
        };
        writeln!(stream, "{}", serde_json::to_string(&request)?)?;
        let (answer, file) = receive_with(&stream)?;
        if let Some(error) = answer.get("error").and_then(Value::as_str) {
            return Err(io::Error::other(error.to_owned()));
        }
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let number = answer["endpoint"].as_u64().ok_or_else(invalid)?;
        let memory = DmaMemory::of_file(file.ok_or_else(invalid)?, 0)?;
        let rings = sizes.bytes().next_multiple_of(PAGE_BYTES);
        let bytes = screen.map_or(0, |(_, bytes)| bytes as usize);
        if memory.len() < rings + bytes {
            return Err(invalid());
        }
        Ok(Application {
            screen: memory.clone(),
            rings: Endpoint::new(memory, sizes),
            screen_at: rings..rings + bytes,
            number: u32::try_from(number).map_err(|_| invalid())?,
            stream,
        })
    }

    /// Its number, as handlers know it.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The bytes of the screen, from one of them on.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn read_screen(&self, from: usize, out: &mut [u8]) -> Result<(), DmaError> {
        let refused = DmaError::OutOfBounds {
            offset: from,
            bytes: out.len(),
            len: self.screen_at.len(),
        };
        let end = from.checked_add(out.len()).ok_or(refused)?;
        if end > self.screen_at.len() {
            return Err(refused);
        }
        self.screen.read_bytes(self.screen_at.start + from, out)
    }

    /// The rings: what is put there is sent by [`notify`](Self::notify).
    pub const fn rings(&mut self) -> &mut Endpoint<DmaMemory> {
        &mut self.rings
    }

    /// Has the driver look at what was put, or taken.
    ///
    /// # Errors
    /// If the driver is gone.
    pub fn notify(&self) -> io::Result<()> {
        match rustix::net::send(
            &self.stream,
            &[1],
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        ) {
            // A socket that is full says enough.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a message to a handler.
    ///
    /// # Errors
    /// [`NotSent`], as an error of the system's; or the driver is gone.
    pub fn send(&mut self, to: HandlerOf, arguments: &[u32]) -> io::Result<()> {
        let put = self.rings.put(to, arguments);
        put.map_err(|refused: NotSent<DmaError>| io::Error::other(refused))?;
        self.notify()
    }

    /// The next message of a handler, if one comes in time.
    ///
    /// # Errors
    /// If the driver is gone, or has ended this endpoint.
    pub fn receive(&mut self, timeout: Duration) -> io::Result<Option<Received>> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(message) = self.rings.take().map_err(io::Error::other)? {
                self.notify()?;
                return Ok(Some(message));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut ready = [PollFd::new(&self.stream, PollFlags::IN)];
            match poll(&mut ready, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut bytes = [0; 64];
            match rustix::net::recv(&self.stream, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::ConnectionAborted.into()),
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Application {
    /// Readable when there may be messages.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// An answer, which the driver sends in one piece, and the file that came with it.
fn receive_with(stream: &UnixStream) -> io::Result<(Value, Option<OwnedFd>)> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = rustix::net::recvmsg(stream, &mut parts, &mut ancillary, flags)?;
    let mut file = None;
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            file = rights.last();
        }
    }
    bytes.truncate(got.bytes);
    Ok((serde_json::from_slice(&bytes)?, file))
}
