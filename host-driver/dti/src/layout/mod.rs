//! What stands where in an application's memory file, and the layout of the entries.
//!
//! ```text
//!   word  0       magic and version
//!   word  8       1: the engine sleeps
//!   word  16+8q   1: the application sleeps until event queue q has an event
//!   ...           doorbell queue, `Sizes::work` descriptors: doorbells, and operations that
//!                 have no queue of their own
//!   ...           `Sizes::queues` event queues of `Sizes::events` events
//!   ...           of each socket a transmit queue and a receive queue of `Sizes::depth` descriptors
//!   page          `Sizes::pool` bytes of payload
//! ```
//!
//! The anonymous pool is a memory file of its own, of `Sizes::anonymous` buffers of
//! [`ANONYMOUS_BYTES`]: it may be large, and a card that reads payload where it is maps the first
//! file only.
//!
//! An application asks for sizes when it attaches; the engine judges them, makes the file, and
//! both sides compute the places from the sizes that the engine gave.
//!
//! # Several engines
//!
//! A handle has the number of its engine above [`ENGINE_SHIFT`] ([`engine_of`]), as the engine says
//! when an application attaches, so an event names the engine that posted it. Each attachment has
//! event queues of its own: an event queue has one engine as its producer. The flow table hashes
//! addresses and ports as a card's receive queues do (Toeplitz, with a key that is given), so a
//! card can choose the engine of a flow: an engine's port is one pair of queues of a card and the
//! flows that reach it. One card with several engines is not built yet.

mod entry;
mod operation;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::ring::{Place, ring_words};

pub use entry::{ANONYMOUS, Descriptor, Event, region_argument};
pub use operation::{LAST, MORE, MULTISHOT, Operation, SocketOption, Status, WHOLE};

/// First word of every memory file: "dti" and the layout's version.
pub const MAGIC: u64 = 0x6474_6900_0000_0004;
/// Words of a page; a memory file has whole ones.
const PAGE_WORDS: usize = 512;
/// Word that is 1 while the engine sleeps.
pub const ENGINE_SLEEPS: usize = 8;
/// Most event queues of an application.
pub const EVENT_QUEUES: u32 = 64;
/// Regions that an application may register; their numbers are 0 to `REGIONS - 1`.
pub const REGIONS: usize = 1 << 16;
/// Bytes of a buffer of the anonymous pool.
pub const ANONYMOUS_BYTES: usize = 2048;
/// Bits of a handle below the number of its engine.
pub const ENGINE_SHIFT: u32 = 24;
/// A descriptor's queue if no event is wanted: registrations and releases only.
pub const QUIET: u16 = u16::MAX;
/// A descriptor's queue if the event goes where the socket's transmit or receive queue is bound.
pub const BOUND: u16 = u16::MAX - 1;

/// A work queue of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// Connects, sends and shutdowns.
    Transmit = 0,
    /// Accepts and receives.
    Receive = 1,
}

/// How large an application's queues are. An operation needs a place in its event queue from the
/// time at which the engine takes it, so an event queue bounds the operations under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sizes {
    /// Descriptors that the doorbell queue holds.
    pub work: u32,
    /// Events that each event queue holds.
    pub events: u32,
    /// Bytes of the pool, a multiple of 8.
    pub pool: u32,
    /// Sockets that the application names; their handles are 0 to `sockets - 1`.
    pub sockets: u32,
    /// Event queues, at most [`EVENT_QUEUES`].
    pub queues: u32,
    /// Descriptors that each work queue of a socket holds.
    pub depth: u32,
    /// Buffers of the anonymous pool. The receive windows of all connections promise no more than
    /// these hold.
    pub anonymous: u32,
    /// Sockets that the engine names, for multishot accepts; their handles follow the others.
    pub chosen: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            work: 256,
            events: 4096,
            pool: 8 << 20,
            sockets: 1024,
            queues: 8,
            depth: 16,
            // 64 KB for each socket.
            anonymous: 1 << 15,
            chosen: 0,
        }
    }
}

impl Sizes {
    /// Whether such queues can exist, and none is larger than `most`'s.
    #[must_use]
    pub fn within(&self, most: &Self) -> bool {
        self.work.is_power_of_two()
            && self.events.is_power_of_two()
            && self.depth.is_power_of_two()
            && self.pool.is_multiple_of(8)
            && self.pool > 0
            && self.sockets > 0
            && (1..=EVENT_QUEUES).contains(&self.queues)
            && self.handles() < 1 << ENGINE_SHIFT
            && self.work <= most.work
            && self.events <= most.events
            && self.pool <= most.pool
            && self.sockets <= most.sockets
            && self.queues <= most.queues
            && self.depth <= most.depth
            && self.anonymous <= most.anonymous
            && self.chosen <= most.chosen
    }

    /// Handles of sockets, of both kinds.
    #[must_use]
    pub const fn handles(&self) -> u32 {
        self.sockets.saturating_add(self.chosen)
    }

    /// The doorbell queue.
    #[must_use]
    pub const fn work_queue(&self) -> Place {
        Place {
            start: event_queue_armed(self.queues as usize),
            capacity: self.work as usize,
        }
    }

    /// An event queue.
    #[must_use]
    pub const fn event_queue(&self, number: usize) -> Place {
        let first = self.work_queue().start + ring_words(self.work as usize);
        Place {
            start: first + number * ring_words(self.events as usize),
            capacity: self.events as usize,
        }
    }

    /// A work queue of the socket of a handle.
    #[must_use]
    pub const fn socket_queue(&self, handle: u32, direction: Direction) -> Place {
        let number = handle as usize * 2 + direction as usize;
        Place {
            start: self.event_queue(self.queues as usize).start
                + number * ring_words(self.depth as usize),
            capacity: self.depth as usize,
        }
    }

    /// First word of the pool.
    #[must_use]
    pub const fn pool_start(&self) -> usize {
        let end = self.socket_queue(self.handles(), Direction::Transmit).start;
        end.next_multiple_of(PAGE_WORDS)
    }

    /// First word of a buffer in the file of the anonymous pool.
    #[must_use]
    pub const fn anonymous_start(number: u32) -> usize {
        number as usize * (ANONYMOUS_BYTES / 8)
    }

    /// Words of the anonymous pool's file.
    #[must_use]
    pub const fn anonymous_words(&self) -> usize {
        let words = Self::anonymous_start(self.anonymous).next_multiple_of(PAGE_WORDS);
        // No file is empty.
        if words == 0 { PAGE_WORDS } else { words }
    }

    /// Bytes of the anonymous pool.
    #[must_use]
    pub const fn anonymous_bytes(&self) -> u64 {
        self.anonymous as u64 * ANONYMOUS_BYTES as u64
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

/// The engine of a handle.
#[must_use]
pub const fn engine_of(handle: u32) -> u8 {
    (handle >> ENGINE_SHIFT) as u8
}

/// The number of a handle at its engine.
#[must_use]
pub const fn number_of(handle: u32) -> u32 {
    handle & ((1 << ENGINE_SHIFT) - 1)
}

/// The handle of a socket at an engine.
#[must_use]
pub const fn handle_of(engine: u8, number: u32) -> u32 {
    (engine as u32) << ENGINE_SHIFT | number_of(number)
}
