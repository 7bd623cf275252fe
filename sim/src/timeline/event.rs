//! The events that a [`Recorder`](super::Recorder) stores.
//!
//! All times are core cycles since power-on.

use crate::timing::counts::Tally;
use host_interface::queue::HashType;
use std::fmt;
use tigon2_chip::Cpu;
use tigon2_model::Direction;

/// From a cycle on, up to another one, exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first cycle.
    pub start: u64,
    /// The cycle behind the last one.
    pub end: u64,
}

impl Span {
    /// Its length in cycles.
    pub const fn cycles(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the two have a cycle in common, or one is an instant within the other.
    pub const fn meets(self, other: Span) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Whether a cycle is part of it.
    pub const fn holds(self, cycle: u64) -> bool {
        self.start <= cycle && cycle < self.end
    }
}

/// A handler ran to its end: from the jump into it to the next read of the event register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Who ran it.
    pub cpu: Cpu,
    /// The bit of the event register that it is for.
    pub bit: u8,
    /// When.
    pub span: Span,
    /// Cycles of the dispatch in front of it.
    pub dispatch: u64,
    /// Its instructions, and its cycles by cause.
    pub tally: Tally,
}

/// The verdict of the card's classifier on a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// The queue.
    pub queue: u8,
    /// The input of the hash.
    pub hash_type: HashType,
    /// The hash.
    pub hash: u32,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict {
            queue,
            hash_type,
            hash,
        } = self;
        match hash_type {
            HashType::None => write!(f, "queue {queue}, no hash"),
            _ => write!(f, "queue {queue}, hash {hash:#010x} ({hash_type:?})"),
        }
    }
}

/// What a return BD says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Returned {
    /// The host address of the buffer that it gives back.
    pub buffer: u64,
    /// The queue and the hash of the frame, in queue mode.
    pub verdict: Option<Verdict>,
}

/// What a DMA transfer carries, as far as its host address shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Bytes of frames: a host address that is in no ring.
    Data,
    /// Send BDs from index `first` on.
    SendBds {
        /// Index in the host's ring.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Empty buffers of the host.
    ReceiveBds {
        /// Whose ring it is.
        ring: &'static str,
        /// Index in the host's ring.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Return BDs from index `first` on.
    ReturnBds {
        /// The receive queue whose ring it is; none in classic mode.
        queue: Option<u8>,
        /// Index in the return ring.
        first: u32,
        /// What each of them says.
        frames: Vec<Returned>,
    },
    /// The status line of a receive queue.
    QueueStatus {
        /// The queue.
        queue: u8,
        /// Its producer.
        producer: u32,
    },
    /// The receive return producer index.
    ReturnIndex(u32),
    /// The send consumer index.
    SendIndex(u32),
    /// Events for the host, statistics and all else that is of no frame.
    Control,
}

/// A transfer of a DMA channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmaTransfer {
    /// Which channel.
    pub direction: Direction,
    /// From the start of its descriptor's fetch to its side effects.
    pub span: Span,
    /// When its descriptor was there and the transfer itself began.
    pub begun: u64,
    /// Offset of its descriptor in the ring; none if software wrote the registers.
    pub descriptor: Option<u32>,
    /// First host address.
    pub host: u64,
    /// First NIC address.
    pub local: u32,
    /// Bytes.
    pub length: u32,
    /// What it carries.
    pub payload: Payload,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A handler ran.
    Run(Run),
    /// A CPU put descriptors into a DMA ring.
    Queued {
        /// Who did.
        cpu: Cpu,
        /// Into which ring.
        direction: Direction,
        /// Offset of the first one in the ring.
        first: u32,
        /// Offset behind the last one.
        end: u32,
        /// When.
        at: u64,
    },
    /// A DMA transfer.
    Dma(DmaTransfer),
    /// A transaction on the PCI bus.
    Bus {
        /// For which channel.
        direction: Direction,
        /// From the request's grant to the last beat.
        span: Span,
        /// When the first beat was due.
        data: u64,
    },
    /// A frame left through the MAC.
    Transmit {
        /// Its time on the wire.
        span: Span,
        /// Its first byte's NIC address.
        local: u32,
        /// Bytes without CRC.
        length: u32,
    },
    /// A frame came in through the MAC.
    Receive {
        /// Its time on the wire.
        span: Span,
        /// Its first byte's NIC address; none if the card dropped it.
        local: Option<u32>,
        /// Bytes without CRC.
        length: u32,
        /// Its number, if it has one.
        number: Option<u64>,
    },
    /// INTA# was asserted or taken away.
    Interrupt {
        /// Which.
        asserted: bool,
        /// When.
        at: u64,
    },
    /// The host wrote a mailbox.
    Mailbox {
        /// Its name.
        name: &'static str,
        /// What the host wrote.
        value: u32,
        /// When.
        at: u64,
    },
    /// The host gave a send BD, by the mailbox write of that cycle.
    SendBd {
        /// Index in the host's ring.
        index: u32,
        /// Host address of its data.
        host: u64,
        /// Bytes.
        length: u32,
        /// Whether it ends a frame.
        last: bool,
        /// The number of the frame, if it has one; known with its last BD.
        number: Option<u64>,
        /// When.
        at: u64,
    },
    /// Firmware wrote the send consumer index where drivers read it.
    SendConsumer {
        /// Who did.
        cpu: Cpu,
        /// The index.
        value: u32,
        /// When.
        at: u64,
    },
}

impl Event {
    /// When it was over, or happened.
    pub fn end(&self) -> u64 {
        match self {
            Event::Run(run) => run.span.end,
            Event::Dma(transfer) => transfer.span.end,
            Event::Bus { span, .. }
            | Event::Transmit { span, .. }
            | Event::Receive { span, .. } => span.end,
            Event::Queued { at, .. }
            | Event::Interrupt { at, .. }
            | Event::Mailbox { at, .. }
            | Event::SendBd { at, .. }
            | Event::SendConsumer { at, .. } => *at,
        }
    }
}
