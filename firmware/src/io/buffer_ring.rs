//! The host's rings of empty buffers: which they are, and where.
//!
//! Hardware reference, section 14; host/NIC software interface, "Rings". Each is a ring of
//! BDs of 32 bytes. An extended jumbo BD has 64 bytes and takes two places in a ring of twice
//! as many: the indices of the host are doubled, and what this firmware reads of such a BD as
//! of any other lies in its second half.
//!
//! CPU B fetches the BDs (`path::buffer_fetch`), CPU A gives them to frames
//! (`path::receive`).

use super::bd_ring::{Fetch, Take};
use super::note::ReadKind;
use crate::memory::config::Config;
use crate::memory::layout::{JUMBO_BDS, MINI_BDS, STANDARD_BDS};
use host_interface::ring::{JUMBO_ENTRIES, MINI_ENTRIES, STANDARD_ENTRIES};
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::HostAddress;

/// How many rings there are.
pub const RINGS: usize = 3;

/// One of the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingId {
    /// Frames of up to `max_len` bytes.
    Standard = 0,
    /// Small frames.
    Mini = 1,
    /// All that is longer than the standard ring's.
    Jumbo = 2,
}

impl RingId {
    /// All of them, in their order in arrays and shared words.
    pub const ALL: [RingId; RINGS] = [RingId::Standard, RingId::Mini, RingId::Jumbo];

    /// The event "BDs must be fetched" of the ring (5, C).
    pub const fn event(self) -> EventBit {
        match self {
            RingId::Standard => EventBit::StandardReceiveBdReady,
            RingId::Mini => EventBit::MiniReceiveBdReady,
            RingId::Jumbo => EventBit::JumboReceiveBdReady,
        }
    }

    /// What a fetch of the ring's BDs is noted as.
    pub const fn kind(self) -> ReadKind {
        match self {
            RingId::Standard => ReadKind::StandardBds,
            RingId::Mini => ReadKind::MiniBds,
            RingId::Jumbo => ReadKind::JumboBds,
        }
    }

    /// The ring's one of an array with one for each.
    #[inline(always)]
    pub const fn in_array<T>(self, array: &[T; RINGS]) -> &T {
        let [standard, mini, jumbo] = array;
        match self {
            RingId::Standard => standard,
            RingId::Mini => mini,
            RingId::Jumbo => jumbo,
        }
    }

    /// The same to change it.
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

/// Where a ring and the copies of its BDs are, and its entries.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    host: HostAddress,
    copies: u32,
    entries: u32,
}

impl Geometry {
    /// Of a ring as the host configured it, if it uses it.
    pub fn of(config: &Config, id: RingId) -> Option<Geometry> {
        let (ring, copies, entries) = match id {
            RingId::Standard => (&config.standard, STANDARD_BDS, STANDARD_ENTRIES),
            RingId::Mini => (&config.mini, MINI_BDS, MINI_ENTRIES),
            RingId::Jumbo => (&config.jumbo, JUMBO_BDS, JUMBO_ENTRIES << doubled(config)),
        };
        ring.is_used().then_some(Geometry {
            host: ring.address,
            copies,
            entries,
        })
    }

    /// The part of the ring that is to be fetched.
    pub fn fetch(self) -> Fetch<5> {
        Fetch::new(self.host, self.copies, self.entries)
    }

    /// The part of the ring that has arrived.
    pub fn take(self) -> Take<5> {
        Take::new(self.copies, self.entries)
    }
}

/// 1 if a jumbo BD takes two places.
pub fn doubled(config: &Config) -> u32 {
    u32::from(config.jumbo.flags.extended_bd())
}
