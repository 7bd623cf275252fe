//! Headers that extensions meet: Ethernet, VLAN, ARP, IPv4, ICMP, UDP.
//!
//! Addresses of Ethernet are in two parts, as 48 bits are no type of this CPU's.

use crate::view;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of a VLAN tag.
pub const VLAN: u16 = 0x8100;
/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of UDP.
pub const UDP: u8 = 17;

view! {
    /// An Ethernet header, at byte 0 of a frame.
    pub struct Ethernet: 14 bytes at 0 {
        /// Destination, first four bytes.
        destination_high: u32 at 0,
        /// Destination, last two bytes.
        destination_low: u16 at 4,
        /// Source, first two bytes.
        source_high: u16 at 6,
        /// Source, last four bytes.
        source_low: u32 at 8,
        /// EtherType, or the length.
        kind: u16 at 12,
    }

    /// What follows the EtherType [`VLAN`] (IEEE 802.1Q).
    pub struct Vlan: 4 bytes at 2 {
        /// Priority, DEI and VLAN identifier.
        tag: u16 at 0,
        /// EtherType of what the tag is about.
        kind: u16 at 2,
    }

    /// An ARP packet for IPv4 over Ethernet (RFC 826).
    pub struct Arp: 28 bytes at 2 {
        /// 1 for Ethernet.
        hardware: u16 at 0,
        /// 0x800 for IPv4.
        protocol: u16 at 2,
        /// 0x0604 for these address lengths.
        lengths: u16 at 4,
        /// 1 request, 2 reply.
        operation: u16 at 6,
        /// Sender's Ethernet address, first four bytes.
        sender_high: u32 at 8,
        /// Sender's Ethernet address, last two bytes.
        sender_low: u16 at 12,
        /// Sender's IPv4 address.
        sender: u32 at 14,
        /// Target's IPv4 address.
        target: u32 at 24,
    }

    /// An IPv4 header without options (RFC 791).
    pub struct Ipv4: 20 bytes at 2 {
        /// Version and header length: 0x45 without options.
        version_and_length: u8 at 0,
        /// Bytes of the packet.
        total_length: u16 at 2,
        /// Flags and fragment offset.
        fragment: u16 at 6,
        /// Time to live.
        time_to_live: u8 at 8,
        /// Protocol of what it carries.
        protocol: u8 at 9,
        /// Header checksum.
        checksum: u16 at 10,
        /// Source address.
        source: u32 at 12,
        /// Destination address.
        destination: u32 at 16,
    }

    /// An ICMP header (RFC 792).
    pub struct Icmp: 8 bytes at 2 {
        /// 8 echo, 0 echo reply.
        kind: u8 at 0,
        /// Code.
        code: u8 at 1,
        /// Checksum.
        checksum: u16 at 2,
        /// Identifier of an echo.
        identifier: u16 at 4,
        /// Sequence number of an echo.
        sequence: u16 at 6,
    }

    /// A UDP header (RFC 768).
    pub struct Udp: 8 bytes at 2 {
        /// Source port.
        source: u16 at 0,
        /// Destination port.
        destination: u16 at 2,
        /// Bytes of header and data.
        length: u16 at 4,
        /// Checksum, 0 for none.
        checksum: u16 at 6,
    }
}
