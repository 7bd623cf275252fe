//! A small web server for static files over [`dusi`], and over the kernel ([`epoll`]) to compare.
//!
//! "Scalable networking for next-generation computing platforms", section V: an event-driven
//! server without threads, with an event queue each for accepts, reads, writes and closes.
//!
//! ```text
//!   accept ──► read ──► parse ──► reply ──► read         (persistent connection)
//!                └─ end of stream, error     └► shutdown ──► close
//! ```

#![forbid(unsafe_code)]

mod accepting;
mod cache;
pub mod epoll;
mod reply;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

pub use accepting::AcceptPolicy;
pub use dusi::Status;
use dusi::{DusiError, Event, EventQueue, Operation, Region, Socket, Ual};

use accepting::Accepts;
use cache::Cache;
use reply::{Request, parse};

/// Bytes of a connection's receive region, and of its header region.
const REGION_BYTES: usize = 2048;
/// The longest request header.
const LONGEST_REQUEST: usize = 8192;
/// Accepts posted at a time at most.
const ACCEPTS: usize = 64;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 128;
/// Descriptors that the handling of one event posts at most.
const POSTS: usize = 4;

struct Connection {
    /// When it was accepted, until it has its first reply.
    since: Option<Instant>,
    input: Region,
    header: Region,
    /// Bytes received and not yet parsed.
    pending: Vec<u8>,
    /// Transmits without a completion.
    transmits: usize,
    /// A receive has been posted.
    receiving: bool,
    /// The client sends nothing more.
    ended: bool,
    /// The connection ends after the reply.
    last: bool,
    /// The sending direction is shut down.
    shut: bool,
    closing: bool,
}

/// What a server has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections accepted.
    pub accepted: u64,
    /// Requests answered.
    pub requests: u64,
    /// Connections closed.
    pub closed: u64,
    /// Connections closed at once because there was no memory for them.
    pub refused: u64,
    /// Connections that their clients reset: work for nothing.
    pub given_up: u64,
}

/// The server.
pub struct Server {
    ual: Ual,
    listener: Socket,
    accepts: EventQueue,
    reads: EventQueue,
    writes: EventQueue,
    closes: EventQueue,
    cache: Cache,
    connections: BTreeMap<Socket, Connection>,
    /// Regions of ended connections.
    spare: VecDeque<(Region, Region)>,
    statistics: Statistics,
    listening: Option<Status>,
    /// Accepts that are posted.
    accepting: usize,
    scheduling: Accepts,
    /// Connections without a first reply.
    fresh: usize,
    /// Replies are sent without a copy.
    in_place: bool,
}

impl Server {
    /// A server of a folder's files on a port.
    ///
    /// # Errors
    /// [`DusiError`] if the application's queues are in use already.
    pub fn new(mut ual: Ual, root: &Path, port: u16) -> Result<Self, DusiError> {
        let accepts = ual.create_event_queue()?;
        let reads = ual.create_event_queue()?;
        let writes = ual.create_event_queue()?;
        let closes = ual.create_event_queue()?;
        let listener = ual.socket((accepts, 0))?;
        ual.bind(listener, port, (accepts, 0))?;
        ual.listen(listener, BACKLOG, (accepts, 0))?;
        Ok(Self {
            ual,
            listener,
            accepts,
            reads,
            writes,
            closes,
            cache: Cache::new(root),
            connections: BTreeMap::new(),
            spare: VecDeque::new(),
            statistics: Statistics::default(),
            listening: None,
            accepting: 0,
            scheduling: Accepts::new(AcceptPolicy::default()),
            fresh: 0,
            in_place: false,
        })
    }

    /// Sends replies from where they are, without a copy.
    pub fn send_in_place(&mut self) {
        self.in_place = true;
    }

    /// Accepts by this policy.
    pub fn accept_by(&mut self, policy: AcceptPolicy) {
        self.scheduling = Accepts::new(policy);
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// How listening began; none before that.
    pub fn listening(&self) -> Option<Status> {
        self.listening
    }

    /// Handles all events that there are, without waiting; false if there were none. When the
    /// engine lags behind, it leaves events for later.
    ///
    /// # Errors
    /// [`DusiError`] if the engine wrote nonsense or has ended.
    pub fn step(&mut self) -> Result<bool, DusiError> {
        let mut any = false;
        let allowed = self.scheduling.allowance(self.fresh);
        for queue in [self.closes, self.writes, self.reads, self.accepts] {
            // Events that come while these are handled wait for the next step.
            let mut events = self.ual.number_of_events(queue)?;
            if queue == self.accepts && self.listening.is_some() {
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
        self.post_accepts(allowed)?;
        Ok(any)
    }

    /// Waits until there is something to do, at most for `timeout`.
    ///
    /// # Errors
    /// [`DusiError`] if the engine has ended.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), DusiError> {
        let queues = [self.accepts, self.reads, self.writes, self.closes];
        if self.ual.room()? < POSTS {
            // There may be events that wait for room: the engine makes it.
            std::thread::yield_now();
            return Ok(());
        }
        self.ual.wait_any(&queues, timeout)?;
        Ok(())
    }

    /// The attachment's system calls.
    pub fn calls(&self) -> dusi::Calls {
        self.ual.calls()
    }

    /// Keeps accepts posted, as far as there are handles and room.
    fn post_accepts(&mut self, allowed: usize) -> Result<(), DusiError> {
        let most = allowed.min(ACCEPTS);
        while self.accepting < most && self.ual.room()? > POSTS {
            match self.ual.accept(self.listener, (self.accepts, 0)) {
                Ok(()) => self.accepting += 1,
                // A handle comes back when a connection is closed.
                Err(DusiError::Exhausted(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), DusiError> {
        match event.operation {
            Some(Operation::Listen) => {
                self.listening = Some(event.status);
                Ok(())
            }
            Some(Operation::Accept) => self.accepted(event),
            Some(Operation::Receive) => self.received(event),
            Some(Operation::Transmit | Operation::TransmitInPlace) => self.transmitted(event),
            Some(Operation::Shutdown) => self.shut(event),
            Some(Operation::Close) => {
                self.closed(event.socket);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn accepted(&mut self, event: Event) -> Result<(), DusiError> {
        self.accepting = self.accepting.saturating_sub(1);
        let Some(socket) = event.child else {
            return Ok(());
        };
        self.statistics.accepted += 1;
        let Some((input, header)) = self.regions()? else {
            self.statistics.refused += 1;
            return self.ual.close(socket, (self.closes, 0));
        };
        self.ual.receive(socket, &input, (self.reads, 0))?;
        let connection = Connection {
            since: Some(Instant::now()),
            input,
            header,
            pending: Vec::new(),
            transmits: 0,
            receiving: true,
            ended: false,
            last: false,
            shut: false,
            closing: false,
        };
        self.connections.insert(socket, connection);
        self.fresh += 1;
        Ok(())
    }

    /// A connection had its first reply, or has ended without one.
    fn served(&mut self, since: Option<Instant>) {
        if let Some(since) = since {
            let now = Instant::now();
            self.fresh -= 1;
            self.scheduling.served(now - since, now);
        }
    }

    /// Regions for a connection; none if there is no memory left.
    fn regions(&mut self) -> Result<Option<(Region, Region)>, DusiError> {
        if let Some(spare) = self.spare.pop_front() {
            return Ok(Some(spare));
        }
        let memory = |found| match found {
            Ok(region) => Ok(Some(region)),
            Err(DusiError::Exhausted(_)) => Ok(None),
            Err(error) => Err(error),
        };
        let Some(input) = memory(self.ual.register(REGION_BYTES))? else {
            return Ok(None);
        };
        match memory(self.ual.register(REGION_BYTES))? {
            Some(header) => Ok(Some((input, header))),
            None => {
                // Fresh: no operation uses it. If the work queue is full it is lost.
                let _ = self.ual.deregister(input);
                Ok(None)
            }
        }
    }

    fn received(&mut self, event: Event) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&event.socket) else {
            return Ok(());
        };
        if event.status != Status::Ok {
            self.statistics.given_up += u64::from(event.status == Status::Reset);
            return self.close(event.socket);
        }
        connection.receiving = false;
        connection.ended = event.length == 0;
        let start = connection.pending.len();
        connection.pending.resize(start + event.length, 0);
        self.ual
            .read(&connection.input, &mut connection.pending[start..])?;
        if connection.transmits > 0 || connection.last {
            // After the reply that is under way.
            return Ok(());
        }
        self.proceed(event.socket)
    }

    /// Answers the first request received, or asks for more of it.
    fn proceed(&mut self, socket: Socket) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&socket) else {
            return Ok(());
        };
        let request = match parse(&connection.pending) {
            Request::Whole(request) => {
                connection.pending.drain(..request.bytes);
                request
            }
            Request::Partial if connection.ended => return self.close(socket),
            Request::Partial if connection.pending.len() < LONGEST_REQUEST => {
                connection.receiving = true;
                return self.ual.receive(socket, &connection.input, (self.reads, 0));
            }
            Request::Partial => reply::bad("431 Request Header Fields Too Large"),
            Request::Bad => reply::bad("400 Bad Request"),
        };
        connection.last = !request.persistent;
        let found = match (request.refusal, &request.path) {
            (None, Some(path)) => self.cache.find(&mut self.ual, path)?,
            _ => None,
        };
        let status = match (request.refusal, &found) {
            (Some(refusal), _) => refusal,
            (None, Some(_)) => "200 OK",
            (None, None) => "404 Not Found",
        };
        let length = found.as_ref().map_or(0, |file| file.len());
        let text = reply::header(status, length, request.persistent);
        self.ual.write(&connection.header, text.as_bytes())?;
        let done = (self.writes, 0);
        let transmit = if self.in_place {
            Ual::transmit_in_place
        } else {
            Ual::transmit_part
        };
        let header = (0, text.len());
        transmit(&mut self.ual, socket, &connection.header, header, done)?;
        connection.transmits = 1;
        if let Some(file) = found.filter(|file| !request.head && file.len() > 0) {
            transmit(&mut self.ual, socket, file, (0, file.len()), done)?;
            connection.transmits += 1;
        }
        self.statistics.requests += 1;
        if connection.last {
            // Behind the reply, without waiting until that has gone.
            return self.ual.shutdown(socket, (self.closes, 0));
        }
        if self.in_place && connection.pending.is_empty() && !connection.ended {
            // The reply is complete when the client has acknowledged it, which may be with its
            // next request.
            connection.receiving = true;
            self.ual
                .receive(socket, &connection.input, (self.reads, 0))?;
        }
        Ok(())
    }

    /// The sending direction has ended; the connection ends when all of it is done.
    fn shut(&mut self, event: Event) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&event.socket) else {
            return Ok(());
        };
        connection.shut = true;
        if connection.transmits == 0 || event.status != Status::Ok {
            return self.close(event.socket);
        }
        Ok(())
    }

    fn transmitted(&mut self, event: Event) -> Result<(), DusiError> {
        let Some(connection) = self.connections.get_mut(&event.socket) else {
            return Ok(());
        };
        connection.transmits -= 1;
        if event.status != Status::Ok {
            let first = event.status == Status::Reset && !connection.closing;
            self.statistics.given_up += u64::from(first);
            return self.close(event.socket);
        }
        if connection.transmits > 0 || connection.closing {
            return Ok(());
        }
        let since = connection.since.take();
        self.served(since);
        let Some(connection) = self.connections.get_mut(&event.socket) else {
            return Ok(());
        };
        if connection.last {
            // Else the shutdown's event closes.
            return if connection.shut {
                self.close(event.socket)
            } else {
                Ok(())
            };
        }
        if connection.receiving {
            return Ok(());
        }
        self.proceed(event.socket)
    }

    fn close(&mut self, socket: Socket) -> Result<(), DusiError> {
        if let Some(connection) = self.connections.get_mut(&socket)
            && !connection.closing
        {
            connection.closing = true;
            self.ual.close(socket, (self.closes, 0))?;
        }
        Ok(())
    }

    /// The engine uses the regions no more: cancelled operations have completed before.
    fn closed(&mut self, socket: Socket) {
        if let Some(connection) = self.connections.remove(&socket) {
            self.served(connection.since);
            self.spare.push_back((connection.input, connection.header));
            self.statistics.closed += 1;
        }
    }
}
