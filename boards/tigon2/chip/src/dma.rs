//! DMA descriptors and the arithmetic on their rings.
//!
//! Hardware reference, sections 6.3 and 6.4. Two rings of 64 descriptors of 32 bytes, one
//! for reads (host to NIC), one for writes (NIC to host):
//!
//! ```text
//!             consumer (hardware)        producer (software)
//!                 v                          v
//!   [ free ][ being moved ][ queued ][ queued ][ free ] ...
//!                               ^
//!                           reference: the event rises when the consumer has passed it
//! ```

use crate::HostAddress;
use crate::bits::DmaState;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Descriptors in each ring (6.3, C).
pub const RING_ENTRIES: u32 = 64;

/// Bytes of a descriptor (6.3, C).
pub const DESCRIPTOR_BYTES: u32 = 32;

/// Bytes of a ring, also its alignment (6.3, C).
pub const RING_BYTES: u32 = RING_ENTRIES * DESCRIPTOR_BYTES;

/// A DMA descriptor: 8 words, big-endian in NIC memory (6.3, C).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DmaDescriptor {
    /// Words 0 and 1: host address.
    pub host: HostAddress,
    /// Word 2: NIC address.
    pub local: u32,
    /// Word 3: bits 15:0 length in bytes; the chip ignores the rest.
    pub length: u32,
    /// Word 4: the value for the channel's state register.
    pub state: DmaState,
    /// Word 5: NIC address for the 16-bit checksum when the state asks to store it.
    pub checksum_target: u32,
    /// Word 6: for software: type of the transfer.
    pub kind: u32,
    /// Word 7: for software: opaque; vendor uses it as the source of index writes to the host.
    pub opaque: u32,
}

/// Where vendor firmware stores a descriptor's checksum: the low half of
/// [`DmaDescriptor::checksum_target`] itself (6.5, C).
pub const CHECKSUM_OFFSET: u32 = DmaDescriptorAt(0).checksum_target() + 2;

crate::place! {
    /// A [`DmaDescriptor`] in NIC memory.
    DmaDescriptorAt: DmaDescriptor {
        host, local, length, state, checksum_target, kind, opaque,
    }
}

const _: () = {
    let first = DmaDescriptorAt(0);
    assert!(size_of::<DmaDescriptor>() == DESCRIPTOR_BYTES as usize);
    assert!(first.host() == 0 && first.local() == 8 && first.length() == 12);
    assert!(first.state() == 16 && first.checksum_target() == 20);
    assert!(first.kind() == 24 && first.opaque() == 28);
};

impl DmaDescriptor {
    /// Decodes a descriptor from NIC memory.
    pub fn from_nic_bytes(bytes: &[u8; DESCRIPTOR_BYTES as usize]) -> Self {
        let word = |n: usize| {
            u32::from_be_bytes([
                bytes[4 * n],
                bytes[4 * n + 1],
                bytes[4 * n + 2],
                bytes[4 * n + 3],
            ])
        };
        DmaDescriptor {
            host: HostAddress {
                high: word(0),
                low: word(1),
            },
            local: word(2),
            length: word(3),
            state: DmaState::from_bits(word(4)),
            checksum_target: word(5),
            kind: word(6),
            opaque: word(7),
        }
    }

    /// Encodes the descriptor for NIC memory.
    pub fn to_nic_bytes(&self) -> [u8; DESCRIPTOR_BYTES as usize] {
        let mut bytes = [0; DESCRIPTOR_BYTES as usize];
        for (slot, word) in bytes.chunks_exact_mut(4).zip(self.words()) {
            slot.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The eight words in their order.
    #[inline]
    pub const fn words(&self) -> [u32; 8] {
        [
            self.host.high,
            self.host.low,
            self.local,
            self.length,
            self.state.into_bits(),
            self.checksum_target,
            self.kind,
            self.opaque,
        ]
    }

    /// The length in bytes: the low 16 bits of word 3.
    #[inline]
    pub const fn length_bytes(&self) -> u32 {
        self.length & 0xFFFF
    }
}

/// `offset` wrapped in a ring of `ring_bytes` (a power of two), as a pointer register stores it:
/// hardware wraps every write (6.3, 10.1, C).
#[inline]
pub const fn wrap(offset: u32, ring_bytes: u32) -> u32 {
    offset & (ring_bytes - 1)
}

/// The offset of the entry after the one at `offset`.
#[inline]
pub const fn next(offset: u32, entry_bytes: u32, ring_bytes: u32) -> u32 {
    wrap(offset.wrapping_add(entry_bytes), ring_bytes)
}

/// The next free descriptor of a DMA ring, or 0 when the ring is full: the value of
/// `R[10C]` and `R[12C]` as an offset in the ring; `None` is the register's 0 (6.3, C).
#[inline]
pub const fn next_free(producer: u32, consumer: u32) -> Option<u32> {
    let producer = wrap(producer, RING_BYTES);
    if next(producer, DESCRIPTOR_BYTES, RING_BYTES) == wrap(consumer, RING_BYTES) {
        None
    } else {
        Some(producer)
    }
}

/// Whether a ring's consumer has passed the reference: the condition of event bits 14 and
/// 15 (5, C!). Pointers are in bytes and may be full addresses; `ring_bytes` is a power
/// of two.
///
/// The reference may be parked on a descriptor ahead of the consumer to get one event for
/// a group; a plain "consumer != reference" would raise spurious events.
#[inline]
pub const fn passed(producer: u32, consumer: u32, reference: u32, ring_bytes: u32) -> bool {
    let done = wrap(consumer.wrapping_sub(reference), ring_bytes);
    let queued = wrap(producer.wrapping_sub(reference), ring_bytes);
    done != 0 && done <= queued
}

/// Base of the DMA read ring after rule (a) of reference 6.3: TxBase rounded down to 4 KB,
/// less 0x1000.
#[inline]
pub const fn read_ring_base(tx_base: u32) -> u32 {
    (tx_base & !0xFFF).wrapping_sub(0x1000)
}

/// Base of the DMA write ring after rule (a) of reference 6.3: TxBase rounded down to 4 KB,
/// less 0x800.
#[inline]
pub const fn write_ring_base(tx_base: u32) -> u32 {
    (tx_base & !0xFFF).wrapping_sub(0x800)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::block;

    /// Reference 6.3: writing last + 32 stores the ring start (C).
    #[test]
    fn a_pointer_wraps_behind_the_last_descriptor() {
        let last = RING_BYTES - DESCRIPTOR_BYTES;
        assert_eq!(wrap(last + DESCRIPTOR_BYTES, RING_BYTES), 0);
        assert_eq!(next(last, DESCRIPTOR_BYTES, RING_BYTES), 0);
        assert_eq!(next(0, DESCRIPTOR_BYTES, RING_BYTES), 32);
    }

    /// Reference 6.3: next free is 0 only when producer + 32 == consumer (C).
    #[test]
    fn a_ring_holds_all_but_one_descriptor() {
        assert_eq!(next_free(0, 0), Some(0));
        assert_eq!(next_free(RING_BYTES - 64, 0), Some(RING_BYTES - 64));
        assert_eq!(next_free(RING_BYTES - 32, 0), None);
        assert_eq!(next_free(0x120, 0x140), None);
    }

    /// Reference 5: with the reference on the last descriptor of a group there is no
    /// event until the consumer goes beyond it (C!).
    #[test]
    fn the_event_waits_for_the_group() {
        let (producer, reference) = (160, 128);
        for consumer in [0, 32, 64, 96, 128] {
            assert!(
                !passed(producer, consumer, reference, RING_BYTES),
                "{consumer}"
            );
        }
        assert!(passed(producer, 160, reference, RING_BYTES));
    }

    /// The rule is the same at every rotation of the ring, with offsets or addresses.
    #[test]
    fn passed_does_not_depend_on_the_position() {
        for rotation in (0..RING_BYTES).step_by(32) {
            let at = |n: u32| 0x13_3000 + wrap(rotation + 32 * n, RING_BYTES);
            assert!(!passed(at(5), at(2), at(2), RING_BYTES));
            assert!(passed(at(5), at(3), at(2), RING_BYTES));
            assert!(passed(at(5), at(5), at(2), RING_BYTES));
            assert!(
                !passed(at(5), at(1), at(2), RING_BYTES),
                "reference is ahead"
            );
            assert!(!passed(at(5), at(5), at(5), RING_BYTES), "empty");
        }
    }

    /// Reference 6.3 and 2.2: in the vendor's layout rule (a) gives the rings of the block.
    #[test]
    fn ring_bases_follow_from_the_transmit_buffer() {
        let k = 0x12_F000;
        let tx_base = k + block::PACKET_BUFFERS;
        assert_eq!(read_ring_base(tx_base), k + block::DMA_READ_RING);
        assert_eq!(write_ring_base(tx_base), k + block::DMA_WRITE_RING);
    }

    /// Reference 6.3 and 6.4: eight big-endian words, the host address high word first (C).
    #[test]
    fn a_descriptor_is_big_endian_in_nic_memory() {
        let descriptor = DmaDescriptor {
            host: HostAddress::new(0x1_8000_0010),
            local: 0x13_4000,
            length: 0xABCD_05EA,
            state: DmaState::from_bits(0x0002_0004),
            checksum_target: 5,
            kind: 6,
            opaque: 7,
        };
        let bytes = descriptor.to_nic_bytes();
        assert_eq!(bytes[..8], [0, 0, 0, 1, 0x80, 0, 0, 0x10]);
        assert_eq!(bytes[16..20], [0, 2, 0, 4]);
        assert_eq!(DmaDescriptor::from_nic_bytes(&bytes), descriptor);
        assert_eq!(descriptor.host.get(), 0x1_8000_0010);
        assert_eq!(descriptor.length_bytes(), 1514);
    }
}
