//! The sending side of the socket, which several threads may use.
//!
//! The messages share one byte stream, so each is sent whole before another thread's begins: a
//! thread holds the turn while it sends one batch, and never while it waits for a reply.

use super::ClientError;
use crate::message::{self, Command, RegionAccess, irq_set_flags};
use crate::socket::{self, Waited};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The socket and the turn to send on it.
pub(super) struct Outgoing {
    socket: OwnedFd,
    turn: Mutex<()>,
}

impl Outgoing {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            turn: Mutex::new(()),
        }
    }

    /// Waits for the turn.
    fn turn(&self) -> MutexGuard<'_, ()> {
        // Whoever panicked may have left half a message; the peer finds that out.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends whole messages; `fds` go with the first. While the socket is full it is
    /// waited for, and `arrived` is called each time that there is something to read, since
    /// the server may be waiting for its reader just then.
    pub(super) fn send(
        &self,
        command: Command,
        mut bytes: &[u8],
        mut fds: &[BorrowedFd<'_>],
        deadline: Instant,
        mut arrived: Option<&mut dyn FnMut() -> Result<(), ClientError>>,
    ) -> Result<(), ClientError> {
        let events = match arrived {
            Some(_) => PollFlags::OUT | PollFlags::IN,
            None => PollFlags::OUT,
        };
        let _turn = self.turn();
        while !bytes.is_empty() {
            match socket::send_some(self.as_fd(), bytes, fds) {
                Ok(sent) => {
                    bytes = bytes.get(sent..).unwrap_or_default();
                    fds = &[];
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    match socket::wait(self.as_fd(), events, None, Some(deadline)) {
                        Ok(Waited::TimedOut) => {
                            // A message may be half sent: nothing can follow it.
                            let _ = shutdown(&self.socket, Shutdown::Both);
                            return Err(ClientError::Timeout(command));
                        }
                        Ok(_) => {
                            if let Some(arrived) = arrived.as_mut() {
                                arrived()?;
                            }
                        }
                        Err(errno) => return Err(ClientError::from_socket(errno)),
                    }
                }
                Err(errno) => return Err(ClientError::from_socket(errno)),
            }
        }
        Ok(())
    }
}

impl AsFd for Outgoing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Posts writes to a device for one thread, beside the [`Client`](super::Client) of another.
///
/// What one poster posts arrives in its order, and before what is asked for after its
/// [`flush`](Poster::flush), by whomever. It waits for another thread's message to be sent,
/// and for no reply.
pub struct Poster {
    outgoing: Arc<Outgoing>,
    posted: Vec<u8>,
    /// Most bytes of a write.
    max: usize,
    timeout: Duration,
}

impl std::fmt::Debug for Poster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poster").finish_non_exhaustive()
    }
}

impl Poster {
    pub(super) fn new(outgoing: Arc<Outgoing>, max: usize, timeout: Duration) -> Self {
        Self {
            outgoing,
            posted: Vec::new(),
            max,
            timeout,
        }
    }

    /// Posts a write of `data` to `offset` of `region`, as
    /// [`Client::region_post`](super::Client::region_post).
    ///
    /// # Errors
    /// [`ClientError::TooLarge`], and what sending says once much is collected.
    pub fn region_post(
        &mut self,
        region: u32,
        offset: u64,
        data: &[u8],
    ) -> Result<(), ClientError> {
        if data.len() > self.max {
            return Err(ClientError::TooLarge {
                bytes: data.len(),
                max: self.max,
            });
        }
        let access = RegionAccess {
            offset,
            region,
            count: data.len() as u32,
        };
        self.post(Command::RegionWrite, &access, data);
        if self.posted.len() >= super::POST_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Posts an unmask of interrupt 0 of kind `index`.
    pub fn post_unmask_irq(&mut self, index: u32) {
        let flags = irq_set_flags::DATA_NONE | irq_set_flags::ACTION_UNMASK;
        let request = super::irq_set(index, flags, 1);
        self.post(Command::DeviceSetIrqs, &request, &[]);
    }

    fn post<T: zerocopy::IntoBytes + zerocopy::Immutable>(
        &mut self,
        command: Command,
        payload: &T,
        data: &[u8],
    ) {
        // Nothing answers it, so its number means nothing.
        let flags = message::flags::COMMAND | message::flags::NO_REPLY;
        message::encode(&mut self.posted, 0, command, flags, payload, data);
    }

    /// Sends the posted writes that are still collected.
    ///
    /// # Errors
    /// [`ClientError::Timeout`] if the server does not read; what the socket says.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        if self.posted.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + self.timeout;
        let command = Command::RegionWrite;
        let result = self
            .outgoing
            .send(command, &self.posted, &[], deadline, None);
        self.posted.clear();
        result
    }
}

impl AsFd for Poster {
    /// The socket, to notice its end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.outgoing.as_fd()
    }
}

impl Drop for Poster {
    fn drop(&mut self) {
        // As the client: posted writes are not lost for want of a flush.
        let _ = self.flush();
    }
}
