//! DUSI: asynchronous sockets over a packet processing engine.
//!
//! "Scalable networking for next-generation computing platforms", section IV and Table I. Every
//! operation posts a descriptor and returns; its completion is one [`Event`] in the event queue
//! that the call names, with the caller's tag.
//!
//! | Table I | here |
//! | --- | --- |
//! | `Open_Ual` | [`Ual::connect`], [`Ual::open`] |
//! | `Create_EvQ` | [`Ual::create_event_queue`] |
//! | `Socket`, `Bind`, `Listen`, `Accept`, `Connect` | [`Ual::socket`], [`Ual::bind`], [`Ual::listen`], [`Ual::accept`], [`Ual::connect_to`] |
//! | `Send`, `Recv`, `Shutdown` | [`Ual::transmit`], [`Ual::receive`], [`Ual::shutdown`] |
//! | `Set_Socket_Ops`, `Get_Socket_Ops` | [`Ual::set_option`], [`Ual::get_option`] |
//! | `Wait_All`, `EvQ_Num_Events`, `Done` | [`Ual::wait_all`], [`Ual::number_of_events`], [`Ual::done`] |
//! | `Register_Memory`, `Deregister_Memory` | [`Ual::register`], [`Ual::deregister`] |
//!
//! Each socket has a transmit queue and a receive queue, bound to event queues
//! ([`Ual::socket_bound`]); an operation names the event queue of its completion, or
//! [`EventQueue::BOUND`].
//!
//! Beyond it: [`Ual::close`], [`Ual::cancel`], [`Ual::wait_any`], a descriptor for `poll`
//! ([`Ual::arm`]), regions of the application's own memory files ([`Ual::register_file`]), receives
//! into buffers of the anonymous pool ([`Ual::receive_anonymous`], [`Ual::release`]), operations
//! that stay posted ([`Ual::accept_all`], [`Ual::receive_all`]), a receive of a whole region
//! ([`Ual::receive_whole`]) and a last send ([`Ual::transmit_last`]).

#![forbid(unsafe_code)]

mod event;
mod memory;
mod operations;
mod patience;
mod pool;
mod transfer;
mod wait;

use std::collections::HashMap;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dti::bell::{self, Doorbell};
pub use dti::control::Attachment;
use dti::layout::{self, Descriptor, ENGINE_SLEEPS, MAGIC, number_of};
pub use dti::layout::{Direction, Operation, Sizes, SocketOption, Status};
use dti::mapped::Mapping;
use dti::ring::{Consumer, Producer, RingError};
use dti::words::Words;
use thiserror::Error;

use event::Handles;
pub use event::{Buffer, Event};

/// Memory files that several processes of an application map, for regions of its own
/// ([`Ual::register_file`]).
pub mod shared {
    pub use dti::mapped::Mapping;
    pub use dti::words::{Words, read_bytes, write_bytes};
}

use patience::Patience;
use pool::Pool;
pub use pool::{Busy, Region};

/// Why a call was refused. Failures of operations are in their events.
#[derive(Debug, Error)]
pub enum DusiError {
    /// The work queue is full, or the engine wrote nonsense.
    #[error(transparent)]
    Queue(#[from] RingError),
    /// The engine could not be reached, or refused.
    #[error("the engine cannot be reached: {0}")]
    Attach(std::io::Error),
    /// The system refused the mapping.
    #[error("the memory file cannot be mapped: {0}")]
    Mapping(std::io::Error),
    /// The memory file is not of this layout.
    #[error("the engine speaks another version of the layout")]
    Version,
    /// All event queues, handles or bytes of the pool are in use.
    #[error("no {0} is left")]
    Exhausted(&'static str),
    /// The range is outside its region, or does not begin at a multiple of 8.
    #[error("the range is outside its region")]
    Range,
    /// The engine has ended: no operation will complete.
    #[error("the engine has ended")]
    EngineEnded,
    /// The system failed while waiting.
    #[error("cannot wait: {0}")]
    Wait(std::io::Error),
}

/// An event queue of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventQueue(u16);

impl EventQueue {
    /// The event queue that the socket's transmit or receive queue is bound to.
    pub const BOUND: Self = Self(layout::BOUND);

    /// Its number, from 0, for who keeps it elsewhere.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// A socket of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Socket(u32);

impl Socket {
    /// Its handle, for who keeps it elsewhere.
    #[must_use]
    pub fn handle(self) -> u32 {
        self.0
    }

    /// The socket of a handle. One that does not exist fails by [`Status::BadHandle`].
    #[must_use]
    pub fn of_handle(handle: u32) -> Self {
        Self(handle)
    }
}

/// System calls of an attachment, beside those that made it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Doorbells rung because the engine slept.
    pub rings: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// Looks at the control socket, and changes of its time-out.
    pub others: u64,
}

impl Calls {
    /// All of them.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.rings + self.sleeps + self.others
    }
}

/// An application's attachment to an engine: the paper's user-level application library.
pub struct Ual {
    memory: Mapping,
    anonymous: Mapping,
    sizes: Sizes,
    engine: u8,
    doorbell: Doorbell,
    control: OwnedFd,
    work: Producer,
    /// Sockets' queues that were used, by number and direction.
    rings: HashMap<(u32, Direction), Producer>,
    queues: Vec<Consumer>,
    handles: Handles,
    pool: Pool,
    patience: Patience,
    /// The time-out that the control socket has.
    timeout: Option<Duration>,
    calls: Calls,
}

impl Ual {
    /// Attaches to the engine that listens at a path.
    ///
    /// # Errors
    /// [`DusiError::Attach`], and as [`Ual::open`].
    pub fn connect(path: &Path, sizes: Sizes) -> Result<Self, DusiError> {
        Self::open(dti::control::attach(path, sizes).map_err(DusiError::Attach)?)
    }

    /// Attaches by what the engine gave.
    ///
    /// # Errors
    /// [`DusiError::Mapping`], [`DusiError::Version`].
    pub fn open(attachment: Attachment) -> Result<Self, DusiError> {
        let memory = Mapping::open(attachment.memory);
        let memory = memory.map_err(|error| DusiError::Mapping(error.into()))?;
        let sizes = attachment.sizes;
        if memory.len() != sizes.file_words() || memory.load(0, Ordering::Acquire) != MAGIC {
            return Err(DusiError::Version);
        }
        let anonymous = Mapping::open(attachment.anonymous);
        let anonymous = anonymous.map_err(|error| DusiError::Mapping(error.into()))?;
        if anonymous.len() != sizes.anonymous_words() {
            return Err(DusiError::Version);
        }
        Ok(Self {
            memory,
            anonymous,
            sizes,
            engine: attachment.engine,
            doorbell: Doorbell::of(attachment.doorbell),
            control: attachment.control,
            work: Producer::new(sizes.work_queue()),
            rings: HashMap::new(),
            queues: Vec::new(),
            handles: Handles::new(attachment.engine, sizes.sockets),
            pool: Pool::new(sizes.pool),
            patience: Patience::new(),
            timeout: None,
            calls: Calls::default(),
        })
    }

    /// How large its queues are.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Its system calls.
    pub fn calls(&self) -> Calls {
        self.calls
    }

    /// Makes an event queue.
    ///
    /// # Errors
    /// [`DusiError::Exhausted`] beyond the attachment's.
    pub fn create_event_queue(&mut self) -> Result<EventQueue, DusiError> {
        let number = self.queues.len();
        if number == self.sizes.queues as usize {
            return Err(DusiError::Exhausted("event queue"));
        }
        self.queues
            .push(Consumer::new(self.sizes.event_queue(number)));
        Ok(EventQueue(number as u16))
    }

    /// The number of its engine.
    pub fn engine(&self) -> u8 {
        self.engine
    }

    /// Operations that can be posted now; of one socket no more than its queues hold.
    ///
    /// # Errors
    /// [`DusiError::Queue`] if the engine wrote nonsense.
    pub fn room(&self) -> Result<usize, DusiError> {
        Ok(self.work.room(&self.memory)?)
    }

    /// Posts a descriptor as it is, for tests and tools that speak the interface below this one.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn post(&mut self, work: Descriptor) -> Result<(), DusiError> {
        self.work.push(&self.memory, work.entry())?;
        if bell::must_wake(&self.memory, ENGINE_SLEEPS) {
            self.ring()?;
        }
        Ok(())
    }

    /// Posts a descriptor as it is into a socket's queue, and a doorbell for it.
    ///
    /// # Errors
    /// [`DusiError::Queue`].
    pub fn post_on(&mut self, direction: Direction, work: Descriptor) -> Result<(), DusiError> {
        let number = number_of(work.socket);
        if number >= self.sizes.handles() {
            // It has no queue; the engine refuses it.
            return self.post(work);
        }
        if self.work.room(&self.memory)? == 0 {
            return Err(RingError::Full.into());
        }
        let place = self.sizes.socket_queue(number, direction);
        let ring = self.rings.entry((number, direction));
        let ring = ring.or_insert_with(|| Producer::new(place));
        ring.push(&self.memory, work.entry())?;
        self.post(Descriptor {
            operation: Operation::Doorbell as u16,
            queue: layout::QUIET,
            socket: work.socket,
            tag: 0,
            offset: 0,
            length: 0,
            argument: direction as u64,
        })
    }

    fn ring(&mut self) -> Result<(), DusiError> {
        self.calls.rings += 1;
        self.doorbell.ring().map_err(DusiError::Wait)
    }
}
