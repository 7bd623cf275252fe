//! A frame in, a verdict out.

use crate::fields::{self, Transport, Version};
use crate::frame::Frame;
use crate::key::Period;
use crate::table::ENTRY_MASK;
use crate::toeplitz::{Input, Ipv4Input, Memory};
use host_interface::queue::{ClassifierKind, HashType, HashTypes, QUEUES_MAX};

/// Where a frame goes, and by what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The queue.
    pub queue: u32,
    /// What the hash was made of.
    pub hash_type: HashType,
    /// The hash; 0 if there is none.
    pub hash: u32,
}

impl Verdict {
    /// Queue 0, no hash.
    pub const NONE: Verdict = Verdict {
        queue: 0,
        hash_type: HashType::None,
        hash: 0,
    };

    const fn without_hash(queue: u32) -> Verdict {
        Verdict {
            queue,
            ..Verdict::NONE
        }
    }
}

/// What a classifier cannot work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadClassifier {
    /// No queue, or more than there are.
    #[error("there are 1 to 8 queues, not {0}")]
    Queues(u32),
    /// The source address chooses by bits.
    #[error("{0} queues: source-address needs a power of two")]
    NoPowerOfTwo(u32),
    /// A bit that stands for no type of hash.
    #[error("hash types {0:#x} name a type that there is not")]
    HashTypes(u32),
}

/// Which type of hash a datagram gets.
#[derive(Clone, Copy, Debug)]
struct Plan {
    tcp: HashType,
    udp: HashType,
    other: HashType,
}

impl Plan {
    const fn of(types: HashTypes, version: Version) -> Plan {
        let (other, tcp, udp) = match version {
            Version::V4 => (
                (types.ipv4(), HashType::Ipv4),
                (types.tcp_ipv4(), HashType::TcpIpv4),
                (types.udp_ipv4(), HashType::UdpIpv4),
            ),
            Version::V6 => (
                (types.ipv6(), HashType::Ipv6),
                (types.tcp_ipv6(), HashType::TcpIpv6),
                (types.udp_ipv6(), HashType::UdpIpv6),
            ),
        };
        let addresses = if other.0 { other.1 } else { HashType::None };
        Plan {
            tcp: if tcp.0 { tcp.1 } else { addresses },
            udp: if udp.0 { udp.1 } else { addresses },
            other: addresses,
        }
    }
}

/// How queues are chosen. All fields are words, which a chip can copy that stores no others
/// across words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Classifier {
    kind: ClassifierKind,
    queues: u32,
    /// The next queue of `round-robin`.
    next: u32,
    period: Period,
    v4: Plan,
    v6: Plan,
}

impl Classifier {
    /// A classifier over `queues` queues. Only `toeplitz` looks at the types and the period,
    /// which is that of the key from which its [`Memory`] was built.
    ///
    /// # Errors
    /// [`BadClassifier`] says what does not fit.
    pub const fn new(
        kind: ClassifierKind,
        queues: u32,
        types: HashTypes,
        period: Period,
    ) -> Result<Classifier, BadClassifier> {
        if queues == 0 || queues > QUEUES_MAX as u32 {
            return Err(BadClassifier::Queues(queues));
        }
        if matches!(kind, ClassifierKind::SourceAddress) && !queues.is_power_of_two() {
            return Err(BadClassifier::NoPowerOfTwo(queues));
        }
        if !types.is_known() {
            return Err(BadClassifier::HashTypes(types.into_bits()));
        }
        Ok(Classifier {
            kind,
            queues,
            next: 0,
            period,
            v4: Plan::of(types, Version::V4),
            v6: Plan::of(types, Version::V6),
        })
    }

    /// Which one it is.
    pub const fn kind(&self) -> ClassifierKind {
        self.kind
    }

    /// Where a frame of `length` bytes goes.
    #[inline(always)]
    pub fn classify<V: Frame + Memory>(&mut self, view: &mut V, length: u32) -> Verdict {
        match self.kind {
            ClassifierKind::Single => Verdict::NONE,
            ClassifierKind::SourceAddress => {
                let byte = source(view, length).unwrap_or(0);
                Verdict::without_hash(byte & (self.queues - 1))
            }
            ClassifierKind::Toeplitz => self.toeplitz(view, length),
            ClassifierKind::RoundRobin => self.round_robin(view, length),
        }
    }

    /// Where an untagged IPv4 datagram without options goes, which takes little code; `None`
    /// for any other frame, of which [`classify_in_general`](Self::classify_in_general) knows.
    #[inline(always)]
    pub fn classify_straight<V: Frame + Memory>(
        &mut self,
        view: &mut V,
        length: u32,
    ) -> Option<Verdict> {
        match self.kind {
            ClassifierKind::Single => Some(Verdict::NONE),
            ClassifierKind::SourceAddress => {
                let byte = straight_source(view, length)?;
                Some(Verdict::without_hash(byte & (self.queues - 1)))
            }
            ClassifierKind::Toeplitz => {
                let hashed = self.hashed_straight(view, length)?;
                Some(chosen(view, hashed))
            }
            ClassifierKind::RoundRobin => {
                straight_source(view, length)?;
                Some(self.in_turn())
            }
        }
    }

    /// Where any frame goes, more slowly and in less code than [`classify`](Self::classify).
    #[inline(always)]
    pub fn classify_in_general<V: Frame + Memory>(&mut self, view: &mut V, length: u32) -> Verdict {
        match self.kind {
            ClassifierKind::Single => Verdict::NONE,
            ClassifierKind::SourceAddress => {
                let byte = source_in_general(view, length).unwrap_or(0);
                Verdict::without_hash(byte & (self.queues - 1))
            }
            ClassifierKind::Toeplitz => {
                let hashed = self.hashed_in_general(view, length);
                chosen(view, hashed)
            }
            ClassifierKind::RoundRobin if source_in_general(view, length).is_none() => {
                Verdict::NONE
            }
            ClassifierKind::RoundRobin => self.in_turn(),
        }
    }

    /// By the hash.
    #[inline(always)]
    fn toeplitz<V: Frame + Memory>(&self, view: &mut V, length: u32) -> Verdict {
        let hashed = self.hashed(view, length);
        chosen(view, hashed)
    }

    /// The hash of a frame and its type. What is straight is judged here; what is not, in
    /// general.
    #[inline(always)]
    fn hashed<V: Frame + Memory>(&self, view: &mut V, length: u32) -> (HashType, u32) {
        if let Some(hashed) = self.hashed_straight(view, length) {
            return hashed;
        }
        if length >= straight::LEAST && view.word(12) >> 12 == straight::IPV6 {
            return self.hashed_ipv6(view, length);
        }
        self.hashed_in_general(view, length)
    }

    /// The same of an untagged IPv4 datagram without options that carries all of a TCP or UDP
    /// header.
    #[inline(always)]
    fn hashed_straight<V: Frame + Memory>(
        &self,
        view: &mut V,
        length: u32,
    ) -> Option<(HashType, u32)> {
        if length < straight::LEAST || view.word(12) >> 8 != straight::IPV4 {
            return None;
        }
        let total = view.word(16) >> 16;
        let (hash_type, least) = match view.word(20) & straight::PROTOCOL {
            fields::UDP => (self.v4.udp, fields::IPV4_HEADER + fields::UDP_HEADER),
            fields::TCP => (self.v4.tcp, fields::IPV4_HEADER + fields::TCP_HEADER),
            _ => return None,
        };
        if total < least || total + straight::IP > length {
            return None;
        }
        // Halfwords of the words from 24 on: - S | S D | D P | P -
        let input = if hash_type as u8 > HashType::Ipv4 as u8 {
            Ipv4Input {
                first: view.word(24),
                second: view.word(28),
                third: view.word(32),
                ports: Some(view.word(36) >> 16),
            }
        } else if hash_type == HashType::None {
            return Some((HashType::None, 0));
        } else {
            Ipv4Input {
                first: view.word(24),
                second: view.word(28),
                third: view.word(32) & 0xFFFF_0000,
                ports: None,
            }
        };
        Some((hash_type, input.hash(view, self.period)))
    }

    /// The same of an untagged IPv6 datagram of at least [`straight::LEAST`] bytes.
    #[inline(never)]
    fn hashed_ipv6<V: Frame + Memory>(&self, view: &mut V, length: u32) -> (HashType, u32) {
        let payload = view.word(16) & 0xFFFF;
        let (hash_type, least) = match view.word(20) >> 24 {
            fields::UDP => (self.v6.udp, fields::UDP_HEADER),
            fields::TCP => (self.v6.tcp, fields::TCP_HEADER),
            _ => return self.hashed_in_general(view, length),
        };
        if payload < least || payload + straight::IPV6_PAYLOAD > length {
            return self.hashed_in_general(view, length);
        }
        if hash_type == HashType::None {
            return (HashType::None, 0);
        }
        let input = Input {
            addresses: straight::IP + 8,
            bytes: 32,
            ports: hash_type.has_ports().then_some(straight::IPV6_PAYLOAD),
        };
        (hash_type, input.hash(view, self.period))
    }

    /// The same of any frame.
    #[cold]
    #[inline(never)]
    fn hashed_in_general<V: Frame + Memory>(&self, view: &mut V, length: u32) -> (HashType, u32) {
        let none = (HashType::None, 0);
        let Some(network) = fields::network(view, length) else {
            return none;
        };
        let Some(transport) = fields::transport(view, &network) else {
            return none;
        };
        let plan = match network.version {
            Version::V4 => &self.v4,
            Version::V6 => &self.v6,
        };
        let (kind, ports) = match transport {
            Transport::Tcp(ports) => (plan.tcp, ports),
            Transport::Udp(ports) => (plan.udp, ports),
            Transport::Other => (plan.other, 0),
        };
        if kind == HashType::None {
            return none;
        }
        let input = Input {
            addresses: network.addresses(),
            bytes: network.addresses_bytes(),
            ports: kind.has_ports().then_some(ports),
        };
        (kind, input.hash(view, self.period))
    }

    /// One datagram to each queue in turn.
    #[inline(always)]
    fn round_robin<V: Frame + Memory>(&mut self, view: &mut V, length: u32) -> Verdict {
        if source(view, length).is_none() {
            return Verdict::NONE;
        }
        self.in_turn()
    }

    #[inline(always)]
    fn in_turn(&mut self) -> Verdict {
        let queue = self.next;
        self.next = if queue + 1 == self.queues {
            0
        } else {
            queue + 1
        };
        Verdict::without_hash(queue)
    }
}

/// What makes a frame one that is judged in a straight line: no tag and no options.
mod straight {
    /// The type, version and header length in bits 31:8 of word 12.
    pub const IPV4: u32 = 0x08_0045;
    /// The type and version in bits 31:12 of word 12.
    pub const IPV6: u32 = 0x8_6DD6;
    /// Fragment bits and protocol in word 20 of IPv4: a protocol alone is no fragment.
    pub const PROTOCOL: u32 = super::fields::FRAGMENT_BITS << 16 | 0xFF;
    /// Offset of the IP header, and of what follows an IPv6 header.
    pub const IP: u32 = 14;
    pub const IPV6_PAYLOAD: u32 = 54;
    /// Bytes of the shortest frame: IPv4 with a UDP header.
    pub const LEAST: u32 = 42;
}

/// The queue of a hash.
#[inline(always)]
fn chosen<V: Memory>(view: &mut V, (hash_type, hash): (HashType, u32)) -> Verdict {
    if hash_type == HashType::None {
        return Verdict::NONE;
    }
    Verdict {
        queue: view.queue(hash & ENTRY_MASK),
        hash_type,
        hash,
    }
}

/// The last byte of a datagram's source address, with whatever is in higher bits.
#[inline(always)]
fn source<V: Frame + Memory>(view: &mut V, length: u32) -> Option<u32> {
    if length >= straight::LEAST {
        let kind = view.word(12);
        if kind >> 8 == straight::IPV4 {
            let total = view.word(16) >> 16;
            if total >= fields::IPV4_HEADER && total + straight::IP <= length {
                return Some(view.word(28) >> 16);
            }
        } else if kind >> 12 == straight::IPV6 {
            let payload = view.word(16) & 0xFFFF;
            if payload + straight::IPV6_PAYLOAD <= length {
                return Some(view.word(36) >> 16);
            }
        }
    }
    source_in_general(view, length)
}

/// The same of an untagged IPv4 datagram without options.
#[inline(always)]
fn straight_source<V: Frame>(view: &mut V, length: u32) -> Option<u32> {
    if length < straight::LEAST || view.word(12) >> 8 != straight::IPV4 {
        return None;
    }
    let total = view.word(16) >> 16;
    let whole = total >= fields::IPV4_HEADER && total + straight::IP <= length;
    whole.then(|| view.word(28) >> 16)
}

#[cold]
#[inline(never)]
fn source_in_general<V: Frame + Memory>(view: &mut V, length: u32) -> Option<u32> {
    let network = fields::network(view, length)?;
    Some(view.half(network.addresses() + network.addresses_bytes() / 2 - 2))
}
