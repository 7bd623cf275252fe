//! The server over queues in shared memory: its loop.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use dusi::{DusiError, Event, EventQueue, Operation, Region, Socket, SocketOption, Status, Ual};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use thiserror::Error;

use crate::accepting::{AcceptPolicy, Accepts};
use crate::cache::Cache;
use crate::connection::Connection;
use crate::dynamic::DynamicPage;
use crate::limits::{Limits, Watch};
use crate::loader::Loader;
use crate::{BACKLOG, Statistics};

/// Accepts posted at a time at most: what a socket's queue holds.
const ACCEPTS: usize = 64;
/// Accepts posted whatever the policy says: it bounds what the server takes of what the engine has
/// accepted for it, and with one at a time the server would wait for the engine each time.
const AHEAD: usize = 16;
/// Descriptors that the handling of one event posts at most.
const POSTS: usize = 8;
/// The tag of the cache's registration.
const CACHE: u64 = 1;

/// Why a server cannot go on.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The engine refused, wrote nonsense or has ended.
    #[error(transparent)]
    Engine(#[from] DusiError),
    /// The system refused.
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
    /// The engine does not take the cache's memory.
    #[error("the engine refuses the cache's memory: {0:?}")]
    Cache(Status),
}

/// How a server works.
#[derive(Debug, Default)]
pub struct Settings {
    /// When connections are accepted.
    pub accepts: AcceptPolicy,
    /// How long clients may take.
    pub limits: Limits,
    /// Replies are sent without a copy.
    pub in_place: bool,
    /// Other servers may listen on the port.
    pub shared: bool,
    /// A page that is made anew each time.
    pub dynamic: Option<DynamicPage>,
}

/// The server.
pub struct Server {
    pub(crate) ual: Ual,
    listener: Socket,
    accepts: EventQueue,
    pub(crate) reads: EventQueue,
    pub(crate) writes: EventQueue,
    pub(crate) closes: EventQueue,
    pub(crate) cache: Cache,
    /// The whole cache, for who sends from it.
    pub(crate) cached: Region,
    pub(crate) loader: Loader,
    /// Connections that wait for a file, by serial number.
    pub(crate) loading: HashMap<u64, Socket>,
    pub(crate) serial: u64,
    pub(crate) connections: BTreeMap<Socket, Connection>,
    /// Regions of ended connections.
    pub(crate) spare: VecDeque<(Region, Region)>,
    pub(crate) statistics: Statistics,
    listening: Option<Status>,
    registered: Option<Status>,
    /// Accepts that are posted.
    pub(crate) accepting: usize,
    pub(crate) scheduling: Accepts,
    /// Connections without a first reply.
    pub(crate) fresh: usize,
    /// Connections that go on when their transmits are complete.
    pub(crate) eager: usize,
    pub(crate) settings: Settings,
    watch: Watch,
    /// System calls beside those of the attachment.
    calls: u64,
}

impl Server {
    /// A server of a folder's files on a port.
    ///
    /// # Errors
    /// [`ServerError`], for example if the application's queues are in use already.
    pub fn new(
        mut ual: Ual,
        root: &Path,
        port: u16,
        cache: Cache,
        settings: Settings,
    ) -> Result<Self, ServerError> {
        let accepts = ual.create_event_queue()?;
        let reads = ual.create_event_queue()?;
        let writes = ual.create_event_queue()?;
        let closes = ual.create_event_queue()?;
        let bytes = u32::try_from(cache.bytes()).unwrap_or(!7);
        let done = (accepts, CACHE);
        let cached = ual.register_file(cache.file(), (0, bytes), 0, done)?;
        let listener = ual.socket((accepts, 0))?;
        if settings.shared {
            let option = SocketOption::SharePort;
            ual.set_option(listener, option, 1, (accepts, 0))?;
        }
        ual.bind(listener, port, (accepts, 0))?;
        ual.listen(listener, BACKLOG, (accepts, 0))?;
        Ok(Self {
            ual,
            listener,
            accepts,
            reads,
            writes,
            closes,
            cached,
            loader: Loader::new(root, cache.share()?)?,
            cache,
            loading: HashMap::new(),
            serial: 0,
            connections: BTreeMap::new(),
            spare: VecDeque::new(),
            statistics: Statistics::default(),
            listening: None,
            registered: None,
            accepting: 0,
            scheduling: Accepts::new(settings.accepts),
            fresh: 0,
            eager: 0,
            settings,
            watch: Watch::new(),
            calls: 0,
        })
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// How listening began; none before that, and before the engine has the cache's memory.
    pub fn listening(&self) -> Option<Status> {
        self.registered.and(self.listening)
    }

    /// Its system calls.
    pub fn calls(&self) -> u64 {
        self.calls + self.ual.calls().sum()
    }

    /// Handles all events that there are, without waiting; false if there were none. When the
    /// engine lags behind, it leaves events for later.
    ///
    /// # Errors
    /// [`ServerError`] if the engine wrote nonsense or has ended.
    pub fn step(&mut self) -> Result<bool, ServerError> {
        let mut any = false;
        let allowed = self.scheduling.allowance(self.fresh);
        for queue in [self.closes, self.writes, self.reads, self.accepts] {
            // Events that come while these are handled wait for the next step.
            let mut events = self.ual.number_of_events(queue)?;
            if queue == self.accepts && self.listening().is_some() {
                any |= events > 0;
                events = events.min(allowed);
            }
            for _ in 0..events {
                if self.ual.room()? < POSTS {
                    return Ok(any);
                }
                let Some(event) = self.ual.done(queue)? else {
                    break;
                };
                any = true;
                self.handle(event)?;
            }
        }
        while self.ual.room()? >= POSTS
            && !self.loading.is_empty()
            && let Some((serial, loaded)) = self.loader.done()
        {
            any = true;
            self.loaded(serial, loaded)?;
        }
        if self.listening() == Some(Status::Ok) {
            // Not before the engine has the cache's memory, from which replies are sent.
            self.post_accepts(allowed)?;
        }
        let now = Instant::now();
        if self.watch.is_time(now, &self.settings.limits) {
            self.end_slow(now)?;
        }
        Ok(any)
    }

    /// Waits until there is something to do, at most for `timeout`.
    ///
    /// # Errors
    /// [`ServerError`] if the engine has ended.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), ServerError> {
        let queues = [self.accepts, self.reads, self.closes, self.writes];
        // Completions of replies that nobody waits for are taken with the next request.
        let quiet = self.fresh == 0 && self.eager == 0;
        let queues = &queues[..if quiet { 3 } else { 4 }];
        if self.ual.room()? < POSTS {
            // There may be events that wait for room: the engine makes it.
            self.calls += 1;
            std::thread::yield_now();
            return Ok(());
        }
        if self.loading.is_empty() {
            self.ual.wait_any(queues, timeout)?;
            return Ok(());
        }
        // Files, too.
        let lives = if self.ual.arm(queues)? {
            self.calls += 2;
            let timeout = Timespec::try_from(timeout).ok();
            let mut files = [
                PollFd::from_borrowed_fd(self.ual.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.loader.as_fd(), PollFlags::IN),
            ];
            match rustix::event::poll(&mut files, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            self.loader.heard();
            self.ual.disarm(queues)
        } else {
            self.ual.disarm(queues)
        };
        if lives {
            Ok(())
        } else {
            Err(DusiError::EngineEnded.into())
        }
    }

    /// Keeps accepts posted, as far as there are handles and room.
    fn post_accepts(&mut self, allowed: usize) -> Result<(), DusiError> {
        let most = allowed
            .clamp(AHEAD, ACCEPTS)
            .min(self.ual.sizes().depth as usize);
        while self.accepting < most && self.ual.room()? > POSTS {
            match self.ual.accept(self.listener, (self.accepts, 0)) {
                Ok(()) => self.accepting += 1,
                // A handle comes back when a connection is closed, room when the engine has taken
                // the others.
                Err(DusiError::Exhausted(_) | DusiError::Queue(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), ServerError> {
        match event.operation {
            Some(Operation::Register) if event.tag == CACHE => {
                if event.status != Status::Ok {
                    return Err(ServerError::Cache(event.status));
                }
                self.registered = Some(event.status);
            }
            Some(Operation::Listen) => self.listening = Some(event.status),
            Some(Operation::Accept) => self.accepted(event)?,
            Some(Operation::Receive) => self.received(event)?,
            Some(Operation::Transmit | Operation::TransmitInPlace) => self.transmitted(event)?,
            Some(Operation::Shutdown) => self.shut(event)?,
            Some(Operation::Close) => self.closed(event.socket)?,
            _ => {}
        }
        Ok(())
    }
}
