//! The host's rings of empty receive buffers.
//!
//! Hardware reference, section 14; host/NIC software interface, "Rings". Each ring has BDs of 32
//! bytes. An extended jumbo BD has 64 bytes and takes two entries of a ring of twice the size: the
//! firmware doubles the host's indices, and the fields that all BDs share lie in its second half.
//!
//! CPU B fetches the BDs (`path::buffer_fetch`), and CPU A assigns them to frames
//! (`path::receive`).

use super::note::ReadKind;
use crate::memory::config::Config;
use crate::memory::layout::{JUMBO_BYTES, MINI_BYTES, STANDARD_BYTES};
use host_interface::ring::{JUMBO_ENTRIES, MINI_ENTRIES, STANDARD_ENTRIES};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;

/// The number of rings.
pub const RINGS: usize = 3;

/// One of the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingId {
    /// Frames of up to `max_len` bytes.
    Standard = 0,
    /// Small frames.
    Mini = 1,
    /// Frames longer than the standard ring's.
    Jumbo = 2,
}

impl RingId {
    /// All of them, in their order in arrays and shared words.
    pub const ALL: [RingId; RINGS] = [RingId::Standard, RingId::Mini, RingId::Jumbo];

    /// The ring's event "BDs must be fetched" (5, C).
    pub const fn event(self) -> EventBit {
        match self {
            RingId::Standard => EventBit::StandardReceiveBdReady,
            RingId::Mini => EventBit::MiniReceiveBdReady,
            RingId::Jumbo => EventBit::JumboReceiveBdReady,
        }
    }

    /// The kind of a fetch of the ring's BDs.
    pub const fn kind(self) -> ReadKind {
        match self {
            RingId::Standard => ReadKind::StandardBds,
            RingId::Mini => ReadKind::MiniBds,
            RingId::Jumbo => ReadKind::JumboBds,
        }
    }

    /// The ring's element of an array with one element for each ring.
    #[inline(always)]
    pub const fn in_array<T>(self, array: &[T; RINGS]) -> &T {
        let [standard, mini, jumbo] = array;
        match self {
            RingId::Standard => standard,
            RingId::Mini => mini,
            RingId::Jumbo => jumbo,
        }
    }

    /// The same, mutable.
    #[inline(always)]
    pub const fn in_array_mut<T>(self, array: &mut [T; RINGS]) -> &mut T {
        let [standard, mini, jumbo] = array;
        match self {
            RingId::Standard => standard,
            RingId::Mini => mini,
            RingId::Jumbo => jumbo,
        }
    }
}

/// The place and the size of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// In the host's memory.
    pub host: HostAddress,
    /// BDs of 32 bytes, a power of two.
    pub entries: u32,
}

impl Geometry {
    /// The ring as the host configured it, if it uses the ring.
    pub fn of(config: &Config, id: RingId) -> Option<Geometry> {
        let (ring, entries) = match id {
            RingId::Standard => (&config.standard, STANDARD_ENTRIES),
            RingId::Mini => (&config.mini, MINI_ENTRIES),
            RingId::Jumbo => (&config.jumbo, JUMBO_ENTRIES << doubled(config)),
        };
        ring.is_used().then_some(Geometry {
            host: ring.address,
            entries,
        })
    }
}

// The copies fit into their regions, extended BDs into that of the jumbo ring.
const _: () = assert!(
    STANDARD_ENTRIES << 5 == STANDARD_BYTES
        && MINI_ENTRIES << 5 == MINI_BYTES
        && JUMBO_ENTRIES << 6 == JUMBO_BYTES
);

/// 1 if a jumbo BD takes two places.
pub fn doubled(config: &Config) -> u32 {
    u32::from(config.jumbo.flags.extended_bd())
}
