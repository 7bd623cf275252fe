//! What stands where in an application's memory file, and the layout of the entries.
//!
//! ```text
//!   word  0       magic and version
//!   word  8       1: the engine sleeps
//!   word  16+8q   1: the application sleeps until event queue q has an event
//!   word  48      work queue, `Sizes::work` descriptors
//!   ...           EVENT_QUEUES event queues of `Sizes::events` events
//!   ...           `Sizes::pool` bytes of payload
//! ```
//!
//! An application asks for sizes when it attaches; the engine judges them, makes the file, and
//! both sides compute the places from the sizes that the engine gave.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::ring::{Entry, Place, ring_words};

/// First word of every memory file: "dti" and the layout's version.
pub const MAGIC: u64 = 0x6474_6900_0000_0003;
/// Words of a page; a memory file has whole ones.
const PAGE_WORDS: usize = 512;
/// Word that is 1 while the engine sleeps.
pub const ENGINE_SLEEPS: usize = 8;
/// Event queues of an application.
pub const EVENT_QUEUES: usize = 4;
/// Regions that an application may register; their numbers are 0 to `REGIONS - 1`.
pub const REGIONS: usize = 1 << 16;
/// A descriptor's queue if no event is wanted: registrations only.
pub const QUIET: u16 = u16::MAX;

/// How large an application's queues are. An operation needs a place in its event queue from the
/// time at which the engine takes it, so an event queue bounds the operations under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sizes {
    /// Descriptors that the work queue holds.
    pub work: u32,
    /// Events that each event queue holds.
    pub events: u32,
    /// Bytes of the pool, a multiple of 8.
    pub pool: u32,
    /// Sockets; their handles are 0 to `sockets - 1`.
    pub sockets: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            work: 256,
            events: 4096,
            pool: 8 << 20,
            sockets: 1024,
        }
    }
}

impl Sizes {
    /// Whether such queues can exist, and none is larger than `most`'s.
    #[must_use]
    pub fn within(&self, most: &Self) -> bool {
        self.work.is_power_of_two()
            && self.events.is_power_of_two()
            && self.pool.is_multiple_of(8)
            && self.pool > 0
            && self.sockets > 0
            && self.work <= most.work
            && self.events <= most.events
            && self.pool <= most.pool
            && self.sockets <= most.sockets
    }

    /// The work queue.
    #[must_use]
    pub const fn work_queue(&self) -> Place {
        Place {
            start: event_queue_armed(EVENT_QUEUES),
            capacity: self.work as usize,
        }
    }

    /// An event queue.
    #[must_use]
    pub const fn event_queue(&self, number: usize) -> Place {
        let first = event_queue_armed(EVENT_QUEUES) + ring_words(self.work as usize);
        Place {
            start: first + number * ring_words(self.events as usize),
            capacity: self.events as usize,
        }
    }

    /// First word of the pool.
    #[must_use]
    pub const fn pool_start(&self) -> usize {
        self.event_queue(EVENT_QUEUES).start
    }

    /// Words of the memory file.
    #[must_use]
    pub const fn file_words(&self) -> usize {
        // Whole pages, so that a card can read it.
        (self.pool_start() + self.pool as usize / 8).next_multiple_of(PAGE_WORDS)
    }
}

/// Word that is 1 while the application sleeps until the event queue has an event.
#[must_use]
pub const fn event_queue_armed(number: usize) -> usize {
    16 + 8 * number
}

const _: () = assert!(size_of::<Descriptor>() == 32 && size_of::<Event>() == 32);

/// What an operation does. Work queue, section IV and Table I.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Operation {
    /// Makes the socket of the handle.
    Socket = 1,
    /// Gives it the local port in `argument`.
    Bind,
    /// Lets at most `length` connections wait to be accepted.
    Listen,
    /// Takes the next connection of a listening socket as the handle in `argument`.
    Accept,
    /// Connects: `argument` is the address in bits 16 to 47, the port in bits 0 to 15.
    Connect,
    /// Sends `length` bytes from `offset` of the region in `argument` ([`region_argument`]);
    /// completes when they may be overwritten.
    Transmit,
    /// Receives at most `length` bytes to `offset` of the region in `argument`; 0 bytes are the
    /// end of the stream.
    Receive,
    /// Ends the sending direction, after everything that was posted.
    Shutdown,
    /// Frees the handle; a connection that is not shut down on both sides is reset.
    Close,
    /// Sets the [`SocketOption`] in the upper half of `argument` to the lower half.
    SetOption,
    /// Asks for the [`SocketOption`] in the upper half of `argument`: the event's `argument`.
    GetOption,
    /// Cancels the socket's operations with the tag in `argument`: the event's `length` counts
    /// them.
    Cancel,
    /// Registers `length` bytes from `offset` of the pool as the region in `argument`.
    Register,
    /// Ends the region in `argument`.
    Deregister,
    /// As [`Operation::Transmit`] without a copy: the bytes are read where they are whenever a
    /// packet leaves, and it completes when the peer has acknowledged them.
    TransmitInPlace,
}

/// A region and its protection tag as a descriptor's `argument`.
#[must_use]
pub const fn region_argument(number: u32, tag: u32) -> u64 {
    (tag as u64) << 32 | number as u64
}

/// What an application may set or ask of a socket. A socket accepted from a listening one begins
/// with that one's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SocketOption {
    /// 1: small segments are not held back (the default).
    NoDelay = 1,
    /// Milliseconds between probes of a silent peer; 0: none.
    KeepAlive,
    /// Milliseconds after which a peer that answers nothing is given up; 0: never.
    UserTimeout,
    /// Milliseconds after which a connect fails.
    ConnectTimeout,
    /// Hop limit of the packets, 1 to 255.
    HopLimit,
    /// Bytes of the send buffer; before connecting or listening only.
    SendBuffer,
    /// Bytes of the receive buffer; before connecting or listening only.
    ReceiveBuffer,
    /// Congestion control: 0 none, 1 Reno, 2 CUBIC; before connecting or listening only.
    Congestion,
    /// Own address and port, as in [`Operation::Connect`]; to ask only.
    LocalAddress,
    /// The peer's address and port; to ask only.
    PeerAddress,
    /// Bytes received that no operation has taken; to ask only.
    Unread,
    /// Bytes that the peer has not acknowledged; to ask only.
    Unacknowledged,
}

impl SocketOption {
    const ALL: [Self; 12] = [
        Self::NoDelay,
        Self::KeepAlive,
        Self::UserTimeout,
        Self::ConnectTimeout,
        Self::HopLimit,
        Self::SendBuffer,
        Self::ReceiveBuffer,
        Self::Congestion,
        Self::LocalAddress,
        Self::PeerAddress,
        Self::Unread,
        Self::Unacknowledged,
    ];

    /// The option of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as u32 == number)
    }
}

impl Operation {
    const ALL: [Self; 15] = [
        Self::Socket,
        Self::Bind,
        Self::Listen,
        Self::Accept,
        Self::Connect,
        Self::Transmit,
        Self::Receive,
        Self::Shutdown,
        Self::Close,
        Self::SetOption,
        Self::GetOption,
        Self::Cancel,
        Self::Register,
        Self::Deregister,
        Self::TransmitInPlace,
    ];

    /// The operation of a descriptor's number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *known as u16 == number)
    }
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The descriptor has an unknown operation or number.
    Invalid,
    /// The handle names no socket, or one that is in use.
    BadHandle,
    /// The socket's state does not allow it.
    BadState,
    /// The region is not registered, its tag is another one, or the range is not in it.
    Protection,
    /// The port is taken.
    PortInUse,
    /// The peer reset the connection.
    Reset,
    /// The operation was cancelled, or its socket closed.
    Cancelled,
    /// Nobody listens at the peer's port.
    Refused,
    /// The peer did not answer in time.
    TimedOut,
    /// No route leads to the peer.
    Unreachable,
    /// The application's quota is used up.
    Quota,
    /// Operations under way use the region.
    Busy,
    /// The sending direction was shut down before.
    Ended,
}

impl Status {
    const ALL: [Self; 14] = [
        Self::Ok,
        Self::Invalid,
        Self::BadHandle,
        Self::BadState,
        Self::Protection,
        Self::PortInUse,
        Self::Reset,
        Self::Cancelled,
        Self::Refused,
        Self::TimedOut,
        Self::Unreachable,
        Self::Quota,
        Self::Busy,
        Self::Ended,
    ];

    /// The status of an event's number; an unknown one is [`Status::Invalid`].
    pub fn from_number(number: u16) -> Self {
        let found = Self::ALL.into_iter().find(|known| *known as u16 == number);
        found.unwrap_or(Self::Invalid)
    }
}

/// An operation in the work queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Descriptor {
    /// [`Operation`].
    pub operation: u16,
    /// Event queue of the completion.
    pub queue: u16,
    /// Handle of the socket.
    pub socket: u32,
    /// Comes back in the event.
    pub tag: u64,
    /// First byte, a multiple of 8.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
    /// Meaning as the operation says.
    pub argument: u64,
}

/// A completion in an event queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Event {
    /// [`Operation`].
    pub operation: u16,
    /// [`Status`].
    pub status: u16,
    /// Handle of the socket; of an accept, the listening one.
    pub socket: u32,
    /// The descriptor's.
    pub tag: u64,
    /// Bytes sent or received.
    pub length: u32,
    /// Of an accept, the handle of the connection.
    pub child: u32,
    /// Peer of an accept, as in [`Operation::Connect`]; of a transmit or receive the descriptor's.
    pub argument: u64,
}

impl Descriptor {
    /// As a ring's entry.
    pub fn entry(self) -> Entry {
        zerocopy::transmute!(self)
    }
    /// Of a ring's entry.
    pub fn of(entry: Entry) -> Self {
        zerocopy::transmute!(entry)
    }
}

impl Event {
    /// As a ring's entry.
    pub fn entry(self) -> Entry {
        zerocopy::transmute!(self)
    }
    /// Of a ring's entry.
    pub fn of(entry: Entry) -> Self {
        zerocopy::transmute!(entry)
    }
}
