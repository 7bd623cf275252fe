//! Receive queues as the policies see them.
//!
//! A queue is *armed* or *polled*. A frame for an armed queue makes it polled and raises the
//! interrupt; a polled queue raises none. [`QueueReception::rearm`] arms it again, and raises
//! the interrupt at once if the queue holds more: no frame can fall between.
//!
//! [`CardQueues`] are those of the firmware and the driver, [`ModelledQueues`] a second
//! opinion on them.

mod card_queues;
mod modelled;

pub use card_queues::CardQueues;
pub use modelled::ModelledQueues;

use super::card::HostCard;
use crate::workload::WorkloadError;
use host_driver::nic::QueueSettings;
use host_interface::queue::ClassifierKind;

/// Most queues.
pub const MOST_QUEUES: usize = host_interface::queue::QUEUES_MAX;

/// A card with a receive queue for each CPU.
pub trait QueueReception: Send {
    /// How many queues there are.
    fn queues(&self) -> usize;

    /// Whether the interrupt line is asserted. Called whenever the card's line is, at the
    /// card's time; no CPU is charged for it.
    ///
    /// # Errors
    /// What the driver reports.
    fn line(&mut self, card: &mut HostCard) -> Result<bool, WorkloadError>;

    /// The service routine: takes the interrupt away and says which queues have raised it
    /// since this was last asked, as bits.
    ///
    /// # Errors
    /// What the driver reports.
    fn acknowledge(&mut self, card: &mut HostCard) -> Result<u32, WorkloadError>;

    /// Takes at most `budget` frames of a queue.
    ///
    /// # Errors
    /// What the driver reports.
    fn poll(
        &mut self,
        card: &mut HostCard,
        queue: usize,
        budget: u32,
    ) -> Result<Vec<Vec<u8>>, WorkloadError>;

    /// Arms a polled queue: all that was polled is consumed.
    ///
    /// # Errors
    /// What the driver reports.
    fn rearm(&mut self, card: &mut HostCard, queue: usize) -> Result<(), WorkloadError>;

    /// Frames that each queue had no room for. Nobody's time passes.
    ///
    /// # Errors
    /// What the driver reports.
    fn dropped(&mut self, card: &mut HostCard) -> Result<Vec<u64>, WorkloadError>;
}

/// How frames are spread over the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// By the lowest bits of the source address (paper, section 4); the number of queues is
    /// a power of two.
    SourceAddress,
    /// In turn (the paper's KNET-RR).
    RoundRobin,
}

impl Spread {
    /// Settings of a card with so many queues and entries in each, a power of two.
    pub fn settings(self, queues: usize, entries: u32) -> QueueSettings {
        let kind = match self {
            Spread::SourceAddress => ClassifierKind::SourceAddress,
            Spread::RoundRobin => ClassifierKind::RoundRobin,
        };
        let queues = queues.clamp(1, MOST_QUEUES) as u8;
        QueueSettings {
            entries,
            ..QueueSettings::new(queues).with_classifier(kind)
        }
    }
}
