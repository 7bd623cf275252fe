//! Buffer descriptors: the entries of the rings between host and NIC.
//!
//! Host/NIC software interface, "Send BD" to "Error flags".
//!
//! ```text
//! send BD        0 host address  8 len|flags    12 reserved|vlan
//! receive BD     0 host address  8 idx|len      12 type|flags  16 ip_sum|transport_sum
//! (and return)  20 error|vlan   24 reserved     28 opaque
//!               in queue mode type is hash type|queue and 24 the hash
//! extended BD    0 address 1, 8 address 2, 16 address 3, 24 len1|len2, 28 len3|reserved,
//!               32 a receive BD with address 0 and length 0
//! ```

mod classified;

use crate::info::HostAddress;
use bitfield_struct::bitfield;
use tigon2_chip::place;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Flags of a BD.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct BdFlags {
    /// 0x0001 TCP/UDP checksum: insert (send), verified (return).
    pub transport_checksum: bool,
    /// 0x0002 IP checksum: insert (send), verified (return).
    pub ip_checksum: bool,
    /// 0x0004 last BD of the frame.
    pub end: bool,
    /// 0x0008 more BDs follow.
    pub more: bool,
    /// 0x0010 the BD belongs to the jumbo ring.
    pub jumbo_ring: bool,
    /// 0x0060 the kind of destination address: see [`destination`].
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
    /// 0x0800 update the host at once, without coalescing.
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

/// Errors of a received frame, in the order of the MAC's error bits.
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
    /// 0x080 truncated for lack of resources.
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

    /// The BD as words in NIC order.
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

/// A receive BD as the host queues it, and a return BD as the NIC returns it.
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
    /// Not used; the hash in queue mode.
    pub reserved: u32,
    /// A word of the host's own, copied to the return BD.
    pub opaque: u32,
}

/// An entry of the receive return ring.
pub type ReturnBd = ReceiveBd;

impl ReceiveBd {
    /// A receive BD for a buffer of `length` bytes at a host address.
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

    /// The type; only Tigon I and queue mode use it.
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

    /// The errors; meaningful with [`BdFlags::error`].
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

    /// The BD as words in NIC order.
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
    /// First buffer and all other fields.
    pub base: ReceiveBd,
}

impl ExtendedReceiveBd {
    /// Address and length of buffer `n` (0..=3); a length of 0 ends the list, as does any other
    /// `n`.
    pub const fn buffer(&self, n: usize) -> (HostAddress, u16) {
        match n {
            0 => (self.base.address, self.base.length()),
            1 => (self.address1, (self.lengths_1_2 >> 16) as u16),
            2 => (self.address2, self.lengths_1_2 as u16),
            3 => (self.address3, (self.length_3 >> 16) as u16),
            _ => (HostAddress::NULL, 0),
        }
    }
}

place! {
    /// A [`SendBd`] in NIC memory.
    SendBdAt: SendBd { address, length_and_flags, vlan }
}

place! {
    /// A [`ReceiveBd`], or a [`ReturnBd`], in NIC memory.
    ReceiveBdAt: ReceiveBd {
        address, index_and_length, kind_and_flags, checksums, errors_and_vlan, reserved, opaque,
    }
}

place! {
    /// An [`ExtendedReceiveBd`] in NIC memory.
    ExtendedReceiveBdAt: ExtendedReceiveBd {
        address1, address2, address3, lengths_1_2, length_3, base,
    }
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<SendBd>() == 16);
    assert!(offset_of!(SendBd, length_and_flags) == 8);
    assert!(offset_of!(SendBd, vlan) == 12);
    assert!(size_of::<ReceiveBd>() == 32);
    assert!(offset_of!(ReceiveBd, index_and_length) == 8);
    assert!(offset_of!(ReceiveBd, kind_and_flags) == 12);
    assert!(offset_of!(ReceiveBd, checksums) == 16);
    assert!(offset_of!(ReceiveBd, errors_and_vlan) == 20);
    assert!(offset_of!(ReceiveBd, opaque) == 28);
    assert!(size_of::<ExtendedReceiveBd>() == 64);
    assert!(offset_of!(ExtendedReceiveBd, address2) == 8);
    assert!(offset_of!(ExtendedReceiveBd, lengths_1_2) == 24);
    assert!(offset_of!(ExtendedReceiveBd, length_3) == 28);
    assert!(offset_of!(ExtendedReceiveBd, base) == 32);
};

#[cfg(test)]
mod tests;
