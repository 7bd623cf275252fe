//! The firmware's log in NIC memory: a message ring for each CPU, and a level for each module.
//!
//! This project's own; [`Extension::LogBlock`](crate::extension::Extension::LogBlock) holds the
//! block's address. A message is one defmt frame in rzCOBS encoding, which ends with a zero byte.
//! Each ring has one writer, its CPU, and one reader, the host, so it needs no lock. A message
//! that does not fit is dropped whole and counted.
//!
//! ```text
//! block + 0x00  RINGS  0x04 MODULES  0x08 BUILD_ID (5 words)
//!       + 0x20  ring of CPU A       + 0x40  ring of CPU B
//!               0x00 address   NIC address of its bytes
//!               0x04 bytes     a power of two
//!               0x08 producer  offset behind the last byte; written by the CPU
//!               0x0C consumer  offset of the first unread byte; written by the host
//!               0x10 recorded  messages that are or were in the ring; wraps
//!               0x14 lost      messages that found no room; wraps
//!       + 0x60  a word for each module: the most detailed level that is recorded
//! ```
//!
//! Ring bytes lie big-endian in words: the first byte is bits 31:24. The host may change the
//! modules' words at any time; the firmware reads the word before each message.

/// Offset of the word that counts the rings.
pub const RINGS: u32 = 0x00;
/// Offset of the word that counts the modules.
pub const MODULES: u32 = 0x04;
/// Offset of the build id.
pub const BUILD_ID: u32 = 0x08;
/// Bytes of a build id, as in the ELF note "GNU build id"; a word's first byte is in its bits
/// 31:24.
pub const BUILD_ID_BYTES: usize = 20;
/// Offset of the first ring's words.
pub const FIRST_RING: u32 = 0x20;
/// Bytes of a ring's words.
pub const RING_WORDS_BYTES: u32 = 0x20;
/// Offset of the modules' words.
pub const LEVELS: u32 = 0x60;
/// Bytes of the block.
pub const BLOCK_BYTES: u32 = LEVELS + 4 * MODULE_ROOM;
/// Capacity for modules.
const MODULE_ROOM: u32 = 24;

/// The number of rings: CPU A's and CPU B's.
pub const RING_COUNT: usize = 2;

/// A word of a ring, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RingWord {
    /// NIC address of the ring's bytes.
    Address = 0x00,
    /// How many there are.
    Bytes = 0x04,
    /// Offset after the last byte, written by the NIC.
    Producer = 0x08,
    /// Offset of the first unread byte, written by the host.
    Consumer = 0x0C,
    /// Messages recorded since the start.
    Recorded = 0x10,
    /// Messages that were dropped for lack of room.
    Lost = 0x14,
}

/// Offset in the block of a word of the ring of CPU `cpu` (0 is A).
pub const fn ring_word(cpu: u32, word: RingWord) -> u32 {
    FIRST_RING + cpu * RING_WORDS_BYTES + word as u32
}

/// How much is logged or shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Level {
    /// Nothing.
    Off = 0,
    /// Faults.
    Error = 1,
    /// Unexpected events.
    Warn = 2,
    /// Rare events.
    Info = 3,
    /// Work for the host.
    Debug = 4,
    /// Every step.
    Trace = 5,
}

impl Level {
    /// All, in their order.
    pub const ALL: [Level; 6] = [
        Level::Off,
        Level::Error,
        Level::Warn,
        Level::Info,
        Level::Debug,
        Level::Trace,
    ];
    /// The level of every module at start.
    pub const DEFAULT: Level = Level::Info;

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Off => "off",
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }

    /// The level in a word; values beyond the last level mean the last.
    pub const fn from_word(word: u32) -> Level {
        if word < Level::ALL.len() as u32 {
            Level::ALL[word as usize]
        } else {
            Level::Trace
        }
    }
}

/// The modules that have their own level, in the order of their words. Submodules belong to these.
pub const MODULE_NAMES: &[&str] = &[
    "start",
    "boot",
    "command",
    "cross_call",
    "host_events",
    "fatal",
    "link",
    "recovery",
    "send",
    "buffer_fetch",
    "receive",
    "statistics",
    "queues",
];

/// The number of the module with a name.
pub const fn module_named(name: &str) -> Option<usize> {
    let mut index = 0;
    while index < MODULE_NAMES.len() {
        if same(MODULE_NAMES[index].as_bytes(), name.as_bytes(), 0) {
            return Some(index);
        }
        index += 1;
    }
    None
}

/// The number of the module that contains a path such as `tigon_firmware::control::link::copper`:
/// the first name in the path that is a module with a level.
pub const fn module_of(path: &str) -> Option<usize> {
    let path = path.as_bytes();
    let mut at = 0;
    while at + 1 < path.len() {
        if path[at] == b':' && path[at + 1] == b':' {
            let mut index = 0;
            while index < MODULE_NAMES.len() {
                if same(MODULE_NAMES[index].as_bytes(), path, at + 2) {
                    return Some(index);
                }
                index += 1;
            }
        }
        at += 1;
    }
    None
}

/// Whether `name` is what stands in `path` from `at` to the next `:` or the end.
const fn same(name: &[u8], path: &[u8], at: usize) -> bool {
    let mut index = 0;
    while index < name.len() {
        if at + index >= path.len() || path[at + index] != name[index] {
            return false;
        }
        index += 1;
    }
    at + index == path.len() || path[at + index] == b':'
}

/// Offset in the block of a module's word.
pub const fn level_word(module: usize) -> u32 {
    LEVELS + 4 * module as u32
}

const _: () = {
    assert!(MODULE_NAMES.len() as u32 <= MODULE_ROOM);
    assert!(BUILD_ID + BUILD_ID_BYTES as u32 <= FIRST_RING);
    assert!(FIRST_RING + RING_COUNT as u32 * RING_WORDS_BYTES <= LEVELS);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_its_first_module() {
        let link = module_named("link");
        assert!(link.is_some());
        assert_eq!(module_of("tigon_firmware::link"), link);
        assert_eq!(module_of("tigon_firmware::control::link::phy"), link);
        for other in ["tigon_firmware::linked", "tigon_firmware", "link"] {
            assert_eq!(module_of(other), None, "{other}");
        }
        assert_eq!(module_named("lin"), None);
    }

    #[test]
    fn levels_have_words_and_names() {
        for (word, level) in Level::ALL.into_iter().enumerate() {
            assert_eq!(Level::from_word(word as u32), level);
            assert_eq!(level as usize, word);
        }
        assert_eq!(Level::from_word(u32::MAX), Level::Trace);
        assert_eq!(ring_word(1, RingWord::Lost), 0x54);
        assert_eq!(level_word(1), 0x64);
    }
}
