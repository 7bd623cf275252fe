//! The receive queue of a flow, with an explanation.
//!
//! It helps to choose ports, or to find out why one queue is full and others are empty. The code
//! that the firmware runs (`flow-classify`) computes the answer from a frame of the flow, so it
//! cannot differ from the card's with the same settings.
//!
//! ```text
//!   flow ──► frame ──► classifier ──► type of hash, hash ──► entry ──► queue
//! ```

use flow_classify::frame::Whole;
use flow_classify::{BadClassifier, Classifier, Tables, Verdict};
pub use flow_classify::{ClassifierKind, HashType, HashTypes, IndirectionTable, Key};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use thiserror::Error;

pub mod words;

/// The protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP segments.
    Tcp,
    /// UDP datagrams.
    Udp,
    /// Anything else, and fragments: ports are ignored.
    Other,
}

/// A flow as the card receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What it carries.
    pub protocol: Protocol,
    /// The sender.
    pub source: SocketAddr,
    /// The receiver.
    pub destination: SocketAddr,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RssError {
    /// Settings that a card would reject.
    #[error(transparent)]
    Classifier(#[from] BadClassifier),
    /// An entry of the indirection table.
    #[error("table entry {entry} names a queue that is not open")]
    TableEntry {
        /// Its number.
        entry: usize,
    },
    /// One address is of IPv4, the other of IPv6.
    #[error("{0} and {1} have different versions of IP")]
    Versions(IpAddr, IpAddr),
}

/// The classification settings of a card.
#[derive(Clone, Debug)]
pub struct Rss {
    classifier: Classifier,
    queues: u32,
    types: HashTypes,
    tables: Box<Tables>,
}

/// The queue of a flow, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The queue; `None` if it differs for each datagram.
    pub queue: Option<u32>,
    /// The reason.
    pub reason: Reason,
}

/// Why a flow goes to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The classifier sends everything to queue 0.
    Single,
    /// The classifier uses the queues in turn.
    InTurn,
    /// The last byte of the source address.
    SourceAddress {
        /// That byte.
        last_byte: u8,
        /// The number of queues.
        queues: u32,
    },
    /// A hash.
    Hash {
        /// Its input.
        hash_type: HashType,
        /// Its value.
        hash: u32,
        /// The table entry that it selects.
        entry: u32,
        /// Whether the flow's ports were ignored because their hash type is off.
        ports_left_out: bool,
    },
    /// No hash type that fits the flow is on.
    NoHash,
}

impl Rss {
    /// Checks the settings of a card.
    ///
    /// # Errors
    /// [`RssError`] if a card would reject them.
    pub fn new(
        kind: ClassifierKind,
        queues: u32,
        types: HashTypes,
        key: &Key,
        table: &IndirectionTable,
    ) -> Result<Rss, RssError> {
        let classifier = Classifier::new(kind, queues, types, key.period())?;
        if let Err(entry) = IndirectionTable::new(*table.entries(), queues) {
            return Err(RssError::TableEntry { entry });
        }
        Ok(Rss {
            classifier,
            queues,
            types,
            tables: Box::new(Tables::new(key, table)),
        })
    }

    /// The queue of a flow, and the reason.
    ///
    /// # Errors
    /// [`RssError::Versions`] for addresses that cannot be in one datagram.
    pub fn explain(&self, flow: &Flow) -> Result<Explanation, RssError> {
        let verdict = self.classify(&frame(flow)?);
        let explanation = |queue, reason| Explanation { queue, reason };
        Ok(match self.classifier.kind() {
            ClassifierKind::Single => explanation(Some(verdict.queue), Reason::Single),
            ClassifierKind::RoundRobin => explanation(None, Reason::InTurn),
            ClassifierKind::SourceAddress => explanation(
                Some(verdict.queue),
                Reason::SourceAddress {
                    last_byte: last_byte(flow.source.ip()),
                    queues: self.queues,
                },
            ),
            ClassifierKind::Toeplitz if verdict.hash_type == HashType::None => {
                explanation(Some(verdict.queue), Reason::NoHash)
            }
            ClassifierKind::Toeplitz => explanation(
                Some(verdict.queue),
                Reason::Hash {
                    hash_type: verdict.hash_type,
                    hash: verdict.hash,
                    entry: IndirectionTable::entry(verdict.hash),
                    ports_left_out: flow.protocol != Protocol::Other
                        && !verdict.hash_type.has_ports(),
                },
            ),
        })
    }

    /// The first source port of a range that leads the flow to a queue; `None` if there is none,
    /// for example when ports are ignored.
    ///
    /// # Errors
    /// As [`Rss::explain`].
    pub fn source_port(
        &self,
        flow: &Flow,
        queue: u32,
        ports: RangeInclusive<u16>,
    ) -> Result<Option<u16>, RssError> {
        for port in ports {
            let mut flow = *flow;
            flow.source.set_port(port);
            let explanation = self.explain(&flow)?;
            if explanation.queue == Some(queue) {
                return Ok(Some(port));
            }
            if !explanation.depends_on_ports() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The hash types that are on.
    pub fn hash_types(&self) -> HashTypes {
        self.types
    }

    fn classify(&self, frame: &[u8]) -> Verdict {
        let mut classifier = self.classifier;
        classifier.classify(&mut (Whole(frame), &*self.tables), frame.len() as u32)
    }
}

impl Explanation {
    /// Whether other ports may lead to another queue.
    pub fn depends_on_ports(&self) -> bool {
        matches!(self.reason, Reason::Hash { hash_type, .. } if hash_type.has_ports())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.queue {
            Some(queue) => write!(f, "queue {queue}: ")?,
            None => write!(f, "any queue: ")?,
        }
        match self.reason {
            Reason::Single => write!(f, "classifier single sends all there"),
            Reason::InTurn => write!(f, "classifier round-robin takes them in turn"),
            Reason::SourceAddress { last_byte, queues } => write!(
                f,
                "the source address ends in {last_byte}, {last_byte} & {} chooses",
                queues - 1
            ),
            Reason::Hash {
                hash_type,
                hash,
                entry,
                ports_left_out,
            } => {
                let of = if hash_type.has_ports() {
                    "addresses and ports"
                } else {
                    "addresses"
                };
                write!(
                    f,
                    "hash {hash:#010x} of {of} ({hash_type:?}), entry {entry}"
                )?;
                if ports_left_out {
                    write!(f, "; the hash with ports is off for this protocol")?;
                }
                Ok(())
            }
            Reason::NoHash => write!(f, "no type of hash is on for it"),
        }
    }
}

/// The last byte of an address.
fn last_byte(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    }
}

/// Bytes after the IP header: a TCP header.
const PAYLOAD: u8 = 20;

/// A frame of the flow, with everything that a classifier reads.
fn frame(flow: &Flow) -> Result<Vec<u8>, RssError> {
    let protocol = match flow.protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Other => 1,
    };
    let mut frame = vec![0; 12];
    match (flow.source.ip(), flow.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend([0x08, 0x00, 0x45, 0, 0, 20 + PAYLOAD, 0, 0, 0, 0]);
            frame.extend([64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x86, 0xDD, 0x60, 0, 0, 0, 0, PAYLOAD, protocol, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (source, destination) => return Err(RssError::Versions(source, destination)),
    }
    frame.extend(flow.source.port().to_be_bytes());
    frame.extend(flow.destination.port().to_be_bytes());
    frame.resize(frame.len() + usize::from(PAYLOAD) - 4, 0);
    Ok(frame)
}

#[cfg(test)]
mod tests;
