//! MAC descriptors, error flags, statistics and address filter.
//!
//! Hardware reference, section 10. TX and RX data lie in SRAM buffers; two rings of 8-byte
//! descriptors say where each frame is:
//!
//! ```text
//! TxBase ........................ RxBase ........................ PACKET_MEMORY_END
//!   TX buffer, wraps to TxBase      RX buffer, wraps to RxBase
//! ```

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Entries of the TX descriptor ring (2.2, C).
pub const TX_RING_ENTRIES: u32 = 256;
/// Entries of the RX descriptor ring (2.2, C).
pub const RX_RING_ENTRIES: u32 = 512;
/// Bytes of a descriptor (10.2, 10.3, C).
pub const DESCRIPTOR_BYTES: u32 = 8;
/// Bytes of the TX descriptor ring, in which F0, F4 and F8 wrap (10.1, C).
pub const TX_RING_BYTES: u32 = TX_RING_ENTRIES * DESCRIPTOR_BYTES;
/// Bytes of the RX descriptor ring, in which E0, E4 and E8 wrap (10.1, C).
pub const RX_RING_BYTES: u32 = RX_RING_ENTRIES * DESCRIPTOR_BYTES;
/// Flag bits of E0 and F4 (10.1, C).
pub const POINTER_FLAGS: u32 = 7;
/// Flag of E0: another frame is being received (10.1, I).
pub const RECEIVING_FLAG: u32 = 4;
/// Frame starts are aligned to this many bytes (10.2, 10.3, C).
pub const FRAME_ALIGNMENT: u32 = 8;
/// Shortest frame on the wire without its CRC: the MAC pads to it (10.2, C).
pub const MIN_FRAME: usize = 60;
/// Bytes of the CRC that the MAC appends, and leaves on received frames (10.2, 10.3, C).
pub const CRC_BYTES: usize = 4;
/// Bytes of both Ethernet addresses: a VLAN tag follows them (10.2, C).
pub const ADDRESSES_BYTES: usize = 12;
/// VLAN type for `R[214]` bits 31:16 (10.4, C).
pub const VLAN_TYPE: u16 = 0x8100;
/// `R[214]` bits 15:0 of vendor firmware: gap and slot time (10.4, I).
pub const TX_LENGTHS: u16 = 0x241F;
/// `R[21C]` of vendor firmware (10.4, U).
pub const THRESHOLDS: u32 = 0x100B_07E3;
/// `R[0EC]`: the first register write of vendor firmware (9, U).
pub const UNKNOWN_EC_VALUE: u32 = 3;
/// Word 1 with which vendor firmware fills the RX descriptors (10.1).
pub const RX_DESCRIPTOR_FILL: u32 = 0x0100_0000;

/// A TX descriptor: two words, big-endian in NIC memory (10.2, C).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TxDescriptor {
    /// Word 0: bits 22:0 start address; bit 30 insert a VLAN tag.
    pub start_and_flags: u32,
    /// Word 1: bits 15:0 length without CRC; bits 31:16 VLAN tag.
    pub length_and_tag: u32,
}

impl TxDescriptor {
    /// Bit 30 of word 0: insert the VLAN tag.
    pub const INSERT_TAG: u32 = 1 << 30;
    /// Bits 22:0 of word 0: the start address.
    pub const START_MASK: u32 = 0x007F_FFFF;

    /// A frame at `start`, `length` bytes without CRC, to be sent with a VLAN tag if given.
    pub const fn new(start: u32, length: u16, tag: Option<u16>) -> Self {
        let (flags, tag) = match tag {
            Some(tag) => (Self::INSERT_TAG, tag),
            None => (0, 0),
        };
        TxDescriptor {
            start_and_flags: start & Self::START_MASK | flags,
            length_and_tag: (tag as u32) << 16 | length as u32,
        }
    }

    /// Start address in the TX buffer.
    pub const fn start(&self) -> u32 {
        self.start_and_flags & Self::START_MASK
    }

    /// Length in bytes without CRC.
    pub const fn length(&self) -> u32 {
        self.length_and_tag & 0xFFFF
    }

    /// The VLAN tag to insert, if any.
    pub const fn tag(&self) -> Option<u16> {
        if self.start_and_flags & Self::INSERT_TAG != 0 {
            Some((self.length_and_tag >> 16) as u16)
        } else {
            None
        }
    }
}

/// An RX descriptor: two words, big-endian in NIC memory (10.3, C).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RxDescriptor {
    /// Word 0: start address in the RX buffer.
    pub start: u32,
    /// Word 1: bits 15:0 length with CRC; bits 31:16 [`RxError`].
    pub length_and_error: u32,
}

impl RxDescriptor {
    /// A frame at `start`, `length` bytes with CRC.
    pub const fn new(start: u32, length: u16, error: RxError) -> Self {
        RxDescriptor {
            start,
            length_and_error: (error.0 as u32) << 16 | length as u32,
        }
    }

    /// Length in bytes with the CRC.
    pub const fn length(&self) -> u32 {
        self.length_and_error & 0xFFFF
    }

    /// The errors of the frame.
    pub const fn error(&self) -> RxError {
        RxError((self.length_and_error >> 16) as u16)
    }
}

crate::place! {
    /// A [`TxDescriptor`] in NIC memory.
    TxDescriptorAt: TxDescriptor { start_and_flags, length_and_tag }
}

crate::place! {
    /// An [`RxDescriptor`] in NIC memory.
    RxDescriptorAt: RxDescriptor { start, length_and_error }
}

const _: () = {
    assert!(TxDescriptorAt(0).start_and_flags() == 0 && TxDescriptorAt(0).length_and_tag() == 4);
    assert!(RxDescriptorAt(0).start() == 0 && RxDescriptorAt(0).length_and_error() == 4);
    assert!(size_of::<TxDescriptor>() == DESCRIPTOR_BYTES as usize);
    assert!(size_of::<RxDescriptor>() == DESCRIPTOR_BYTES as usize);
    assert!(TX_RING_BYTES == crate::memory::block::MAC_TX_RING_BYTES);
    assert!(RX_RING_BYTES == crate::memory::block::MAC_RX_RING_BYTES);
};

/// Errors of a received frame: bits 31:16 of word 1 of its descriptor (10.3, C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxError(pub u16);

impl RxError {
    /// No error.
    pub const NONE: RxError = RxError(0);
    /// 0x001 the CRC is wrong.
    pub const CRC: RxError = RxError(0x001);
    /// 0x002 collision.
    pub const COLLISION: RxError = RxError(0x002);
    /// 0x004 the link was lost.
    pub const LINK_LOST: RxError = RxError(0x004);
    /// 0x008 the PHY could not decode.
    pub const PHY_DECODE: RxError = RxError(0x008);
    /// 0x010 odd number of nibbles.
    pub const ODD_NIBBLES: RxError = RxError(0x010);
    /// 0x020 the MAC aborted the frame.
    pub const MAC_ABORT: RxError = RxError(0x020);
    /// 0x040 too short; vendor firmware ignores it.
    pub const RUNT: RxError = RxError(0x040);
    /// 0x080 truncated for lack of buffer.
    pub const TRUNCATED: RxError = RxError(0x080);
    /// 0x100 too long; added by firmware.
    pub const GIANT: RxError = RxError(0x100);

    /// Whether no bit is set.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: RxError) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    pub const fn with(self, other: RxError) -> RxError {
        RxError(self.0 | other.0)
    }
}

crate::table! {
    /// A counter that the MAC keeps in SRAM; the value of a variant is its NIC address (10.5).
    /// Names are inferred (I) except where a counter was seen to count (C).
    pub enum MacStatistic: u16 {
        /// 0x80 frames given up after too many collisions (I).
        ExcessCollisions = 0x80,
        /// 0x84 frames sent after one collision: the first of 15 words (I); see
        /// [`MacStatistic::collision`].
        Collisions1 = 0x84,
        /// 0xC0 late collisions (I).
        LateCollisions = 0xC0,
        /// 0xC4 deferred transmissions (I).
        Deferrals = 0xC4,
        /// 0xC8 CRC errors (I).
        CrcErrors = 0xC8,
        /// 0xCC transmit underruns (I).
        Underruns = 0xCC,
        /// 0xD0 carrier sense errors (I).
        CarrierSenseErrors = 0xD0,
        /// 0xE0 unicast frames dropped by the filter (C).
        DroppedUnicast = 0xE0,
        /// 0xE4 multicast frames dropped by the filter (C).
        DroppedMulticast = 0xE4,
        /// 0xE8 flow control frames dropped (I).
        DroppedFlowControl = 0xE8,
        /// 0xEC frames dropped for lack of space (C).
        DroppedNoSpace = 0xEC,
        /// 0xF0 collisions (C).
        Collisions = 0xF0,
        /// 0xF4 broadcast frames accepted (C).
        AcceptedBroadcast = 0xF4,
        /// 0xF8 multicast frames accepted (C).
        AcceptedMulticast = 0xF8,
        /// 0xFC unicast frames accepted (C).
        AcceptedUnicast = 0xFC,
    }
}

impl MacStatistic {
    /// The NIC address of the counter.
    pub const fn nic_address(self) -> u32 {
        self as u32
    }

    /// The offset of the counter in the host's BAR.
    pub const fn bar_offset(self) -> u32 {
        self as u32 + 0x400
    }

    /// The NIC address of the counter of frames sent after `collisions` (1..=15)
    /// collisions; `None` for other numbers.
    pub const fn collision(collisions: u32) -> Option<u32> {
        if collisions >= 1 && collisions <= 15 {
            Some(MacStatistic::Collisions1 as u32 + 4 * (collisions - 1))
        } else {
            None
        }
    }
}

/// The bit (0..128) of the multicast hash for an address: the low 7 bits of the reflected CRC-32,
/// initially all ones, not inverted at the end, over its bytes (10.4, C).
pub const fn multicast_hash_bit(address: &[u8; 6]) -> u8 {
    let mut crc = u32::MAX;
    let mut byte = 0;
    while byte < address.len() {
        crc ^= address[byte] as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        byte += 1;
    }
    (crc & 0x7F) as u8
}

/// The position of a hash bit: the index (0..4) of the register from `R[228]` on, and its mask in
/// it. The most significant word is first (10.4, C).
pub const fn multicast_hash_position(bit: u8) -> (usize, u32) {
    let bit = (bit & 0x7F) as usize;
    (3 - bit / 32, 1 << (bit % 32))
}

/// Words of `R[204]` and `R[224]`, the 1000BASE-X configuration word with its bytes swapped
/// (10.4, C).
pub mod config_word {
    /// Full duplex.
    pub const FULL_DUPLEX: u32 = 0x2000;
    /// Half duplex.
    pub const HALF_DUPLEX: u32 = 0x4000;
    /// Symmetric pause.
    pub const PAUSE: u32 = 0x8000;
    /// Asymmetric pause.
    pub const ASYMMETRIC_PAUSE: u32 = 0x0001;
    /// Remote fault, two bits.
    pub const REMOTE_FAULT: u32 = 0x0030;
    /// Acknowledge.
    pub const ACKNOWLEDGE: u32 = 0x0040;
    /// Next page.
    pub const NEXT_PAGE: u32 = 0x0080;
}

/// Values of `R[238]`, the PHY interface (10.4, C values, I meaning).
pub mod phy_interface {
    /// Reset.
    pub const RESET: u32 = 0xE00;
    /// Out of reset.
    pub const RESET_END: u32 = 0xE01;
    /// A copper PHY is used.
    pub const COPPER: u32 = 1;
    /// On-chip SERDES in reset.
    pub const SERDES_RESET: u32 = 0xC8_01FB;
    /// On-chip SERDES in loopback.
    pub const SERDES_LOOPBACK: u32 = 0xC8_01F6;
    /// On-chip SERDES running.
    pub const SERDES_RUN: u32 = 0xC8_01FE;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 10.2: bits 22:0 start, bit 30 insert, length below, tag above (C).
    #[test]
    fn tx_descriptor_fields() {
        let plain = TxDescriptor::new(0x13_4008, 1514, None);
        assert_eq!(
            (plain.start_and_flags, plain.length_and_tag),
            (0x13_4008, 1514)
        );
        assert_eq!(plain.tag(), None);
        let tagged = TxDescriptor::new(0x13_4008, 60, Some(5));
        assert_eq!(tagged.start_and_flags, 0x4013_4008);
        assert_eq!(tagged.length_and_tag, 0x0005_003C);
        assert_eq!(
            (tagged.start(), tagged.length(), tagged.tag()),
            (0x13_4008, 60, Some(5))
        );
    }

    /// Reference 10.3: errors are bits 31:16 of word 1, CRC first (C).
    #[test]
    fn rx_descriptor_fields() {
        let bad = RxDescriptor::new(0x18_0000, 64, RxError::CRC.with(RxError::TRUNCATED));
        assert_eq!(bad.length_and_error, 0x0081_0040);
        assert_eq!(bad.length(), 64);
        assert!(bad.error().contains(RxError::TRUNCATED));
        assert!(!bad.error().contains(RxError::RUNT));
        let fill = RxDescriptor {
            start: 0,
            length_and_error: RX_DESCRIPTOR_FILL,
        };
        assert_eq!(fill.error(), RxError::GIANT);
    }

    /// Reference 10.5 and host-interface: BAR 4EC no space, 4F0 collisions, 4F8 multicast.
    #[test]
    fn statistics_are_where_drivers_read_them() {
        assert_eq!(MacStatistic::DroppedNoSpace.bar_offset(), 0x4EC);
        assert_eq!(MacStatistic::Collisions.bar_offset(), 0x4F0);
        assert_eq!(MacStatistic::AcceptedMulticast.bar_offset(), 0x4F8);
        assert_eq!(MacStatistic::collision(1), Some(0x84));
        assert_eq!(MacStatistic::collision(15), Some(0xBC));
        assert_eq!(MacStatistic::collision(0), None);
        assert_eq!(MacStatistic::collision(16), None);
    }

    /// Reference 10.4: CRC-32 as on the wire, before the final inversion. The check value
    /// of "123456" under the usual (inverted) CRC-32 is 0x0972D361.
    #[test]
    fn the_hash_is_the_plain_ethernet_crc_before_inversion() {
        assert_eq!(
            multicast_hash_bit(b"123456"),
            (!0x0972_D361u32 & 0x7F) as u8
        );
    }

    /// Reference 10.4: bit n is bit (n mod 32) of R[234 - 4*(n/32)] (C).
    #[test]
    fn hash_words_are_most_significant_first() {
        assert_eq!(multicast_hash_position(0), (3, 1));
        assert_eq!(multicast_hash_position(31), (3, 1 << 31));
        assert_eq!(multicast_hash_position(32), (2, 1));
        assert_eq!(multicast_hash_position(127), (0, 1 << 31));
    }
}
