//! A CPU's cache of flows, see [`flow_classify::flows`], and a frame beside it and the other tables.
//!
//! Each CPU has its own cache, so none sees a slot that the other one is changing. Caches and rows
//! of bytes lie where the queues that are not open would have their rings:
//!
//! ```text
//!   open queues    1 to 4    5       6       7       8
//!   each cache     8 KB      4 KB    2 KB    4 KB    -
//!   rows of bytes  12 KB     12 KB   12 KB   -       -
//! ```
//!
//! Without rows of bytes IPv4 is looked up by nibbles, as IPv6 is.

use super::layout::{FlowTables, HASH_TABLES, INDIRECTION};
use flow_classify::classifier::{Classifier, Verdict};
use flow_classify::flows::FlowMasks;
use flow_classify::toeplitz::{self, Bytes, Memory, Nibbles, Pieces};
use flow_classify::{Frame, Key};
use tigon2_chip::Cpu;
use tigon2_hal::Bus;
use tigon2_hal::schedule::barrier;

/// Bytes of IPv4 addresses and ports.
const IPV4_BYTES: u32 = 12;

/// Where a cache lies, and how large it is.
#[derive(Clone, Copy, Debug)]
pub struct FlowCache {
    /// 0 for none.
    base: u32,
    masks: FlowMasks,
    /// The rows of bytes, or 0.
    rows: u32,
}

impl FlowCache {
    /// Of no queues.
    pub const NONE: FlowCache = FlowCache {
        base: 0,
        masks: FlowMasks::NONE,
        rows: 0,
    };

    /// Whether there is room for one.
    pub const fn is_some(&self) -> bool {
        self.base != 0
    }

    /// The empty cache beside `open` queues.
    pub fn cleared<B: Bus>(bus: &mut B, cpu: Cpu, open: u32) -> FlowCache {
        let tables = FlowTables::beside(open);
        let [cache_a, cache_b] = tables.caches;
        let base = if matches!(cpu, Cpu::A) {
            cache_a
        } else {
            cache_b
        };
        for offset in (0..tables.cache_bytes).step_by(4) {
            bus.store(base + offset, 0);
        }
        FlowCache {
            base,
            masks: if tables.cache_bytes == 0 {
                FlowMasks::NONE
            } else {
                FlowMasks::halves(tables.cache_bytes)
            },
            rows: tables.rows,
        }
    }
}

/// A frame in the receive buffer whose first bytes are contiguous, and the tables.
pub struct View<'a, B: Bus> {
    /// SRAM.
    pub bus: &'a mut B,
    /// The frame's first byte.
    pub start: u32,
    /// The rows of nibbles, in a register: [`VERDICTS`](super::layout::VERDICTS) and the indirection
    /// table are near.
    pub rows: u32,
    flows: FlowCache,
}

impl<'a, B: Bus> View<'a, B> {
    /// No frame yet.
    #[inline(always)]
    pub fn new(bus: &'a mut B, flows: FlowCache) -> View<'a, B> {
        View {
            bus,
            start: 0,
            rows: barrier(HASH_TABLES),
            flows,
        }
    }
}

impl<B: Bus> Frame for View<'_, B> {
    #[inline(always)]
    fn word(&mut self, offset: u32) -> u32 {
        self.bus.load(self.start + offset)
    }

    #[inline(always)]
    fn half(&mut self, offset: u32) -> u32 {
        self.bus.load_half(self.start + offset).into()
    }
}

impl<B: Bus> Memory for View<'_, B> {
    type Pieces = Nibbles;

    #[inline(always)]
    fn row(&mut self, offset: u32) -> u32 {
        self.bus.load(self.rows + offset)
    }

    #[inline(always)]
    fn queue(&mut self, entry: u32) -> u32 {
        let entries = self.rows + entry;
        self.bus
            .load_byte(entries - (HASH_TABLES - INDIRECTION))
            .into()
    }

    #[inline(always)]
    fn flows(&self) -> Option<FlowMasks> {
        (self.flows.base != 0).then_some(self.flows.masks)
    }

    #[inline(always)]
    fn flow(&mut self, offset: u32) -> u32 {
        self.bus.load(self.flows.base + offset)
    }

    #[inline(always)]
    fn set_flow(&mut self, offset: u32, value: u32) {
        self.bus.store(self.flows.base + offset, value);
    }
}

/// The same with rows of bytes for IPv4.
struct ByBytes<'a, 'b, B: Bus> {
    view: &'a mut View<'b, B>,
    rows: u32,
}

impl<B: Bus> Frame for ByBytes<'_, '_, B> {
    #[inline(always)]
    fn word(&mut self, offset: u32) -> u32 {
        self.view.word(offset)
    }

    #[inline(always)]
    fn half(&mut self, offset: u32) -> u32 {
        self.view.half(offset)
    }
}

impl<B: Bus> Memory for ByBytes<'_, '_, B> {
    type Pieces = Bytes;

    #[inline(always)]
    fn row(&mut self, offset: u32) -> u32 {
        self.view.bus.load(self.rows + offset)
    }

    #[inline(always)]
    fn queue(&mut self, entry: u32) -> u32 {
        self.view.queue(entry)
    }

    #[inline(always)]
    fn flows(&self) -> Option<FlowMasks> {
        self.view.flows()
    }

    #[inline(always)]
    fn set_flow(&mut self, offset: u32, value: u32) {
        self.view.set_flow(offset, value);
    }
}

/// The verdict by the hash on a frame of at least
/// [`LEAST`](flow_classify::classifier::LEAST) bytes; its flow goes into the cache. `None` for a
/// frame with tags, options or extensions, and for one that is neither TCP nor UDP. Both CPUs run
/// this code.
#[inline(always)]
pub fn look_up<B: Bus>(
    classifier: &Classifier,
    view: &mut View<'_, B>,
    length: u32,
) -> Option<Verdict> {
    let ipv4 = if view.flows.rows != 0 {
        by_bytes(classifier, view, length)
    } else {
        by_nibbles(classifier, view, length)
    };
    ipv4.or_else(|| ipv6(classifier, view, length))
}

/// IPv4 by bytes.
#[inline(never)]
fn by_bytes<B: Bus>(
    classifier: &Classifier,
    view: &mut View<'_, B>,
    length: u32,
) -> Option<Verdict> {
    let rows = barrier(view.flows.rows);
    classifier.renewed_ipv4(&mut ByBytes { view, rows }, length)
}

/// IPv4 by nibbles.
#[inline(never)]
fn by_nibbles<B: Bus>(
    classifier: &Classifier,
    view: &mut View<'_, B>,
    length: u32,
) -> Option<Verdict> {
    classifier.renewed_ipv4(view, length)
}

/// IPv6.
#[inline(never)]
fn ipv6<B: Bus>(classifier: &Classifier, view: &mut View<'_, B>, length: u32) -> Option<Verdict> {
    classifier.renewed_ipv6(view, length)
}

/// Builds the rows of a key for `open` queues.
#[inline(never)]
pub fn build_rows<B: Bus>(bus: &mut B, key: &Key, open: u32) {
    let mut build = |rows: u32, bytes: u32, bits: u32| {
        toeplitz::build_pieces(key, bytes, bits, |offset, value| {
            bus.store(rows + offset, value);
        });
    };
    build(HASH_TABLES, toeplitz::INPUT_BYTES, Nibbles::BITS);
    let rows = FlowTables::beside(open).rows;
    if rows != 0 {
        build(rows, IPV4_BYTES, Bytes::BITS);
    }
}
