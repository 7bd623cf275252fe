//! Completions, and what the library learns from them.

use std::collections::HashSet;
use std::net::SocketAddrV4;

use dti::layout::{ANONYMOUS, Event as RawEvent, MORE, Operation, Status, handle_of, number_of};

use crate::{DusiError, Socket, Ual};

/// A buffer of the anonymous pool with received bytes, until it is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    pub(crate) number: u32,
    pub(crate) length: u32,
}

impl Buffer {
    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// The buffer of a number, with so many bytes, for who keeps it elsewhere. One that is not lent
    /// is refused by the engine.
    #[must_use]
    pub fn of_number(number: u32, length: u32) -> Self {
        Self { number, length }
    }

    /// Received bytes.
    #[allow(clippy::len_without_is_empty)]
    #[must_use]
    pub fn len(self) -> usize {
        self.length as usize
    }
}

/// A completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What has ended; none if the engine did not know the operation.
    pub operation: Option<Operation>,
    /// How.
    pub status: Status,
    /// The socket; of an accept, the listening one.
    pub socket: Socket,
    /// The caller's tag.
    pub tag: u64,
    /// Bytes sent or received; of a cancel, the operations cancelled.
    pub length: usize,
    /// Of an accept, the connection.
    pub child: Option<Socket>,
    /// Of an accept, who has connected.
    pub peer: Option<SocketAddrV4>,
    /// Of a question for an option, its value.
    pub value: u64,
    /// Of a receive that brought no region, where the bytes are.
    pub buffer: Option<Buffer>,
    /// The operation is still posted: more events of it will come.
    pub more: bool,
}

/// Handles that are free, and those that wait for a connection.
pub(crate) struct Handles {
    engine: u8,
    free: Vec<u32>,
    /// Handles that an accept gives back if it fails.
    lent: HashSet<u32>,
    /// Handles from here on were never used.
    next: u32,
    end: u32,
}

impl Handles {
    pub(crate) fn new(engine: u8, end: u32) -> Self {
        Self {
            engine,
            free: Vec::new(),
            lent: HashSet::new(),
            next: 0,
            end,
        }
    }

    /// A free handle; it is taken by [`Self::take`].
    pub(crate) fn first(&self) -> Result<u32, DusiError> {
        let fresh = (self.next < self.end).then(|| handle_of(self.engine, self.next));
        let found = self.free.last().copied().or(fresh);
        found.ok_or(DusiError::Exhausted("socket"))
    }

    pub(crate) fn take(&mut self) {
        if self.free.pop().is_none() {
            self.next += 1;
        }
    }

    /// Takes a handle for an accept.
    pub(crate) fn lend(&mut self, handle: u32) {
        self.take();
        self.lent.insert(handle);
    }

    fn give(&mut self, handle: u32) {
        // Others are the engine's.
        if number_of(handle) < self.end {
            self.free.push(handle);
        }
    }
}

impl Ual {
    /// Makes an event of what the engine wrote, and takes back what the operation held.
    pub(crate) fn judge(&mut self, raw: RawEvent) -> Event {
        let operation = Operation::from_number(raw.operation);
        let status = Status::from_number(raw.status);
        let done = status == Status::Ok;
        match operation {
            // A handle is free again once its socket is closed, or was never made.
            Some(Operation::Close) if done => self.handles.give(raw.socket),
            Some(Operation::Socket) if !done => self.handles.give(raw.socket),
            Some(Operation::Transmit | Operation::TransmitInPlace | Operation::Receive) => {
                self.pool.unused(raw.argument as u32);
            }
            _ => {}
        }
        let accept = operation == Some(Operation::Accept);
        if accept && self.handles.lent.remove(&raw.child) && !done {
            self.handles.give(raw.child);
        }
        let accepted = accept && done;
        let received = operation == Some(Operation::Receive) && done;
        let buffer = received && raw.argument as u32 == ANONYMOUS && raw.child != ANONYMOUS;
        let address = ((raw.argument >> 16) as u32).into();
        Event {
            operation,
            status,
            socket: Socket(raw.socket),
            tag: raw.tag,
            length: raw.length as usize,
            child: accepted.then_some(Socket(raw.child)),
            peer: accepted.then(|| SocketAddrV4::new(address, raw.argument as u16)),
            value: raw.argument,
            buffer: buffer.then_some(Buffer {
                number: raw.child,
                length: raw.length,
            }),
            more: raw.operation & MORE != 0,
        }
    }
}

/// The address and port in the value of `LocalAddress` and `PeerAddress`.
impl Event {
    /// As an address, if the operation asked for one.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(((self.value >> 16) as u32).into(), self.value as u16)
    }
}
