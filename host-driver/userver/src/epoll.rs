//! The same server over the kernel's sockets: non-blocking, with epoll.
//!
//! It is the other arm of every comparison: the same requests, replies and cache, so that only the
//! path of the bytes differs. It counts its system calls, as [`crate::Server::calls`] does.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::accepting::{AcceptPolicy, Accepts};
use crate::cache::{below, load};
use crate::reply::{self, Request, parse};
use crate::{LONGEST_REQUEST, Statistics};

/// Events taken at a time.
const EVENTS: usize = 64;
/// Bytes read at a time.
const READ: usize = 2048;
/// The listening socket's token.
const LISTENER: u64 = u64::MAX;

struct Connection {
    /// When it was accepted, until it has its first reply.
    since: Option<Instant>,
    stream: TcpStream,
    /// Bytes received and not yet parsed.
    pending: Vec<u8>,
    /// What is being sent, and how much of it has gone: header, then file.
    header: Vec<u8>,
    file: Option<Arc<Vec<u8>>>,
    sent: usize,
    /// The connection ends after the reply.
    last: bool,
    /// Room for sending is waited for.
    blocked: bool,
}

/// What became of a connection.
enum Progress {
    Waits,
    Ended,
}

/// The server.
pub struct KernelServer {
    listener: TcpListener,
    epoll: OwnedFd,
    root: PathBuf,
    files: BTreeMap<PathBuf, Arc<Vec<u8>>>,
    connections: HashMap<u64, Connection>,
    next: u64,
    statistics: Statistics,
    scheduling: Accepts,
    /// Connections without a first reply.
    fresh: usize,
    /// System calls so far.
    pub calls: u64,
}

impl KernelServer {
    /// A server of a folder's files at an address of this machine.
    ///
    /// # Errors
    /// The system's, for example if the address is in use.
    pub fn new(root: &Path, at: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        Ok(Self {
            listener,
            epoll,
            root: root.to_owned(),
            files: BTreeMap::new(),
            connections: HashMap::new(),
            next: 0,
            statistics: Statistics::default(),
            scheduling: Accepts::new(AcceptPolicy::default()),
            fresh: 0,
            calls: 0,
        })
    }

    /// Accepts by this policy.
    pub fn accept_by(&mut self, policy: AcceptPolicy) {
        self.scheduling = Accepts::new(policy);
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Waits for events, at most for `timeout`, and handles them.
    ///
    /// # Errors
    /// The system's; a connection's errors end that connection.
    pub fn step(&mut self, timeout: Duration) -> io::Result<()> {
        const ROOM: epoll::Event = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut events = [ROOM; EVENTS];
        let allowed = self.scheduling.allowance(self.fresh);
        let timeout = Timespec::try_from(timeout).ok();
        self.calls += 1;
        let count = match epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            match event.data.u64() {
                LISTENER => self.accept(allowed)?,
                token => self.serve(token)?,
            }
        }
        Ok(())
    }

    fn accept(&mut self, allowed: usize) -> io::Result<()> {
        for _ in 0..allowed {
            self.calls += 1;
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // The client has given up, or there are no descriptors: later ones may come.
                Err(_) => return Ok(()),
            };
            self.calls += 3;
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let token = self.next;
            self.next += 1;
            epoll::add(
                &self.epoll,
                &stream,
                EventData::new_u64(token),
                EventFlags::IN,
            )?;
            self.statistics.accepted += 1;
            let connection = Connection {
                since: Some(Instant::now()),
                stream,
                pending: Vec::new(),
                header: Vec::new(),
                file: None,
                sent: 0,
                last: false,
                blocked: false,
            };
            self.connections.insert(token, connection);
            self.fresh += 1;
        }
        Ok(())
    }

    fn serve(&mut self, token: u64) -> io::Result<()> {
        let Some(mut connection) = self.connections.remove(&token) else {
            return Ok(());
        };
        let (blocked, asked) = (connection.blocked, self.statistics.requests);
        let progress = self.proceed(&mut connection);
        let replied = self.statistics.requests > asked && !connection.blocked;
        let over = replied || !matches!(progress, Ok(Progress::Waits));
        if let Some(since) = connection.since.take_if(|_| over) {
            let now = Instant::now();
            self.fresh -= 1;
            self.scheduling.served(now - since, now);
        }
        match progress {
            Ok(Progress::Waits) => {
                if blocked != connection.blocked {
                    let flags = if connection.blocked {
                        EventFlags::OUT
                    } else {
                        EventFlags::IN
                    };
                    self.calls += 1;
                    let data = EventData::new_u64(token);
                    epoll::modify(&self.epoll, &connection.stream, data, flags)?;
                }
                self.connections.insert(token, connection);
            }
            ended => {
                self.statistics.given_up += u64::from(ended.is_err());
                self.statistics.closed += 1;
                self.calls += 1;
            }
        }
        Ok(())
    }

    /// Sends, answers and reads until one of them must wait.
    fn proceed(&mut self, connection: &mut Connection) -> io::Result<Progress> {
        loop {
            if !self.send(connection)? {
                connection.blocked = true;
                return Ok(Progress::Waits);
            }
            connection.blocked = false;
            if connection.last {
                return Ok(Progress::Ended);
            }
            if self.answer(connection) {
                continue;
            }
            let mut bytes = [0; READ];
            self.calls += 1;
            match connection.stream.read(&mut bytes) {
                Ok(0) => return Ok(Progress::Ended),
                Ok(count) => connection.pending.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends what is left of a reply; false if there is no room.
    fn send(&mut self, connection: &mut Connection) -> io::Result<bool> {
        loop {
            let file = connection.file.as_deref().map_or(&[][..], Vec::as_slice);
            let header = connection.header.len();
            if connection.sent == header + file.len() {
                connection.header.clear();
                connection.file = None;
                connection.sent = 0;
                return Ok(true);
            }
            let parts = [
                io::IoSlice::new(connection.header.get(connection.sent..).unwrap_or(&[])),
                io::IoSlice::new(&file[connection.sent.saturating_sub(header)..]),
            ];
            self.calls += 1;
            match connection.stream.write_vectored(&parts) {
                Ok(count) => connection.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the reply to the first request received; false if there is none yet.
    fn answer(&mut self, connection: &mut Connection) -> bool {
        let request = match parse(&connection.pending) {
            Request::Whole(request) => {
                connection.pending.drain(..request.bytes);
                request
            }
            Request::Partial if connection.pending.len() < LONGEST_REQUEST => return false,
            Request::Partial => reply::bad("431 Request Header Fields Too Large"),
            Request::Bad => reply::bad("400 Bad Request"),
        };
        let found = match (request.refusal, &request.path) {
            (None, Some(path)) => self.find(path),
            _ => None,
        };
        let status = match (request.refusal, &found) {
            (Some(refusal), _) => refusal,
            (None, Some(_)) => "200 OK",
            (None, None) => "404 Not Found",
        };
        let length = found.as_ref().map_or(0, |file| file.len());
        connection.header = reply::header(status, length, request.persistent).into_bytes();
        connection.file = found.filter(|_| !request.head);
        connection.last = !request.persistent;
        self.statistics.requests += 1;
        true
    }

    fn find(&mut self, path: &str) -> Option<Arc<Vec<u8>>> {
        let path = below(path)?;
        if let Some(file) = self.files.get(&path) {
            return Some(file.clone());
        }
        let file = Arc::new(load(&self.root, &path)?);
        self.files.insert(path, file.clone());
        Some(file)
    }
}
