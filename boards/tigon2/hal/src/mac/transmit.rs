//! The ring of frames to send (hardware reference, section 10.2).

use crate::Bus;
use crate::resources::Transmitter;
use tigon2_chip::Register;
use tigon2_chip::bits::MacTxState;
use tigon2_chip::mac::{DESCRIPTOR_BYTES, TX_RING_BYTES, TxDescriptor, TxDescriptorAt};

/// The ring of frames to send: 256 descriptors.
///
/// A frame whose data must change after it has arrived is written into the ring in order, but
/// [held](Frames::hold): the MAC does not see it until it is [released](Self::release). Frames
/// after it must be held as well.
#[derive(Debug)]
pub struct TransmitRing {
    base: u32,
    producer: u32,
    /// Bytes of descriptors before `producer` that the MAC does not see yet.
    held: u32,
    /// Bytes of descriptors that were free at the last read of the MAC, less those written since;
    /// more may be free by now.
    room: u32,
    _transmitter: Transmitter,
}

impl TransmitRing {
    /// The transmitter's ring, without a place: [`place`](Self::place) sets it.
    pub const fn new(transmitter: Transmitter) -> TransmitRing {
        TransmitRing {
            base: 0,
            producer: 0,
            held: 0,
            room: 0,
            _transmitter: transmitter,
        }
    }

    /// Places the ring at SRAM address `base`.
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

    /// Starts queueing frames.
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

    /// Whether `count` descriptors were free at the last read of the MAC, and no frame is held.
    #[inline(always)]
    pub fn knows_free(&self, count: u32) -> bool {
        self.held == 0 && self.room > count * DESCRIPTOR_BYTES
    }

    /// Start and length of the oldest frame that is held.
    #[inline(always)]
    pub fn oldest_held<B: Bus>(&self, bus: &mut B) -> (u32, u32) {
        let descriptor = self.base + (self.producer.wrapping_sub(self.held) & (TX_RING_BYTES - 1));
        let descriptor = TxDescriptorAt(descriptor);
        let start = bus.load(descriptor.start_and_flags()) & TxDescriptor::START_MASK;
        (start, bus.load(descriptor.length_and_tag()) & 0xFFFF)
    }

    /// Releases the oldest held frame to the MAC.
    #[inline(always)]
    pub fn release<B: Bus>(&mut self, bus: &mut B) {
        self.held -= DESCRIPTOR_BYTES;
        let producer = self.producer.wrapping_sub(self.held) & (TX_RING_BYTES - 1);
        bus.write(Register::TxDescriptorProducer, self.base + producer);
    }

    /// Removes the frame that `wanted` selects by its start and length; later frames move up. The
    /// frame must be held, or its data must not have arrived, so that the MAC waits for it. Returns
    /// start and length.
    #[inline(never)]
    pub fn remove<B: Bus>(
        &mut self,
        bus: &mut B,
        wanted: impl Fn(u32, u32) -> bool,
    ) -> Option<(u32, u32)> {
        let mask = TX_RING_BYTES - 1;
        let stop = MacTxState::new().with_stop(true).into_bits();
        // Attentions are write 1 to clear: this write leaves them unchanged.
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

    /// Frames of the ring that the MAC has not sent, including held ones.
    #[inline(always)]
    pub fn unsent<B: Bus>(&self, bus: &mut B) -> u32 {
        let consumer = bus.read(Register::TxDescriptorConsumer) & !7;
        (self.producer.wrapping_sub(consumer) & (TX_RING_BYTES - 1)) / DESCRIPTOR_BYTES
    }

    /// Whether the MAC has sent all frames of the ring, including held ones.
    pub fn is_empty<B: Bus>(&self, bus: &mut B) -> bool {
        bus.read(Register::TxDescriptorConsumer) & (TX_RING_BYTES - 1) & !7 == self.producer
    }
}

/// Frames that are being queued. It holds the ring's state meanwhile, so that a compiler keeps it
/// in registers; [`close`](Self::close) passes the frames to the MAC.
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
    /// The number of free descriptors. Reads a register only if fewer than `most` were free at the
    /// last read.
    #[inline(always)]
    pub fn free<B: Bus>(&mut self, bus: &mut B, most: u32) -> u32 {
        if self.known() < most {
            self.look(bus);
        }
        self.known()
    }

    /// The number of descriptors that were free at the last read: one always stays free.
    #[inline(always)]
    pub fn known(&self) -> u32 {
        (self.room / DESCRIPTOR_BYTES).saturating_sub(1)
    }

    #[inline(always)]
    fn look<B: Bus>(&mut self, bus: &mut B) {
        let consumer = bus.read(Register::TxDescriptorConsumer) & !7;
        self.room = consumer.wrapping_sub(self.at + DESCRIPTOR_BYTES) & (TX_RING_BYTES - 1);
    }

    /// Queues a frame that begins at `start` of the transmit buffer and has `length` bytes without
    /// the CRC; the MAC inserts the VLAN tag, if any. Its data may still be in flight: the MAC
    /// waits until the TX producer covers it (10.2, C). The caller has checked that a descriptor is
    /// [`free`](Self::free) and that no frame is held.
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

    /// Appends a frame like [`push`](Self::push), but hides it from the MAC. The caller has checked
    /// that a descriptor is [`free`](Self::free).
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

    /// Passes the frames that are not held to the MAC.
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
