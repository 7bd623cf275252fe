//! Computes a frame's queue independently of the firmware.
//!
//! The reference parses a frame with the crate etherparse, header by header, and computes the
//! Toeplitz hash bit by bit with a shifted key. It shares only the rules with the crate
//! `flow-classify`, whose documentation states them.

use etherparse::{
    EtherType, Ethernet2HeaderSlice, IpNumber, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice,
    Ipv6HeaderSlice, Ipv6RawExtHeaderSlice, SingleVlanHeaderSlice, UdpHeaderSlice,
};
use host_interface::queue::{ClassifierKind, HashType, HashTypes};

/// How queues are chosen.
#[derive(Clone, Debug)]
pub struct Reference {
    /// By what.
    pub kind: ClassifierKind,
    /// Over how many.
    pub queues: u32,
    /// The types of hash that are on.
    pub types: HashTypes,
    /// The key.
    pub key: [u8; 40],
    /// The indirection table.
    pub table: [u8; 128],
}

/// What the reference says of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The queue.
    pub queue: u32,
    /// The type of the hash.
    pub hash_type: HashType,
    /// The hash, or 0.
    pub hash: u32,
}

/// A datagram: addresses one after the other, and what it carries.
struct Datagram {
    source: Vec<u8>,
    destination: Vec<u8>,
    carries: Option<Carried>,
}

/// What is carried; `None` in its place stands for something that is cut.
#[derive(Clone, Copy)]
enum Carried {
    Tcp([u16; 2]),
    Udp([u16; 2]),
    Addresses,
}

/// The published function, by its definition.
pub fn toeplitz(key: &[u8; 40], input: &[u8]) -> u32 {
    let mut bits = key
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |n| byte >> n & 1));
    let mut window = 0;
    for bit in bits.by_ref().take(32) {
        window = window << 1 | u32::from(bit);
    }
    let mut hash = 0;
    for byte in input {
        for number in (0..8).rev() {
            if byte >> number & 1 == 1 {
                hash ^= window;
            }
            window = window << 1 | u32::from(bits.next().unwrap_or(0));
        }
    }
    hash
}

impl Reference {
    /// What becomes of a frame. `round-robin` needs `turn`, the number of datagrams before.
    pub fn classify(&self, frame: &[u8], turn: &mut u32) -> Expected {
        let none = Expected {
            queue: 0,
            hash_type: HashType::None,
            hash: 0,
        };
        let Some(datagram) = datagram(frame) else {
            return none;
        };
        match self.kind {
            ClassifierKind::Single => none,
            ClassifierKind::SourceAddress => Expected {
                queue: u32::from(*datagram.source.last().expect("an address")) % self.queues,
                ..none
            },
            ClassifierKind::RoundRobin => {
                let queue = *turn % self.queues;
                *turn += 1;
                Expected { queue, ..none }
            }
            ClassifierKind::Toeplitz => self.hashed(&datagram).unwrap_or(none),
        }
    }

    fn hashed(&self, datagram: &Datagram) -> Option<Expected> {
        let types = self.types;
        let old = datagram.source.len() == 4;
        let (tcp, udp, addresses) = if old {
            (types.tcp_ipv4(), types.udp_ipv4(), types.ipv4())
        } else {
            (types.tcp_ipv6(), types.udp_ipv6(), types.ipv6())
        };
        let (hash_type, ports) = match datagram.carries? {
            Carried::Tcp(ports) if tcp && old => (HashType::TcpIpv4, Some(ports)),
            Carried::Tcp(ports) if tcp => (HashType::TcpIpv6, Some(ports)),
            Carried::Udp(ports) if udp && old => (HashType::UdpIpv4, Some(ports)),
            Carried::Udp(ports) if udp => (HashType::UdpIpv6, Some(ports)),
            _ if addresses && old => (HashType::Ipv4, None),
            _ if addresses => (HashType::Ipv6, None),
            _ => return None,
        };
        let mut input = [datagram.source.clone(), datagram.destination.clone()].concat();
        for port in ports.into_iter().flatten() {
            input.extend(port.to_be_bytes());
        }
        let hash = toeplitz(&self.key, &input);
        Some(Expected {
            queue: u32::from(self.table[hash as usize % 128]),
            hash_type,
            hash,
        })
    }
}

fn datagram(frame: &[u8]) -> Option<Datagram> {
    let link = Ethernet2HeaderSlice::from_slice(frame).ok()?;
    let mut kind = link.ether_type();
    let mut rest = &frame[14..];
    for _ in 0..2 {
        if kind == EtherType::VLAN_TAGGED_FRAME || kind == EtherType::PROVIDER_BRIDGING {
            kind = SingleVlanHeaderSlice::from_slice(rest).ok()?.ether_type();
            rest = &rest[4..];
        }
    }
    match kind {
        EtherType::IPV4 => old_datagram(rest),
        EtherType::IPV6 => new_datagram(rest),
        _ => None,
    }
}

fn old_datagram(bytes: &[u8]) -> Option<Datagram> {
    let header = Ipv4HeaderSlice::from_slice(bytes).ok()?;
    let payload = bytes
        .get(..usize::from(header.total_len()))?
        .get(header.slice().len()..)?;
    Some(Datagram {
        source: header.source().to_vec(),
        destination: header.destination().to_vec(),
        carries: if header.is_fragmenting_payload() {
            Some(Carried::Addresses)
        } else {
            carried(header.protocol(), payload)
        },
    })
}

fn new_datagram(bytes: &[u8]) -> Option<Datagram> {
    let header = Ipv6HeaderSlice::from_slice(bytes).ok()?;
    let payload = bytes[40..].get(..usize::from(header.payload_length()))?;
    Some(Datagram {
        source: header.source().to_vec(),
        destination: header.destination().to_vec(),
        carries: behind_extensions(header.next_header(), payload),
    })
}

fn behind_extensions(mut next: IpNumber, mut payload: &[u8]) -> Option<Carried> {
    for number in 0..=8 {
        let length = match next {
            IpNumber::IPV6_HEADER_HOP_BY_HOP if number > 0 => return None,
            IpNumber::IPV6_HEADER_HOP_BY_HOP
            | IpNumber::IPV6_ROUTE_HEADER
            | IpNumber::IPV6_DESTINATION_OPTIONS => {
                let header = Ipv6RawExtHeaderSlice::from_slice(payload).ok()?;
                next = header.next_header();
                header.slice().len()
            }
            IpNumber::IPV6_FRAGMENTATION_HEADER => {
                let header = Ipv6FragmentHeaderSlice::from_slice(payload).ok()?;
                if number < 8 && header.is_fragmenting_payload() {
                    return Some(Carried::Addresses);
                }
                next = header.next_header();
                8
            }
            _ => return carried(next, payload),
        };
        payload = &payload[length..];
    }
    // A ninth one.
    None
}

/// A fixed header must be there; both protocols begin with their ports.
fn carried(protocol: IpNumber, payload: &[u8]) -> Option<Carried> {
    let ports = |fixed: usize| {
        let header = UdpHeaderSlice::from_slice(payload.get(..fixed)?).ok()?;
        Some([header.source_port(), header.destination_port()])
    };
    match protocol {
        IpNumber::TCP => ports(20).map(Carried::Tcp),
        IpNumber::UDP => ports(8).map(Carried::Udp),
        _ => Some(Carried::Addresses),
    }
}
