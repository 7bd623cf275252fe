//! The pointer registers of the MAC's descriptor rings.
//!
//! Hardware reference, section 10.1: software writes whole addresses; the pointers wrap on
//! every write and on every advance.

use tigon2_chip::mac::{DESCRIPTOR_BYTES, POINTER_FLAGS};
use tigon2_chip::memory::SRAM_MAX_BYTES;

/// A pointer into a ring of `BYTES` (a power of two), which is also the ring's alignment.
///
/// The pointer's own address selects the ring: a write of the address after that ring (last
/// descriptor + 8) stores the ring's start; a write elsewhere moves the pointer to another ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingPointer<const BYTES: u32> {
    address: u32,
}

impl<const BYTES: u32> RingPointer<BYTES> {
    /// The address of a descriptor.
    #[inline]
    pub fn get(self) -> u32 {
        self.address
    }

    /// A write to the register (10.1, C).
    pub fn set(&mut self, value: u32) {
        let address = value & (SRAM_MAX_BYTES - 1) & !POINTER_FLAGS;
        let start = self.address & !(BYTES - 1);
        self.address = if address == start + BYTES {
            start
        } else {
            address
        };
    }

    /// Whether two pointers name the same entry of the ring. Only the offset counts, so a producer
    /// and a consumer in different places still compare equal.
    #[inline]
    pub fn meets(self, other: Self) -> bool {
        (self.address ^ other.address) & (BYTES - 1) == 0
    }

    /// The pointer to the next descriptor.
    #[inline]
    pub fn next(self) -> Self {
        let start = self.address & !(BYTES - 1);
        RingPointer {
            address: start | (self.address + DESCRIPTOR_BYTES) & (BYTES - 1),
        }
    }

    /// Advances to the next descriptor.
    pub fn advance(&mut self) {
        *self = self.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tigon2_chip::mac::{RX_RING_BYTES, TX_RING_BYTES};

    /// Reference 10.1: E0/E4/E8 wrap in 4 KB, F0/F4/F8 in 2 KB, on write and on advance (C).
    #[test]
    fn pointers_wrap_on_write_and_advance() {
        let k = 0x12_F000;
        let mut rx = RingPointer::<RX_RING_BYTES>::default();
        rx.set(k + 0x3000);
        rx.set(k + 0x3FF8);
        assert_eq!(rx.next().get(), k + 0x3000);
        rx.set(k + 0x4000);
        assert_eq!(rx.get(), k + 0x3000);
        let mut tx = RingPointer::<TX_RING_BYTES>::default();
        tx.set(k + 0x2800);
        tx.set(k + 0x2FF8);
        tx.advance();
        assert_eq!(tx.get(), k + 0x2800);
        tx.set(k + 0x3000);
        assert_eq!(tx.get(), k + 0x2800);
    }

    #[test]
    fn pointers_into_different_places_still_meet() {
        let mut producer = RingPointer::<TX_RING_BYTES>::default();
        let mut consumer = producer;
        producer.set(0x13_1818);
        consumer.set(0x13_4000);
        for step in 0..3 {
            assert!(!consumer.meets(producer), "after {step}");
            consumer.advance();
        }
        assert!(consumer.meets(producer));
    }

    /// Reference 10.1: E0 and F4 carry flags in bits 2:0 (C).
    #[test]
    fn flags_are_not_part_of_the_pointer() {
        let mut pointer = RingPointer::<TX_RING_BYTES>::default();
        pointer.set(0xFFFF_FFFF);
        assert_eq!(pointer.get(), 0x7F_FFF8);
        assert_eq!(pointer.next().get(), 0x7F_F800);
    }
}
