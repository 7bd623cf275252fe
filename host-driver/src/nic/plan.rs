//! The plan of a card's queues and their sizes.
//!
//! A [`Plan`] follows from the user's configuration and contains everything that [`super::layout`]
//! and the queues need. The classic interface has one queue each way; a plan may hold more.
//!
//! ```text
//!  Config ──> Plan ──> Layout ──> regions, each owned by one queue or by control
//! ```

use host_interface::{bar, ring};

use super::config::Config;
use super::rings::{JumboRing, Ring, SendRingPlace};
use super::sizes::{JUMBO_SLOT_BYTES, SLOT_BYTES, mini_slot};

/// A send queue: a ring of BDs, and a slot for each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SendPlan {
    /// BDs of the ring, a power of two.
    pub entries: u32,
    /// Bytes of a slot, a power of two.
    pub slot: usize,
    /// Where the ring is.
    pub place: SendRingPlace,
}

/// A ring of receive buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferPlan {
    /// Its kind.
    pub ring: Ring,
    /// Buffers, fewer than the ring has entries.
    pub buffers: u16,
    /// Bytes of a buffer's slot, a power of two.
    pub slot: usize,
    /// BDs of 64 bytes with four buffers, instead of 32 bytes and one.
    pub extended: bool,
    /// BDs of the ring, a power of two.
    pub entries: u32,
    /// BAR offset of the mailbox of its producer.
    pub mailbox: u32,
    /// The mark in the lower half of each opaque word, beside the buffer's number.
    pub mark: u16,
}

/// A receive queue: a return ring and the buffer rings that feed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReceivePlan {
    /// BDs of the return ring, a power of two.
    pub returns: u32,
    /// Its buffer rings.
    pub rings: Vec<BufferPlan>,
    /// Its number and re-arm mailbox in queue mode; None in classic mode.
    pub queue: Option<QueuePlan>,
}

/// Queue mode's additions to a receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuePlan {
    /// The queue's number.
    pub number: u8,
    /// BAR offset of the mailbox that re-arms it.
    pub rearm: u32,
}

/// The queues of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// Its send queues.
    pub send: Vec<SendPlan>,
    /// Its receive queues.
    pub receive: Vec<ReceivePlan>,
}

impl SendPlan {
    /// The send queue of the classic interface.
    pub fn classic(config: &Config) -> Self {
        Self {
            entries: config.send_ring.entries(),
            // The largest MTU that may be set later decides.
            slot: if config.has_jumbo() {
                JUMBO_SLOT_BYTES
            } else {
                SLOT_BYTES
            },
            place: config.send_ring_place,
        }
    }
}

impl ReceivePlan {
    /// The receive queue of the classic interface: one return ring for all buffers.
    pub fn classic(config: &Config) -> Self {
        let plan = |ring, buffers, slot| BufferPlan::classic(ring, buffers, slot);
        let mut rings = vec![plan(Ring::Standard, config.receive_buffers, SLOT_BYTES)];
        if config.has_jumbo() {
            rings.push(BufferPlan {
                extended: config.jumbo == JumboRing::Extended,
                ..plan(Ring::Jumbo, config.jumbo_buffers, JUMBO_SLOT_BYTES)
            });
        }
        if let Some(longest) = config.mini {
            rings.push(plan(Ring::Mini, config.mini_buffers, mini_slot(longest)));
        }
        Self {
            returns: config.return_ring.entries(),
            rings,
            queue: None,
        }
    }

    /// A receive queue of queue mode: a buffer ring and a return ring of the same size.
    /// `buffer_mailbox` is the BAR offset of its buffer producer.
    pub fn queue(queue: QueuePlan, entries: u32, slot: usize, buffer_mailbox: u32) -> Self {
        // The numbers of buffers and queues share 14 bits; classic rings do not use the upper two.
        const QUEUE: u16 = 3 << 14;
        let ring = BufferPlan {
            ring: Ring::Standard,
            buffers: (entries - 1) as u16,
            slot,
            extended: false,
            entries,
            mailbox: buffer_mailbox,
            mark: QUEUE | u16::from(queue.number) << 9,
        };
        Self {
            returns: entries,
            rings: vec![ring],
            queue: Some(queue),
        }
    }

    /// Buffers in all rings.
    pub fn buffers(&self) -> u32 {
        self.rings.iter().map(|ring| u32::from(ring.buffers)).sum()
    }
}

impl Plan {
    /// The queues of the classic interface.
    pub fn classic(config: &Config) -> Self {
        Self {
            send: vec![SendPlan::classic(config)],
            receive: vec![ReceivePlan::classic(config)],
        }
    }
}

impl BufferPlan {
    /// A ring of the classic interface.
    pub fn classic(ring: Ring, buffers: u16, slot: usize) -> Self {
        let (entries, mailbox) = match ring {
            Ring::Standard => (ring::STANDARD_ENTRIES, bar::MAILBOX_STANDARD_PRODUCER),
            Ring::Jumbo => (ring::JUMBO_ENTRIES, bar::MAILBOX_JUMBO_PRODUCER),
            Ring::Mini => (ring::MINI_ENTRIES, bar::MAILBOX_MINI_PRODUCER),
        };
        Self {
            ring,
            buffers,
            slot,
            extended: false,
            entries,
            mailbox,
            mark: (ring as u16) << 14,
        }
    }
}
