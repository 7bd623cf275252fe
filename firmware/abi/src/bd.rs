//! Buffer descriptors: what the rings between host and NIC hold.
//!
//! Host/NIC software interface, "Send BD" to "Error flags".
//!
//! ```text
//! send BD        0 host address  8 len|flags    12 reserved|vlan
//! receive BD     0 host address  8 idx|len      12 type|flags  16 ip_sum|transport_sum
//! (and return)  20 error|vlan   24 reserved     28 opaque
//! extended BD    0 address 1, 8 address 2, 16 address 3, 24 len1|len2, 28 len3|reserved,
//!               32 a receive BD with address 0 and length 0
//! ```

use crate::info::HostAddress;
use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Flags of a BD.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct BdFlags {
    /// 0x0001 TCP/UDP checksum: to be made (send), has been made (return).
    pub transport_checksum: bool,
    /// 0x0002 IP checksum: to be made (send), has been made (return).
    pub ip_checksum: bool,
    /// 0x0004 last BD of the frame.
    pub end: bool,
    /// 0x0008 more BDs follow.
    pub more: bool,
    /// 0x0010 the BD belongs to the jumbo ring.
    pub jumbo_ring: bool,
    /// 0x0060 what the frame was addressed to: see [`destination`].
    #[bits(2)]
    pub destination: u8,
    /// 0x0080 IP fragment.
    pub ip_fragment: bool,
    /// 0x0100 last IP fragment.
    pub ip_fragment_end: bool,
    /// 0x0200 the VLAN tag is valid.
    pub vlan_tag: bool,
    /// 0x0400 the frame has an error.
    pub error: bool,
    /// 0x0800 update the host now, do not coalesce.
    pub coalesce_now: bool,
    /// 0x1000 the BD belongs to the mini ring.
    pub mini_ring: bool,
    #[bits(3)]
    __: u8,
}

/// Values of [`BdFlags::destination`].
pub mod destination {
    /// Unicast: flag 0x020.
    pub const UNICAST: u8 = 1;
    /// Multicast: flag 0x040.
    pub const MULTICAST: u8 = 2;
    /// Broadcast: flags 0x060.
    pub const BROADCAST: u8 = 3;
}

/// Errors of a received frame, in the same order as those of the MAC.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct BdErrors {
    /// 0x001 wrong CRC.
    pub crc: bool,
    /// 0x002 collision.
    pub collision: bool,
    /// 0x004 link lost.
    pub link_lost: bool,
    /// 0x008 PHY decode error.
    pub phy_decode: bool,
    /// 0x010 odd number of nibbles.
    pub odd_nibbles: bool,
    /// 0x020 the MAC gave up.
    pub mac_abort: bool,
    /// 0x040 too short.
    pub runt: bool,
    /// 0x080 cut for lack of resources.
    pub truncated: bool,
    /// 0x100 too long.
    pub giant: bool,
    #[bits(7)]
    __: u8,
}

/// A send BD.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SendBd {
    /// Host address of the data.
    pub address: HostAddress,
    /// Bits 31:16 length, 15:0 flags.
    pub length_and_flags: u32,
    /// Bits 15:0 VLAN tag, the rest reserved.
    pub vlan: u32,
}

impl SendBd {
    /// A BD for `length` bytes at a host address.
    pub const fn new(address: u64, length: u16, flags: BdFlags, vlan: u16) -> Self {
        SendBd {
            address: HostAddress::new(address),
            length_and_flags: (length as u32) << 16 | flags.into_bits() as u32,
            vlan: vlan as u32,
        }
    }

    /// Bytes of data.
    pub const fn length(&self) -> u16 {
        (self.length_and_flags >> 16) as u16
    }

    /// The flags.
    pub const fn flags(&self) -> BdFlags {
        BdFlags::from_bits(self.length_and_flags as u16)
    }

    /// The VLAN tag; meaningful with [`BdFlags::vlan_tag`].
    pub const fn vlan(&self) -> u16 {
        self.vlan as u16
    }

    /// The BD as the words that travel.
    pub const fn words(&self) -> [u32; 4] {
        [
            self.address.high,
            self.address.low,
            self.length_and_flags,
            self.vlan,
        ]
    }

    /// The BD in four words.
    pub const fn from_words(words: [u32; 4]) -> Self {
        SendBd {
            address: HostAddress {
                high: words[0],
                low: words[1],
            },
            length_and_flags: words[2],
            vlan: words[3],
        }
    }
}

/// A receive BD as the host queues it, and a return BD as the NIC hands it back.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ReceiveBd {
    /// Host address of the buffer.
    pub address: HostAddress,
    /// Bits 31:16 the host's index, 15:0 length.
    pub index_and_length: u32,
    /// Bits 31:16 type, 15:0 flags.
    pub kind_and_flags: u32,
    /// Bits 31:16 IP checksum, 15:0 TCP/UDP checksum.
    pub checksums: u32,
    /// Bits 31:16 errors, 15:0 VLAN tag.
    pub errors_and_vlan: u32,
    /// Not used.
    pub reserved: u32,
    /// The host's: copied to the return BD.
    pub opaque: u32,
}

/// What the receive return ring holds.
pub type ReturnBd = ReceiveBd;

impl ReceiveBd {
    /// A buffer of `length` bytes at a host address, as the host queues it.
    pub const fn new(address: u64, length: u16, flags: BdFlags, index: u16, opaque: u32) -> Self {
        ReceiveBd {
            address: HostAddress::new(address),
            index_and_length: (index as u32) << 16 | length as u32,
            kind_and_flags: flags.into_bits() as u32,
            checksums: 0,
            errors_and_vlan: 0,
            reserved: 0,
            opaque,
        }
    }

    /// The host's index, copied to the return BD.
    pub const fn index(&self) -> u16 {
        (self.index_and_length >> 16) as u16
    }

    /// Bytes of the buffer, or of the frame in a return BD.
    pub const fn length(&self) -> u16 {
        self.index_and_length as u16
    }

    /// The type; only Tigon I uses it.
    pub const fn kind(&self) -> u16 {
        (self.kind_and_flags >> 16) as u16
    }

    /// The flags.
    pub const fn flags(&self) -> BdFlags {
        BdFlags::from_bits(self.kind_and_flags as u16)
    }

    /// IP header checksum.
    pub const fn ip_checksum(&self) -> u16 {
        (self.checksums >> 16) as u16
    }

    /// TCP/UDP checksum.
    pub const fn transport_checksum(&self) -> u16 {
        self.checksums as u16
    }

    /// What was wrong; meaningful with [`BdFlags::error`].
    pub const fn errors(&self) -> BdErrors {
        BdErrors::from_bits((self.errors_and_vlan >> 16) as u16)
    }

    /// The VLAN tag; meaningful with [`BdFlags::vlan_tag`].
    pub const fn vlan(&self) -> u16 {
        self.errors_and_vlan as u16
    }

    /// The same BD with another length.
    pub const fn with_length(mut self, length: u16) -> Self {
        self.index_and_length = self.index_and_length & 0xFFFF_0000 | length as u32;
        self
    }

    /// The same BD with other flags.
    pub const fn with_flags(mut self, flags: BdFlags) -> Self {
        self.kind_and_flags = self.kind_and_flags & 0xFFFF_0000 | flags.into_bits() as u32;
        self
    }

    /// The same BD with other checksums.
    pub const fn with_checksums(mut self, ip: u16, transport: u16) -> Self {
        self.checksums = (ip as u32) << 16 | transport as u32;
        self
    }

    /// The same BD with other errors and VLAN tag.
    pub const fn with_errors_and_vlan(mut self, errors: BdErrors, vlan: u16) -> Self {
        self.errors_and_vlan = (errors.into_bits() as u32) << 16 | vlan as u32;
        self
    }

    /// The BD as the words that travel.
    pub const fn words(&self) -> [u32; 8] {
        [
            self.address.high,
            self.address.low,
            self.index_and_length,
            self.kind_and_flags,
            self.checksums,
            self.errors_and_vlan,
            self.reserved,
            self.opaque,
        ]
    }

    /// The BD in eight words.
    pub const fn from_words(words: [u32; 8]) -> Self {
        ReceiveBd {
            address: HostAddress {
                high: words[0],
                low: words[1],
            },
            index_and_length: words[2],
            kind_and_flags: words[3],
            checksums: words[4],
            errors_and_vlan: words[5],
            reserved: words[6],
            opaque: words[7],
        }
    }
}

/// A jumbo receive BD with up to four buffers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ExtendedReceiveBd {
    /// Second buffer.
    pub address1: HostAddress,
    /// Third buffer.
    pub address2: HostAddress,
    /// Fourth buffer.
    pub address3: HostAddress,
    /// Bits 31:16 length of the second buffer, 15:0 of the third.
    pub lengths_1_2: u32,
    /// Bits 31:16 length of the fourth buffer, the rest reserved.
    pub length_3: u32,
    /// First buffer and all the rest.
    pub base: ReceiveBd,
}

impl ExtendedReceiveBd {
    /// Address and length of buffer `n` (0..=3); a length of 0 ends the list, as does any
    /// other `n`.
    pub const fn buffer(&self, n: usize) -> (HostAddress, u16) {
        match n {
            0 => (self.base.address, self.base.length()),
            1 => (self.address1, (self.lengths_1_2 >> 16) as u16),
            2 => (self.address2, self.lengths_1_2 as u16),
            3 => (self.address3, (self.length_3 >> 16) as u16),
            _ => (HostAddress::new(0), 0),
        }
    }
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<SendBd>() == 16);
    assert!(offset_of!(SendBd, length_and_flags) == 8);
    assert!(size_of::<ReceiveBd>() == 32);
    assert!(offset_of!(ReceiveBd, index_and_length) == 8);
    assert!(offset_of!(ReceiveBd, kind_and_flags) == 12);
    assert!(offset_of!(ReceiveBd, checksums) == 16);
    assert!(offset_of!(ReceiveBd, errors_and_vlan) == 20);
    assert!(offset_of!(ReceiveBd, opaque) == 28);
    assert!(size_of::<ExtendedReceiveBd>() == 64);
    assert!(offset_of!(ExtendedReceiveBd, lengths_1_2) == 24);
    assert!(offset_of!(ExtendedReceiveBd, base) == 32);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// "BD flags" and "Error flags", each by its number.
    #[test]
    fn flags_have_the_numbers_of_the_interface() {
        let flag = BdFlags::new;
        assert_eq!(flag().with_transport_checksum(true).into_bits(), 0x001);
        assert_eq!(flag().with_ip_checksum(true).into_bits(), 0x002);
        assert_eq!(flag().with_end(true).into_bits(), 0x004);
        assert_eq!(flag().with_more(true).into_bits(), 0x008);
        assert_eq!(flag().with_jumbo_ring(true).into_bits(), 0x010);
        assert_eq!(
            flag().with_destination(destination::UNICAST).into_bits(),
            0x020
        );
        assert_eq!(
            flag().with_destination(destination::MULTICAST).into_bits(),
            0x040
        );
        assert_eq!(
            flag().with_destination(destination::BROADCAST).into_bits(),
            0x060
        );
        assert_eq!(flag().with_ip_fragment(true).into_bits(), 0x080);
        assert_eq!(flag().with_ip_fragment_end(true).into_bits(), 0x100);
        assert_eq!(flag().with_vlan_tag(true).into_bits(), 0x200);
        assert_eq!(flag().with_error(true).into_bits(), 0x400);
        assert_eq!(flag().with_coalesce_now(true).into_bits(), 0x800);
        assert_eq!(flag().with_mini_ring(true).into_bits(), 0x1000);
        assert_eq!(BdErrors::new().with_crc(true).into_bits(), 1);
        assert_eq!(BdErrors::new().with_mac_abort(true).into_bits(), 0x20);
        assert_eq!(BdErrors::new().with_truncated(true).into_bits(), 0x80);
        assert_eq!(BdErrors::new().with_giant(true).into_bits(), 0x100);
    }

    /// "Send BD: 64-bit host address; len:16, flags:16; reserved:16, vlan:16".
    #[test]
    fn send_bd_words() {
        let bd = SendBd::new(0x1_2345_6789, 1514, BdFlags::new().with_end(true), 5);
        assert_eq!(bd.words(), [1, 0x2345_6789, 0x05EA_0004, 5]);
        assert_eq!(SendBd::from_words(bd.words()), bd);
        assert_eq!((bd.length(), bd.vlan()), (1514, 5));
        assert!(bd.flags().end());
    }

    /// "idx:16, len:16; type:16, flags:16; ip_csum:16, tcp_udp_csum:16; error_flags:16,
    /// vlan:16; reserved:32; opaque:32".
    #[test]
    fn receive_bd_words() {
        let bd = ReceiveBd::new(
            0x8000_1000,
            1522,
            BdFlags::new().with_mini_ring(true),
            7,
            99,
        )
        .with_checksums(0xFFFF, 0x1234)
        .with_errors_and_vlan(BdErrors::new().with_crc(true), 5);
        let words = [
            0,
            0x8000_1000,
            0x0007_05F2,
            0x1000,
            0xFFFF_1234,
            0x0001_0005,
            0,
            99,
        ];
        assert_eq!(bd.words(), words);
        assert_eq!(ReceiveBd::from_words(words), bd);
        assert_eq!((bd.index(), bd.length(), bd.kind()), (7, 1522, 0));
        assert_eq!(
            (bd.ip_checksum(), bd.transport_checksum(), bd.vlan()),
            (0xFFFF, 0x1234, 5)
        );
        assert!(bd.errors().crc());
        assert_eq!(bd.with_length(60).index(), 7);
        assert_eq!(bd.with_flags(BdFlags::new()).flags(), BdFlags::new());
    }

    /// "addr1, addr2, addr3; len1:16 len2:16; len3:16 reserved:16; then the 32-byte BD".
    #[test]
    fn extended_bd_buffers() {
        let bd = ExtendedReceiveBd {
            address1: HostAddress::new(0x1000),
            address2: HostAddress::new(0x2000),
            address3: HostAddress::new(0x3000),
            lengths_1_2: 0x0800_0400,
            length_3: 0x0200_0000,
            base: ReceiveBd::new(0x4000, 2048, BdFlags::new(), 0, 0),
        };
        let buffers: Vec<_> = (0..5)
            .map(|n| bd.buffer(n))
            .map(|(a, l)| (a.get(), l))
            .collect();
        let expected = [
            (0x4000, 2048),
            (0x1000, 2048),
            (0x2000, 1024),
            (0x3000, 512),
            (0, 0),
        ];
        assert_eq!(buffers, expected);
    }
}
