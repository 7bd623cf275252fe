//! The queue block in NIC memory: the firmware's capabilities and each queue's counters.
//!
//! ```text
//!   +0x000  words of the block                         BlockWord
//!   +0x040  counters of queue 0, 64 bytes              QueueCounter
//!   +0x080  counters of queue 1
//!    ...
//!   +0x240  end
//! ```
//!
//! The host writes the two words of the control block's address, and the firmware writes all
//! others.

use super::QUEUES_MAX;

/// A word of the block; the value of a variant is its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum BlockWord {
    /// The most queues that can be opened.
    Queues = 0x00,
    /// A [bit](super::ClassifierKind::mask) for each supported classifier.
    Classifiers = 0x04,
    /// The supported [`HashTypes`](super::HashTypes).
    HashTypes = 0x08,
    /// Entries of the indirection table.
    TableEntries = 0x0C,
    /// Flows that can be steered individually; 0 if none can.
    FlowEntries = 0x10,
    /// Interrupt messages; 0 if all queues share the interrupt line.
    Messages = 0x14,
    /// Number of the mailbox of queue 0's buffer producer; queue `q` uses the mailbox `q` later.
    BufferMailbox = 0x18,
    /// Number of the mailbox that [re-arms](super::RearmWord) queue 0; queue `q` uses the mailbox
    /// `q` later.
    RearmMailbox = 0x1C,
    /// Host address of the [control block](super::QueueControlBlock), bits 63:32.
    ControlHigh = 0x20,
    /// Host address of the control block, bits 31:0.
    ControlLow = 0x24,
    /// The number of open queues; 0 in classic mode.
    Open = 0x28,
    /// How often the classifier was read; wraps. Frames that arrive after a change of this word use
    /// the new classifier.
    ClassifierReads = 0x2C,
}

impl BlockWord {
    /// All, in the order of their offsets.
    pub const ALL: [BlockWord; 12] = [
        BlockWord::Queues,
        BlockWord::Classifiers,
        BlockWord::HashTypes,
        BlockWord::TableEntries,
        BlockWord::FlowEntries,
        BlockWord::Messages,
        BlockWord::BufferMailbox,
        BlockWord::RearmMailbox,
        BlockWord::ControlHigh,
        BlockWord::ControlLow,
        BlockWord::Open,
        BlockWord::ClassifierReads,
    ];
}

/// A counter of a queue; the value of a variant is its offset in the queue's counters. All wrap at
/// 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum QueueCounter {
    /// Frames handed to the host.
    Frames = 0x00,
    /// Their bytes, without CRC.
    Bytes = 0x04,
    /// Frames dropped for lack of a buffer.
    NoBuffer = 0x08,
    /// Frames dropped because the return ring was full.
    ReturnRingFull = 0x0C,
    /// Frames dropped because the buffer was too small.
    BufferTooSmall = 0x10,
    /// Frames that could not be written to the host's memory.
    Fault = 0x14,
    /// Interrupts raised for the queue.
    Interrupts = 0x18,
    /// Producer updates without an interrupt, because the queue was polled.
    InterruptsAvoided = 0x1C,
    /// Re-arm words taken.
    Rearms = 0x20,
    /// Rejected re-arm words and buffer producers: invalid indices.
    BadIndices = 0x24,
}

impl QueueCounter {
    /// All, in the order of their offsets.
    pub const ALL: [QueueCounter; 10] = [
        QueueCounter::Frames,
        QueueCounter::Bytes,
        QueueCounter::NoBuffer,
        QueueCounter::ReturnRingFull,
        QueueCounter::BufferTooSmall,
        QueueCounter::Fault,
        QueueCounter::Interrupts,
        QueueCounter::InterruptsAvoided,
        QueueCounter::Rearms,
        QueueCounter::BadIndices,
    ];
}

/// Offset of the first queue's counters.
pub const FIRST_COUNTERS: u32 = 0x40;
/// Bytes of a queue's counters.
pub const COUNTERS_BYTES: u32 = 0x40;
/// Bytes of the block.
pub const BLOCK_BYTES: u32 = FIRST_COUNTERS + QUEUES_MAX as u32 * COUNTERS_BYTES;

/// The first mailbox of buffer producers in this version of the firmware. A driver reads
/// [`BlockWord::BufferMailbox`] instead.
pub const BUFFER_MAILBOX: u32 = 8;
/// The first mailbox of re-arm words in this version of the firmware. A driver reads
/// [`BlockWord::RearmMailbox`] instead.
pub const REARM_MAILBOX: u32 = 16;

/// Offset in the block of a queue's counter.
pub const fn counter(queue: u32, counter: QueueCounter) -> u32 {
    FIRST_COUNTERS + queue * COUNTERS_BYTES + counter as u32
}

/// BAR offset of a queue's mailbox, with `first` from the block; `None` if the chip has no such
/// mailbox or classic mode uses it.
pub const fn mailbox_offset(first: u32, queue: u32) -> Option<u32> {
    let number = first.saturating_add(queue);
    if number > CLASSIC_MAILBOX_LAST && number < MAILBOX_COUNT {
        Some(crate::bar::MAILBOXES + 8 * number + 4)
    } else {
        None
    }
}

/// The last mailbox of classic mode: the mini ring's producer.
const CLASSIC_MAILBOX_LAST: u32 = 5;
/// The chip's mailboxes.
const MAILBOX_COUNT: u32 = 32;

const _: () = {
    let mut index = 0;
    while index < BlockWord::ALL.len() {
        assert!(BlockWord::ALL[index] as usize == 4 * index);
        index += 1;
    }
    let mut index = 0;
    while index < QueueCounter::ALL.len() {
        assert!(QueueCounter::ALL[index] as usize == 4 * index);
        index += 1;
    }
    assert!(4 * BlockWord::ALL.len() as u32 <= FIRST_COUNTERS);
    assert!(4 * QueueCounter::ALL.len() as u32 <= COUNTERS_BYTES);
    // The two groups neither meet nor leave the mailboxes.
    assert!(BUFFER_MAILBOX + QUEUES_MAX as u32 <= REARM_MAILBOX);
    assert!(REARM_MAILBOX + QUEUES_MAX as u32 <= MAILBOX_COUNT);
    assert!(crate::bar::MAILBOX_MINI_PRODUCER == crate::bar::MAILBOXES + 8 * 5 + 4);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_queues_lie_side_by_side() {
        assert_eq!(counter(0, QueueCounter::Frames), 0x40);
        assert_eq!(counter(7, QueueCounter::BadIndices), 0x40 + 7 * 0x40 + 0x24);
    }

    #[test]
    fn a_card_cannot_name_a_mailbox_of_classic_mode() {
        assert_eq!(mailbox_offset(BUFFER_MAILBOX, 0), Some(0x544));
        assert_eq!(mailbox_offset(REARM_MAILBOX, 7), Some(0x5BC));
        for wrong in [0, 5, 32, u32::MAX] {
            assert_eq!(mailbox_offset(wrong, 0), None, "{wrong}");
        }
        assert_eq!(mailbox_offset(31, 1), None);
    }
}
