//! The queue control block in host memory: the host's configuration of the queues.
//!
//! ```text
//! 0x000 queues      0x004 classifier   0x008 hash types   0x00C 0
//! 0x010 key, 40 bytes                  0x038 0
//! 0x040 indirection table, 128 bytes
//! 0x0C0 queue 0     0x100 queue 1  ...  0x280 queue 7     0x2C0 end
//!
//! queue  +0x00 RCB of the buffer ring   +0x10 RCB of the return ring
//!        +0x20 status line              +0x28 coalescing time
//!        +0x2C coalescing frames        +0x30 message      +0x34 0
//! ```
//!
//! The firmware reads the whole block when the host opens the queues, and the part before the
//! queues again at [`QueueCommand::UpdateClassifier`](super::QueueCommand::UpdateClassifier). It
//! validates and uses its copy.

use super::hash::HashTypes;
use super::{KEY_BYTES, QUEUES_MAX, TABLE_ENTRIES};
use crate::info::{HostAddress, RingControlBlock};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Words of the key.
pub const KEY_WORDS: usize = KEY_BYTES / 4;
/// Words of the indirection table.
pub const TABLE_WORDS: usize = TABLE_ENTRIES / 4;

/// The configuration of one queue: 64 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct QueueControl {
    /// 0x00 the buffer ring; `max_len` is its entries.
    pub buffers: RingControlBlock,
    /// 0x10 the return ring; `max_len` is its entries.
    pub returns: RingControlBlock,
    /// 0x20 the [status line](super::StatusLine).
    pub status: HostAddress,
    /// 0x28 longest time, in microseconds, until the producer is reported.
    pub coalescing_ticks: u32,
    /// 0x2C frames after which the producer is reported; 0 for "by time only".
    pub coalescing_frames: u32,
    /// 0x30 the interrupt message, if the card has messages.
    pub message: u32,
    /// 0x34 zero.
    pub reserved: [u32; 3],
}

/// The configuration of all queues: 704 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct QueueControlBlock {
    /// 0x000 the number of queues.
    pub queues: u32,
    /// 0x004 the number of a [`ClassifierKind`](super::ClassifierKind).
    pub classifier: u32,
    /// 0x008 the requested [`HashTypes`].
    pub hash_types: u32,
    /// 0x00C zero.
    pub reserved: u32,
    /// 0x010 the key: its first byte in bits 31:24 of the first word.
    pub key: [u32; KEY_WORDS],
    /// 0x038 zero.
    pub reserved_too: [u32; 2],
    /// 0x040 the indirection table: entry 0 in bits 31:24 of the first word.
    pub table: [u32; TABLE_WORDS],
    /// 0x0C0 the queues.
    pub queue: [QueueControl; QUEUES_MAX],
}

/// Bytes of the control block.
pub const CONTROL_BYTES: usize = CLASSIFIER_BYTES + QUEUES_MAX * size_of::<QueueControl>();
/// Bytes of it that are about the classifier.
pub const CLASSIFIER_BYTES: usize = 0x0C0;

impl QueueControlBlock {
    /// The requested hash types.
    pub const fn hash_types(&self) -> HashTypes {
        HashTypes::from_bits(self.hash_types)
    }

    /// Stores the key's bytes in their words.
    pub fn set_key(&mut self, key: &[u8; KEY_BYTES]) {
        for (word, bytes) in self.key.iter_mut().zip(key.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
    }

    /// Stores the table's entries in their words.
    pub fn set_table(&mut self, table: &[u8; TABLE_ENTRIES]) {
        for (word, bytes) in self.table.iter_mut().zip(table.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
    }
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<QueueControl>() == 0x40);
    assert!(offset_of!(QueueControl, returns) == 0x10);
    assert!(offset_of!(QueueControl, status) == 0x20);
    assert!(offset_of!(QueueControl, coalescing_ticks) == 0x28);
    assert!(offset_of!(QueueControl, coalescing_frames) == 0x2C);
    assert!(offset_of!(QueueControl, message) == 0x30);
    assert!(size_of::<QueueControlBlock>() == CONTROL_BYTES);
    assert!(offset_of!(QueueControlBlock, classifier) == 0x004);
    assert!(offset_of!(QueueControlBlock, hash_types) == 0x008);
    assert!(offset_of!(QueueControlBlock, key) == 0x010);
    assert!(offset_of!(QueueControlBlock, table) == 0x040);
    assert!(offset_of!(QueueControlBlock, queue) == CLASSIFIER_BYTES);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_the_highest_of_its_word() {
        let mut block = QueueControlBlock::default();
        let mut key = [0; KEY_BYTES];
        key[..4].copy_from_slice(&[0x6D, 0x5A, 0x56, 0xDA]);
        key[39] = 7;
        block.set_key(&key);
        assert_eq!((block.key[0], block.key[9]), (0x6D5A_56DA, 7));
        let mut table = [0; TABLE_ENTRIES];
        (table[0], table[127]) = (1, 2);
        block.set_table(&table);
        assert_eq!((block.table[0], block.table[31]), (0x0100_0000, 2));
    }
}
