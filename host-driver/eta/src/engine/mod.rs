//! The engine's loop: frames, work queues, timers, connections, completions, one flush.
//!
//! | module | what |
//! | --- | --- |
//! | `admission` | applications come and go |
//! | `turn` | a turn of the loop, and sleep |
//! | `operations`, `accept` | the start of each operation of Table I |
//! | `door`, `idle` | what wakes the engine, and when it sleeps |

mod accept;
mod admission;
mod door;
mod idle;
mod operations;
mod turn;

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use dti::bell::Doorbell;
use dti::control::Peer;
use dti::layout::{Descriptor, Sizes};
use host_driver::DmaMemory;
use host_driver::stack::flows::Stack;
use host_driver::stack::{Identity, StackError, Wire};
use thiserror::Error;

use door::Door;
use idle::Idle;
pub use idle::IdleMode;

use crate::queues::Queues;
use crate::quota::{Quota, Quotas};
use crate::sockets::Socket;
use crate::statistics::{ApplicationReport, Statistics};

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
    #[error("a queue cannot have {0:?} entries")]
    Sizes(Sizes),
}

/// What an engine gives to applications, and how it waits.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How it waits.
    pub idle: IdleMode,
    /// Applications at the same time.
    pub applications: usize,
    /// What an application may have; [`Engine::set_quotas`] tells users apart.
    pub quota: Quota,
    /// Its number, which its handles carry.
    pub number: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            idle: IdleMode::Adaptive,
            applications: 64,
            quota: Quota::default(),
            number: 0,
        }
    }
}

/// An application, with all that it has.
struct Application {
    queues: Queues,
    sockets: HashMap<u32, Socket>,
    /// Numbers of handles that the engine may choose.
    chosen: Vec<u32>,
    /// Bytes of its connections' buffers.
    buffers: u64,
    quota: Quota,
    /// Registrations of its own files whose events have no place yet.
    registrations: VecDeque<(Descriptor, OwnedFd)>,
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
    /// Memory that applications have no more, which the wire may still read until it has returned
    /// so much.
    leaving: Vec<(u64, DmaMemory)>,
    door: Door,
    looked: Instant,
    /// When applications were last told of all their events.
    told: Instant,
    /// When the wire was last asked whether it is there.
    checked: Instant,
    idle: Idle,
    settings: Settings,
    quotas: Quotas,
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
            told: now,
            checked: now,
            idle: Idle::new(settings.idle),
            settings,
            quotas: Quotas::equal(settings.quota),
            statistics: Statistics::default(),
            epoch: now,
        })
    }

    /// Sets what applications may have that attach from now on.
    pub fn set_quotas(&mut self, quotas: Quotas) {
        if let Some(applications) = quotas.applications {
            self.settings.applications = applications;
        }
        self.quotas = quotas;
    }

    /// Lets applications attach at a path.
    ///
    /// # Errors
    /// [`EngineError::System`], also if another engine listens there.
    pub fn listen(&mut self, path: &Path) -> Result<(), EngineError> {
        Ok(self.door.listen(path)?)
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            stack: self.stack.statistics(),
            ..self.statistics
        }
    }

    /// Its applications, with their numbers.
    pub fn applications(&self) -> impl Iterator<Item = (usize, ApplicationReport)> {
        let living = self.applications.iter().enumerate();
        let living = living.filter_map(|(number, one)| Some((number, one.as_ref()?)));
        living.map(|(number, one)| {
            let (regions, files) = one.queues.regions.used();
            let report = ApplicationReport {
                process: one.peer.process,
                user: one.peer.user,
                sockets: one.sockets.len(),
                buffers: one.buffers,
                regions,
                files,
                promised: one.queues.anonymous.promised(),
                lent: one.queues.anonymous.lent(),
            };
            (number, report)
        })
    }

    /// The wire.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// An application, while it is attached.
    fn application(&mut self, number: usize) -> Option<&mut Application> {
        self.applications.get_mut(number).and_then(Option::as_mut)
    }
}
