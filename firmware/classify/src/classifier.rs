//! The classifier: a frame in, a verdict out.

use crate::fields::{self, Transport, Version};
use crate::flows::CachedIpv6;
use crate::frame::Frame;
use crate::key::Period;
use crate::table::ENTRY_MASK;
use crate::toeplitz::{Input, Ipv4Input, Memory};
use host_interface::queue::{ClassifierKind, HashType, HashTypes, QUEUES_MAX};

/// The queue of a frame, and its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The queue.
    pub queue: u32,
    /// The input of the hash.
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

/// Why a classifier is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadClassifier {
    /// No queue, or too many.
    #[error("there are 1 to 8 queues, not {0}")]
    Queues(u32),
    /// The source address chooses by bits.
    #[error("{0} queues: source-address needs a power of two")]
    NoPowerOfTwo(u32),
    /// A bit without a hash type.
    #[error("hash types {0:#x} name an unknown type")]
    HashTypes(u32),
}

/// The hash type of each kind of datagram.
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

/// How the queue is selected. All fields are words, because the chip copies only aligned words.
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
    /// A classifier over `queues` queues. Only `toeplitz` uses the types and the period, which is
    /// the period of the key from which its [`Memory`] was built.
    ///
    /// # Errors
    /// [`BadClassifier`] says what is invalid.
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

    /// Its kind.
    pub const fn kind(&self) -> ClassifierKind {
        self.kind
    }

    /// The period of the key.
    pub const fn period(&self) -> Period {
        self.period
    }

    /// Over how many queues.
    pub const fn queues(&self) -> u32 {
        self.queues
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

    /// The verdict on any frame, more slowly and in less code than [`classify`](Self::classify).
    #[inline(always)]
    pub fn classify_in_general<V: Frame + Memory>(&mut self, view: &mut V, length: u32) -> Verdict {
        match self.kind {
            ClassifierKind::Single => Verdict::NONE,
            ClassifierKind::SourceAddress => {
                let byte = source_in_general(view, length).unwrap_or(0);
                Verdict::without_hash(byte & (self.queues - 1))
            }
            ClassifierKind::Toeplitz => {
                let hashed = self.hashed_in_general::<_, true>(view, length);
                chosen(view, hashed)
            }
            ClassifierKind::RoundRobin if source_in_general(view, length).is_none() => {
                Verdict::NONE
            }
            ClassifierKind::RoundRobin => self.in_turn(),
        }
    }

    /// Selects the queue by the hash.
    #[inline(always)]
    fn toeplitz<V: Frame + Memory>(&self, view: &mut V, length: u32) -> Verdict {
        let hashed = self.hashed(view, length);
        chosen(view, hashed)
    }

    /// The hash of a frame and its type. This function handles the common case; `hashed_in_general`
    /// handles the rest.
    #[inline(always)]
    fn hashed<V: Frame + Memory>(&self, view: &mut V, length: u32) -> (HashType, u32) {
        if let Some(hashed) = self.hashed_straight(view, length) {
            return hashed;
        }
        if length >= LEAST
            && let Some(hash_type) = self.straight_ipv6(view, length)
        {
            return match hash_type {
                HashType::None => (HashType::None, 0),
                _ => {
                    let known = ipv6_known(view, hash_type);
                    let hash = known.unwrap_or_else(|| self.ipv6_hash(view, hash_type));
                    (hash_type, hash)
                }
            };
        }
        self.hashed_in_general::<_, false>(view, length)
    }

    /// The verdict on an IPv4 datagram as for [`renewed_ipv4`](Self::renewed_ipv4), if its flow is in
    /// the cache; `None` without a hash, too.
    #[inline(always)]
    pub fn cached_ipv4<V: Frame + Memory>(&self, view: &mut V, length: u32) -> Option<Verdict> {
        let (hash_type, input) = self.straight_input(view, length)?;
        let hash = input?.cached(view)?;
        Some(chosen(view, (hash_type, hash)))
    }

    /// The same of an IPv6 datagram.
    #[inline(always)]
    pub fn cached_ipv6<V: Frame + Memory>(&self, view: &mut V, length: u32) -> Option<Verdict> {
        let hash_type = self.straight_ipv6(view, length)?;
        if hash_type == HashType::None {
            return Some(Verdict::NONE);
        }
        let hash = ipv6_known(view, hash_type)?;
        Some(chosen(view, (hash_type, hash)))
    }

    /// Where an untagged IPv4 datagram without options goes by its hash, if a whole TCP or UDP
    /// header follows; `None` for any other frame. `length` is at least [`LEAST`]. The hash is
    /// looked up in little code and goes into the cache of flows.
    #[inline(always)]
    pub fn renewed_ipv4<V: Frame + Memory>(&self, view: &mut V, length: u32) -> Option<Verdict> {
        let (hash_type, input) = self.straight_input(view, length)?;
        let Some(input) = input else {
            return Some(Verdict::NONE);
        };
        let hash = input.renewed(view, self.period);
        Some(chosen(view, (hash_type, hash)))
    }

    /// The same of an IPv6 datagram without extensions.
    #[inline(always)]
    pub fn renewed_ipv6<V: Frame + Memory>(&self, view: &mut V, length: u32) -> Option<Verdict> {
        let hash_type = self.straight_ipv6(view, length)?;
        if hash_type == HashType::None {
            return Some(Verdict::NONE);
        }
        let hash = self.ipv6_hash(view, hash_type);
        Some(chosen(view, (hash_type, hash)))
    }

    /// As [`hashed`](Self::hashed), for an untagged IPv4 datagram without options that carries a
    /// whole TCP or UDP header.
    #[inline(always)]
    fn hashed_straight<V: Frame + Memory>(
        &self,
        view: &mut V,
        length: u32,
    ) -> Option<(HashType, u32)> {
        if length < LEAST {
            return None;
        }
        let (hash_type, input) = self.straight_input(view, length)?;
        let hash = input.map_or(0, |input| input.hash(view, self.period));
        Some((hash_type, hash))
    }

    /// What is hashed of an untagged IPv4 datagram without options that carries all of a TCP or
    /// UDP header, if anything, and the type that the hash has. `length` is at least [`LEAST`].
    #[inline(always)]
    fn straight_input<V: Frame>(
        &self,
        view: &mut V,
        length: u32,
    ) -> Option<(HashType, Option<Ipv4Input>)> {
        if view.word(12) >> 8 != straight::IPV4 {
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
        if hash_type == HashType::None {
            return Some((hash_type, None));
        }
        // Halfwords of the words from 24 on: - S | S D | D P | P -
        let (first, second, third) = (view.word(24), view.word(28), view.word(32));
        let input = if hash_type as u8 > HashType::Ipv4 as u8 {
            Ipv4Input {
                first,
                second,
                third,
                ports: Some(view.word(36) >> 16),
            }
        } else {
            Ipv4Input {
                first,
                second,
                third: third & 0xFFFF_0000,
                ports: None,
            }
        };
        Some((hash_type, Some(input)))
    }

    /// The type of hash of an untagged IPv6 datagram without extensions that carries all of a TCP
    /// or UDP header; `None` for any other frame. `length` is at least [`LEAST`].
    #[inline(always)]
    fn straight_ipv6<V: Frame>(&self, view: &mut V, length: u32) -> Option<HashType> {
        if view.word(12) >> 12 != straight::IPV6 {
            return None;
        }
        let payload = view.word(16) & 0xFFFF;
        let (hash_type, least) = match view.word(20) >> 24 {
            fields::UDP => (self.v6.udp, fields::UDP_HEADER),
            fields::TCP => (self.v6.tcp, fields::TCP_HEADER),
            _ => return None,
        };
        (payload >= least && payload + straight::IPV6_PAYLOAD <= length).then_some(hash_type)
    }

    /// The hash of such a datagram, which goes into the cache of flows.
    #[inline(always)]
    fn ipv6_hash<V: Frame + Memory>(&self, view: &mut V, hash_type: HashType) -> u32 {
        let input = Input {
            addresses: straight::IP + 8,
            bytes: 32,
            ports: hash_type.has_ports().then_some(straight::IPV6_PAYLOAD),
        };
        let hash = input.hash(view, self.period);
        if let Some(masks) = view.flows() {
            CachedIpv6::of(view, masks, hash_type.has_ports()).remember(view, hash);
        }
        hash
    }

    /// As [`hashed`](Self::hashed), for any frame; in less code if `SMALL`.
    #[cold]
    #[inline(never)]
    fn hashed_in_general<V: Frame + Memory, const SMALL: bool>(
        &self,
        view: &mut V,
        length: u32,
    ) -> (HashType, u32) {
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
        let hash = if SMALL {
            input.hash_by_halves(view, self.period)
        } else {
            input.hash(view, self.period)
        };
        (kind, hash)
    }

    /// Sends each datagram to the next queue.
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

/// Properties of the common case: no tag and no options.
mod straight {
    /// The type, version and header length in bits 31:8 of word 12.
    pub const IPV4: u32 = 0x08_0045;
    /// The type and version in bits 31:12 of word 12.
    pub const IPV6: u32 = 0x8_6DD6;
    /// Fragment bits and protocol in word 20 of IPv4: a protocol alone is no fragment.
    pub const PROTOCOL: u32 = super::fields::FRAGMENT_BITS << 16 | 0xFF;
    /// Offset of the IP header, and of the header after IPv6.
    pub const IP: u32 = 14;
    pub const IPV6_PAYLOAD: u32 = 54;
}

/// Bytes of the shortest frame that is judged in a straight line: IPv4 with a UDP header.
pub const LEAST: u32 = 42;

/// The hash of an untagged IPv6 datagram without extensions, if its flow is in the cache.
#[inline(always)]
fn ipv6_known<V: Frame + Memory>(view: &mut V, hash_type: HashType) -> Option<u32> {
    let masks = view.flows()?;
    CachedIpv6::of(view, masks, hash_type.has_ports()).find(view)
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

/// The last byte of a datagram's source address, with anything in higher bits.
#[inline(always)]
fn source<V: Frame + Memory>(view: &mut V, length: u32) -> Option<u32> {
    straight_source(view, length).or_else(|| source_in_general(view, length))
}

/// The last byte of the source address of an untagged IP datagram without IPv4 options, with
/// whatever is in higher bits; `None` for any other frame.
#[inline(always)]
fn straight_source<V: Frame>(view: &mut V, length: u32) -> Option<u32> {
    if length < LEAST {
        return None;
    }
    straight_source_of_least(view, length)
}

/// The same of a frame of at least [`LEAST`] bytes.
#[inline(always)]
pub fn straight_source_of_least<V: Frame>(view: &mut V, length: u32) -> Option<u32> {
    let kind = view.word(12);
    if kind >> 8 != straight::IPV4 {
        let payload = view.word(16) & 0xFFFF;
        let whole = kind >> 12 == straight::IPV6 && payload + straight::IPV6_PAYLOAD <= length;
        return whole.then(|| view.word(36) >> 16);
    }
    let total = view.word(16) >> 16;
    // One comparison for both ends: what is too small becomes large.
    let beyond = total.wrapping_sub(fields::IPV4_HEADER);
    let room = length.wrapping_sub(straight::IP + fields::IPV4_HEADER);
    (beyond <= room).then(|| view.word(28) >> 16)
}

#[cold]
#[inline(never)]
fn source_in_general<V: Frame + Memory>(view: &mut V, length: u32) -> Option<u32> {
    let network = fields::network(view, length)?;
    Some(view.half(network.addresses() + network.addresses_bytes() / 2 - 2))
}
