//! One client's connection as the server's threads share it.
//!
//! Two kinds of thread want messages from the same socket: the server's thread
//! wants commands, and a thread that does DMA by message wants the reply to its
//! own. The latter may hold the device's lock, for which the former may be waiting
//! with a batch in its hands; so nobody may depend on one particular thread to
//! read. Whoever waits takes the role of the reader if it is free, and puts what it
//! finds where it belongs:
//!
//! ```text
//!                       +--> backlog of commands --> server's thread
//!   socket --> reader --+
//!                       +--> pending replies ------> thread doing DMA
//! ```
//!
//! The role is given up after each read, and no lock is held while the socket is
//! waited for.

use crate::dma::DmaError;
use crate::frame::{FrameError, Framer, Message};
use crate::message::{
    self, Command, DEFAULT_MAX_TRANSFER, DmaAccess, HEADER_BYTES, MAX_MESSAGE_BYTES,
};
use crate::server::Disconnect;
use crate::socket::{self, Waited};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

/// Commands that may pile up while a DMA reply is waited for, in bytes.
const MAX_BACKLOG_BYTES: usize = 16 * MAX_MESSAGE_BYTES;

/// A connection.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    /// Readable once the server is to stop.
    wake: Arc<OwnedFd>,
    state: Mutex<State>,
    changed: Condvar,
    /// Used only by the thread that has the reader's role.
    framer: Mutex<Framer>,
    /// Held for one send, so that messages do not mix.
    sender: Mutex<()>,
    /// Largest data of a DMA message that the client takes, in bytes.
    max_transfer: AtomicUsize,
    dma_timeout: Duration,
    send_timeout: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// Some thread has the reader's role.
    reading: bool,
    backlog: VecDeque<Message>,
    backlog_bytes: usize,
    /// DMA messages under way, by id; with the reply once it is there.
    pending: HashMap<u16, Option<Message>>,
    next_id: u16,
    closed: Option<Disconnect>,
}

impl Channel {
    pub(crate) fn new(
        socket: OwnedFd,
        wake: Arc<OwnedFd>,
        dma_timeout: Duration,
        send_timeout: Duration,
    ) -> Self {
        Self {
            socket,
            wake,
            state: Mutex::default(),
            changed: Condvar::new(),
            framer: Mutex::new(Framer::new()),
            sender: Mutex::new(()),
            max_transfer: AtomicUsize::new(DEFAULT_MAX_TRANSFER),
            dma_timeout,
            send_timeout,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the largest data of a DMA message, in bytes.
    pub(crate) fn set_max_transfer(&self, bytes: u64) {
        let bytes = usize::try_from(bytes)
            .unwrap_or(usize::MAX)
            .clamp(1, DEFAULT_MAX_TRANSFER);
        self.max_transfer.store(bytes, Ordering::Relaxed);
    }

    /// The commands that are there; waits for the first until the deadline, and
    /// then gives none. The connection's end comes after its last command.
    pub(crate) fn next_commands(
        &self,
        deadline: Option<Instant>,
    ) -> Result<VecDeque<Message>, Disconnect> {
        let found = self.pump(deadline, |state| {
            state.backlog_bytes = 0;
            (!state.backlog.is_empty()).then(|| std::mem::take(&mut state.backlog))
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Reads the socket, in turns with others, until `wanted` finds what it wants
    /// or the deadline has passed.
    fn pump<T>(
        &self,
        deadline: Option<Instant>,
        mut wanted: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, Disconnect> {
        let mut state = self.state();
        loop {
            if let Some(found) = wanted(&mut state) {
                return Ok(Some(found));
            }
            if let Some(why) = &state.closed {
                return Err(why.clone());
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            if state.reading {
                state = match left {
                    Some(left) => {
                        let waited = self.changed.wait_timeout(state, left);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner),
                };
                continue;
            }
            state.reading = true;
            drop(state);
            let mut messages = Vec::new();
            let result = self.read(deadline, &mut messages);
            state = self.state();
            state.reading = false;
            for message in messages {
                state.sort(message);
            }
            if let Err(why) = result {
                state.closed.get_or_insert(why);
            }
            self.changed.notify_all();
        }
    }

    /// Waits for the socket and reads it once. For the thread with the role only.
    fn read(&self, deadline: Option<Instant>, out: &mut Vec<Message>) -> Result<(), Disconnect> {
        let wake = Some(self.wake.as_fd());
        match socket::wait(self.socket.as_fd(), PollFlags::IN, wake, deadline) {
            Ok(Waited::TimedOut) => return Ok(()),
            Ok(Waited::Woken) => return Err(Disconnect::Stopped),
            Ok(Waited::Ready) => {}
            Err(errno) => return Err(Disconnect::Io(errno)),
        }
        let mut framer = self.framer.lock().unwrap_or_else(PoisonError::into_inner);
        framer
            .receive(self.socket.as_fd(), out)
            .map_err(|error| match error {
                FrameError::Closed => Disconnect::Closed,
                FrameError::Io(errno) => Disconnect::Io(errno),
                FrameError::Size(header) => Disconnect::Size(header),
            })
    }

    /// Sends whole messages. A failure ends the connection.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), Disconnect> {
        if bytes.is_empty() {
            return Ok(());
        }
        let result = {
            let _turn = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
            let deadline = Instant::now() + self.send_timeout;
            socket::send_all(self.socket.as_fd(), bytes, &[], deadline)
        };
        result.map_err(|errno| {
            let why = match errno {
                Errno::PIPE | Errno::CONNRESET => Disconnect::Closed,
                Errno::TIMEDOUT => Disconnect::Stuck,
                other => Disconnect::Io(other),
            };
            self.close(why.clone());
            why
        })
    }

    /// Ends the connection: wakes everybody who waits on it.
    pub(crate) fn close(&self, why: Disconnect) {
        self.state().closed.get_or_insert(why);
        self.changed.notify_all();
        // Also wakes a reader that is in `poll`. Fails if the peer is gone already.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Reads the client's memory by messages.
    pub(crate) fn dma_read(&self, address: u64, out: &mut [u8]) -> Result<(), DmaError> {
        let step = self.max_transfer.load(Ordering::Relaxed);
        for (i, part) in out.chunks_mut(step).enumerate() {
            let address = address + (i * step) as u64;
            let reply = self.transact(Command::DmaRead, address, part.len(), &[])?;
            let (echo, data) =
                DmaAccess::read_from_prefix(&reply).map_err(|_| DmaError::Malformed(address))?;
            let count = part.len();
            if echo
                != (DmaAccess {
                    address,
                    count: count as u64,
                })
                || data.len() != count
            {
                return Err(DmaError::Malformed(address));
            }
            part.copy_from_slice(data);
        }
        Ok(())
    }

    /// Writes the client's memory by messages, and waits until it is done.
    pub(crate) fn dma_write(&self, address: u64, data: &[u8]) -> Result<(), DmaError> {
        let step = self.max_transfer.load(Ordering::Relaxed);
        for (i, part) in data.chunks(step).enumerate() {
            let address = address + (i * step) as u64;
            let reply = self.transact(Command::DmaWrite, address, part.len(), part)?;
            // The count after the address is 4 bytes by the specification, 8 by its
            // implementations.
            match u64::read_from_prefix(&reply) {
                Ok((echo, _)) if echo == address => {}
                _ => return Err(DmaError::Malformed(address)),
            }
        }
        Ok(())
    }

    /// One DMA message and its reply; gives the payload of the reply.
    fn transact(
        &self,
        command: Command,
        address: u64,
        count: usize,
        data: &[u8],
    ) -> Result<Vec<u8>, DmaError> {
        let deadline = Instant::now() + self.dma_timeout;
        let id = self.state().new_id();
        let access = DmaAccess {
            address,
            count: count as u64,
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + size_of::<DmaAccess>() + data.len());
        message::encode(
            &mut bytes,
            id,
            command,
            message::flags::COMMAND,
            &access,
            data,
        );
        let reply = match self.send(&bytes) {
            Ok(()) => self.pump(Some(deadline), |state| state.pending.get_mut(&id)?.take()),
            Err(why) => Err(why),
        };
        self.state().pending.remove(&id);
        let reply = reply.map_err(|_| DmaError::Disconnected)?;
        let reply = reply.ok_or(DmaError::Timeout(address))?;
        if reply.header.command != command as u16 {
            return Err(DmaError::Malformed(address));
        }
        if let Some(errno) = reply.header.failure() {
            return Err(DmaError::Refused {
                address,
                errno: errno_from(errno),
            });
        }
        Ok(reply.payload)
    }
}

impl State {
    /// Puts a message where the thread that wants it will find it.
    fn sort(&mut self, message: Message) {
        if message.header.is_reply() {
            // A reply that nobody waits for any more came after its timeout.
            if let Some(slot) = self.pending.get_mut(&message.header.id) {
                *slot = Some(message);
            }
            return;
        }
        self.backlog_bytes += size_of::<Message>() + message.payload.len();
        if self.backlog_bytes > MAX_BACKLOG_BYTES {
            self.closed.get_or_insert(Disconnect::Backlog);
            return;
        }
        self.backlog.push_back(message);
    }

    /// A message id that no DMA under way uses.
    fn new_id(&mut self) -> u16 {
        // There are far fewer threads than ids.
        while self.pending.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.pending.insert(id, None);
        id
    }
}

/// An errno out of a message; 0 and nonsense become `EIO`.
pub(crate) fn errno_from(number: u32) -> Errno {
    match i32::try_from(number) {
        Ok(number @ 1..=4095) => Errno::from_raw_os_error(number),
        _ => Errno::IO,
    }
}
