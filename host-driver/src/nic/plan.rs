//! Which queues a card has, and how large they are.
//!
//! A [`Plan`] is made of the user's choices and says all that [`super::layout`] and the
//! queues need of them. The classic interface has one queue each way; a plan may hold more.
//!
//! ```text
//!  Config ──> Plan ──> Layout ──> regions, each owned by one queue or by control
//! ```

use host_interface::ring;

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
}

/// A receive queue: a return ring and the buffer rings that feed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReceivePlan {
    /// BDs of the return ring, a power of two.
    pub returns: u32,
    /// Its buffer rings.
    pub rings: Vec<BufferPlan>,
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
        let mut rings = vec![BufferPlan {
            ring: Ring::Standard,
            buffers: config.receive_buffers,
            slot: SLOT_BYTES,
            extended: false,
        }];
        if config.has_jumbo() {
            rings.push(BufferPlan {
                ring: Ring::Jumbo,
                buffers: config.jumbo_buffers,
                slot: JUMBO_SLOT_BYTES,
                extended: config.jumbo == JumboRing::Extended,
            });
        }
        if let Some(longest) = config.mini {
            rings.push(BufferPlan {
                ring: Ring::Mini,
                buffers: config.mini_buffers,
                slot: mini_slot(longest),
                extended: false,
            });
        }
        Self {
            returns: config.return_ring.entries(),
            rings,
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
    /// BDs of the ring.
    pub fn entries(&self) -> u32 {
        match self.ring {
            Ring::Standard => ring::STANDARD_ENTRIES,
            Ring::Jumbo => ring::JUMBO_ENTRIES,
            Ring::Mini => ring::MINI_ENTRIES,
        }
    }
}
