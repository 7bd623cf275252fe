//! Where the program and whoever runs it meet.

/// A word that says what to do; the value of a variant is its NIC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Word {
    /// The number of a classifier.
    Classifier = 0x8000,
    /// How many queues.
    Queues = 0x8004,
    /// The types of hash.
    HashTypes = 0x8008,
    /// The key's period in bytes: 2, 4, or 0 for none.
    Period = 0x800C,
    /// Bits of a piece: 8 or 4.
    PieceBits = 0x8010,
    /// How many frames there are.
    Frames = 0x8014,
    /// Bytes of each.
    Length = 0x8018,
    /// How often all are classified.
    Rounds = 0x801C,
    /// Nonzero: rows of bytes beside a cache of flows.
    Cached = 0x8020,
}

/// The verdicts of the last round: queue and type of hash in one word, then the hash.
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
/// Its slots.
pub const FLOW_SLOTS: u32 = 1024;
