//! Local ports: who has bound one, who listens, and what waits there.

use std::collections::{HashMap, HashSet, VecDeque};

use super::options::Options;
use super::{Id, Owner};

/// Local ports of connections whose sockets were not bound.
const EPHEMERAL: std::ops::Range<u16> = 32_768..61_000;

/// A port that is listened on.
#[derive(Debug)]
pub(crate) struct Listening {
    owner: Owner,
    options: Options,
    /// Connections that may be half open or wait, together.
    backlog: usize,
    half_open: HashSet<Id>,
    waiting: VecDeque<Id>,
}

impl Listening {
    pub(crate) fn new(owner: Owner, options: Options, backlog: usize) -> Self {
        Self {
            owner,
            options,
            backlog,
            half_open: HashSet::new(),
            waiting: VecDeque::new(),
        }
    }
}

/// The ports.
#[derive(Debug)]
pub(crate) struct Ports {
    bound: HashSet<u16>,
    listening: HashMap<u16, Listening>,
    next: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            bound: HashSet::new(),
            listening: HashMap::new(),
            next: EPHEMERAL.start,
        }
    }
}

impl Ports {
    /// Gives a port to one socket; false if another has it.
    pub(crate) fn bind(&mut self, port: u16) -> bool {
        self.bound.insert(port)
    }

    /// The socket that had bound it is closed.
    pub(crate) fn unbind(&mut self, port: u16) {
        self.bound.remove(&port);
    }

    /// A port that nobody has bound and that is free for the caller's connection.
    pub(crate) fn ephemeral(&mut self, free: impl Fn(u16) -> bool) -> Option<u16> {
        for _ in EPHEMERAL {
            let port = self.next;
            self.next = if port + 1 < EPHEMERAL.end {
                port + 1
            } else {
                EPHEMERAL.start
            };
            if !self.bound.contains(&port) && free(port) {
                return Some(port);
            }
        }
        None
    }

    /// Begins to listen on a port that the caller has bound.
    pub(crate) fn listen(&mut self, port: u16, listening: Listening) {
        self.listening.insert(port, listening);
    }

    /// Ends listening; the connections that are left.
    pub(crate) fn unlisten(&mut self, port: u16) -> Vec<Id> {
        let listening = self.listening.remove(&port);
        let left = listening.into_iter();
        left.flat_map(|one| one.half_open.into_iter().chain(one.waiting))
            .collect()
    }

    /// The options of a new connection to a port, if it has room in its backlog; none if nobody
    /// listens there.
    pub(crate) fn admit(&self, port: u16) -> Option<Option<Options>> {
        let listening = self.listening.get(&port)?;
        let used = listening.half_open.len() + listening.waiting.len();
        Some((used < listening.backlog).then_some(listening.options))
    }

    /// A connection is half open.
    pub(crate) fn started(&mut self, port: u16, id: Id) {
        if let Some(listening) = self.listening.get_mut(&port) {
            listening.half_open.insert(id);
        }
    }

    /// A connection has come to be; who may accept it.
    pub(crate) fn established(&mut self, port: u16, id: Id) -> Option<Owner> {
        let listening = self.listening.get_mut(&port)?;
        listening.half_open.remove(&id);
        listening.waiting.push_back(id);
        Some(listening.owner)
    }

    /// The next connection to accept.
    pub(crate) fn take_waiting(&mut self, port: u16) -> Option<Id> {
        self.listening.get_mut(&port)?.waiting.pop_front()
    }

    /// A connection has left the backlog.
    pub(crate) fn left(&mut self, port: u16, id: Id, waiting: bool) {
        if let Some(listening) = self.listening.get_mut(&port) {
            if waiting {
                listening.waiting.retain(|one| *one != id);
            } else {
                listening.half_open.remove(&id);
            }
        }
    }
}
