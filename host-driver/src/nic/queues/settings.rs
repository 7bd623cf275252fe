//! The user's settings of receive queues.

use flow_classify::{ClassifierKind, HashTypes, IndirectionTable, Key};
use host_interface::queue::{
    QueueControl, QueueControlBlock, RING_ENTRIES_MAX, RING_ENTRIES_MIN, is_ring_size,
};

use crate::nic::error::NicError;
use crate::rss::{Rss, RssError};

/// How the queue of a frame is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification {
    /// The classifier.
    pub kind: ClassifierKind,
    /// The enabled hash types.
    pub hash_types: HashTypes,
    /// The key of the hash.
    pub key: Key,
    /// From hash to queue; None for [`IndirectionTable::equal`].
    pub table: Option<IndirectionTable>,
}

/// Settings of queue mode; [`QueueSettings::new`] has the usual ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSettings {
    /// Queues, 1 to 8.
    pub queues: u8,
    /// How the queue of a frame is selected.
    pub classification: Classification,
    /// Entries of each queue's buffer ring and return ring: 64, 128, 256 or 512. A queue has
    /// one buffer fewer.
    pub entries: u32,
    /// Longest delay from a frame to its report, in microseconds.
    pub coalescing_ticks: u32,
    /// Frames after which the queue is reported in any case; 0 for "by time only".
    pub coalescing_frames: u32,
}

impl Default for Classification {
    /// Toeplitz with the published key, and Linux' hash types.
    fn default() -> Self {
        Self {
            kind: ClassifierKind::Toeplitz,
            hash_types: HashTypes::USUAL,
            key: Key::PUBLISHED,
            table: None,
        }
    }
}

impl QueueSettings {
    /// This many queues, with the usual settings.
    #[must_use]
    pub fn new(queues: u8) -> Self {
        Self {
            queues,
            classification: Classification::default(),
            entries: 256,
            coalescing_ticks: 60,
            coalescing_frames: 16,
        }
    }

    /// The same with a classifier.
    #[must_use]
    pub fn with_classifier(mut self, kind: ClassifierKind) -> Self {
        self.classification.kind = kind;
        self
    }

    /// Checks everything that needs no card.
    ///
    /// # Errors
    /// [`NicError::Classification`], [`NicError::BadSetting`].
    pub fn check(&self) -> Result<(), NicError> {
        self.classification.rss(self.queues)?;
        if is_ring_size(self.entries) {
            return Ok(());
        }
        Err(NicError::BadSetting {
            what: "entries of a queue's rings",
            value: self.entries,
            allowed: format!("a power of two, {RING_ENTRIES_MIN} to {RING_ENTRIES_MAX}"),
        })
    }
}

impl Classification {
    /// Explains the queue of a flow, for this many queues.
    ///
    /// # Errors
    /// [`RssError`] for settings that a card would reject.
    pub fn rss(&self, queues: u8) -> Result<Rss, RssError> {
        let table = self.table(queues);
        Rss::new(self.kind, queues.into(), self.hash_types, &self.key, &table)
    }

    /// The indirection table for this many queues.
    #[must_use]
    pub fn table(&self, queues: u8) -> IndirectionTable {
        self.table
            .unwrap_or_else(|| IndirectionTable::equal(queues))
    }

    /// Writes the settings into a control block.
    pub(super) fn fill(&self, queues: u8, block: &mut QueueControlBlock) {
        block.classifier = self.kind as u32;
        block.hash_types = self.hash_types.into_bits();
        block.set_key(&self.key.0);
        block.set_table(self.table(queues).entries());
    }
}

impl QueueSettings {
    /// The control block, without the queues' addresses.
    pub(super) fn control_block(
        &self,
        queues: impl Iterator<Item = QueueControl>,
    ) -> QueueControlBlock {
        let mut block = QueueControlBlock {
            queues: self.queues.into(),
            ..QueueControlBlock::default()
        };
        self.classification.fill(self.queues, &mut block);
        for (place, queue) in block.queue.iter_mut().zip(queues) {
            *place = QueueControl {
                coalescing_ticks: self.coalescing_ticks,
                coalescing_frames: self.coalescing_frames,
                ..queue
            };
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut QueueSettings)) -> String {
        let mut settings = QueueSettings::new(3);
        change(&mut settings);
        settings
            .check()
            .map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_no_card_can_do_is_refused_before_one_is_asked() {
        assert_eq!(refused(|_| ()), "");
        assert_eq!(
            refused(|all| all.queues = 0),
            "there are 1 to 8 queues, not 0"
        );
        assert_eq!(
            refused(|all| all.queues = 9),
            "there are 1 to 8 queues, not 9"
        );
        assert_eq!(
            refused(|all| all.entries = 96),
            "entries of a queue's rings 96: must be a power of two, 64 to 512"
        );
        assert_eq!(
            refused(|all| all.classification.kind = ClassifierKind::SourceAddress),
            "3 queues: source-address needs a power of two"
        );
        let table = IndirectionTable::equal(8);
        assert_eq!(
            refused(|all| all.classification.table = Some(table)),
            "table entry 3 names a queue that is not open"
        );
        let types = HashTypes::from_bits(0x40);
        assert_eq!(
            refused(|all| all.classification.hash_types = types),
            "hash types 0x40 name an unknown type"
        );
    }
}
