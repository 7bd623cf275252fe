//! The same server over the kernel's sockets: non-blocking, with epoll.
//!
//! It is the other arm of every comparison: the same requests and replies, so that only the path of
//! the bytes differs. It counts its system calls, as [`crate::Server::calls`] does. A file is opened,
//! and without `sendfile` read, when it is first asked for; that may wait for a disk.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};

use crate::accepting::Accepts;
use crate::cache::{below, open};
use crate::limits::Watch;
use crate::reply::{Content, Meta, reply};
use crate::request::{Parsed, Request, bad, parse};
use crate::server::Settings;
use crate::{BACKLOG, LONGEST_REQUEST, Statistics};

/// Events taken at a time.
const EVENTS: usize = 64;
/// Bytes read at a time.
const READ: usize = 2048;
/// The listening socket's token.
const LISTENER: u64 = u64::MAX;

/// A file that is kept.
#[derive(Clone)]
struct Kept {
    meta: Meta,
    bytes: Bytes,
}

/// Where a file's bytes are.
#[derive(Clone)]
enum Bytes {
    /// Read once.
    Memory(Arc<Vec<u8>>),
    /// In the kernel's page cache, for `sendfile`.
    Open(Arc<File>),
}

struct Connection {
    /// When it was accepted, until it has its first reply.
    since: Option<Instant>,
    /// When it is given up, whatever it does.
    deadline: Instant,
    stream: TcpStream,
    /// Bytes received and not yet parsed.
    pending: Vec<u8>,
    /// What is being sent, and how much of it has gone: header, then a part of a file.
    header: Vec<u8>,
    body: Option<Bytes>,
    part: (u64, u64),
    sent: u64,
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
    files: BTreeMap<PathBuf, Kept>,
    connections: HashMap<u64, Connection>,
    next: u64,
    statistics: Statistics,
    scheduling: Accepts,
    /// Connections without a first reply.
    fresh: usize,
    settings: Settings,
    sendfile: bool,
    watch: Watch,
    /// System calls so far.
    pub calls: u64,
}

/// A listening socket; others of the same user may listen there, too, if it is `shared`.
fn listen(at: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let family = if at.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, shared)?;
    rustix::net::bind(&socket, &at)?;
    rustix::net::listen(&socket, BACKLOG as i32)?;
    Ok(socket.into())
}

impl KernelServer {
    /// A server of a folder's files at an address of this machine. With `sendfile` the kernel sends
    /// them from its page cache; else the server reads them once and sends them from memory.
    ///
    /// # Errors
    /// The system's, for example if the address is in use.
    pub fn new(
        root: &Path,
        at: SocketAddr,
        settings: Settings,
        sendfile: bool,
    ) -> io::Result<Self> {
        let listener = listen(at, settings.shared)?;
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
            scheduling: Accepts::new(settings.accepts),
            fresh: 0,
            settings,
            sendfile,
            watch: Watch::new(),
            calls: 0,
        })
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
        let now = Instant::now();
        if self.watch.is_time(now, &self.settings.limits) {
            self.end_slow(now);
        }
        Ok(())
    }

    /// Ends the connections whose time is over.
    fn end_slow(&mut self, now: Instant) {
        let before = self.connections.len();
        let fresh = &mut self.fresh;
        self.connections.retain(|_, connection| {
            let stays = connection.deadline > now;
            *fresh -= usize::from(!stays && connection.since.is_some());
            stays
        });
        let ended = (before - self.connections.len()) as u64;
        self.statistics.timed_out += ended;
        self.statistics.closed += ended;
        self.calls += ended;
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
            let now = Instant::now();
            let connection = Connection {
                since: Some(now),
                deadline: now + self.settings.limits.patience,
                stream,
                pending: Vec::new(),
                header: Vec::new(),
                body: None,
                part: (0, 0),
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
                Ok(count) => {
                    if connection.pending.is_empty() && connection.since.is_none() {
                        // The first byte of a request on a connection that was idle.
                        connection.deadline = Instant::now() + self.settings.limits.patience;
                    }
                    connection.pending.extend_from_slice(&bytes[..count]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends what is left of a reply; false if there is no room.
    fn send(&mut self, connection: &mut Connection) -> io::Result<bool> {
        let header = connection.header.len() as u64;
        loop {
            let (first, bytes) = connection.part;
            if connection.sent == header + bytes {
                if header > 0 {
                    connection.deadline = Instant::now() + self.settings.limits.idle;
                }
                connection.header.clear();
                connection.body = None;
                connection.part = (0, 0);
                connection.sent = 0;
                return Ok(true);
            }
            let text = connection.header.get(connection.sent as usize..);
            let text = text.unwrap_or(&[]);
            let done = connection.sent.saturating_sub(header);
            self.calls += 1;
            let moved = match &connection.body {
                Some(Bytes::Open(file)) if text.is_empty() => {
                    let mut offset = first + done;
                    let count = (bytes - done) as usize;
                    let from = Some(&mut offset);
                    rustix::fs::sendfile(&connection.stream, file, from, count)
                        .map_err(io::Error::from)
                }
                Some(Bytes::Open(_)) => {
                    // The file follows.
                    let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
                    rustix::net::send(&connection.stream, text, flags).map_err(io::Error::from)
                }
                Some(Bytes::Memory(file)) => {
                    let file = &file[(first + done) as usize..(first + bytes) as usize];
                    let parts = [io::IoSlice::new(text), io::IoSlice::new(file)];
                    connection.stream.write_vectored(&parts)
                }
                None => connection.stream.write(text),
            };
            match moved {
                // The file has become shorter: the reply cannot be whole.
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => connection.sent += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the reply to the first request received; false if there is none yet.
    fn answer(&mut self, connection: &mut Connection) -> bool {
        let request = match parse(&connection.pending) {
            Parsed::Whole(request) => {
                connection.pending.drain(..request.bytes);
                request
            }
            Parsed::Partial if connection.pending.len() < LONGEST_REQUEST => return false,
            Parsed::Partial => Box::new(bad("431 Request Header Fields Too Large")),
            Parsed::Bad => Box::new(bad("400 Bad Request")),
        };
        let (content, body, text) = self.content(&request);
        let made = reply(&request, &content);
        connection.header = made.header.into_bytes();
        connection.part = made.part;
        if let Some(text) = text.filter(|_| made.part.1 > 0) {
            connection.header.extend_from_slice(text.as_bytes());
            connection.part = (0, 0);
        }
        connection.body = body.filter(|_| connection.part.1 > 0);
        connection.last = !request.persistent;
        connection.deadline = self.settings.limits.reply(Instant::now(), made.part.1);
        self.statistics.requests += 1;
        true
    }

    /// What a request is answered with: a file, or the text of a page.
    fn content(&mut self, request: &Request) -> (Content, Option<Bytes>, Option<String>) {
        let nothing = |status| (Content::Nothing(status), None, None);
        let path = match (request.refusal, &request.path) {
            (Some(refusal), _) => return nothing(refusal),
            (None, None) => return nothing("400 Bad Request"),
            (None, Some(path)) => path,
        };
        let dynamic = self.settings.dynamic.as_ref();
        if let Some(text) = dynamic.and_then(|page| page.make(path)) {
            return (Content::Page(text.len() as u64), None, Some(text));
        }
        match self.find(path) {
            Some(kept) => (Content::File(kept.meta), Some(kept.bytes), None),
            None => nothing("404 Not Found"),
        }
    }

    fn find(&mut self, path: &str) -> Option<Kept> {
        let path = below(path)?;
        if let Some(file) = self.files.get(&path) {
            return Some(file.clone());
        }
        let (file, meta) = open(&self.root, &path)?;
        let bytes = if self.sendfile {
            Bytes::Open(Arc::new(file))
        } else {
            let mut bytes = vec![0; usize::try_from(meta.length).ok()?];
            file.read_exact_at(&mut bytes, 0).ok()?;
            Bytes::Memory(Arc::new(bytes))
        };
        self.statistics.loads += 1;
        let kept = Kept { meta, bytes };
        self.files.insert(path, kept.clone());
        Some(kept)
    }
}
