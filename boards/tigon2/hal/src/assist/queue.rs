//! Queues DMA transfers: a descriptor is written word by word or at once.
//!
//! ```text
//! stores of a descriptor  -->  commit  -->  tell
//!   in the store buffer                     writes the producer
//! ```
//!
//! The write of the producer may overtake a store that waits for the SRAM port. Other firmware
//! that works on the chip lets that happen more than a hundred times a millisecond (`timing.md` 1.1,
//! 7), so this firmware does not wait for the stores either. The simulator counts such overtakes.

use super::{
    CHECKSUM_OFFSET, DESCRIPTOR_BYTES, Direction, DmaDescriptorAt, ENTRIES, HostAddress,
    RING_BYTES, SPARE, Transfer, index,
};
use crate::Bus;

/// Descriptors that are being queued. It holds the ring's state meanwhile, so that a compiler
/// keeps it in registers.
#[derive(Debug)]
pub struct Queue<'a, D: Direction> {
    pub(super) base: u32,
    /// Offset of the next descriptor.
    pub(super) at: u32,
    /// Free bytes, including [`SPARE`].
    pub(super) room: u32,
    pub(super) producer: &'a mut u32,
    pub(super) notes: &'a mut [u32; ENTRIES],
    pub(super) channel: &'a D,
}

impl<D: Direction> Queue<'_, D> {
    /// How many more descriptors can be queued.
    #[inline(always)]
    pub fn free(&self) -> u32 {
        (self.room / DESCRIPTOR_BYTES).saturating_sub(SPARE)
    }

    /// Queues a transfer; the caller has checked the room by [`free`](Self::free) or
    /// [`DescriptorRing::has_room`]. The channel starts it as soon as it reaches it.
    #[inline(always)]
    pub fn put<B: Bus>(&mut self, bus: &mut B, transfer: &Transfer) {
        self.next().fill(bus, transfer);
        self.commit(transfer.note);
        self.notify(bus);
    }

    /// The next descriptor, to be written word by word.
    #[inline(always)]
    pub fn next(&self) -> Descriptor {
        Descriptor(DmaDescriptorAt(self.base + self.at))
    }

    /// The descriptors from the next one on, for callers that fill them after they were
    /// [committed](Self::commit), on boards where several CPUs do that.
    #[inline(always)]
    pub const fn ahead(&self) -> Descriptors {
        Descriptors {
            base: self.base,
            at: self.at,
        }
    }

    /// Records that all words of the [next](Self::next) descriptor are written.
    /// [`notify`](Self::notify) passes it to the channel.
    #[inline(always)]
    pub fn commit(&mut self, note: u32) {
        if let Some(kept) = index(self.at, |entry| self.notes.get_mut(entry)) {
            *kept = note;
        }
        self.at = (self.at + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
        self.room = self.room.wrapping_sub(DESCRIPTOR_BYTES);
    }

    /// Passes everything that was [committed](Self::commit) to the channel.
    #[inline(always)]
    pub fn notify<B: Bus>(&mut self, bus: &mut B) {
        self.channel.notify(bus, self.at);
    }

    /// See [`DescriptorRing::store_sum`].
    #[inline(always)]
    pub fn store_sum<B: Bus>(&self, bus: &mut B) {
        let descriptor = self.base + self.at;
        let target = DmaDescriptorAt(descriptor).checksum_target();
        bus.store(target, descriptor + CHECKSUM_OFFSET);
    }
}

/// Consecutive descriptors of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    base: u32,
    at: u32,
}

impl Descriptors {
    /// An empty placeholder.
    pub const NONE: Descriptors = Descriptors { base: 0, at: 0 };

    /// The offset in the ring at which they begin.
    #[inline(always)]
    pub const fn offset(&self) -> u32 {
        self.at
    }

    /// The next descriptor.
    #[inline(always)]
    pub const fn next(&mut self) -> Descriptor {
        let descriptor = Descriptor(DmaDescriptorAt(self.base + self.at));
        self.at = (self.at + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
        descriptor
    }
}

/// A free descriptor: the channel ignores it before it is [queued](Queue::commit), so its words
/// may be written in any order, with other work in between while the SRAM port is busy.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor(DmaDescriptorAt);

impl Descriptor {
    /// Writes all words of a transfer, except its note.
    #[inline(always)]
    pub fn fill<B: Bus>(self, bus: &mut B, transfer: &Transfer) {
        self.host(bus, transfer.host);
        self.local(bus, transfer.local);
        self.length(bus, transfer.length);
        self.state(bus, transfer.state);
    }

    /// Writes the address in host memory.
    #[inline(always)]
    pub fn host<B: Bus>(self, bus: &mut B, address: HostAddress) {
        bus.store_host_address(self.0.host(), address);
    }

    /// Writes the address in NIC memory.
    #[inline(always)]
    pub fn local<B: Bus>(self, bus: &mut B, address: u32) {
        bus.store(self.0.local(), address);
    }

    /// Writes the number of bytes, 16 bits.
    #[inline(always)]
    pub fn length<B: Bus>(self, bus: &mut B, bytes: u32) {
        bus.store(self.0.length(), bytes);
    }

    /// Writes the state word: [`tigon2_chip::bits::DmaState`].
    #[inline(always)]
    pub fn state<B: Bus>(self, bus: &mut B, state: u32) {
        bus.store(self.0.state(), state);
    }
}

impl<D: Direction> Drop for Queue<'_, D> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.producer = self.at;
    }
}
