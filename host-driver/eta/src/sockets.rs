//! Sockets of an application, and what is posted on each.

use std::collections::VecDeque;

use dti::layout::Descriptor;
use host_driver::stack::flows::{Id, Options};

/// A socket.
pub(crate) struct Socket {
    pub(crate) options: Options,
    /// It shares its port with others that do.
    pub(crate) shares: bool,
    /// The port that it has bound.
    pub(crate) port: Option<u16>,
    pub(crate) role: Role,
}

/// What a socket is.
pub(crate) enum Role {
    /// Nothing yet.
    Fresh,
    /// Listening at its port, with the accepts that were posted.
    Listening(VecDeque<Descriptor>),
    /// With a connection.
    Connected(Box<Connection>),
}

impl Socket {
    /// A fresh one.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            shares: false,
            port: None,
            role: Role::Fresh,
        }
    }

    /// Whether a connection may take its place.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.role, Role::Fresh) && self.port.is_none()
    }

    /// All operations that are under way, a receive that has got bytes with their number.
    pub(crate) fn pending(&mut self) -> Vec<(Descriptor, u32)> {
        let filled = match &mut self.role {
            Role::Connected(connection) if connection.filled > 0 => {
                let first = connection.receives.pop_front();
                first.map(|work| (work, std::mem::take(&mut connection.filled) as u32))
            }
            _ => None,
        };
        let others = self.others().into_iter().map(|work| (work, 0));
        filled.into_iter().chain(others).collect()
    }

    fn others(&mut self) -> Vec<Descriptor> {
        match &mut self.role {
            Role::Fresh => Vec::new(),
            Role::Listening(accepts) => accepts.drain(..).collect(),
            Role::Connected(connection) => {
                let connecting = connection.connecting.take().into_iter();
                connecting
                    .chain(connection.sent.drain(..).map(|(work, _)| work))
                    .chain(connection.transmits.drain(..))
                    .chain(connection.receives.drain(..))
                    .collect()
            }
        }
    }
}

/// A connection and its operations, in the order in which they were posted.
pub(crate) struct Connection {
    pub(crate) id: Id,
    pub(crate) connecting: Option<Descriptor>,
    /// Sends and the shutdown, with the bytes already taken of the first.
    pub(crate) transmits: VecDeque<Descriptor>,
    pub(crate) taken: usize,
    /// Sends and a shutdown that smoltcp has taken, in order, behind a send without a copy that
    /// the peer has not acknowledged; each with the bytes of the stream that must be acknowledged.
    pub(crate) sent: VecDeque<(Descriptor, u64)>,
    /// A shutdown was posted.
    pub(crate) ended: bool,
    pub(crate) receives: VecDeque<Descriptor>,
    /// Bytes that the first receive has got, if it wants all of them.
    pub(crate) filled: usize,
}

impl Connection {
    pub(crate) fn new(id: Id, connecting: Option<Descriptor>) -> Box<Self> {
        Box::new(Self {
            id,
            connecting,
            transmits: VecDeque::new(),
            taken: 0,
            sent: VecDeque::new(),
            ended: false,
            receives: VecDeque::new(),
            filled: 0,
        })
    }
}
