//! The memory that the program shares with its runner.

/// A parameter of the run; the value of a variant is its NIC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Word {
    /// The number of a classifier.
    Classifier = 0x8000,
    /// The number of queues.
    Queues = 0x8004,
    /// The hash types.
    HashTypes = 0x8008,
    /// The key's period in bytes: 2, 4, or 0 for none.
    Period = 0x800C,
    /// Bits of a piece: 8 or 4.
    PieceBits = 0x8010,
    /// The number of frames.
    Frames = 0x8014,
    /// Bytes of each frame.
    Length = 0x8018,
    /// How often the program classifies all frames.
    Rounds = 0x801C,
    /// Nonzero: rows of bytes beside a cache of flows.
    Cached = 0x8020,
}

/// The verdicts of the last round: queue and hash type in one word, then the hash.
pub const VERDICTS: u32 = 0x9000;
/// The first frame.
pub const FRAMES: u32 = 0x1_0000;
/// Bytes of a frame's slot.
pub const SLOT: u32 = 256;
/// Most frames.
pub const FRAMES_MAX: u32 = 256;
/// The rows.
pub const ROWS: u32 = 0x2_0000;
/// The cache of flows.
pub const FLOWS: u32 = 0x3_0000;
/// Bytes of it.
pub const FLOW_BYTES: u32 = 0x8000;
