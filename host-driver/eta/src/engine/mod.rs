//! The engine's loop: frames, work queues, timers, connections, completions, one flush.

mod accept;
mod door;
mod idle;
mod operations;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use dti::bell::Doorbell;
use dti::control::{self, Answer, Attachment, Peer};
use dti::layout::Sizes;
use dti::mapped::Mapping;
use dti::ring::RingError;
use host_driver::DmaMemory;
use host_driver::stack::{Identity, StackError, Wire};
use serde::Serialize;
use smoltcp::time::Instant as StackInstant;
use thiserror::Error;

use door::Door;
use idle::Idle;
pub use idle::IdleMode;

use crate::application::Queues;
use crate::connection::advance;
use crate::sockets::{Role, Socket};
use crate::stack::in_place::Payload;
use crate::stack::{Holder, Id, Owner, Stack, StackStatistics};

/// Frames taken in one turn.
const FRAME_BUDGET: usize = 64;
/// Descriptors of one application taken in one turn.
const WORK_BUDGET: usize = 64;
/// How often a busy engine looks at the door.
const DOOR_PERIOD: Duration = Duration::from_millis(1);
/// Longest sleep on a wire that cannot be waited for together with the door.
const LONGEST_ALONE: Duration = Duration::from_micros(200);

/// Why the engine stopped.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The wire failed.
    #[error(transparent)]
    Wire(#[from] StackError),
    /// The system refused memory or descriptors.
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
    /// The engine serves as many applications as it may.
    #[error("the engine serves {0} applications already")]
    Full(usize),
    /// Queues of these sizes cannot be, or are more than an application may have.
    #[error("queues of {0:?} cannot be")]
    Sizes(Sizes),
}

/// What an engine gives to applications, and how it waits.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How it waits.
    pub idle: IdleMode,
    /// Applications at the same time.
    pub applications: usize,
    /// The largest queues of an application.
    pub largest: Sizes,
    /// Bytes of all connection buffers of an application.
    pub buffers: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            idle: IdleMode::Adaptive,
            applications: 64,
            largest: Sizes {
                work: 1 << 16,
                events: 1 << 17,
                pool: 1 << 30,
                sockets: 1 << 16,
            },
            buffers: 4 << 30,
        }
    }
}

/// What the engine has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Descriptors taken.
    pub descriptors: u64,
    /// Payload bytes copied from pools to connections.
    pub sent: u64,
    /// Payload bytes copied from connections to pools.
    pub received: u64,
    /// Payload bytes that connections send from pools without a copy.
    pub in_place: u64,
    /// Applications that attached.
    pub attached: u64,
    /// Applications that ended, in whatever way.
    pub ended: u64,
    /// Applications dropped because they wrote nonsense into a queue.
    pub expelled: u64,
    /// Turns without work.
    pub idle: u64,
    /// Times that it slept.
    pub sleeps: u64,
    /// Times that it woke a sleeping application.
    pub wakes: u64,
    /// The stack's.
    #[serde(skip)]
    pub stack: StackStatistics,
}

/// An application, for those who look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ApplicationReport {
    /// Its process.
    pub process: u32,
    /// Its user.
    pub user: u32,
    /// Its sockets.
    pub sockets: usize,
    /// Bytes of its connections' buffers.
    pub buffers: u64,
}

struct Application {
    queues: Queues,
    sockets: HashMap<u32, Socket>,
    /// Bytes of its connections' buffers.
    buffers: u64,
    /// Its memory as frames are made of it, once it sends without a copy.
    payload: Option<Payload>,
    control: OwnedFd,
    doorbell: Doorbell,
    peer: Peer,
}

/// A packet processing engine over a wire.
pub struct Engine<W: Wire> {
    wire: W,
    stack: Stack,
    /// Places stay the same while an application lives.
    applications: Vec<Option<Application>>,
    /// Memory of applications that have ended, which the wire may still read until it has returned
    /// so much.
    leaving: Vec<(u64, DmaMemory)>,
    door: Door,
    looked: Instant,
    idle: Idle,
    settings: Settings,
    statistics: Statistics,
    epoch: Instant,
}

impl<W: Wire> Engine<W> {
    /// An engine with an address on a wire.
    ///
    /// # Errors
    /// [`EngineError::System`] without descriptors.
    pub fn new(wire: W, identity: Identity) -> Result<Self, EngineError> {
        Self::with_settings(wire, identity, Settings::default())
    }

    /// As [`Engine::new`], with settings.
    ///
    /// # Errors
    /// [`EngineError::System`] without descriptors.
    pub fn with_settings(
        mut wire: W,
        identity: Identity,
        settings: Settings,
    ) -> Result<Self, EngineError> {
        let mut seed = [0; 8];
        let flags = rustix::rand::GetRandomFlags::empty();
        rustix::rand::getrandom(&mut seed, flags).map_err(std::io::Error::from)?;
        let stack = Stack::new(&mut wire, identity, u64::from_ne_bytes(seed));
        let now = Instant::now();
        Ok(Self {
            wire,
            stack,
            applications: Vec::new(),
            leaving: Vec::new(),
            door: Door::new()?,
            looked: now,
            idle: Idle::new(settings.idle),
            settings,
            statistics: Statistics::default(),
            epoch: now,
        })
    }

    /// Lets applications attach at a path.
    ///
    /// # Errors
    /// [`EngineError::System`], also if another engine listens there.
    pub fn listen(&mut self, path: &Path) -> Result<(), EngineError> {
        Ok(self.door.listen(path)?)
    }

    /// Attaches an application of the same process, with queues of the usual sizes.
    ///
    /// # Errors
    /// As [`Engine::attach_with`].
    pub fn attach(&mut self) -> Result<Attachment, EngineError> {
        self.attach_with(Sizes::default())
    }

    /// Attaches an application of the same process.
    ///
    /// # Errors
    /// [`EngineError::System`] without memory or descriptors, [`EngineError::Full`],
    /// [`EngineError::Sizes`].
    pub fn attach_with(&mut self, sizes: Sizes) -> Result<Attachment, EngineError> {
        let (near, far) = control::pair()?;
        let number = self.admit(near, sizes)?;
        let Some(Some(application)) = self.applications.get(number) else {
            return Err(EngineError::Full(0));
        };
        Ok(Attachment {
            memory: application.queues.memory.file().try_clone_to_owned()?,
            doorbell: application.doorbell.share()?,
            control: far,
            sizes,
        })
    }

    /// Makes an application's memory file and doorbell.
    fn admit(&mut self, control: OwnedFd, sizes: Sizes) -> Result<usize, EngineError> {
        if !sizes.within(&self.settings.largest) {
            return Err(EngineError::Sizes(sizes));
        }
        let living = self.applications.iter().flatten().count();
        if living >= self.settings.applications {
            return Err(EngineError::Full(living));
        }
        let memory = Mapping::create(sizes.file_words()).map_err(std::io::Error::from)?;
        let doorbell = Doorbell::create()?;
        let free = self.applications.iter().position(Option::is_none);
        let number = free.unwrap_or(self.applications.len());
        self.door.enter(number, control.as_fd(), &doorbell)?;
        let application = Application {
            queues: Queues::new(memory, sizes),
            sockets: HashMap::new(),
            buffers: 0,
            payload: None,
            peer: control::peer(&control),
            control,
            doorbell,
        };
        match self.applications.get_mut(number) {
            Some(place) => *place = Some(application),
            None => self.applications.push(Some(application)),
        }
        self.statistics.attached += 1;
        Ok(number)
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            stack: self.stack.statistics,
            ..self.statistics
        }
    }

    /// Its applications, with their numbers.
    pub fn applications(&self) -> impl Iterator<Item = (usize, ApplicationReport)> {
        let living = self.applications.iter().enumerate();
        let living = living.filter_map(|(number, one)| Some((number, one.as_ref()?)));
        living.map(|(number, one)| {
            let report = ApplicationReport {
                process: one.peer.process,
                user: one.peer.user,
                sockets: one.sockets.len(),
                buffers: one.buffers,
            };
            (number, report)
        })
    }

    /// The wire.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// Does a bounded part of all that is to be done. If there was nothing, it waits as its
    /// [`IdleMode`] says, at most for `limit`.
    ///
    /// # Errors
    /// [`EngineError::Wire`] if the wire failed; an application's faults are its own.
    pub fn turn(&mut self, limit: Duration) -> Result<(), EngineError> {
        let now = Instant::now();
        if self.work(now)? {
            self.idle.worked();
            return Ok(());
        }
        self.statistics.idle += 1;
        if limit.is_zero() {
            return Ok(());
        }
        if self.idle.must_sleep(now) {
            self.sleep(limit)?;
        } else if self.settings.idle == IdleMode::Adaptive {
            // On few processors, those whom the engine waits for may need this one.
            std::thread::yield_now();
        }
        Ok(())
    }

    /// One turn; true if anything was done.
    fn work(&mut self, now: Instant) -> Result<bool, EngineError> {
        let micros = now.saturating_duration_since(self.epoch).as_micros();
        let micros = i64::try_from(micros).unwrap_or(i64::MAX);
        self.stack.at(StackInstant::from_micros(micros));
        let mut any = self.stack.receive(&mut self.wire, FRAME_BUDGET) > 0;
        for number in 0..self.applications.len() {
            match self.take(number) {
                Ok(taken) => any |= taken,
                Err(_) => self.expel(number),
            }
        }
        for _ in 0..self.stack.ready() {
            let Some(id) = self.stack.next_ready() else {
                break;
            };
            any = true;
            self.serve(id);
        }
        self.wire.flush()?;
        any |= self.stack.returned(self.wire.returned());
        self.let_go()?;
        for application in self.applications.iter_mut().flatten() {
            if application.queues.must_wake() {
                control::wake(application.control.as_fd());
                self.statistics.wakes += 1;
            }
        }
        if now.saturating_duration_since(self.looked) >= DOOR_PERIOD {
            self.look(now)?;
        }
        Ok(any)
    }

    /// Takes an application's descriptors; true if there were any.
    fn take(&mut self, number: usize) -> Result<bool, RingError> {
        for count in 0..WORK_BUDGET {
            let Some(application) = self.applications.get_mut(number).and_then(Option::as_mut)
            else {
                return Ok(count > 0);
            };
            let Some(work) = application.queues.take()? else {
                return Ok(count > 0);
            };
            self.statistics.descriptors += 1;
            self.start(number, work)?;
        }
        Ok(true)
    }

    /// Moves a connection on: its operations, then what it has to send.
    fn serve(&mut self, id: Id) {
        match self.stack.holder(id) {
            None => return,
            Some(Holder::Owner(owner)) => {
                if self.advance(id, owner).is_err() {
                    self.expel(owner.application as usize);
                }
            }
            Some(_) => {
                if let Some(owner) = self.stack.settle(id)
                    && self.accept(owner).is_err()
                {
                    self.expel(owner.application as usize);
                }
            }
        }
        self.stack.transmit(&mut self.wire, id);
        // A reset that has gone out now was the last of an abandoned connection.
        if matches!(
            self.stack.holder(id),
            Some(Holder::Nobody | Holder::Port(_))
        ) {
            self.stack.settle(id);
        }
    }

    fn advance(&mut self, id: Id, owner: Owner) -> Result<(), RingError> {
        let number = owner.application as usize;
        let Some(Some(application)) = self.applications.get_mut(number) else {
            return Ok(());
        };
        let Application {
            queues, sockets, ..
        } = application;
        match sockets.get_mut(&owner.socket).map(|one| &mut one.role) {
            Some(Role::Connected(connection)) if connection.id == id => {
                let returned = self.wire.returned();
                advance(
                    &mut self.stack,
                    queues,
                    connection,
                    &mut self.statistics,
                    returned,
                )
            }
            _ => Ok(()),
        }
    }

    /// Drops an application that wrote nonsense.
    fn expel(&mut self, number: usize) {
        self.statistics.expelled += 1;
        self.reclaim(number);
    }

    /// Takes back all that an application had; its connections are reset.
    fn reclaim(&mut self, number: usize) {
        let Some(application) = self.applications.get_mut(number).and_then(Option::take) else {
            return;
        };
        let Application {
            control, doorbell, ..
        } = &application;
        self.door.leave(control.as_fd(), doorbell);
        if let Some(card) = application.payload.and_then(|payload| payload.card) {
            self.leaving.push((self.wire.queued(), card));
        }
        for socket in application.sockets.into_values() {
            self.release(socket);
        }
        self.statistics.ended += 1;
    }

    /// Takes memory away from the wire that it reads no more.
    fn let_go(&mut self) -> Result<(), EngineError> {
        let returned = self.wire.returned();
        while let Some(found) = self.leaving.iter().position(|(mark, _)| *mark <= returned) {
            let (_, memory) = self.leaving.swap_remove(found);
            self.wire.unmap(&memory)?;
        }
        Ok(())
    }

    /// Takes back what a socket had.
    fn release(&mut self, socket: Socket) {
        match socket.role {
            Role::Fresh => {}
            Role::Listening(_) => {
                if let Some(port) = socket.port {
                    self.stack.unlisten(port);
                }
            }
            Role::Connected(connection) => self.stack.abandon(connection.id),
        }
        if let Some(port) = socket.port {
            self.stack.ports().unbind(port);
        }
    }

    /// Looks who comes and who has gone.
    fn look(&mut self, now: Instant) -> Result<(), EngineError> {
        self.looked = now;
        for number in self.door.look()? {
            let Some(Some(application)) = self.applications.get(number) else {
                continue;
            };
            // An application has nothing more to say than that it has ended.
            match control::hear(application.control.as_fd()) {
                control::Heard::Nothing => {}
                control::Heard::End => self.reclaim(number),
                control::Heard::Hello(_) | control::Heard::Nonsense => self.expel(number),
            }
        }
        for (caller, sizes) in self.door.callers()? {
            let file = caller.try_clone()?;
            let refuse = |answer| control::answer(file.as_fd(), answer, sizes, &[]);
            match self.admit(caller, sizes) {
                Ok(number) => {
                    if let Some(Some(application)) = self.applications.get(number) {
                        let files = [
                            application.queues.memory.file(),
                            application.doorbell.as_fd(),
                        ];
                        control::answer(file.as_fd(), Answer::Attached, sizes, &files);
                    }
                }
                Err(EngineError::Full(_)) => refuse(Answer::Full),
                Err(EngineError::Sizes(_)) => refuse(Answer::Sizes),
                Err(_) => refuse(Answer::NoMemory),
            }
        }
        Ok(())
    }

    /// Sleeps until there is work, at most for `limit`.
    fn sleep(&mut self, limit: Duration) -> Result<(), EngineError> {
        let limit = self.stack.delay().map_or(limit, |due| due.min(limit));
        let mut empty = !limit.is_zero();
        let mut nonsense = Vec::new();
        for (number, application) in self.applications.iter().enumerate() {
            match application.as_ref().map(|one| one.queues.sleep()) {
                None => {}
                Some(Ok(nothing)) => empty &= nothing,
                Some(Err(_)) => nonsense.push(number),
            }
        }
        if empty && nonsense.is_empty() {
            self.statistics.sleeps += 1;
            if self.wire.descriptor().is_some() {
                self.door.sleep(self.wire.descriptor(), limit)?;
                self.wire.wait(Duration::ZERO)?;
            } else {
                self.wire.wait(limit.min(LONGEST_ALONE))?;
            }
        }
        for application in self.applications.iter().flatten() {
            application.queues.awake();
        }
        for number in nonsense {
            self.expel(number);
        }
        self.look(Instant::now())
    }
}
