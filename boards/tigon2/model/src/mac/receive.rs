//! Receive: room in ring and buffer, and the placement of a frame in SRAM.
//!
//! Hardware reference, section 10.3.
//!
//! ```text
//! RxPrd (8-byte aligned)            next RxPrd
//!   v                                   v
//!   [destination ... payload][CRC][pad to 8]
//! ```
//!
//! An engine that gives frames a duration says how much of one [has come](Mac::store_so_far).
//! `R[C4]` then stands behind these bytes, and goes back if the frame is dropped after all: so the
//! vendor's firmware could have seen it, which never looks (a decision).

use super::{Mac, buffer_distance};
use crate::environment::Sram;
use crate::memory::SramMap;
use tigon2_chip::mac::{CRC_BYTES, FRAME_ALIGNMENT, RxDescriptor, RxDescriptorAt, RxError};
use tigon2_chip::memory::PACKET_MEMORY_END;

/// The result of a frame from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It is in NIC memory.
    Accepted,
    /// The card dropped it.
    Dropped(DropReason),
    /// The card holds the wire by pause frames: offer the frame again when
    /// [`can_receive`](crate::Inspect::can_receive) returns true.
    Held,
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// No cable, or the transmitter is off so that the partner still negotiates, or the SERDES is
    /// looped back.
    NoLink,
    /// `R[220]` bit 1 is 0.
    Disabled,
    /// `R[220]` bit 2 is 1.
    Stopped,
    /// The address filter rejected it.
    Filtered,
    /// No room in the RX buffer or in the descriptor ring.
    NoSpace,
    /// A pause frame, which the MAC obeyed.
    FlowControl,
    /// Shorter than an Ethernet header.
    TooShort,
    /// Too long for a descriptor.
    TooLong,
}

/// Free room for received frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes for a frame, rounded up to the next boundary.
    pub bytes: u32,
    /// Descriptors.
    pub descriptors: u32,
}

impl Mac {
    /// The free room: neither producer may reach its consumer (10.1: equal is empty).
    pub fn rx_room(&self) -> Room {
        let bytes = self.buffers.rx_bytes();
        let used = buffer_distance(
            self.buffers.rx_base,
            bytes,
            self.rx_consumer.get(),
            self.rx_producer.get(),
        );
        let ring = |pointer: u32| pointer % tigon2_chip::mac::RX_RING_BYTES;
        let producer = ring(self.rx_descriptor_producer.get());
        let consumer = ring(self.rx_descriptor_consumer.get());
        let free = ring(consumer.wrapping_sub(producer).wrapping_sub(8));
        Room {
            bytes: bytes.saturating_sub(used + 1),
            descriptors: free / 8,
        }
    }

    /// Bytes of a frame in the RX buffer.
    fn footprint(&self, length: usize) -> u32 {
        let start = self.rx_producer.get();
        let end = start + (length + CRC_BYTES) as u32;
        end.next_multiple_of(FRAME_ALIGNMENT) - start
    }

    /// Whether a frame of `length` bytes without CRC fits now.
    pub fn fits(&self, length: usize) -> bool {
        let room = self.rx_room();
        room.descriptors > 0 && self.footprint(length) <= room.bytes
    }

    /// Stores a frame at RxPrd with its CRC, writes its descriptor and advances (10.3, C). It must
    /// fit. With a CRC error it stores a wrong CRC.
    pub fn store(&mut self, sram: &mut dyn Sram, map: SramMap, frame: &[u8], error: RxError) {
        let start = self.rx_producer.get();
        let mut crc = crc32fast::hash(frame);
        if error.contains(RxError::CRC) {
            crc = !crc;
        }
        let crc = crc.to_le_bytes();
        let at = self.put(sram, map, start, frame);
        let end = self.put(sram, map, at, &crc);
        let length = (frame.len() + CRC_BYTES) as u16;
        let descriptor = RxDescriptor::new(start, length, error);
        let at = RxDescriptorAt(self.rx_descriptor_producer.get());
        map.set_word(sram, at.start(), descriptor.start);
        map.set_word(sram, at.length_and_error(), descriptor.length_and_error);
        self.rx_producer
            .set(self.wrapped(end.next_multiple_of(FRAME_ALIGNMENT)));
        self.rx_descriptor_producer.advance();
    }

    /// Writes into the RX buffer, wrapping at its end; returns the address after the data.
    fn put(&self, sram: &mut dyn Sram, map: SramMap, at: u32, data: &[u8]) -> u32 {
        let room = PACKET_MEMORY_END.saturating_sub(at) as usize;
        let (now, later) = data.split_at(room.min(data.len()));
        map.write(sram, at, now);
        map.write(sram, self.buffers.rx_base, later);
        if later.is_empty() {
            self.wrapped(at + now.len() as u32)
        } else {
            self.buffers.rx_base + later.len() as u32
        }
    }

    /// Stores what has come of the frame that arrives: its first bytes, as far as there is room.
    pub fn store_so_far(&mut self, sram: &mut dyn Sram, map: SramMap, bytes: &[u8]) {
        let room = self.rx_room();
        let most = room.bytes as usize & !(FRAME_ALIGNMENT as usize - 1);
        let bytes = &bytes[..bytes.len().min(most)];
        let stored = self.arrived as usize;
        if room.descriptors == 0 || bytes.len() <= stored {
            return;
        }
        let at = self.wrapped(self.rx_producer.get() + self.arrived);
        self.put(sram, map, at, &bytes[stored..]);
        self.arrived = bytes.len() as u32;
    }

    /// No frame arrives any more: where `R[C4]` has gone on, it goes back.
    pub fn forget_arrived(&mut self) {
        self.arrived = 0;
    }

    /// `R[C4]`: behind the bytes that have come of the frame that arrives.
    #[inline]
    pub fn filled(&self) -> u32 {
        if self.arrived == 0 {
            return self.rx_producer.get();
        }
        self.wrapped(self.rx_producer.get() + self.arrived)
    }

    fn wrapped(&self, address: u32) -> u32 {
        if address >= PACKET_MEMORY_END {
            self.buffers.rx_base + (address - PACKET_MEMORY_END)
        } else {
            address
        }
    }
}
