//! MAC descriptor rings and the transmit buffer.
//!
//! Hardware reference, section 10. The MAC sends from and receives into two ring buffers
//! in SRAM; a descriptor of 8 bytes tells where a frame starts and how long it is.

use crate::Bus;
use crate::resources::{Receiver, Transmitter};
use tigon2_chip::Register;
use tigon2_chip::bits::MacTxState;
use tigon2_chip::mac::{
    DESCRIPTOR_BYTES, RX_RING_BYTES, RxDescriptorAt, TX_RING_BYTES, TxDescriptor, TxDescriptorAt,
};

/// The ring of frames to send: 256 descriptors.
///
/// A frame whose data still has to be changed after it arrived is written into the ring
/// in its turn all the same, but [held](Frames::hold): the MAC does not see it until it is
/// [released](Self::release). Frames behind it must be held as well then.
#[derive(Debug)]
pub struct TransmitRing {
    base: u32,
    producer: u32,
    /// Bytes of descriptors in front of `producer` that the MAC does not see yet.
    held: u32,
    /// Bytes of descriptors that were free at the last look at the MAC, less those that
    /// were written since; there may be more by now.
    room: u32,
    _transmitter: Transmitter,
}

impl TransmitRing {
    /// The ring of the transmitter, nowhere yet: [`place`](Self::place) follows.
    pub const fn new(transmitter: Transmitter) -> TransmitRing {
        TransmitRing {
            base: 0,
            producer: 0,
            held: 0,
            room: 0,
            _transmitter: transmitter,
        }
    }

    /// Puts the ring at SRAM address `base`.
    pub const fn place(&mut self, base: u32) {
        self.base = base;
    }

    /// Sets all three pointers to the start of the ring.
    pub fn reset<B: Bus>(&mut self, bus: &mut B) {
        self.producer = 0;
        self.held = 0;
        self.room = 0;
        bus.write(Register::TxDescriptorProducer, self.base);
        bus.write(Register::TxDescriptorConsumer, self.base);
        bus.write(Register::TxDescriptorReference, self.base);
    }

    /// Begins to queue frames.
    #[inline(always)]
    pub fn open(&mut self) -> Frames<'_> {
        Frames {
            base: self.base,
            at: self.producer,
            held: self.held,
            room: self.room,
            ring: self,
        }
    }

    /// Start and length of the oldest frame that is held.
    #[inline(always)]
    pub fn oldest_held<B: Bus>(&self, bus: &mut B) -> (u32, u32) {
        let descriptor = self.base + (self.producer.wrapping_sub(self.held) & (TX_RING_BYTES - 1));
        let descriptor = TxDescriptorAt(descriptor);
        let start = bus.load(descriptor.start_and_flags()) & TxDescriptor::START_MASK;
        (start, bus.load(descriptor.length_and_tag()) & 0xFFFF)
    }

    /// Lets the MAC have the oldest frame that is held.
    #[inline(always)]
    pub fn release<B: Bus>(&mut self, bus: &mut B) {
        self.held -= DESCRIPTOR_BYTES;
        let producer = self.producer.wrapping_sub(self.held) & (TX_RING_BYTES - 1);
        bus.write(Register::TxDescriptorProducer, self.base + producer);
    }

    /// Takes the frame out of the ring for which `wanted` says yes, by its start and
    /// length; those behind it move up. Its data must not have arrived, so that the MAC
    /// waits for it, or it must be held. Returns start and length.
    #[inline(never)]
    pub fn remove<B: Bus>(
        &mut self,
        bus: &mut B,
        wanted: impl Fn(u32, u32) -> bool,
    ) -> Option<(u32, u32)> {
        let mask = TX_RING_BYTES - 1;
        let stop = MacTxState::new().with_stop(true).into_bits();
        // Attentions are write 1 to clear: they are left as they are.
        bus.modify(Register::MacTxState, stop | MacTxState::ATTENTION, stop);
        let mut at = bus.read(Register::TxDescriptorConsumer) & mask & !7;
        let mut found = None;
        while at != self.producer {
            let here = TxDescriptorAt(self.base + at);
            let word = bus.load(here.start_and_flags());
            let status = bus.load(here.length_and_tag());
            let (start, length) = (word & TxDescriptor::START_MASK, status & 0xFFFF);
            if found.is_some() {
                let before = self.base + (at.wrapping_sub(DESCRIPTOR_BYTES) & mask);
                let before = TxDescriptorAt(before);
                bus.store(before.start_and_flags(), word);
                bus.store(before.length_and_tag(), status);
            } else if wanted(start, length) {
                found = Some((start, length));
                let behind = self.producer.wrapping_sub(at) & mask;
                if behind <= self.held {
                    self.held -= DESCRIPTOR_BYTES;
                }
            }
            at = (at + DESCRIPTOR_BYTES) & mask;
        }
        if found.is_some() {
            self.producer = self.producer.wrapping_sub(DESCRIPTOR_BYTES) & mask;
            let seen = self.producer.wrapping_sub(self.held) & mask;
            bus.write(Register::TxDescriptorProducer, self.base + seen);
        }
        bus.modify(Register::MacTxState, stop | MacTxState::ATTENTION, 0);
        found
    }

    /// Whether the MAC has sent all frames of the ring, held ones too.
    pub fn is_empty<B: Bus>(&self, bus: &mut B) -> bool {
        bus.read(Register::TxDescriptorConsumer) & (TX_RING_BYTES - 1) & !7 == self.producer
    }
}

/// Frames that are being queued, one after the other. What is known of the ring is meanwhile
/// in here, so that a compiler keeps it in registers; the MAC hears of them when they are
/// [closed](Self::close).
#[derive(Debug)]
#[must_use]
pub struct Frames<'a> {
    base: u32,
    at: u32,
    held: u32,
    room: u32,
    ring: &'a mut TransmitRing,
}

impl Frames<'_> {
    /// How many descriptors are free. Reads a register only when fewer than `most` were at
    /// the last look.
    #[inline(always)]
    pub fn free<B: Bus>(&mut self, bus: &mut B, most: u32) -> u32 {
        if self.known() < most {
            self.look(bus);
        }
        self.known()
    }

    /// One always stays free.
    #[inline(always)]
    fn known(&self) -> u32 {
        (self.room / DESCRIPTOR_BYTES).saturating_sub(1)
    }

    #[inline(always)]
    fn look<B: Bus>(&mut self, bus: &mut B) {
        let consumer = bus.read(Register::TxDescriptorConsumer) & !7;
        self.room = consumer.wrapping_sub(self.at + DESCRIPTOR_BYTES) & (TX_RING_BYTES - 1);
    }

    /// Queues a frame that begins at `start` of the transmit buffer and has `length` bytes
    /// without the CRC; the MAC inserts the VLAN tag if there is one. Its data may still be
    /// under way: the MAC waits until the TX producer covers it (10.2, C). To be called
    /// if a descriptor is [`free`](Self::free), and while no frame is held.
    #[inline(always)]
    pub fn push<B: Bus>(&mut self, bus: &mut B, start: u32, length: u32, tag: Option<u32>) {
        let descriptor = TxDescriptorAt(self.base + self.at);
        match tag {
            None => {
                bus.store(descriptor.start_and_flags(), start);
                bus.store(descriptor.length_and_tag(), length);
            }
            Some(tag) => {
                let flagged = start | TxDescriptor::INSERT_TAG;
                bus.store(descriptor.start_and_flags(), flagged);
                bus.store(descriptor.length_and_tag(), tag << 16 | length);
            }
        }
        self.at = (self.at + DESCRIPTOR_BYTES) & (TX_RING_BYTES - 1);
        self.room = self.room.wrapping_sub(DESCRIPTOR_BYTES);
    }

    /// Puts a frame behind all others, as [`push`](Self::push) does, but keeps it from the
    /// MAC. To be called if a descriptor is [`free`](Self::free).
    #[inline(always)]
    pub fn hold<B: Bus>(&mut self, bus: &mut B, start: u32, length: u32, tag: Option<u32>) {
        self.push(bus, start, length, tag);
        self.held += DESCRIPTOR_BYTES;
    }

    /// Not 0 if a frame is held.
    #[inline(always)]
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Tells the MAC of the frames that are not held.
    #[inline(always)]
    pub fn close<B: Bus>(self, bus: &mut B) {
        let moved = self.at != self.ring.producer;
        self.ring.producer = self.at;
        self.ring.held = self.held;
        self.ring.room = self.room;
        if moved {
            let seen = self.at.wrapping_sub(self.held) & (TX_RING_BYTES - 1);
            bus.write(Register::TxDescriptorProducer, self.base + seen);
        }
    }
}

/// Room in the transmit buffer, a ring from the TX base to the RX base.
#[derive(Clone, Copy, Debug)]
pub struct TransmitBuffer {
    base: u32,
    end: u32,
    write: u32,
    /// Bytes that were free at the last look at the MAC, less those that were taken since.
    room: u32,
}

impl TransmitBuffer {
    /// The buffer between two SRAM addresses that are multiples of 8.
    pub const fn new(base: u32, end: u32) -> TransmitBuffer {
        TransmitBuffer {
            base,
            end,
            write: base,
            room: 0,
        }
    }

    /// Where the next fragment goes.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        self.write
    }

    /// Whether `bytes` more fit without reaching what the MAC has not sent. Reads a
    /// register only if they did not at the last look.
    #[inline(always)]
    pub fn has_room<B: Bus>(&mut self, bus: &mut B, bytes: u32) -> bool {
        if self.room as i32 > bytes as i32 {
            return true;
        }
        let consumer = bus.read(Register::TxConsumer);
        self.room = if consumer > self.write {
            consumer - self.write
        } else {
            (self.end - self.base) - (self.write - consumer)
        };
        self.room > bytes
    }

    /// Takes room for a fragment. Its data wraps from the end to the base, as the DMA
    /// channel and the MAC do by themselves (6.4, 10.2, C).
    #[inline(always)]
    pub fn take(&mut self, bytes: u32) {
        self.room = self.room.wrapping_sub(bytes);
        self.write = self.wrapped(self.write + bytes);
    }

    /// Takes room for a frame's last fragment, up to the 8-byte boundary at which the next
    /// frame begins.
    #[inline(always)]
    pub fn take_last(&mut self, bytes: u32) {
        self.take(bytes + ((self.write + bytes).wrapping_neg() & 7));
    }

    /// Has the next frame begin at the base if fewer than `bytes` lie in front of the end:
    /// that many of its bytes will not wrap. They must be free, too, see
    /// [`has_room`](Self::has_room).
    #[inline(always)]
    pub fn keep_together(&mut self, bytes: u32) {
        let left = self.end - self.write;
        if left < bytes {
            self.take(left);
        }
    }

    /// The address `bytes` behind `address`, which lies in the buffer; round the end.
    #[inline(always)]
    pub fn behind(&self, address: u32, bytes: u32) -> u32 {
        self.wrapped(address + bytes)
    }

    /// Bytes from `from` forward to `to`, both in the buffer.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from {
            to - from
        } else {
            (self.end - self.base) - (from - to)
        }
    }

    /// Takes all room back: nothing is in the buffer that the MAC has not sent.
    pub fn clear<B: Bus>(&mut self, bus: &mut B) {
        self.write = bus.read(Register::TxConsumer);
        self.room = 0;
        self.take_last(0);
    }

    /// Goes back to `position`, where an abandoned frame began.
    #[inline(always)]
    pub fn rewind(&mut self, position: u32) {
        self.write = position;
        self.room = 0;
    }

    #[inline(always)]
    fn wrapped(&self, address: u32) -> u32 {
        if address >= self.end {
            address - (self.end - self.base)
        } else {
            address
        }
    }
}

/// A received frame as its descriptor tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedFrame {
    /// Where it starts in the receive buffer.
    pub start: u32,
    /// Bytes with the 4 of the CRC.
    pub length: u32,
    /// Error flags, reference 10.3: those of the descriptor's bits 31:16.
    pub errors: u32,
}

/// The ring of received frames: 512 descriptors.
#[derive(Debug)]
pub struct ReceiveRing {
    base: u32,
    consumer: u32,
    /// The MAC's producer when it was last read.
    producer: u32,
    /// The consumer that the chip was told.
    told: u32,
    _receiver: Receiver,
}

impl ReceiveRing {
    /// The ring of the receiver, nowhere yet: [`place`](Self::place) follows.
    pub const fn new(receiver: Receiver) -> ReceiveRing {
        ReceiveRing {
            base: 0,
            consumer: 0,
            producer: 0,
            told: 0,
            _receiver: receiver,
        }
    }

    /// Puts the ring at SRAM address `base`.
    pub const fn place(&mut self, base: u32) {
        self.base = base;
    }

    /// Sets all three pointers to the start of the ring.
    pub fn reset<B: Bus>(&mut self, bus: &mut B) {
        self.consumer = 0;
        self.producer = 0;
        self.told = 0;
        bus.write(Register::RxDescriptorProducer, self.base);
        bus.write(Register::RxDescriptorConsumer, self.base);
        bus.write(Register::RxDescriptorReference, self.base);
    }

    /// Begins to look at frames.
    #[inline(always)]
    pub fn open(&mut self) -> Arrivals<'_> {
        Arrivals {
            base: self.base,
            at: self.consumer,
            producer: self.producer,
            ring: self,
        }
    }

    /// The oldest frame that was not released, see [`Arrivals::oldest`].
    #[inline(always)]
    pub fn oldest<B: Bus>(&mut self, bus: &mut B) -> Option<ReceivedFrame> {
        self.open().oldest(bus)
    }

    /// Is done with the oldest descriptor, see [`Arrivals::release`].
    #[inline(always)]
    pub fn release(&mut self) {
        self.open().release();
    }

    /// Gives the MAC all descriptors back that were released. The event goes off unless
    /// there are more.
    #[inline(always)]
    pub fn give_back<B: Bus>(&mut self, bus: &mut B) {
        if self.told != self.consumer {
            self.told = self.consumer;
            let descriptor = self.base + self.consumer;
            bus.write(Register::RxDescriptorConsumer, descriptor);
            bus.write(Register::RxDescriptorReference, descriptor);
        }
    }
}

/// Received frames that are being looked at, one after the other. What is known of the ring
/// is meanwhile in here, so that a compiler keeps it in registers.
#[derive(Debug)]
pub struct Arrivals<'a> {
    base: u32,
    at: u32,
    producer: u32,
    ring: &'a mut ReceiveRing,
}

impl Arrivals<'_> {
    /// The oldest frame that was not released, if the MAC has put one there. Reads a
    /// register only when all that was there at the last look is released.
    #[inline(always)]
    pub fn oldest<B: Bus>(&mut self, bus: &mut B) -> Option<ReceivedFrame> {
        if self.producer == self.at {
            // Bits 2:0 are flags (10.1).
            let producer = bus.read(Register::RxDescriptorProducer);
            self.producer = producer & (RX_RING_BYTES - 1) & !7;
            if self.producer == self.at {
                return None;
            }
        }
        let descriptor = RxDescriptorAt(self.base + self.at);
        let start = bus.load(descriptor.start());
        let status = bus.load(descriptor.length_and_error());
        Some(ReceivedFrame {
            start,
            length: status & 0xFFFF,
            errors: status >> 16,
        })
    }

    /// Is done with the oldest descriptor; [`ReceiveRing::give_back`] follows. The frame's
    /// bytes are freed apart from it: by the write DMA that moves them, or with the RX
    /// consumer register.
    #[inline(always)]
    pub fn release(&mut self) {
        self.at = (self.at + DESCRIPTOR_BYTES) & (RX_RING_BYTES - 1);
    }
}

impl Drop for Arrivals<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.ring.consumer = self.at;
        self.ring.producer = self.producer;
    }
}
