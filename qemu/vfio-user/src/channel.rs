//! One client's connection, shared by the server's threads.
//!
//! Two kinds of thread read messages from the same socket: the server's thread reads commands, and
//! a thread that does DMA by message reads the reply. The DMA thread may hold the device's lock
//! while the server's thread waits for it with an unfinished batch, so no thread may depend on a
//! particular other thread to read. A waiting thread becomes the reader if there is none, and
//! delivers each message to its destination:
//!
//! ```text
//!                       +--> backlog of commands --> server's thread
//!   socket --> reader --+
//!                       +--> pending replies ------> thread doing DMA
//! ```
//!
//! A thread gives up the role after each read, and no thread holds a lock while it waits for the
//! socket.

mod dma;

pub(crate) use dma::errno_from;

use crate::disconnect::Disconnect;
use crate::frame::{Framer, Message};
use crate::message::MAX_MESSAGE_BYTES;
use crate::patience::{LOOK, Patience};
use crate::socket::{self, Waited};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Commands that may pile up while a DMA reply is waited for, in bytes.
const MAX_BACKLOG_BYTES: usize = 16 * MAX_MESSAGE_BYTES;

/// What a descriptor in a command counts as: a process has fewer of them than bytes.
const DESCRIPTOR_BYTES: usize = MAX_BACKLOG_BYTES / 256;

/// A client as it comes to the device: connected, agreed on a version, and with its first
/// commands read.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) socket: OwnedFd,
    pub(crate) framer: Framer,
    pub(crate) commands: VecDeque<Message>,
    /// The connection has ended behind these commands.
    pub(crate) ended: Option<Disconnect>,
    /// Largest data of a DMA message that the client takes, in bytes.
    pub(crate) max_transfer: usize,
}

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
    max_transfer: usize,
    patience: Arc<Patience>,
}

#[derive(Debug, Default)]
struct State {
    /// Some thread has the reader's role.
    reading: bool,
    /// Some thread sends; messages must not mix.
    sending: bool,
    /// Threads that wait for a change.
    waiting: usize,
    backlog: VecDeque<Message>,
    backlog_bytes: usize,
    /// Since when the rest of a message is missing.
    within_message: Option<Instant>,
    /// DMA messages under way, by id; with the reply once it is there.
    pending: HashMap<u16, Option<Message>>,
    next_id: u16,
    /// Time that was lost to DMA that was not answered.
    unanswered: Duration,
    closed: Option<Disconnect>,
}

impl Channel {
    pub(crate) fn new(arrival: Arrival, wake: Arc<OwnedFd>, patience: Arc<Patience>) -> Self {
        let within = arrival.framer.is_within_message();
        let state = State {
            backlog: arrival.commands,
            within_message: within.then(Instant::now),
            closed: arrival.ended,
            ..State::default()
        };
        Self {
            socket: arrival.socket,
            wake,
            state: Mutex::new(state),
            changed: Condvar::new(),
            framer: Mutex::new(arrival.framer),
            max_transfer: arrival.max_transfer,
            patience,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, but not past a time.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = match until {
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                let waited = self.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.changed.wait(state);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        state.waiting -= 1;
        state
    }

    /// Tells those who wait that something has changed.
    fn report(&self, state: &State) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Has everybody who waits look again.
    pub(crate) fn look_again(&self) {
        self.report(&self.state());
    }

    /// The commands that are there; waits for the first until the deadline, and
    /// then gives none. The connection's end comes after its last command.
    pub(crate) fn next_commands(
        &self,
        deadline: Option<Instant>,
    ) -> Result<VecDeque<Message>, Disconnect> {
        let mut state = self.state();
        if !state.reading && state.within_message.is_some() {
            // The rest may have been there for long without being read.
            state.within_message = Some(Instant::now());
        }
        drop(state);
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
            if let Some(since) = state.within_message
                && self.patience.is_over(since)
            {
                state.closed.get_or_insert(Disconnect::Incomplete);
                self.report(&state);
            }
            if let Some(why) = &state.closed {
                return Err(why.clone());
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(None);
            }
            let until = if state.within_message.is_some() {
                let look = now + LOOK;
                Some(deadline.map_or(look, |deadline| deadline.min(look)))
            } else {
                deadline
            };
            if state.reading {
                state = self.wait(state, until);
                continue;
            }
            state.reading = true;
            drop(state);
            let mut messages = Vec::new();
            let result = self.read(until, &mut messages);
            state = self.state();
            state.reading = false;
            match result {
                Ok(true) if messages.is_empty() => {
                    state.within_message.get_or_insert_with(Instant::now);
                }
                Ok(true) => state.within_message = Some(Instant::now()),
                Ok(false) => state.within_message = None,
                Err(why) => {
                    state.closed.get_or_insert(why);
                }
            }
            for message in messages {
                state.sort(message);
            }
            self.report(&state);
        }
    }

    /// Waits for the socket and reads it once. For the thread with the role only. Tells
    /// whether a message has begun that has not ended.
    fn read(&self, until: Option<Instant>, out: &mut Vec<Message>) -> Result<bool, Disconnect> {
        let wake = Some(self.wake.as_fd());
        let waited = socket::wait(self.socket.as_fd(), PollFlags::IN, wake, until);
        let mut framer = self.framer.lock().unwrap_or_else(PoisonError::into_inner);
        match waited {
            Ok(Waited::TimedOut) => {}
            Ok(Waited::Woken) => return Err(Disconnect::Stopped),
            Ok(Waited::Ready) => framer.receive(self.socket.as_fd(), out)?,
            Err(errno) => return Err(Disconnect::Io(errno)),
        }
        Ok(framer.is_within_message())
    }

    /// Sends whole messages. A failure ends the connection.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), Disconnect> {
        self.send_if(bytes, &|| true).map(|_| ())
    }

    /// Sends whole messages, unless they are no longer wanted when their turn has come;
    /// returns whether they were.
    fn send_if(&self, bytes: &[u8], wanted: &dyn Fn() -> bool) -> Result<bool, Disconnect> {
        if bytes.is_empty() {
            return Ok(true);
        }
        let mut state = self.state();
        while state.sending {
            if let Some(why) = &state.closed {
                return Err(why.clone());
            }
            state = self.wait(state, None);
        }
        state.sending = true;
        drop(state);
        let wanted = wanted();
        let result = if wanted { self.send_all(bytes) } else { Ok(()) };
        if let Err(why) = &result {
            self.close(why.clone());
        }
        let mut state = self.state();
        state.sending = false;
        self.report(&state);
        result.map(|()| wanted)
    }

    /// Sends for as long as there is patience with a client that does not read.
    fn send_all(&self, mut bytes: &[u8]) -> Result<(), Disconnect> {
        let since = Instant::now();
        while !bytes.is_empty() {
            match socket::send_some(self.socket.as_fd(), bytes, &[]) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.patience.is_over(since) => {
                    return Err(Disconnect::Stuck);
                }
                Err(Errno::AGAIN) => {
                    let end = since + self.patience.alone();
                    let until = Some(end.min(Instant::now() + LOOK));
                    let wake = Some(self.wake.as_fd());
                    match socket::wait(self.socket.as_fd(), PollFlags::OUT, wake, until) {
                        Ok(Waited::Woken) => return Err(Disconnect::Stopped),
                        Ok(Waited::Ready | Waited::TimedOut) => {}
                        Err(errno) => return Err(Disconnect::Io(errno)),
                    }
                }
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Disconnect::Closed),
                Err(errno) => return Err(Disconnect::Io(errno)),
            }
        }
        Ok(())
    }

    /// Ends the connection: wakes everybody who waits on it.
    pub(crate) fn close(&self, why: Disconnect) {
        let mut state = self.state();
        state.closed.get_or_insert(why);
        self.report(&state);
        drop(state);
        // Also wakes a reader that is in `poll`. Fails if the peer is gone already.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

impl State {
    /// Puts a message where the thread that wants it will find it.
    fn sort(&mut self, message: Message) {
        if message.header.is_reply() {
            // A reply without a waiting thread came after its timeout.
            if let Some(slot) = self.pending.get_mut(&message.header.id) {
                *slot = Some(message);
            }
            return;
        }
        let descriptors = message.fds.len() * DESCRIPTOR_BYTES;
        self.backlog_bytes += size_of::<Message>() + message.payload.len() + descriptors;
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
