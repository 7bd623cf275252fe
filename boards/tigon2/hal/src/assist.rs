//! The two DMA descriptor rings.
//!
//! Hardware reference, section 6.3. The ring of one direction, 64 descriptors of 32 bytes:
//!
//! ```text
//!      reference        consumer          producer
//!          v                v                 v
//!   -------+================+#################+--------
//!    free  |  moved, to be  |  waiting for    |  free
//!          |  looked at     |  the channel    |
//! ```
//!
//! Software writes descriptors at the producer, and the channel advances the consumer. The
//! completion event (bit 14 or 15) is set while the consumer is past the reference; software
//! answers by processing the descriptors in between. The reference always trails the consumer
//! here, so the room between producer and reference is known without reading a register.
//!
//! The purpose of a transfer is a word of software, its note. It stays with the ring's state in
//! the scratch pad, where it costs no cycle of the SRAM port; words 6 and 7 of the descriptors,
//! which the chip leaves to software, are unused.
//!
//! The channels sum the bytes that they move (6.5). The sum of a transfer whose state word has
//! bits 9 and 11 returns in its own descriptor, see [`DescriptorRing::store_sum`].

mod queue;

use crate::Bus;
pub use queue::{Descriptor, Descriptors, Queue};
pub use tigon2_chip::HostAddress;
use tigon2_chip::Register;
use tigon2_chip::dma::{
    CHECKSUM_OFFSET, DESCRIPTOR_BYTES, DmaDescriptorAt, RING_BYTES, RING_ENTRIES,
};

/// Descriptors of one ring.
const ENTRIES: usize = RING_ENTRIES as usize;
/// Descriptors that always stay free: reference 18 advises 64 bytes from a full ring.
const SPARE: u32 = 2;

/// The direction of a ring, with its registers.
pub trait Direction: core::fmt::Debug {
    /// Where software adds descriptors.
    const PRODUCER: Register;
    /// The channel's position.
    const CONSUMER: Register;
    /// The reference of the completion event.
    const REFERENCE: Register;
    /// The second set of pointers, of unknown purpose: kept 0 (6.3, U).
    const UNKNOWN: [Register; 3];

    /// Passes the descriptors before offset `end` to the channel.
    #[inline(always)]
    fn notify<B: Bus>(&self, bus: &mut B, end: u32) {
        bus.write(Self::PRODUCER, end);
    }
}

/// Host to NIC: the read channel. There is one, from [`Resources`](crate::resources::Resources).
#[derive(Debug)]
pub struct ReadChannel(pub(crate) ());

impl Direction for ReadChannel {
    const PRODUCER: Register = Register::AssistReadProducer;
    const CONSUMER: Register = Register::AssistReadConsumer;
    const REFERENCE: Register = Register::AssistReadReference;
    const UNKNOWN: [Register; 3] = [
        Register::AssistRead110,
        Register::AssistRead114,
        Register::AssistRead118,
    ];
}

/// NIC to host: the write channel. There is one, from [`Resources`](crate::resources::Resources).
#[derive(Debug)]
pub struct WriteChannel(pub(crate) ());

impl Direction for WriteChannel {
    const PRODUCER: Register = Register::AssistWriteProducer;
    const CONSUMER: Register = Register::AssistWriteConsumer;
    const REFERENCE: Register = Register::AssistWriteReference;
    const UNKNOWN: [Register; 3] = [
        Register::AssistWrite130,
        Register::AssistWrite134,
        Register::AssistWrite138,
    ];
}

/// The ring has no room; nothing was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// One transfer to queue.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The address in host memory.
    pub host: HostAddress,
    /// The address in NIC memory.
    pub local: u32,
    /// The number of bytes, 16 bits.
    pub length: u32,
    /// The state word: [`tigon2_chip::bits::DmaState`].
    pub state: u32,
    /// For software: the purpose of the transfer.
    pub note: u32,
}

/// The descriptor ring of one direction.
#[derive(Debug)]
pub struct DescriptorRing<D: Direction> {
    /// SRAM address of the ring.
    base: u32,
    /// Offset of the next descriptor to write.
    producer: u32,
    /// Offset of the oldest descriptor that was not processed.
    reference: u32,
    /// The note of each descriptor.
    notes: [u32; ENTRIES],
    channel: D,
}

impl<D: Direction> DescriptorRing<D> {
    /// The ring of a channel, without a place: [`place`](Self::place) sets it.
    pub const fn new(channel: D) -> DescriptorRing<D> {
        DescriptorRing {
            base: 0,
            producer: 0,
            reference: 0,
            notes: [0; ENTRIES],
            channel,
        }
    }

    /// Places the ring at SRAM address `base`. [`reset`](Self::reset) sets the registers.
    pub const fn place(&mut self, base: u32) {
        self.base = base;
    }

    /// Zeroes all pointers of this direction.
    pub fn reset<B: Bus>(&mut self, bus: &mut B) {
        self.producer = 0;
        self.reference = 0;
        for register in [D::PRODUCER, D::CONSUMER, D::REFERENCE] {
            bus.write(register, 0);
        }
        for register in D::UNKNOWN {
            bus.write(register, 0);
        }
    }

    /// Whether `count` more descriptors can be queued.
    #[inline(always)]
    pub fn has_room(&self, count: u32) -> bool {
        self.room() >= (count + SPARE) * DESCRIPTOR_BYTES
    }

    #[inline(always)]
    fn room(&self) -> u32 {
        self.reference
            .wrapping_sub(self.producer)
            .wrapping_sub(DESCRIPTOR_BYTES)
            & (RING_BYTES - 1)
    }

    /// Number, 0..64, of the descriptor that the next [`push`](Self::push) writes.
    #[inline(always)]
    pub fn next_index(&self) -> u32 {
        self.producer / DESCRIPTOR_BYTES
    }

    /// Queues a transfer; the channel starts it as soon as it reaches it.
    ///
    /// # Errors
    /// [`Full`] when no descriptor is free.
    #[inline(always)]
    pub fn push<B: Bus>(&mut self, bus: &mut B, transfer: &Transfer) -> Result<(), Full> {
        if !self.has_room(1) {
            return Err(Full);
        }
        self.put(bus, transfer);
        Ok(())
    }

    /// Like [`push`](Self::push), for callers whose [`has_room`](Self::has_room) included it.
    #[inline(always)]
    pub fn put<B: Bus>(&mut self, bus: &mut B, transfer: &Transfer) {
        self.open().put(bus, transfer);
    }

    /// The channel, with any state of its own.
    #[inline(always)]
    pub const fn channel_mut(&mut self) -> &mut D {
        &mut self.channel
    }

    /// Passes everything that was queued to the channel.
    #[inline(always)]
    pub fn notify<B: Bus>(&self, bus: &mut B) {
        self.channel.notify(bus, self.producer);
    }

    /// Starts queueing several transfers.
    #[inline(always)]
    pub fn open(&mut self) -> Queue<'_, D> {
        Queue {
            base: self.base,
            room: self.room(),
            at: self.producer,
            producer: &mut self.producer,
            notes: &mut self.notes,
            channel: &self.channel,
        }
    }

    /// Makes the next [`push`](Self::push) store its sum in its descriptor, for [`Finished::sum`].
    /// The transfer's state word requests it with bits 9 and 11:
    /// [`tigon2_chip::bits::DmaState::with_store_checksum`].
    #[inline(always)]
    pub fn store_sum<B: Bus>(&self, bus: &mut B) {
        let descriptor = self.base + self.producer;
        let target = DmaDescriptorAt(descriptor).checksum_target();
        bus.store(target, descriptor + CHECKSUM_OFFSET);
    }

    /// Like [`store_sum`](Self::store_sum), but the sum goes to the halfword at NIC address
    /// `address`. The ring works in order, so a later transfer finds the sum there (6.3, C).
    #[inline(always)]
    pub fn store_sum_at<B: Bus>(&self, bus: &mut B, address: u32) {
        let descriptor = DmaDescriptorAt(self.base + self.producer);
        bus.store(descriptor.checksum_target(), address);
    }

    /// The channel's position.
    #[inline(always)]
    fn done<B: Bus>(&self, bus: &mut B) -> u32 {
        bus.read(D::CONSUMER) & (RING_BYTES - DESCRIPTOR_BYTES)
    }

    /// The finished transfers that were not processed. The caller processes them with
    /// [`take`](Self::take) and then [acknowledges](Self::acknowledge) them.
    #[inline(always)]
    pub fn finished<B: Bus>(&mut self, bus: &mut B) -> Walk {
        Walk {
            at: self.reference,
            end: self.done(bus),
        }
    }

    /// The oldest finished transfer that was not processed, if any.
    #[inline(always)]
    pub fn take(&self, walk: &mut Walk) -> Option<Finished> {
        if walk.at == walk.end {
            return None;
        }
        let done = Finished {
            note: self.note_at(walk.at),
            descriptor: self.base + walk.at,
        };
        walk.at = (walk.at + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
        Some(done)
    }

    /// Takes a transfer that has finished since the walk began or was looked at again, if it is the
    /// oldest one and has this note.
    #[inline(always)]
    pub fn take_also<B: Bus>(&self, bus: &mut B, walk: &mut Walk, note: u32) -> Option<Finished> {
        walk.end = self.done(bus);
        if walk.at == walk.end || self.note_at(walk.at) != note {
            return None;
        }
        self.take(walk)
    }

    #[inline(always)]
    fn note_at(&self, offset: u32) -> u32 {
        *index(offset, |entry| self.notes.get(entry)).unwrap_or(&0)
    }

    /// Advances the chip's reference past the processed transfers; the completion event goes off
    /// unless more have finished.
    #[inline(always)]
    pub fn acknowledge<B: Bus>(&mut self, bus: &mut B, walk: Walk) {
        self.reference = walk.at;
        bus.write(D::REFERENCE, walk.at);
    }

    /// The position after everything that was queued, for [`has_passed`](Self::has_passed).
    #[inline(always)]
    pub fn position(&self) -> Position {
        Position(self.producer)
    }

    /// Whether everything that was queued before a position was processed. Call it before the ring
    /// has wrapped once more.
    #[inline(always)]
    pub fn has_passed(&self, position: Position) -> bool {
        let since = self.producer.wrapping_sub(position.0) & (RING_BYTES - 1);
        let outstanding = self.producer.wrapping_sub(self.reference) & (RING_BYTES - 1);
        outstanding <= since
    }

    /// The note of a descriptor, by its SRAM address.
    pub fn note(&self, descriptor: u32) -> u32 {
        self.note_at(descriptor.wrapping_sub(self.base))
    }

    /// Changes the note of a descriptor.
    pub fn set_note(&mut self, descriptor: u32, note: u32) {
        let offset = descriptor.wrapping_sub(self.base);
        if let Some(kept) = index(offset, |entry| self.notes.get_mut(entry)) {
            *kept = note;
        }
    }

    /// The descriptor that the channel works on or stopped at, if any.
    pub fn current<B: Bus>(&self, bus: &mut B) -> Option<u32> {
        let consumer = self.done(bus);
        (consumer != self.producer).then_some(self.base + consumer)
    }

    /// The oldest descriptor that was not processed, finished or not.
    pub fn oldest(&self) -> Option<u32> {
        (self.reference != self.producer).then_some(self.base + self.reference)
    }

    /// The descriptor after `descriptor`, if one is queued there.
    pub fn behind(&self, descriptor: u32) -> Option<u32> {
        let offset = (descriptor - self.base + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
        (offset != self.producer).then_some(self.base + offset)
    }

    /// Moves the channel past the descriptor at which it stopped with an error, as software that
    /// does the assist's work does (reference 15, C). The assist must be paused.
    pub fn skip<B: Bus>(&mut self, bus: &mut B) {
        let consumer = self.done(bus);
        if consumer != self.producer {
            let next = (consumer + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
            bus.write(D::CONSUMER, next);
        }
    }

    /// Whether everything that was queued has finished.
    pub fn is_idle<B: Bus>(&self, bus: &mut B) -> bool {
        self.done(bus) == self.producer
    }
}

/// The element of a descriptor at an offset in its ring.
#[inline(always)]
fn index<T>(offset: u32, of: impl FnOnce(usize) -> Option<T>) -> Option<T> {
    of((offset / DESCRIPTOR_BYTES) as usize & (ENTRIES - 1))
}

/// A finished transfer.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// Its note.
    pub note: u32,
    /// SRAM address of its descriptor, valid until the next [`DescriptorRing::push`].
    pub descriptor: u32,
}

impl Finished {
    /// None.
    pub const NONE: Finished = Finished {
        note: 0,
        descriptor: 0,
    };

    /// Its address in NIC memory.
    #[inline(always)]
    pub fn local<B: Bus>(&self, bus: &mut B) -> u32 {
        bus.load(DmaDescriptorAt(self.descriptor).local())
    }

    /// The one's-complement sum of all bytes since the sum restarted at 0, folded and not inverted
    /// (6.5, C). Only for a transfer after [`DescriptorRing::store_sum`].
    #[inline(always)]
    pub fn sum<B: Bus>(&self, bus: &mut B) -> u16 {
        bus.load_half(self.descriptor + CHECKSUM_OFFSET)
    }
}

/// Finished transfers that are being processed.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    at: u32,
    end: u32,
}

impl Walk {
    /// Over nothing.
    pub const NONE: Walk = Walk { at: 0, end: 0 };

    /// Their number.
    #[inline(always)]
    pub const fn len(&self) -> u32 {
        (self.end.wrapping_sub(self.at) & (RING_BYTES - 1)) / DESCRIPTOR_BYTES
    }

    /// Whether there is none.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// Skips all of them.
    #[inline(always)]
    pub const fn pass(&mut self) {
        self.at = self.end;
    }
}

/// A position between two descriptors of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(u32);

impl Position {
    /// The ring's start.
    pub const START: Position = Position(0);
}
