//! The general information block: the places of all rings and indices in host memory.
//!
//! Host/NIC software interface, "General information block"; hardware reference, section 12. The
//! firmware fetches it by DMA once, at start.
//!
//! ```text
//! 0x000 statistics      1024 bytes
//! 0x400 event RCB       0x410 command   0x420 send   0x430 standard
//! 0x440 jumbo           0x450 mini      0x460 receive return
//! 0x470 event producer  0x478 return producer  0x480 send consumer  0x488 statistics
//! 0x490 end
//! ```

use crate::statistics::Statistics;
use bitfield_struct::bitfield;
pub use tigon2_chip::HostAddress;
use tigon2_chip::place;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Flags of a ring control block.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct RcbFlags {
    /// 0x001 TCP/UDP checksums.
    pub transport_checksum: bool,
    /// 0x002 IP checksums.
    pub ip_checksum: bool,
    __: bool,
    /// 0x008 leave the pseudo-header out of the checksums.
    pub no_pseudo_header: bool,
    /// 0x010 insert and strip VLAN tags.
    pub vlan_assist: bool,
    /// 0x020 interrupt only when an index update is due.
    pub coalesced_update_only: bool,
    /// 0x040 the send ring is in host memory.
    pub host_ring: bool,
    /// 0x080 checksums of IEEE SNAP frames too.
    pub snap_checksum: bool,
    /// 0x100 extended receive BDs (jumbo ring).
    pub extended_bd: bool,
    /// 0x200 the ring is not used.
    pub disabled: bool,
    #[bits(6)]
    __: u8,
}

impl RcbFlags {
    /// Flags that must be equal in all enabled receive rings (hardware reference, 12, C).
    pub const RECEIVE_CONSISTENCY: u16 = 0x9B;
}

/// A ring control block: 16 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RingControlBlock {
    /// Host address of the ring; for a send ring in NIC memory, its NIC address.
    pub address: HostAddress,
    /// Bits 31:16 max_len, 15:0 flags.
    pub max_len_and_flags: u32,
    /// Not used.
    pub unused: u32,
}

impl RingControlBlock {
    /// A control block. `max_len` depends on the ring: entries (send, return), longest frame
    /// (standard), bytes of a buffer (mini).
    pub const fn new(address: u64, max_len: u16, flags: RcbFlags) -> Self {
        RingControlBlock {
            address: HostAddress::new(address),
            max_len_and_flags: (max_len as u32) << 16 | flags.into_bits() as u32,
            unused: 0,
        }
    }

    /// The upper half of the third word.
    pub const fn max_len(&self) -> u16 {
        (self.max_len_and_flags >> 16) as u16
    }

    /// The flags.
    pub const fn flags(&self) -> RcbFlags {
        RcbFlags::from_bits(self.max_len_and_flags as u16)
    }
}

/// The general information block: 0x490 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct GeneralInformationBlock {
    /// 0x000 the statistics as of the last update.
    pub statistics: Statistics,
    /// 0x400 event ring.
    pub event: RingControlBlock,
    /// 0x410 command ring; its address is ignored.
    pub command: RingControlBlock,
    /// 0x420 send ring.
    pub send: RingControlBlock,
    /// 0x430 standard receive ring.
    pub standard: RingControlBlock,
    /// 0x440 jumbo receive ring.
    pub jumbo: RingControlBlock,
    /// 0x450 mini receive ring.
    pub mini: RingControlBlock,
    /// 0x460 receive return ring.
    pub receive_return: RingControlBlock,
    /// 0x470 where the NIC writes the event producer index (8 bytes).
    pub event_producer: HostAddress,
    /// 0x478 where the NIC writes the receive return producer index (8 bytes).
    pub return_producer: HostAddress,
    /// 0x480 where the NIC writes the send consumer index (8 bytes), or 0.
    pub send_consumer: HostAddress,
    /// 0x488 where the NIC writes refreshed statistics.
    pub refresh_statistics: HostAddress,
}

place! {
    /// A [`RingControlBlock`] in NIC memory.
    RingControlBlockAt: RingControlBlock { address, max_len_and_flags }
}

place! {
    /// A [`GeneralInformationBlock`] in NIC memory.
    InformationAt: GeneralInformationBlock {
        statistics, event, command, send, standard, jumbo, mini, receive_return,
        event_producer, return_producer, send_consumer, refresh_statistics,
    }
}

/// Bytes of the general information block.
pub const INFO_BYTES: usize = 0x490;

const _: () = {
    use core::mem::offset_of;
    type Info = GeneralInformationBlock;
    assert!(size_of::<RingControlBlock>() == 16);
    assert!(offset_of!(RingControlBlock, max_len_and_flags) == 8);
    assert!(size_of::<Info>() == INFO_BYTES);
    assert!(offset_of!(Info, event) == 0x400);
    assert!(offset_of!(Info, command) == 0x410);
    assert!(offset_of!(Info, send) == 0x420);
    assert!(offset_of!(Info, standard) == 0x430);
    assert!(offset_of!(Info, jumbo) == 0x440);
    assert!(offset_of!(Info, mini) == 0x450);
    assert!(offset_of!(Info, receive_return) == 0x460);
    assert!(offset_of!(Info, event_producer) == 0x470);
    assert!(offset_of!(Info, return_producer) == 0x478);
    assert!(offset_of!(Info, send_consumer) == 0x480);
    assert!(offset_of!(Info, refresh_statistics) == 0x488);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Hardware reference, "Linux settings": send flags 0x79, receive flags 0x19.
    #[test]
    fn the_linux_ring_flags() {
        let receive = RcbFlags::new()
            .with_transport_checksum(true)
            .with_no_pseudo_header(true)
            .with_vlan_assist(true);
        assert_eq!(receive.into_bits(), 0x19);
        let send = receive
            .with_coalesced_update_only(true)
            .with_host_ring(true);
        assert_eq!(send.into_bits(), 0x79);
        assert_eq!(RcbFlags::new().with_disabled(true).into_bits(), 0x200);
        assert_eq!(RcbFlags::new().with_extended_bd(true).into_bits(), 0x100);
        let consistent = RcbFlags::new()
            .with_transport_checksum(true)
            .with_ip_checksum(true)
            .with_no_pseudo_header(true)
            .with_vlan_assist(true)
            .with_snap_checksum(true);
        assert_eq!(consistent.into_bits(), RcbFlags::RECEIVE_CONSISTENCY);
    }

    #[test]
    fn a_control_block_packs_length_and_flags() {
        let block = RingControlBlock::new(0x2_0000_3000, 512, RcbFlags::from_bits(0x79));
        assert_eq!(block.max_len_and_flags, 0x0200_0079);
        assert_eq!((block.max_len(), block.flags().into_bits()), (512, 0x79));
        assert_eq!(block.address, HostAddress::new(0x2_0000_3000));
    }
}
