//! The ring of received frames (hardware reference, section 10.3).

use crate::Bus;
use crate::resources::Receiver;
use tigon2_chip::Register;
use tigon2_chip::mac::{
    DESCRIPTOR_BYTES, POINTER_FLAGS, RECEIVING_FLAG, RX_RING_BYTES, RxDescriptorAt,
};

/// A received frame, from its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedFrame {
    /// Where it starts in the receive buffer.
    pub start: u32,
    /// Bytes with the 4 of the CRC.
    pub length: u32,
    /// Error flags, reference 10.3: those of the descriptor's bits 31:16.
    pub errors: u32,
}

/// What the MAC does at the ring's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arriving {
    /// A frame has ended and was not released.
    Ended,
    /// No frame.
    Nothing,
    /// A frame arrives.
    Frame,
}

/// The frame of the descriptor at an SRAM address.
#[inline(always)]
fn load<B: Bus>(bus: &mut B, descriptor: u32) -> ReceivedFrame {
    let descriptor = RxDescriptorAt(descriptor);
    let start = bus.load(descriptor.start());
    let status = bus.load(descriptor.length_and_error());
    ReceivedFrame {
        start,
        length: status & 0xFFFF,
        errors: status >> 16,
    }
}

/// The offset of the descriptor that the MAC fills next.
#[inline(always)]
fn producer<B: Bus>(bus: &mut B) -> u32 {
    // Bits 2:0 are flags (10.1).
    bus.read(Register::RxDescriptorProducer) & (RX_RING_BYTES - 1) & !7
}

/// The ring of received frames: 512 descriptors.
#[derive(Debug)]
pub struct ReceiveRing {
    base: u32,
    consumer: u32,
    /// The MAC's producer at the last read.
    producer: u32,
    /// The consumer in the chip's register.
    told: u32,
    _receiver: Receiver,
}

impl ReceiveRing {
    /// The receiver's ring, without a place: [`place`](Self::place) sets it.
    pub const fn new(receiver: Receiver) -> ReceiveRing {
        ReceiveRing {
            base: 0,
            consumer: 0,
            producer: 0,
            told: 0,
            _receiver: receiver,
        }
    }

    /// Places the ring at SRAM address `base`.
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

    /// The frames as others see them.
    pub const fn view(&self) -> ReceivedView {
        ReceivedView { base: self.base }
    }

    /// The number of the oldest descriptor that was not released, below 512.
    pub const fn oldest_number(&self) -> u32 {
        self.consumer / DESCRIPTOR_BYTES
    }

    /// Starts processing frames.
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

    /// Whether a frame has ended behind those that were released. Reads the register, so that
    /// [`oldest`](Self::oldest) need not.
    #[inline(always)]
    pub fn has_more<B: Bus>(&mut self, bus: &mut B) -> bool {
        self.producer = producer(bus);
        self.producer != self.consumer
    }

    /// Whether a frame arrives, if all before it were released.
    #[inline(always)]
    pub fn arriving<B: Bus>(&self, bus: &mut B) -> Arriving {
        let producer = bus.read(Register::RxDescriptorProducer);
        if (producer & !POINTER_FLAGS ^ self.consumer) & (RX_RING_BYTES - 1) != 0 {
            Arriving::Ended
        } else if producer & RECEIVING_FLAG == 0 {
            Arriving::Nothing
        } else {
            Arriving::Frame
        }
    }

    /// The last frame that was released, as its descriptor still says.
    #[inline(always)]
    pub fn last<B: Bus>(&self, bus: &mut B) -> ReceivedFrame {
        let before = self.consumer.wrapping_sub(DESCRIPTOR_BYTES) & (RX_RING_BYTES - 1);
        load(bus, self.base + before)
    }

    /// Releases the oldest descriptor, see [`Arrivals::release`].
    #[inline(always)]
    pub fn release(&mut self) {
        self.open().release();
    }

    /// Returns all released descriptors to the MAC. The event goes off unless there are more.
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

/// The received frames as a CPU sees them that is not the receiver's: it reads them and changes
/// nothing. Frames are named by positions that count them; a descriptor's number is its position
/// modulo 512.
#[derive(Debug)]
pub struct ReceivedView {
    base: u32,
}

impl ReceivedView {
    /// Of a ring that is nowhere yet: [`place`](Self::place) follows.
    pub const fn new() -> ReceivedView {
        ReceivedView { base: 0 }
    }

    /// Places the ring at SRAM address `base`.
    pub const fn place(&mut self, base: u32) {
        self.base = base;
    }

    /// Offset of a position's descriptor from the ring's start, in bytes.
    #[inline(always)]
    pub const fn offset(position: u32) -> u32 {
        position << DESCRIPTOR_BYTES.trailing_zeros() & (RX_RING_BYTES - 1)
    }

    /// The offset of the descriptor that the MAC fills next.
    #[inline(always)]
    pub fn producer<B: Bus>(&self, bus: &mut B) -> u32 {
        producer(bus)
    }

    /// How many frames have arrived from `released` on, by the [`producer`](Self::producer). The
    /// receiver's CPU has released all in front of that position, which is never in front of the
    /// producer: the ring would look almost full.
    #[inline(always)]
    pub const fn arrived(&self, released: u32, producer: u32) -> u32 {
        let bytes = producer.wrapping_sub(Self::offset(released)) & (RX_RING_BYTES - 1);
        bytes >> DESCRIPTOR_BYTES.trailing_zeros()
    }

    /// Whether the frame at a position has arrived, as [`arrived`](Self::arrived).
    #[inline(always)]
    pub const fn has_arrived(&self, position: u32, released: u32, producer: u32) -> bool {
        position.wrapping_sub(released) < self.arrived(released, producer)
    }

    /// The frame at a position.
    #[inline(always)]
    pub fn at<B: Bus>(&self, bus: &mut B, position: u32) -> ReceivedFrame {
        load(bus, self.base + Self::offset(position))
    }
}

impl Default for ReceivedView {
    fn default() -> ReceivedView {
        ReceivedView::new()
    }
}

/// Received frames that are being processed. It holds the ring's state meanwhile, so that a
/// compiler keeps it in registers.
#[derive(Debug)]
pub struct Arrivals<'a> {
    base: u32,
    at: u32,
    producer: u32,
    ring: &'a mut ReceiveRing,
}

impl Arrivals<'_> {
    /// The oldest frame that was not released, if any. Reads a register only when everything of the
    /// last read is released.
    #[inline(always)]
    pub fn oldest<B: Bus>(&mut self, bus: &mut B) -> Option<ReceivedFrame> {
        if self.producer == self.at {
            self.producer = producer(bus);
            if self.producer == self.at {
                return None;
            }
        }
        Some(load(bus, self.base + self.at))
    }

    /// The offset of the oldest frame's descriptor from the ring's start, in bytes.
    #[inline(always)]
    pub const fn offset(&self) -> u32 {
        self.at
    }

    /// Releases the oldest descriptor; [`ReceiveRing::give_back`] returns it. The frame's bytes are
    /// freed separately: by the write DMA that moves them, or with the RX consumer register.
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
