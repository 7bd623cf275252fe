//! The memory that a classifier works with, which its caller provides: rows of the hash, indirection
//! table, cache of flows.

/// How the input is cut.
pub trait Pieces {
    /// Bytes of all rows of a byte of the input, as a shift.
    const ROW_SHIFT: u32;
    /// Bits of a piece.
    const BITS: u32;

    /// The XOR of the entries of a byte of the input, which are bits `high..high-8` of `word`.
    fn look_up<M: Memory>(memory: &mut M, position: u32, word: u32, high: u32) -> u32;
}

/// Access to the rows and the indirection table.
pub trait Memory {
    /// How the rows are cut.
    type Pieces: Pieces;

    /// The word at an offset in bytes from the start of the rows.
    fn row(&mut self, offset: u32) -> u32;

    /// The queue in an entry of the indirection table, 0 to 127.
    fn queue(&mut self, entry: u32) -> u32;

    /// The cache of flows, if there is one.
    #[inline(always)]
    fn flows(&self) -> Option<FlowMasks> {
        None
    }

    /// A word of the cache, by its offset in bytes.
    #[inline(always)]
    fn flow(&mut self, _offset: u32) -> u32 {
        0
    }

    /// Changes a word of the cache.
    #[inline(always)]
    fn set_flow(&mut self, _offset: u32, _value: u32) {}
}

/// Bytes of a slot of IPv4 and of IPv6, as shifts.
pub(crate) const SHIFTS: (u32, u32) = (4, 6);

/// How large the two parts of the cache are.
#[derive(Clone, Copy, Debug)]
pub struct FlowMasks {
    /// Offset of IPv4's last slot.
    pub ipv4: u32,
    /// Offset of IPv6's first slot.
    pub ipv6_base: u32,
    /// Offset of IPv6's last slot from the first one.
    pub ipv6: u32,
}

impl FlowMasks {
    /// No cache yet.
    pub const NONE: FlowMasks = FlowMasks {
        ipv4: 0,
        ipv6_base: 0,
        ipv6: 0,
    };

    /// For a cache of `bytes`, a power of two and 128 at least: half of it for each.
    pub const fn halves(bytes: u32) -> FlowMasks {
        FlowMasks {
            ipv4: bytes / 2 - (1 << SHIFTS.0),
            ipv6_base: bytes / 2,
            ipv6: bytes / 2 - (1 << SHIFTS.1),
        }
    }
}
