//! The entries of the rings.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::ring::Entry;

const _: () = assert!(size_of::<Descriptor>() == 32 && size_of::<Event>() == 32);

/// A region and its protection tag as a descriptor's `argument`.
#[must_use]
pub const fn region_argument(number: u32, tag: u32) -> u64 {
    (tag as u64) << 32 | number as u64
}

/// The region of a receive that takes a buffer of the anonymous pool.
pub const ANONYMOUS: u32 = u32::MAX;

/// An operation in the work queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Descriptor {
    /// [`super::Operation`] and its flags.
    pub operation: u16,
    /// Event queue of the completion, [`super::BOUND`] or [`super::QUIET`].
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
    /// [`super::Operation`] and its flags, [`super::MORE`] among them.
    pub operation: u16,
    /// [`super::Status`].
    pub status: u16,
    /// Handle of the socket; of an accept, the listening one.
    pub socket: u32,
    /// The descriptor's.
    pub tag: u64,
    /// Bytes sent or received.
    pub length: u32,
    /// Of an accept, the handle of the connection; of a receive into an anonymous buffer, the
    /// buffer.
    pub child: u32,
    /// Peer of an accept, as in [`super::Operation::Connect`]; of a transmit or receive the descriptor's.
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
