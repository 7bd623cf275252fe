//! The door: accepts clients that do not hold the device yet, many at a time.
//!
//! ```text
//!            VERSION comes          it is answered          a command comes
//!   Silent ───────────────► Waiting ──────────────► Invited ───────────────► at the desk
//!     │                        │ while nobody holds    │
//!     ▼ handshake_timeout      ▼ the device            ▼ handshake_timeout
//!   disconnected             (may leave any time)    disconnected
//! ```
//!
//! VERSION is answered only while no client holds the device, so a client that waits for the
//! answer knows that the device is busy. VERSION does not take the device: the first command does.
//! When the device becomes free, the client that has waited longest has a head start.

use crate::channel::Arrival;
use crate::desk::Desk;
use crate::disconnect::Disconnect;
use crate::dispatch;
use crate::frame::{FrameError, Framer, Message};
use crate::handshake::{Greeting, greet};
use crate::listener::{Accepted, Listener};
use crate::patience::Patience;
use crate::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Most clients at the door at a time; beyond that the ones that have been silent longest
/// have to go.
const MAX_VISITORS: usize = 64;
/// Connections that are accepted before the others are looked at again.
const ACCEPTED_AT_ONCE: usize = 16;
/// How long the longest waiting client has for its first command before others are let in.
const HEAD_START: Duration = Duration::from_millis(100);
/// How long to wait for descriptors or memory before accepting again.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(100);

/// The thread that serves the door.
#[derive(Debug)]
pub(crate) struct Door<'a> {
    pub(crate) listener: &'a Listener,
    /// Readable once the server is to stop.
    pub(crate) wake: &'a OwnedFd,
    pub(crate) desk: &'a Desk,
    pub(crate) patience: &'a Patience,
    pub(crate) handshake_timeout: Duration,
    pub(crate) connections: &'a AtomicU64,
    visitors: Vec<Visitor>,
    /// No client is accepted before this time.
    pause: Option<Instant>,
}

/// A client at the door, in the order of arrival.
#[derive(Debug)]
struct Visitor {
    socket: OwnedFd,
    framer: Framer,
    stage: Stage,
    commands: VecDeque<Message>,
    ended: Option<Disconnect>,
}

#[derive(Debug)]
enum Stage {
    /// Its VERSION is not there yet.
    Silent { since: Instant },
    /// Its VERSION will be answered with this.
    Waiting { answer: Vec<u8>, transfer: usize },
    /// It was answered.
    Invited { since: Instant, transfer: usize },
}

/// Whether a client stays at the door.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
}

impl<'a> Door<'a> {
    pub(crate) fn new(
        listener: &'a Listener,
        wake: &'a OwnedFd,
        desk: &'a Desk,
        patience: &'a Patience,
        handshake_timeout: Duration,
        connections: &'a AtomicU64,
    ) -> Self {
        Door {
            listener,
            wake,
            desk,
            patience,
            handshake_timeout,
            connections,
            visitors: Vec::new(),
            pause: None,
        }
    }

    /// Receives clients until the server stops.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let _closed = self.desk.close_at_end();
        loop {
            let next = self.look(Instant::now());
            if !self.wait(next)? {
                return Ok(());
            }
        }
    }

    /// Decides which clients are disconnected, invited or passed to the desk; returns when to check
    /// again.
    fn look(&mut self, now: Instant) -> Option<Instant> {
        let timeout = self.handshake_timeout;
        self.visitors
            .retain(|visitor| visitor.deadline(timeout).is_none_or(|end| now < end));
        if !self.desk.is_taken() && !self.admit_first() {
            self.invite(now);
            // Its first command may have come with its VERSION.
            self.admit_first();
        }
        let taken = self.desk.is_taken();
        let waits = |visitor: &Visitor| visitor.is_waiting() || visitor.is_claiming();
        let contested = taken && self.visitors.iter().any(waits);
        self.patience.set_contested(contested);
        let ends = self
            .visitors
            .iter()
            .map(|visitor| visitor.deadline(timeout));
        let head_start = match self.youngest_invitation() {
            Some(since) if !taken => Some(since + HEAD_START),
            _ => None,
        };
        let head_start = head_start.filter(|end| now < *end);
        let others = [head_start, self.pause];
        ends.chain(others).flatten().min()
    }

    /// Passes the first client that has sent a command to the desk.
    fn admit_first(&mut self) -> bool {
        let first = self.visitors.iter().position(Visitor::is_claiming);
        let arrival = first.and_then(|first| self.visitors.remove(first).arrive());
        let admitted = arrival.is_some();
        if let Some(arrival) = arrival {
            self.desk.admit(arrival);
        }
        admitted
    }

    /// When the last one was invited who has not said anything since.
    fn youngest_invitation(&self) -> Option<Instant> {
        let invited = self
            .visitors
            .iter()
            .filter_map(|visitor| match visitor.stage {
                Stage::Invited { since, .. } if visitor.commands.is_empty() => Some(since),
                _ => None,
            });
        invited.max()
    }

    /// Answers whoever has waited longest; if somebody was answered before and still says
    /// nothing, answers everybody.
    fn invite(&mut self, now: Instant) {
        let most = match self.youngest_invitation() {
            Some(since) if now < since + HEAD_START => 0,
            Some(_) => usize::MAX,
            None => 1,
        };
        let mut invited = 0;
        self.visitors.retain_mut(|visitor| {
            if invited == most || !visitor.is_waiting() {
                return true;
            }
            // A client that has left meanwhile does not block others.
            let stays = visitor.invite(now) == Fate::Stays;
            invited += usize::from(stays);
            stays
        });
    }

    /// Waits for something to happen, and does what follows from it. `false`: the end.
    fn wait(&mut self, until: Option<Instant>) -> io::Result<bool> {
        let now = Instant::now();
        self.pause = self.pause.filter(|end| now < *end);
        let room = self.pause.is_none() && (self.visitors.len() < MAX_VISITORS || self.can_evict());
        let accept = if room {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let mut fds = vec![
            PollFd::new(self.wake, PollFlags::IN),
            PollFd::from_borrowed_fd(self.desk.bell(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), accept),
        ];
        fds.extend(self.visitors.iter().map(Visitor::watch));
        let left = until.map(|until| until.saturating_duration_since(now));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let happened: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if happened[0] {
            return Ok(false);
        }
        if happened[1] {
            self.desk.hear_bell();
        }
        let mut said = happened[3..].iter();
        self.visitors.retain_mut(|visitor| {
            let said = said.next().copied().unwrap_or(false);
            !said || visitor.listen() == Fate::Stays
        });
        if happened[2] {
            self.accept()?;
        }
        Ok(true)
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTED_AT_ONCE {
            if self.visitors.len() >= MAX_VISITORS && !self.evict() {
                break;
            }
            match self.listener.accept()? {
                Accepted::Client(socket) => {
                    self.connections.fetch_add(1, Ordering::Relaxed);
                    self.visitors.push(Visitor::new(socket));
                }
                Accepted::Nobody => break,
                // It stays in the queue until there is room for it.
                Accepted::Shortage if self.evict() => {}
                Accepted::Shortage => {
                    self.pause = Some(Instant::now() + SHORTAGE_PAUSE);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Who could be sent away for a newcomer: silent ones first, the oldest first.
    fn evictable(&self) -> Option<usize> {
        let now = Instant::now();
        let silent = |visitor: &Visitor| matches!(visitor.stage, Stage::Silent { .. });
        let idle = |visitor: &Visitor| {
            matches!(visitor.stage, Stage::Invited { since, .. }
                if visitor.commands.is_empty() && since + HEAD_START <= now)
        };
        let mut visitors = self.visitors.iter();
        let silent = visitors.position(silent);
        silent.or_else(|| self.visitors.iter().position(idle))
    }

    fn can_evict(&self) -> bool {
        self.evictable().is_some()
    }

    fn evict(&mut self) -> bool {
        let goes = self.evictable();
        if let Some(goes) = goes {
            self.visitors.remove(goes);
        }
        goes.is_some()
    }
}

impl Visitor {
    fn new(socket: OwnedFd) -> Self {
        Visitor {
            socket,
            framer: Framer::new(),
            stage: Stage::Silent {
                since: Instant::now(),
            },
            commands: VecDeque::new(),
            ended: None,
        }
    }

    /// It wants an answer to its VERSION.
    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }

    /// It wants the device.
    fn is_claiming(&self) -> bool {
        matches!(self.stage, Stage::Invited { .. }) && !self.commands.is_empty()
    }

    /// When it has to have said something.
    fn deadline(&self, timeout: Duration) -> Option<Instant> {
        match self.stage {
            Stage::Silent { since } => Some(since + timeout),
            Stage::Invited { since, .. } if self.commands.is_empty() => Some(since + timeout),
            Stage::Waiting { .. } | Stage::Invited { .. } => None,
        }
    }

    /// What of it is to be noticed: who waits need not say more, but may go.
    fn watch(&self) -> PollFd<'_> {
        let events = if self.is_waiting() || self.is_claiming() {
            PollFlags::RDHUP
        } else {
            PollFlags::IN | PollFlags::RDHUP
        };
        PollFd::new(&self.socket, events)
    }

    /// Takes what it says, or notices that it goes.
    fn listen(&mut self) -> Fate {
        if self.is_waiting() || self.is_claiming() {
            return Fate::Goes;
        }
        let mut messages = Vec::new();
        let result = self.framer.receive(self.socket.as_fd(), &mut messages);
        for message in messages {
            if !matches!(self.stage, Stage::Silent { .. }) {
                // Replies are nobody's: it was not asked anything.
                let commands = (!message.header.is_reply()).then_some(message);
                self.commands.extend(commands);
                continue;
            }
            match greet(&message) {
                Greeting::Agreed {
                    answer,
                    max_transfer,
                } => {
                    self.stage = Stage::Waiting {
                        answer,
                        transfer: max_transfer,
                    };
                }
                Greeting::Refused(answer) => return self.hang_up(&answer),
            }
        }
        match result {
            Ok(()) => Fate::Stays,
            Err(error) if self.is_waiting() || self.is_claiming() => {
                self.ended = Some(error.into());
                Fate::Stays
            }
            Err(FrameError::Size(header)) => {
                let mut answer = Vec::new();
                dispatch::refuse(&header, Errno::INVAL, &mut answer);
                self.hang_up(&answer)
            }
            Err(FrameError::Closed | FrameError::Io(_)) => Fate::Goes,
        }
    }

    /// Says a last word, if the client takes it.
    fn hang_up(&self, answer: &[u8]) -> Fate {
        // The door waits for no client.
        let _ = socket::send_some(self.socket.as_fd(), answer, &[]);
        Fate::Goes
    }

    /// Answers its VERSION.
    fn invite(&mut self, now: Instant) -> Fate {
        if let Stage::Waiting { answer, transfer } = &self.stage {
            // The first bytes that it gets: there is room for them, or it is no client.
            let sent = socket::send_some(self.socket.as_fd(), answer, &[]);
            if sent != Ok(answer.len()) {
                return Fate::Goes;
            }
            self.stage = Stage::Invited {
                since: now,
                transfer: *transfer,
            };
        }
        Fate::Stays
    }

    /// Goes to the desk.
    fn arrive(self) -> Option<Arrival> {
        match self.stage {
            Stage::Invited { transfer, .. } => Some(Arrival {
                socket: self.socket,
                framer: self.framer,
                commands: self.commands,
                ended: self.ended,
                max_transfer: transfer,
            }),
            Stage::Silent { .. } | Stage::Waiting { .. } => None,
        }
    }
}
