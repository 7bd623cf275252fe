//! The writing end of a CPU's log ring in SRAM.
//!
//! The host reads the ring through its memory window while the CPU writes. Each ring has one
//! writer and one reader, so neither needs a lock: the CPU stores the producer after the bytes
//! that it announces.
//!
//! ```text
//!   consumer (host)        producer (CPU)      end of the message in work
//!        v                        v                  v
//! -------+========================+..................+-----
//!  free  |  messages to be read   |  being written   | free
//! ```
//!
//! Both indices count bytes from the start of the ring and wrap at its size; equal means empty. A
//! message that does not fit is dropped whole and counted: a CPU never waits for a reader.

use crate::Bus;

/// SRAM addresses of the words that describe a ring to the host.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Receives the ring's own address.
    pub address: u32,
    /// Receives the ring's size in bytes.
    pub bytes: u32,
    /// The producer index, written here.
    pub producer: u32,
    /// The consumer index, written by the host.
    pub consumer: u32,
    /// Messages recorded, written here.
    pub recorded: u32,
    /// Messages left out for lack of room, written here.
    pub lost: u32,
}

/// The writer of a ring.
#[derive(Debug)]
pub struct LogRing {
    words: Option<Words>,
    address: u32,
    /// Bytes of the ring less 1.
    mask: u32,
    /// Where the current message began.
    begin: u32,
    /// Where its next byte goes.
    end: u32,
    /// The last place that it may fill, before the host's consumer.
    limit: u32,
    /// Whether it did not fit.
    overrun: bool,
}

impl LogRing {
    /// A ring that accepts nothing yet.
    pub const fn new() -> LogRing {
        LogRing {
            words: None,
            address: 0,
            mask: 0,
            begin: 0,
            end: 0,
            limit: 0,
            overrun: false,
        }
    }

    /// Empties the ring of `bytes`, a power of two, at `address`, and publishes it to the host.
    pub fn start<B: Bus>(&mut self, bus: &mut B, words: Words, address: u32, bytes: u32) {
        *self = LogRing {
            words: Some(words),
            address,
            mask: bytes - 1,
            ..LogRing::new()
        };
        for (word, value) in [
            (words.address, address),
            (words.bytes, bytes),
            (words.producer, 0),
            (words.consumer, 0),
            (words.recorded, 0),
            (words.lost, 0),
        ] {
            bus.store(word, value);
        }
    }

    /// Begins a message. Discards a message that was begun and not published, and returns whether
    /// there was one.
    #[inline(always)]
    pub fn begin<B: Bus>(&mut self, bus: &mut B) -> bool {
        let Some(words) = self.words else {
            return false;
        };
        let forgotten = self.end != self.begin;
        self.end = self.begin;
        self.overrun = false;
        // One place stays empty: a full ring would look like an empty one.
        self.limit = bus.load(words.consumer).wrapping_sub(1) & self.mask;
        forgotten
    }

    /// Adds a byte to the message.
    #[inline(always)]
    pub fn push<B: Bus>(&mut self, bus: &mut B, byte: u8) {
        let place = self.end & self.mask;
        if place == self.limit || self.words.is_none() {
            self.overrun = true;
        } else {
            bus.store_byte(self.address + place, byte);
            self.end = place + 1;
        }
    }

    /// Publishes the message to the host, or counts it as lost.
    #[inline(always)]
    pub fn publish<B: Bus>(&mut self, bus: &mut B) {
        let Some(words) = self.words else { return };
        let count = if self.overrun {
            self.end = self.begin;
            words.lost
        } else {
            self.end &= self.mask;
            self.begin = self.end;
            bus.store(words.producer, self.begin);
            words.recorded
        };
        let counted = bus.load(count).wrapping_add(1);
        bus.store(count, counted);
    }
}

impl Default for LogRing {
    fn default() -> LogRing {
        LogRing::new()
    }
}
