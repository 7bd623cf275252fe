//! Classifiers and hash types, by their numbers.
//!
//! The type numbers are those of virtio 1.2, 5.1.6.4 ("hash_report"), so a driver can pass them
//! on; [`HashTypes`] has virtio's bits ("hash_types"). The crate `flow-classify` implements them.

use bitfield_struct::bitfield;

/// How the queue of a frame is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum ClassifierKind {
    /// Every frame goes to queue 0.
    Single = 0,
    /// By the lowest bits of the source address; the number of queues must be a power of two.
    SourceAddress = 1,
    /// By the Toeplitz hash and the indirection table.
    Toeplitz = 2,
    /// Each datagram to the next queue, whatever its flow: for comparison.
    RoundRobin = 3,
}

impl ClassifierKind {
    /// All, in the order of their numbers.
    pub const ALL: [ClassifierKind; 4] = [
        ClassifierKind::Single,
        ClassifierKind::SourceAddress,
        ClassifierKind::Toeplitz,
        ClassifierKind::RoundRobin,
    ];

    /// The classifier with a number, if there is one.
    pub const fn from_number(number: u32) -> Option<ClassifierKind> {
        match number {
            0 => Some(ClassifierKind::Single),
            1 => Some(ClassifierKind::SourceAddress),
            2 => Some(ClassifierKind::Toeplitz),
            3 => Some(ClassifierKind::RoundRobin),
            _ => None,
        }
    }

    /// Its name as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            ClassifierKind::Single => "single",
            ClassifierKind::SourceAddress => "source-address",
            ClassifierKind::Toeplitz => "toeplitz",
            ClassifierKind::RoundRobin => "round-robin",
        }
    }

    /// Its bit in [`BlockWord::Classifiers`](super::BlockWord::Classifiers).
    pub const fn mask(self) -> u32 {
        1 << self as u32
    }
}

/// The input of a hash: virtio's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum HashType {
    /// No hash.
    #[default]
    None = 0,
    /// Both IPv4 addresses.
    Ipv4 = 1,
    /// Both IPv4 addresses and TCP ports.
    TcpIpv4 = 2,
    /// Both IPv4 addresses and UDP ports.
    UdpIpv4 = 3,
    /// Both IPv6 addresses.
    Ipv6 = 4,
    /// Both IPv6 addresses and TCP ports.
    TcpIpv6 = 5,
    /// Both IPv6 addresses and UDP ports.
    UdpIpv6 = 6,
}

impl HashType {
    /// All, in the order of their numbers.
    pub const ALL: [HashType; 7] = [
        HashType::None,
        HashType::Ipv4,
        HashType::TcpIpv4,
        HashType::UdpIpv4,
        HashType::Ipv6,
        HashType::TcpIpv6,
        HashType::UdpIpv6,
    ];

    /// The type with a number, if there is one.
    pub const fn from_number(number: u32) -> Option<HashType> {
        if number < HashType::ALL.len() as u32 {
            Some(HashType::ALL[number as usize])
        } else {
            None
        }
    }

    /// Whether the input includes ports.
    pub const fn has_ports(self) -> bool {
        matches!(
            self,
            HashType::TcpIpv4 | HashType::UdpIpv4 | HashType::TcpIpv6 | HashType::UdpIpv6
        )
    }
}

/// The enabled hash types. A TCP or UDP datagram whose own type is off is hashed by its addresses,
/// if that type is on.
#[bitfield(u32)]
#[derive(PartialEq, Eq, Hash)]
pub struct HashTypes {
    /// bit 0: addresses of IPv4.
    pub ipv4: bool,
    /// bit 1: addresses and ports of TCP over IPv4.
    pub tcp_ipv4: bool,
    /// bit 2: addresses and ports of UDP over IPv4.
    pub udp_ipv4: bool,
    /// bit 3: addresses of IPv6.
    pub ipv6: bool,
    /// bit 4: addresses and ports of TCP over IPv6.
    pub tcp_ipv6: bool,
    /// bit 5: addresses and ports of UDP over IPv6.
    pub udp_ipv6: bool,
    #[bits(26)]
    __: u32,
}

impl HashTypes {
    /// As in Linux: TCP by 4-tuple; UDP, which may be fragmented, by 2-tuple.
    pub const USUAL: HashTypes = HashTypes::new()
        .with_ipv4(true)
        .with_tcp_ipv4(true)
        .with_ipv6(true)
        .with_tcp_ipv6(true);
    /// All types.
    pub const ALL: HashTypes = HashTypes::USUAL.with_udp_ipv4(true).with_udp_ipv6(true);

    /// Whether only known bits are set.
    pub const fn is_known(self) -> bool {
        self.into_bits() & !HashTypes::ALL.into_bits() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_classifiers_and_types() {
        for (number, kind) in ClassifierKind::ALL.into_iter().enumerate() {
            assert_eq!(ClassifierKind::from_number(number as u32), Some(kind));
            assert_eq!(kind.mask(), 1 << number);
        }
        assert_eq!(ClassifierKind::from_number(4), None);
        for (number, kind) in HashType::ALL.into_iter().enumerate() {
            assert_eq!(HashType::from_number(number as u32), Some(kind));
            assert_eq!(kind as usize, number);
        }
        assert_eq!(HashType::from_number(7), None);
    }

    /// virtio 1.2, 5.1.6.4.3.1: bits 0 to 5 are IPv4, TCPv4, UDPv4, IPv6, TCPv6, UDPv6.
    #[test]
    fn the_bits_are_virtios() {
        assert_eq!(HashTypes::ALL.into_bits(), 0x3F);
        assert_eq!(HashTypes::USUAL.into_bits(), 0x1B);
        assert_eq!(HashTypes::new().with_udp_ipv4(true).into_bits(), 4);
        assert!(HashTypes::ALL.is_known() && !HashTypes::from_bits(0x40).is_known());
    }
}
