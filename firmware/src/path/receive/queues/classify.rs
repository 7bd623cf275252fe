//! Selects the queue of a frame in the receive buffer.
//!
//! [`flow_classify`] does the work; this module gives it access to the buffer and to its tables.

use super::super::frame::wrapped;
use super::refused::Refused;
use crate::memory::flow_cache::{self, FlowCache, build_rows};
use crate::memory::layout::{HASH_TABLES, INDIRECTION, QUEUE_CONTROL};
use crate::memory::verdict;
use crate::path::receive::frame::CRC;
use flow_classify::classifier::{Classifier, Verdict};
use flow_classify::fields::Version;
use flow_classify::key::{Key, Period};
use flow_classify::toeplitz::{Memory, Nibbles};
use flow_classify::{ClassifierKind, Frame, HashType, HashTypes};
use host_interface::queue::control::{KEY_WORDS, QueueControlBlock, TABLE_WORDS};
use host_interface::queue::{KEY_BYTES, QueueResult};
use tigon2_chip::Cpu;
use tigon2_hal::Bus;
use tigon2_hal::mac::ReceivedView;

/// A frame in the receive buffer, which begins at `base`, and the tables.
struct View<'a, B: Bus> {
    bus: &'a mut B,
    start: u32,
    base: u32,
}

impl<B: Bus> Frame for View<'_, B> {
    #[inline(always)]
    fn word(&mut self, offset: u32) -> u32 {
        self.bus.load(wrapped(self.base, self.start + offset))
    }

    #[inline(always)]
    fn half(&mut self, offset: u32) -> u32 {
        let address = wrapped(self.base, self.start + offset);
        self.bus.load_half(address).into()
    }
}

impl<B: Bus> Memory for View<'_, B> {
    type Pieces = Nibbles;

    #[inline(always)]
    fn row(&mut self, offset: u32) -> u32 {
        self.bus.load(HASH_TABLES + offset)
    }

    #[inline(always)]
    fn queue(&mut self, entry: u32) -> u32 {
        self.bus.load_byte(INDIRECTION + entry).into()
    }
}

/// A frame whose first bytes are contiguous.
struct Straight<'a, B: Bus> {
    bus: &'a mut B,
    start: u32,
}

impl<B: Bus> Frame for Straight<'_, B> {
    #[inline(always)]
    fn word(&mut self, offset: u32) -> u32 {
        self.bus.load(self.start + offset)
    }

    #[inline(always)]
    fn half(&mut self, offset: u32) -> u32 {
        self.bus.load_half(self.start + offset).into()
    }
}

/// How far the inspection of an untagged datagram reaches.
pub const REACH: u32 = 64;

/// A verdict in two words, which a function returns in registers.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Type of hash and queue, as a return BD has them.
    pub kind: u32,
    /// The hash.
    pub hash: u32,
}

impl Found {
    /// No verdict.
    pub const NONE: Found = Found {
        kind: verdict::NONE,
        hash: 0,
    };

    /// A verdict.
    pub const fn of(verdict: Verdict) -> Found {
        Found {
            kind: (verdict.hash_type as u32) << 24 | verdict.queue << 16,
            hash: verdict.hash,
        }
    }

    /// Whether there is one.
    #[inline(always)]
    pub const fn is_some(self) -> bool {
        self.kind != verdict::NONE
    }

    /// The queue.
    #[inline(always)]
    pub const fn queue(self) -> u32 {
        self.kind >> 16 & 0xFF
    }

    /// As one that the slow path takes.
    pub const fn verdict(self) -> Option<Verdict> {
        if !self.is_some() {
            return None;
        }
        Some(Verdict {
            queue: self.queue(),
            hash_type: match HashType::from_number(self.kind >> 24) {
                Some(hash_type) => hash_type,
                None => HashType::None,
            },
            hash: self.hash,
        })
    }
}

/// The verdict by source address on a frame of `length` bytes without CRC, at least
/// [`LEAST`](flow_classify::classifier::LEAST), if it is an untagged IP datagram without IPv4
/// options. `mask` is one less than the number of queues.
#[inline(always)]
pub fn by_source<B: Bus>(bus: &mut B, start: u32, length: u32, mask: u32) -> Found {
    let view = &mut Straight { bus, start };
    match flow_classify::classifier::straight_source_of_least(view, length) {
        Some(source) => Found {
            kind: (source & mask) << 16,
            hash: 0,
        },
        None => Found::NONE,
    }
}

/// The classifier of the open queues, the types of hash that it makes, and the cache of flows.
#[derive(Clone, Copy, Debug)]
pub struct Classify(Classifier, HashTypes, FlowCache);

impl Classify {
    /// Sends all frames to queue 0.
    pub const SINGLE: Classify = Classify(
        {
            let types = HashTypes::new();
            match Classifier::new(ClassifierKind::Single, 1, types, Period::None) {
                Ok(classifier) => classifier,
                Err(_) => panic!("one queue fits every classifier"),
            }
        },
        HashTypes::new(),
        FlowCache::NONE,
    );

    /// Leaves the verdict on the frame at a position by its hash, if its IPv4 flow is in the cache.
    /// A leaf: all that it needs is in registers that need not be saved.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
    #[inline(never)]
    pub fn is_known<B: Bus>(&self, frames: &ReceivedView, position: u32, bus: &mut B) -> bool {
        let view = &mut flow_cache::View::new(bus, self.2);
        verdict::judge(frames, position, view, |view, length| {
            self.0.cached_ipv4(view, length)
        })
    }

    /// The verdict on a contiguous frame of at least [`LEAST`](flow_classify::classifier::LEAST)
    /// bytes, if it is of an IPv4 flow in the cache.
    #[inline(always)]
    pub fn cached_ipv4<B: Bus>(&self, bus: &mut B, start: u32, length: u32) -> Found {
        let view = &mut flow_cache::View::new(bus, self.2);
        view.start = start;
        let verdict = self.0.cached_ipv4(view, length);
        verdict.map_or(Found::NONE, Found::of)
    }

    /// The same of IPv6. A leaf: it takes more registers than a loop around it can spare.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
    #[inline(never)]
    pub fn cached_ipv6<B: Bus>(&self, bus: &mut B, start: u32, length: u32) -> Found {
        let view = &mut flow_cache::View::new(bus, self.2);
        view.start = start;
        let verdict = self.0.cached_ipv6(view, length);
        verdict.map_or(Found::NONE, Found::of)
    }

    /// Whether there is a cache of flows for its hashes.
    pub fn has_cache(&self) -> bool {
        self.makes_hashes() && self.2.is_some()
    }

    /// The version of IP that an untagged frame at a position is of, in the buffer that begins at
    /// `base`; anything else counts as IPv4.
    pub fn version<B: Bus>(
        &self,
        frames: &ReceivedView,
        position: u32,
        base: u32,
        bus: &mut B,
    ) -> Version {
        const TYPE: u32 = 12;
        const IPV6: u32 = 0x86DD;
        let start = frames.at(bus, position).start;
        if (View { bus, start, base }).half(TYPE) == IPV6 {
            Version::V6
        } else {
            Version::V4
        }
    }

    /// Leaves the verdict on any other frame. Returns 1 if it was not in the cache, else 0.
    #[inline(never)]
    pub fn leave<B: Bus>(
        &mut self,
        frames: &ReceivedView,
        position: u32,
        base: u32,
        bus: &mut B,
    ) -> u32 {
        let view = &mut flow_cache::View::new(bus, self.2);
        if self.makes_hashes()
            && let Some(length) = verdict::straight(frames, position, view)
        {
            let start = view.start;
            let found = self.cached_ipv6(view.bus, start, length);
            if found.is_some() {
                verdict::leave(position, view, found.kind, found.hash);
                return 0;
            }
            if let Some(found) = flow_cache::look_up(&self.0, view, length).map(Found::of) {
                verdict::leave(position, view, found.kind, found.hash);
                return 1;
            }
        }
        let frame = frames.at(bus, position);
        let found = if frame.errors != 0 || frame.length < CRC {
            Found::NONE
        } else {
            let length = frame.length.wrapping_sub(CRC);
            Found::of(self.round(bus, frame.start, length, base))
        };
        let view = &mut flow_cache::View::new(bus, self.2);
        verdict::leave(position, view, found.kind, found.hash);
        1
    }

    /// Whether it makes hashes.
    pub fn makes_hashes(&self) -> bool {
        self.0.kind() == ClassifierKind::Toeplitz
    }

    /// The types of hash that it makes, as bits, and from bit 16 on the period of its key.
    pub const fn hashes(&self) -> u32 {
        self.1.into_bits() | (self.0.period() as u32) << 16
    }

    /// What the last byte of the source address is masked with, if that chooses the queue: with
    /// nothing where all frames go to queue 0.
    #[inline(always)]
    pub fn source_mask(&self) -> Option<u32> {
        match self.0.kind() {
            ClassifierKind::Single => Some(0),
            ClassifierKind::SourceAddress => Some(self.0.queues() - 1),
            _ => None,
        }
    }

    /// The verdict on any frame; it may go round the end of the buffer, which begins at `base`.
    #[inline(never)]
    pub fn round<B: Bus>(&mut self, bus: &mut B, start: u32, length: u32, base: u32) -> Verdict {
        self.0
            .classify_in_general(&mut View { bus, start, base }, length)
    }

    /// From the control block that was read, for `open` queues. Builds the tables.
    ///
    /// # Errors
    /// What is invalid, and the index of the table entry.
    #[inline(never)]
    pub fn configured<B: Bus>(bus: &mut B, open: u32) -> Result<Classify, Refused> {
        use core::mem::offset_of;
        let mut word = |offset: usize| bus.load(QUEUE_CONTROL + offset as u32);
        let types = word(offset_of!(QueueControlBlock, hash_types));
        let kind = word(offset_of!(QueueControlBlock, classifier));
        let kind = ClassifierKind::from_number(kind).ok_or(Refused::of(QueueResult::Classifier))?;
        let types = HashTypes::from_bits(types);
        let key = key(bus);
        let classifier = match Classifier::new(kind, open, types, key.period()) {
            Ok(classifier) => classifier,
            Err(flow_classify::BadClassifier::HashTypes(_)) => {
                return Err(Refused::of(QueueResult::HashTypes));
            }
            Err(_) => return Err(Refused::of(QueueResult::QueueCount)),
        };
        let mut flows = FlowCache::NONE;
        if kind == ClassifierKind::Toeplitz {
            flows = FlowCache::cleared(bus, Cpu::A, open);
            take_table(bus, open)?;
            build_rows(bus, &key, open);
        }
        Ok(Classify(classifier, types, flows))
    }
}

/// The key in the control block.
fn key<B: Bus>(bus: &mut B) -> Key {
    const AT: u32 = QUEUE_CONTROL + core::mem::offset_of!(QueueControlBlock, key) as u32;
    const { assert!(KEY_WORDS * 4 == KEY_BYTES) };
    let mut key = Key([0; KEY_BYTES]);
    for (bytes, address) in key.0.as_chunks_mut().0.iter_mut().zip((AT..).step_by(4)) {
        *bytes = bus.load(address).to_be_bytes();
    }
    key
}

/// Validates the indirection table and takes it.
fn take_table<B: Bus>(bus: &mut B, open: u32) -> Result<(), Refused> {
    const AT: u32 = QUEUE_CONTROL + core::mem::offset_of!(QueueControlBlock, table) as u32;
    for entry in 0..TABLE_WORDS as u32 * 4 {
        if u32::from(bus.load_byte(AT + entry)) >= open {
            return Err(Refused::about(QueueResult::TableEntry, entry));
        }
    }
    for word in (0..TABLE_WORDS as u32 * 4).step_by(4) {
        let entries = bus.load(AT + word);
        bus.store(INDIRECTION + word, entries);
    }
    Ok(())
}
