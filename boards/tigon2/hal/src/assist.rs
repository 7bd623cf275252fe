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
//! Software writes descriptors at the producer; the channel moves the consumer; the
//! completion event (bit 14 or 15) is on while the consumer is past the reference, and
//! software answers by walking the descriptors in between. The reference always trails
//! the consumer here, so the room between producer and reference is known without
//! reading a register.
//!
//! The channels sum what they move (6.5). The sum of a transfer whose state word has bits 9
//! and 11 comes back in its own descriptor, see [`DescriptorRing::store_sum`].

use crate::Bus;
use tigon2_chip::Register;

/// Bytes of one descriptor (6.3, C).
const DESCRIPTOR_BYTES: u32 = 32;
/// Bytes of one ring (6.3, C).
const RING_BYTES: u32 = 64 * DESCRIPTOR_BYTES;
/// Word 5 of a descriptor: where the sum is stored (6.3, C).
const SUM_ADDRESS: u32 = 20;
/// Where in a descriptor vendor firmware has its sum stored: the low half of that word.
const SUM: u32 = 22;
/// Descriptors that always stay free: reference 18 advises 64 bytes from a full ring.
const SPARE: u32 = 2;

/// The direction of a ring: which registers it has.
pub trait Direction {
    /// Where software adds.
    const PRODUCER: Register;
    /// Where the channel works.
    const CONSUMER: Register;
    /// What the completion event compares with.
    const REFERENCE: Register;
    /// The second set of pointers, of unknown purpose: kept 0 (6.3, U).
    const UNKNOWN: [Register; 3];
}

/// Host to NIC: the read channel. There is one; it comes from
/// [`Resources`](crate::resources::Resources).
#[derive(Debug)]
pub struct Read(pub(crate) ());

impl Direction for Read {
    const PRODUCER: Register = Register::AssistReadProducer;
    const CONSUMER: Register = Register::AssistReadConsumer;
    const REFERENCE: Register = Register::AssistReadReference;
    const UNKNOWN: [Register; 3] = [
        Register::AssistRead110,
        Register::AssistRead114,
        Register::AssistRead118,
    ];
}

/// NIC to host: the write channel. There is one; it comes from
/// [`Resources`](crate::resources::Resources).
#[derive(Debug)]
pub struct Write(pub(crate) ());

impl Direction for Write {
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

/// A host address as the two words of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostAddress {
    /// Bits 63:32.
    pub high: u32,
    /// Bits 31:0.
    pub low: u32,
}

impl HostAddress {
    /// The address `bytes` further on.
    #[inline(always)]
    pub const fn plus(self, bytes: u32) -> HostAddress {
        let (low, carry) = self.low.overflowing_add(bytes);
        HostAddress {
            high: self.high.wrapping_add(carry as u32),
            low,
        }
    }

    /// Whether the address is 0, by which drivers say "none".
    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.high | self.low == 0
    }
}

/// One transfer to queue.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Where in host memory.
    pub host: HostAddress,
    /// Where in NIC memory.
    pub local: u32,
    /// How many bytes, 16 bits.
    pub length: u32,
    /// The state word: [`tigon2_chip::bits::DmaState`].
    pub state: u32,
    /// Software's word 6: what the transfer is for.
    pub kind: u32,
    /// Software's word 7: an index that belongs to it.
    pub opaque: u32,
}

/// The descriptor ring of one direction.
#[derive(Debug)]
pub struct DescriptorRing<D: Direction> {
    /// SRAM address of the ring.
    base: u32,
    /// Offset at which the next descriptor is written.
    producer: u32,
    /// Offset of the oldest descriptor that was not looked at.
    reference: u32,
    _channel: D,
}

impl<D: Direction> DescriptorRing<D> {
    /// The ring of a channel, nowhere yet: [`place`](Self::place) follows.
    pub const fn new(channel: D) -> DescriptorRing<D> {
        DescriptorRing {
            base: 0,
            producer: 0,
            reference: 0,
            _channel: channel,
        }
    }

    /// Puts the ring at SRAM address `base`. The registers follow with
    /// [`reset`](Self::reset).
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
        let room = self
            .reference
            .wrapping_sub(self.producer)
            .wrapping_sub(DESCRIPTOR_BYTES)
            & (RING_BYTES - 1);
        room >= (count + SPARE) * DESCRIPTOR_BYTES
    }

    /// Number, 0..64, of the descriptor that the next [`push`](Self::push) writes.
    #[inline(always)]
    pub fn next_index(&self) -> u32 {
        self.producer / DESCRIPTOR_BYTES
    }

    /// Queues a transfer; the channel starts it as soon as it comes to it.
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

    /// Like [`push`](Self::push), to be called after [`has_room`](Self::has_room) said yes
    /// to it and to all others since.
    #[inline(always)]
    pub fn put<B: Bus>(&mut self, bus: &mut B, transfer: &Transfer) {
        let descriptor = self.base + self.producer;
        bus.store(descriptor, transfer.host.high);
        bus.store(descriptor + 4, transfer.host.low);
        bus.store(descriptor + 8, transfer.local);
        bus.store(descriptor + 12, transfer.length);
        bus.store(descriptor + 16, transfer.state);
        bus.store(descriptor + 24, transfer.kind);
        bus.store(descriptor + 28, transfer.opaque);
        self.producer = (self.producer + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
        bus.write(D::PRODUCER, self.producer);
    }

    /// Has the sum of the next [`push`](Self::push) stored in its descriptor, from where
    /// [`Finished::sum`] takes it. The transfer's state word asks for it with bits 9 and
    /// 11: [`tigon2_chip::bits::DmaState::with_store_checksum`].
    #[inline(always)]
    pub fn store_sum<B: Bus>(&self, bus: &mut B) {
        let descriptor = self.base + self.producer;
        bus.store(descriptor + SUM_ADDRESS, descriptor + SUM);
    }

    /// Like [`store_sum`](Self::store_sum), but the sum goes to the halfword at NIC address
    /// `address`. The ring works in order, so a transfer that is queued behind this one
    /// finds the sum there (6.3, C).
    #[inline(always)]
    pub fn store_sum_at<B: Bus>(&self, bus: &mut B, address: u32) {
        bus.store(self.base + self.producer + SUM_ADDRESS, address);
    }

    /// How far the channel came, as an end for [`take`](Self::take).
    #[inline(always)]
    pub fn done<B: Bus>(&self, bus: &mut B) -> Done {
        Done(bus.read(D::CONSUMER) & (RING_BYTES - DESCRIPTOR_BYTES))
    }

    /// The oldest transfer that is done and was not looked at, or `None` when all up to
    /// `end` were.
    #[inline(always)]
    pub fn take<B: Bus>(&mut self, bus: &mut B, end: Done) -> Option<Finished> {
        if self.reference == end.0 {
            return None;
        }
        let descriptor = self.base + self.reference;
        self.reference = (self.reference + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
        let kind = bus.load(descriptor + 24);
        Some(Finished {
            kind,
            opaque: bus.load(descriptor + 28),
            descriptor,
        })
    }

    /// Tells the chip what was looked at; the completion event goes off unless more is
    /// done by now.
    #[inline(always)]
    pub fn acknowledge<B: Bus>(&mut self, bus: &mut B) {
        bus.write(D::REFERENCE, self.reference);
    }

    /// The descriptor that the channel works on or stopped at; `None` if there is none.
    pub fn current<B: Bus>(&self, bus: &mut B) -> Option<u32> {
        let Done(consumer) = self.done(bus);
        (consumer != self.producer).then_some(self.base + consumer)
    }

    /// The oldest descriptor that was not looked at, done or not.
    pub fn oldest(&self) -> Option<u32> {
        (self.reference != self.producer).then_some(self.base + self.reference)
    }

    /// The descriptor behind `descriptor`, if one is queued there.
    pub fn behind(&self, descriptor: u32) -> Option<u32> {
        let offset = (descriptor - self.base + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
        (offset != self.producer).then_some(self.base + offset)
    }

    /// Has the channel go on behind the descriptor at which it stopped with an error, as
    /// software that does the assist's work moves it on (reference 15, C). The assist must
    /// be paused.
    pub fn skip<B: Bus>(&mut self, bus: &mut B) {
        let Done(consumer) = self.done(bus);
        if consumer != self.producer {
            let next = (consumer + DESCRIPTOR_BYTES) & (RING_BYTES - 1);
            bus.write(D::CONSUMER, next);
        }
    }

    /// Whether everything that was queued is done.
    pub fn is_idle<B: Bus>(&self, bus: &mut B) -> bool {
        self.done(bus).0 == self.producer
    }
}

/// A transfer that is done.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// Software's word 6.
    pub kind: u32,
    /// Software's word 7.
    pub opaque: u32,
    /// SRAM address of its descriptor, good until the next [`DescriptorRing::push`].
    pub descriptor: u32,
}

impl Finished {
    /// Where in NIC memory it was.
    #[inline(always)]
    pub fn local<B: Bus>(&self, bus: &mut B) -> u32 {
        bus.load(self.descriptor + 8)
    }

    /// The one's-complement sum of all bytes since the sum was begun at 0, folded and not
    /// inverted (6.5, C). Only for a transfer that [`DescriptorRing::store_sum`] came
    /// before.
    #[inline(always)]
    pub fn sum<B: Bus>(&self, bus: &mut B) -> u16 {
        bus.load_half(self.descriptor + SUM)
    }
}

/// A position of a channel in its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done(u32);
