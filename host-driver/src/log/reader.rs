//! Reads messages from the rings on the card.

use host_interface::extension::{self, Extension};
use host_interface::log::{
    BLOCK_BYTES, BUILD_ID, BUILD_ID_BYTES, Level, MODULE_NAMES, MODULES, RING_COUNT, RINGS,
    RingWord, level_word, ring_word,
};
use thiserror::Error;
use tigon2_chip::memory::SRAM_MAX_BYTES;

use super::BuildId;

/// Largest plausible log ring, in bytes.
const LARGEST_RING: u32 = 64 * 1024;

/// Access to the card's memory. Addresses are NIC addresses of words.
pub trait NicMemory {
    /// Why an access failed.
    type Error;

    /// Reads words.
    ///
    /// # Errors
    /// When it cannot.
    fn load(&mut self, address: u32, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Writes a word; `false` if this memory is read-only.
    ///
    /// # Errors
    /// When it cannot.
    fn store(&mut self, address: u32, value: u32) -> Result<bool, Self::Error>;
}

/// Why a log cannot be read.
#[derive(Debug, Error)]
pub enum LogReadError<E> {
    /// The access to the memory failed.
    #[error(transparent)]
    Memory(E),
    /// The card describes an impossible ring.
    #[error("the card's {what} is {value:#x}")]
    Nonsense {
        /// The impossible value's name.
        what: &'static str,
        /// Its value.
        value: u32,
    },
}

/// One message from the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFrame {
    /// The CPU that logged it: 0 is A, 1 is B.
    pub cpu: u8,
    /// The frame without its terminating zero byte.
    pub bytes: Vec<u8>,
}

/// Counts of a CPU's ring since the firmware started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Messages that were recorded.
    pub recorded: u32,
    /// Messages that found no room.
    pub lost: u32,
}

/// The card's log block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBlock {
    /// NIC address.
    pub address: u32,
    /// The build of its firmware.
    pub build: BuildId,
    /// Of each CPU.
    pub counts: [LogCounts; RING_COUNT],
    /// The recorded level of each of [`MODULE_NAMES`].
    pub levels: Vec<Level>,
    rings: [Ring; RING_COUNT],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ring {
    address: u32,
    bytes: u32,
    producer: u32,
    consumer: u32,
}

impl LogBlock {
    /// Finds the log of the firmware on a card; None if the firmware is not this project's, or has
    /// not published its log yet.
    ///
    /// # Errors
    /// [`LogReadError`]
    pub fn find<M: NicMemory>(memory: &mut M) -> Result<Option<Self>, LogReadError<M::Error>> {
        const WORDS: usize = ((Extension::LogBlock.nic_address() - extension::BASE) / 4) as usize;
        let mut words = [0; WORDS + 1];
        let load = memory.load(extension::BASE, &mut words);
        load.map_err(LogReadError::Memory)?;
        let address = words[WORDS];
        let signed = words[0] == extension::MAGIC;
        if address == 0 || (signed && words[1] < extension::VERSION_WITH_LOG_BLOCK) {
            return Ok(None);
        }
        let found = LogBlock::at(memory, address);
        // Before the magic word is there a firmware may have logged, and the memory may contain
        // anything.
        if !signed && matches!(found, Err(LogReadError::Nonsense { .. })) {
            return Ok(None);
        }
        found.map(Some)
    }

    fn at<M: NicMemory>(memory: &mut M, address: u32) -> Result<Self, LogReadError<M::Error>> {
        inside("log block's address", address, BLOCK_BYTES)?;
        let mut words = [0; BLOCK_BYTES as usize / 4];
        let load = memory.load(address, &mut words);
        load.map_err(LogReadError::Memory)?;
        let word = |offset: u32| words.get(offset as usize / 4).copied().unwrap_or(0);
        let nonsense = |what, value| Err(LogReadError::Nonsense { what, value });
        if word(RINGS) != RING_COUNT as u32 {
            return nonsense("count of log rings", word(RINGS));
        }
        if word(MODULES) != MODULE_NAMES.len() as u32 {
            return nonsense("count of log modules", word(MODULES));
        }
        let mut block = LogBlock {
            address,
            build: BuildId([0; BUILD_ID_BYTES]),
            counts: [LogCounts::default(); RING_COUNT],
            levels: Vec::new(),
            rings: [Ring::default(); RING_COUNT],
        };
        for (at, byte) in block.build.0.iter_mut().enumerate() {
            let word = word(BUILD_ID + (at as u32 & !3)).to_be_bytes();
            *byte = word[at % 4];
        }
        for cpu in 0..RING_COUNT {
            let word = |which| word(ring_word(cpu as u32, which));
            let ring = Ring {
                address: word(RingWord::Address),
                bytes: word(RingWord::Bytes),
                producer: word(RingWord::Producer),
                consumer: word(RingWord::Consumer),
            };
            if !ring.bytes.is_power_of_two() || !(4..=LARGEST_RING).contains(&ring.bytes) {
                return nonsense("log ring size", ring.bytes);
            }
            inside("log ring address", ring.address, ring.bytes)?;
            if ring.producer >= ring.bytes {
                return nonsense("log producer", ring.producer);
            }
            if ring.consumer >= ring.bytes {
                return nonsense("log consumer", ring.consumer);
            }
            block.rings[cpu] = ring;
            block.counts[cpu] = LogCounts {
                recorded: word(RingWord::Recorded),
                lost: word(RingWord::Lost),
            };
        }
        let modules = 0..MODULE_NAMES.len();
        block.levels = modules
            .map(|module| Level::from_word(word(level_word(module))))
            .collect();
        Ok(block)
    }

    /// NIC address of a module's level word.
    pub fn level_address(&self, module: usize) -> u32 {
        self.address + level_word(module)
    }
}

fn inside<E>(what: &'static str, address: u32, bytes: u32) -> Result<(), LogReadError<E>> {
    if address.is_multiple_of(4) && address <= SRAM_MAX_BYTES - bytes {
        return Ok(());
    }
    Err(LogReadError::Nonsense {
        what,
        value: address,
    })
}

/// Reads the rings repeatedly. A read-only memory keeps its messages: the reader then remembers
/// its position, and the rings fill up.
#[derive(Clone, Debug, Default)]
pub struct LogReader {
    places: [Option<u32>; RING_COUNT],
    /// Bytes after the last complete message.
    rest: [Vec<u8>; RING_COUNT],
}

impl LogReader {
    /// A reader of a firmware that has just been started.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the new messages of a block that was just read, CPU A's first.
    ///
    /// # Errors
    /// [`LogReadError`]
    pub fn read<M: NicMemory>(
        &mut self,
        memory: &mut M,
        block: &LogBlock,
    ) -> Result<Vec<LogFrame>, LogReadError<M::Error>> {
        let mut frames = Vec::new();
        for (cpu, ring) in block.rings.iter().enumerate() {
            let from = match self.places[cpu] {
                Some(place) if place < ring.bytes => place,
                _ => ring.consumer,
            };
            let mut bytes = Vec::new();
            if ring.producer < from {
                load(memory, *ring, from, ring.bytes, &mut bytes)?;
                load(memory, *ring, 0, ring.producer, &mut bytes)?;
            } else {
                load(memory, *ring, from, ring.producer, &mut bytes)?;
            }
            if !bytes.is_empty() {
                let consumer = block.address + ring_word(cpu as u32, RingWord::Consumer);
                let stored = memory.store(consumer, ring.producer);
                if !stored.map_err(LogReadError::Memory)? {
                    self.places[cpu] = Some(ring.producer);
                }
            }
            let rest = &mut self.rest[cpu];
            for byte in bytes {
                if byte != 0 {
                    rest.push(byte);
                } else if !rest.is_empty() {
                    frames.push(LogFrame {
                        cpu: cpu as u8,
                        bytes: std::mem::take(rest),
                    });
                }
            }
        }
        Ok(frames)
    }
}

/// Bytes `from..to` of a ring.
fn load<M: NicMemory>(
    memory: &mut M,
    ring: Ring,
    from: u32,
    to: u32,
    out: &mut Vec<u8>,
) -> Result<(), LogReadError<M::Error>> {
    if from == to {
        return Ok(());
    }
    let first = from & !3;
    let words = (to.next_multiple_of(4) - first) / 4;
    let mut buffer = vec![0; words as usize];
    let loaded = memory.load(ring.address + first, &mut buffer);
    loaded.map_err(LogReadError::Memory)?;
    let bytes = buffer.iter().flat_map(|word| word.to_be_bytes());
    let (skip, count) = ((from - first) as usize, (to - from) as usize);
    out.extend(bytes.skip(skip).take(count));
    Ok(())
}
