//! The Toeplitz hash: look-ups in rows of precomputed words.
//!
//! The published function XORs a window of the key for each set bit of the input. It is linear, so
//! the input can be cut into pieces, and each piece is looked up in a *row*: for each value of the
//! piece, the XOR of the windows of its bits.
//!
//! ```text
//!   input   | b0 | b1 | b2 | ... | b35 |        piece: a byte (256 words a row)
//!             │    │    │                        or a nibble (16 words a row)
//!           row 0 row 1 row 2    ──► XOR ──► hash
//! ```
//!
//! A key that repeats after 2 or 4 bytes has the same rows repeatedly: the pieces are XORed first
//! and looked up once.
//!
//! The caller provides the memory of the rows, see [`Memory`]; [`build`] fills them.

use crate::flows::CachedIpv4;
use crate::frame::Frame;
use crate::key::{Key, Period};
pub use crate::memory::{Memory, Pieces};
use crate::table::ENTRY_MASK;
use host_interface::queue::TABLE_ENTRIES;

/// Bytes of the longest input: two IPv6 addresses and two ports.
pub const INPUT_BYTES: u32 = 36;

/// Bytes: 1 KB for each byte of the input, 12 KB for IPv4 and 36 KB for all.
#[derive(Clone, Copy, Debug)]
pub struct Bytes;

/// Nibbles: 128 bytes for each byte of the input, 1.5 KB for IPv4 and 4.5 KB for all.
#[derive(Clone, Copy, Debug)]
pub struct Nibbles;

/// Bits `high - 1` down of a word, moved so that the lowest of `mask` is bit 2.
#[inline(always)]
const fn scaled(word: u32, shift: u32, mask: u32) -> u32 {
    if shift >= 2 {
        word >> (shift - 2) & mask
    } else {
        word << (2 - shift) & mask
    }
}

impl Pieces for Bytes {
    const ROW_SHIFT: u32 = 10;
    const BITS: u32 = 8;

    #[inline(always)]
    fn look_up<M: Memory>(memory: &mut M, position: u32, word: u32, high: u32) -> u32 {
        memory.row((position << 10) + scaled(word, high - 8, 0x3FC))
    }
}

impl Pieces for Nibbles {
    const ROW_SHIFT: u32 = 7;
    const BITS: u32 = 4;

    #[inline(always)]
    fn look_up<M: Memory>(memory: &mut M, position: u32, word: u32, high: u32) -> u32 {
        let upper = memory.row((position << 7) + scaled(word, high - 4, 0x3C));
        upper ^ memory.row((position << 7) + 64 + scaled(word, high - 8, 0x3C))
    }
}

/// Bytes of the rows that an input of `bytes` needs.
pub const fn rows_bytes<P: Pieces>(bytes: u32) -> u32 {
    bytes << P::ROW_SHIFT
}

/// Builds the rows for inputs of up to `bytes`: calls `store` with the offset and the value
/// of each word, in order. Cold: some twenty cycles a word.
pub fn build<P: Pieces>(key: &Key, bytes: u32, store: impl FnMut(u32, u32)) {
    build_pieces(key, bytes, P::BITS, store);
}

/// The same for pieces of `bits`, 8 at most: one function for all of them.
pub fn build_pieces(key: &Key, bytes: u32, bits: u32, mut store: impl FnMut(u32, u32)) {
    let mut offset = 0;
    let mut bit = 0;
    while bit < 8 * bytes {
        // From one value to the next its lowest bits change, up to the lowest that is set then.
        let mut changes = [0; 8];
        let mut sum = 0;
        for (number, change) in (0..bits).rev().zip(&mut changes) {
            sum ^= key.window(bit + number);
            *change = sum;
        }
        let mut entry = 0;
        store(offset, entry);
        offset += 4;
        for value in 1..1u32 << bits {
            let mut lowest = 0;
            while value >> lowest & 1 == 0 {
                lowest += 1;
            }
            entry ^= changes.get(lowest as usize).copied().unwrap_or_default();
            store(offset, entry);
            offset += 4;
        }
        bit += bits;
    }
}

/// The look-ups for bits 15:0 of a word.
#[inline(always)]
fn of_half<M: Memory>(memory: &mut M, position: u32, half: u32) -> u32 {
    M::Pieces::look_up(memory, position, half, 16)
        ^ M::Pieces::look_up(memory, position + 1, half, 8)
}

/// The look-ups for a word.
#[inline(always)]
fn of_word<M: Memory>(memory: &mut M, position: u32, word: u32) -> u32 {
    M::Pieces::look_up(memory, position, word, 32)
        ^ M::Pieces::look_up(memory, position + 1, word, 24)
        ^ of_half(memory, position + 2, word)
}

/// The hash of XORed halfwords: those with even numbers in bits 15:0, those with odd numbers in
/// bits 31:16.
#[inline(always)]
fn of_folded<M: Memory>(memory: &mut M, period: Period, folded: u32) -> u32 {
    match period {
        Period::Halfword => of_half(memory, 0, folded ^ folded >> 16),
        _ => of_half(memory, 0, folded) ^ of_half(memory, 2, folded >> 16),
    }
}

/// The input of an untagged IPv4 datagram without options, in words of the frame.
///
/// ```text
///   first  | -      | source |    third | destination | source port |
///   second | source | destination |     ports | -     | destination port |
/// ```
pub(crate) struct Ipv4Input {
    pub first: u32,
    pub second: u32,
    /// Without ports the lower half is 0.
    pub third: u32,
    /// The destination port, if ports count.
    pub ports: Option<u32>,
}

impl Ipv4Input {
    #[inline(always)]
    pub fn hash<M: Memory>(&self, memory: &mut M, period: Period) -> u32 {
        if matches!(period, Period::None) {
            return self.remembered(memory);
        }
        self.of_period(memory, period)
    }

    /// The hash of a key with a period.
    #[inline(always)]
    fn of_period<M: Memory>(&self, memory: &mut M, period: Period) -> u32 {
        let addresses = self.first & 0xFFFF ^ self.second ^ self.third;
        let port = self.ports.unwrap_or(0);
        of_folded(memory, period, addresses ^ port << 16)
    }

    /// The flow that the cache knows it by.
    #[inline(always)]
    fn flow(&self) -> CachedIpv4 {
        let rest = self.first << 16 | self.ports.unwrap_or(0);
        CachedIpv4([self.second, self.third, rest])
    }

    /// The hash for a key without a period, from the cache of flows if it is there.
    #[inline(always)]
    fn remembered<M: Memory>(&self, memory: &mut M) -> u32 {
        if let Some(hash) = self.cached(memory) {
            return hash;
        }
        let hash = self.looked_up(memory);
        if let Some(masks) = memory.flows() {
            self.flow().remember(memory, masks, hash);
        }
        hash
    }

    /// The hash, if the flow is in the cache.
    #[inline(always)]
    pub fn cached<M: Memory>(&self, memory: &mut M) -> Option<u32> {
        let masks = memory.flows()?;
        self.flow().find(memory, masks)
    }

    /// The hash of any key, in little code; it goes into the cache.
    #[inline(always)]
    pub fn renewed<M: Memory>(&self, memory: &mut M, period: Period) -> u32 {
        let hash = match period {
            Period::None => self.straight(memory),
            _ => self.of_period(memory, period),
        };
        if let Some(masks) = memory.flows() {
            self.flow().remember(memory, masks, hash);
        }
        hash
    }

    /// The hash of a key without a period, in little code: what does not count is 0 and adds 0.
    #[inline(always)]
    pub fn straight<M: Memory>(&self, memory: &mut M) -> u32 {
        of_half(memory, 0, self.first)
            ^ of_word(memory, 2, self.second)
            ^ of_word(memory, 6, self.third)
            ^ of_half(memory, 10, self.ports.unwrap_or(0))
    }

    #[inline(always)]
    fn looked_up<M: Memory>(&self, memory: &mut M) -> u32 {
        let mut sum = of_half(memory, 0, self.first);
        sum ^= of_word(memory, 2, self.second);
        sum ^= of_half(memory, 6, self.third >> 16);
        if let Some(port) = self.ports {
            sum ^= of_half(memory, 8, self.third) ^ of_half(memory, 10, port);
        }
        sum
    }
}

/// Where the input of any datagram lies. All offsets are 2 above a multiple of 4.
pub(crate) struct Input {
    /// Offset of both addresses.
    pub addresses: u32,
    /// Bytes of both.
    pub bytes: u32,
    /// Offset of both ports, if they count.
    pub ports: Option<u32>,
}

impl Input {
    /// As [`hash`](Self::hash), more slowly and in a third of the code: by halfwords.
    #[inline(always)]
    pub fn hash_by_halves<V: Frame + Memory>(&self, view: &mut V, period: Period) -> u32 {
        let bytes = self.bytes + self.ports.map_or(0, |_| 4);
        let mut sum = 0;
        let mut position = 0;
        while position < bytes {
            let at = if position < self.bytes {
                self.addresses + position
            } else {
                self.ports.unwrap_or(0) + (position - self.bytes)
            };
            let half = view.half(at);
            sum ^= match period {
                Period::None => of_half(view, position, half),
                // Halfwords with odd numbers go to the upper half.
                _ => half << ((position & 2) << 3),
            };
            position += 2;
        }
        match period {
            Period::None => sum,
            _ => of_folded(view, period, sum),
        }
    }

    /// The hash.
    #[inline(never)]
    pub fn hash<V: Frame + Memory>(&self, view: &mut V, period: Period) -> u32 {
        if matches!(period, Period::None) {
            return self.looked_up(view);
        }
        // Both begin at a halfword with an even number.
        let mut folded = view.half(self.addresses);
        let mut at = self.addresses + 2;
        let last = self.addresses + self.bytes - 2;
        while at < last {
            folded ^= view.word(at);
            at += 4;
        }
        folded ^= view.half(last) << 16;
        if let Some(ports) = self.ports {
            folded ^= view.half(ports) ^ view.half(ports + 2) << 16;
        }
        of_folded(view, period, folded)
    }

    #[inline(always)]
    fn looked_up<V: Frame + Memory>(&self, view: &mut V) -> u32 {
        let half = view.half(self.addresses);
        let mut sum = of_half(view, 0, half);
        let mut position = 2;
        while position < self.bytes - 2 {
            let word = view.word(self.addresses + position);
            sum ^= of_word(view, position, word);
            position += 4;
        }
        let half = view.half(self.addresses + position);
        sum ^= of_half(view, position, half);
        if let Some(ports) = self.ports {
            let both = view.half(ports) << 16 | view.half(ports + 2);
            sum ^= of_word(view, position + 2, both);
        }
        sum
    }
}

/// Rows and indirection table in memory: 36 KB, for hosts and tests.
#[derive(Clone, Debug)]
pub struct Tables {
    rows: [u32; rows_bytes::<Bytes>(INPUT_BYTES) as usize / 4],
    queues: [u8; TABLE_ENTRIES],
}

impl Tables {
    /// The tables of a key.
    pub fn new(key: &Key, table: &crate::IndirectionTable) -> Tables {
        let mut rows = [0; rows_bytes::<Bytes>(INPUT_BYTES) as usize / 4];
        build::<Bytes>(key, INPUT_BYTES, |offset, value| {
            rows[offset as usize / 4] = value;
        });
        Tables {
            rows,
            queues: *table.entries(),
        }
    }
}

/// A frame together with the tables.
impl<F: Frame> Frame for (F, &Tables) {
    fn word(&mut self, offset: u32) -> u32 {
        self.0.word(offset)
    }

    fn half(&mut self, offset: u32) -> u32 {
        self.0.half(offset)
    }
}

impl<F> Memory for (F, &Tables) {
    type Pieces = Bytes;

    fn row(&mut self, offset: u32) -> u32 {
        self.1.rows[offset as usize / 4]
    }

    fn queue(&mut self, entry: u32) -> u32 {
        u32::from(self.1.queues[(entry & ENTRY_MASK) as usize])
    }
}

/// Bytes of rows for a key with a period and inputs of `bytes`.
pub const fn needed<P: Pieces>(period: Period, bytes: u32) -> u32 {
    match period {
        Period::Halfword => rows_bytes::<P>(2),
        Period::Word => rows_bytes::<P>(4),
        Period::None => rows_bytes::<P>(bytes),
    }
}
