//! From a frame in the receive buffer to its queue.
//!
//! The work is [`flow_classify`]'s; here is how it reads the buffer, and where its tables are.

use super::super::frame::wrapped;
use super::open::Refused;
use crate::memory::layout::{HASH_TABLES, INDIRECTION, QUEUE_CONTROL};
use flow_classify::classifier::{Classifier, Verdict};
use flow_classify::key::{Key, Period};
use flow_classify::toeplitz::{self, Memory, Nibbles};
use flow_classify::{ClassifierKind, Frame, HashTypes};
use host_interface::queue::control::{KEY_WORDS, QueueControlBlock, TABLE_WORDS};
use host_interface::queue::{KEY_BYTES, QueueResult};
use tigon2_hal::Bus;
use tigon2_hal::schedule::barrier;

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

/// A frame whose first bytes lie at one piece.
struct Straight<'a, B: Bus> {
    bus: &'a mut B,
    start: u32,
    /// The hash tables.
    rows: u32,
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

impl<B: Bus> Memory for Straight<'_, B> {
    type Pieces = Nibbles;

    #[inline(always)]
    fn row(&mut self, offset: u32) -> u32 {
        self.bus.load(self.rows + offset)
    }

    #[inline(always)]
    fn queue(&mut self, entry: u32) -> u32 {
        self.bus.load_byte(INDIRECTION + entry).into()
    }
}

/// How far behind the start of an untagged IPv4 datagram what is looked at reaches.
pub const REACH: u32 = 64;

/// The classifier of the open queues.
#[derive(Clone, Copy, Debug)]
pub struct Classify(Classifier);

impl Classify {
    /// All frames to queue 0.
    pub const SINGLE: Classify = Classify({
        let types = HashTypes::new();
        match Classifier::new(ClassifierKind::Single, 1, types, Period::None) {
            Ok(classifier) => classifier,
            Err(_) => panic!("one queue fits every classifier"),
        }
    });

    /// The verdict on a frame of `length` bytes without CRC, if it is an untagged IPv4 datagram
    /// without options. Its first [`REACH`] bytes lie at one piece.
    #[inline(never)]
    pub fn straight<B: Bus>(&mut self, bus: &mut B, start: u32, length: u32) -> Option<Verdict> {
        // In a register, not a constant in each look-up.
        let rows = barrier(HASH_TABLES);
        self.0
            .classify_straight(&mut Straight { bus, start, rows }, length)
    }

    /// The verdict on any frame; it may go round the end of the buffer, which begins at `base`.
    #[inline(never)]
    pub fn round<B: Bus>(&mut self, bus: &mut B, start: u32, length: u32, base: u32) -> Verdict {
        self.0
            .classify_in_general(&mut View { bus, start, base }, length)
    }

    /// As the control block says that was read, for `open` queues. Builds the tables.
    ///
    /// # Errors
    /// What does not fit, and the table entry that it is about.
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
        if kind == ClassifierKind::Toeplitz {
            take_table(bus, open)?;
            toeplitz::build::<Nibbles>(&key, toeplitz::INPUT_BYTES, |offset, value| {
                bus.store(HASH_TABLES + offset, value);
            });
        }
        Ok(Classify(classifier))
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

/// Judges the indirection table and takes it.
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
