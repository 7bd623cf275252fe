//! Local ports: who has bound one, who listens, and what waits there.
//!
//! Several sockets of one user may listen on a port if all ask for it. They share what waits
//! there: the backlog is that of all together, and a connection goes to whoever accepts first.
//! The backlog bounds connections that are half open and connections that wait, each by itself, as
//! Linux does: a burst of SYNs does not use up the places of a server that is late, nor the reverse.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Id, Options, Owner};

/// Local ports of connections whose sockets were not bound.
const EPHEMERAL: std::ops::Range<u16> = 32_768..61_000;

/// Who has bound a port.
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// All are this user's, who shares it; none if it is one socket's alone.
    shared: Option<u32>,
    sockets: u32,
}

/// A socket that listens.
#[derive(Debug)]
struct Member {
    owner: Owner,
    options: Options,
    backlog: usize,
}

/// A port that is listened on.
#[derive(Debug, Default)]
struct Listening {
    members: Vec<Member>,
    /// The one that is asked first for the next connection.
    turn: usize,
    /// Connections that are half open, and those that wait, with the options that they have.
    half_open: HashSet<Id>,
    waiting: VecDeque<(Id, Options)>,
}

/// The ports.
#[derive(Debug)]
pub struct Ports {
    bound: HashMap<u16, Bound>,
    listening: HashMap<u16, Listening>,
    next: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            bound: HashMap::new(),
            listening: HashMap::new(),
            next: EPHEMERAL.start,
        }
    }
}

impl Ports {
    /// Gives a port to a socket, of the user `shared` if it shares it with others; false if another
    /// has it.
    pub fn bind(&mut self, port: u16, shared: Option<u32>) -> bool {
        let bound = self
            .bound
            .entry(port)
            .or_insert(Bound { shared, sockets: 0 });
        let may = bound.sockets == 0 || (shared.is_some() && bound.shared == shared);
        bound.sockets += u32::from(may);
        may
    }

    /// A socket that had bound it is closed.
    pub fn unbind(&mut self, port: u16) {
        if let Some(bound) = self.bound.get_mut(&port) {
            bound.sockets -= 1;
            if bound.sockets == 0 {
                self.bound.remove(&port);
            }
        }
    }

    /// A port that nobody has bound and that is free for the caller's connection.
    pub(super) fn ephemeral(&mut self, free: impl Fn(u16) -> bool) -> Option<u16> {
        for _ in EPHEMERAL {
            let port = self.next;
            self.next = if port + 1 < EPHEMERAL.end {
                port + 1
            } else {
                EPHEMERAL.start
            };
            if !self.bound.contains_key(&port) && free(port) {
                return Some(port);
            }
        }
        None
    }

    /// Begins to listen on a port that the caller has bound: at most `backlog` connections more
    /// may be half open there, and as many more may wait when a SYN comes.
    pub fn listen(&mut self, port: u16, owner: Owner, options: Options, backlog: usize) {
        let listening = self.listening.entry(port).or_default();
        listening.members.push(Member {
            owner,
            options,
            backlog,
        });
    }

    /// A socket listens no more. The connections that are left, if it was the last one.
    pub(super) fn unlisten(&mut self, port: u16, owner: Owner) -> Vec<Id> {
        let Some(listening) = self.listening.get_mut(&port) else {
            return Vec::new();
        };
        listening.members.retain(|member| member.owner != owner);
        if !listening.members.is_empty() {
            return Vec::new();
        }
        let left = self.listening.remove(&port).into_iter();
        left.flat_map(|one| {
            let waiting = one.waiting.into_iter().map(|(id, _)| id);
            one.half_open.into_iter().chain(waiting)
        })
        .collect()
    }

    /// The options of a new connection to a port, if it has room in its backlog; none if nobody
    /// listens there.
    pub(super) fn admit(&self, port: u16) -> Option<Option<Options>> {
        let listening = self.listening.get(&port)?;
        let used = listening.half_open.len().max(listening.waiting.len());
        let backlog: usize = listening.members.iter().map(|member| member.backlog).sum();
        let first = listening.members.first()?;
        Some((used < backlog).then_some(first.options))
    }

    /// A connection is half open.
    pub(super) fn started(&mut self, port: u16, id: Id) {
        if let Some(listening) = self.listening.get_mut(&port) {
            listening.half_open.insert(id);
        }
    }

    /// A connection has come to be; false if nobody listens any more.
    pub(super) fn established(&mut self, port: u16, id: Id, options: Options) -> bool {
        let Some(listening) = self.listening.get_mut(&port) else {
            return false;
        };
        listening.half_open.remove(&id);
        listening.waiting.push_back((id, options));
        true
    }

    /// Sockets that listen on a port.
    #[must_use]
    pub fn listeners(&self, port: u16) -> usize {
        self.listening.get(&port).map_or(0, |one| one.members.len())
    }

    /// The listening socket whose turn it is; the next call gives the next one.
    pub fn next_listener(&mut self, port: u16) -> Option<Owner> {
        let listening = self.listening.get_mut(&port)?;
        let place = listening.turn % listening.members.len().max(1);
        listening.turn = place + 1;
        listening.members.get(place).map(|member| member.owner)
    }

    /// The options of the connection that waits longest.
    #[must_use]
    pub fn waiting(&self, port: u16) -> Option<Options> {
        let (_, options) = self.listening.get(&port)?.waiting.front()?;
        Some(*options)
    }

    /// The next connection to accept.
    pub(super) fn take_waiting(&mut self, port: u16) -> Option<Id> {
        let (id, _) = self.listening.get_mut(&port)?.waiting.pop_front()?;
        Some(id)
    }

    /// A connection has left the backlog.
    pub(super) fn left(&mut self, port: u16, id: Id, waiting: bool) {
        if let Some(listening) = self.listening.get_mut(&port) {
            if waiting {
                listening.waiting.retain(|(one, _)| *one != id);
            } else {
                listening.half_open.remove(&id);
            }
        }
    }
}
