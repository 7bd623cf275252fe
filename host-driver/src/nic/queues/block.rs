//! The queue block in the card's memory: the firmware's capabilities and counters.

use host_interface::extension::Extension;
use host_interface::queue::{BlockWord, ClassifierKind, QUEUES_MAX, QueueCounter, block};
use serde::{Deserialize, Serialize};

use super::settings::QueueSettings;
use crate::nic::control::Control;
use crate::nic::error::NicError;
use crate::nic::window;
use crate::transport::Transport;

/// The firmware's counters of one queue. They wrap at 2^32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueCounters {
    /// Frames delivered to the host.
    pub frames: u32,
    /// Their bytes, without CRC.
    pub bytes: u32,
    /// Frames dropped for lack of a buffer.
    pub no_buffer: u32,
    /// Frames dropped because the return ring was full.
    pub return_ring_full: u32,
    /// Frames dropped because the buffer was too small.
    pub buffer_too_small: u32,
    /// Frames that could not be written to host memory.
    pub fault: u32,
    /// Interrupts raised.
    pub interrupts: u32,
    /// Producer updates without an interrupt, because the queue was polled.
    pub interrupts_avoided: u32,
    /// Re-arm words taken.
    pub rearms: u32,
    /// Rejected re-arm words and buffer producers: invalid indices.
    pub bad_indices: u32,
}

impl QueueCounters {
    /// Frames that the card dropped for this queue, for any reason.
    #[must_use]
    pub const fn dropped(&self) -> u32 {
        self.no_buffer
            .wrapping_add(self.return_ring_full)
            .wrapping_add(self.buffer_too_small)
            .wrapping_add(self.fault)
    }

    fn of_words(words: &[u32]) -> Self {
        let word =
            |counter: QueueCounter| words.get(counter as usize / 4).copied().unwrap_or_default();
        Self {
            frames: word(QueueCounter::Frames),
            bytes: word(QueueCounter::Bytes),
            no_buffer: word(QueueCounter::NoBuffer),
            return_ring_full: word(QueueCounter::ReturnRingFull),
            buffer_too_small: word(QueueCounter::BufferTooSmall),
            fault: word(QueueCounter::Fault),
            interrupts: word(QueueCounter::Interrupts),
            interrupts_avoided: word(QueueCounter::InterruptsAvoided),
            rearms: word(QueueCounter::Rearms),
            bad_indices: word(QueueCounter::BadIndices),
        }
    }
}

/// The place of a firmware's queue block, and the mailboxes in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    address: u32,
    buffers: u32,
    rearm: u32,
}

impl Block {
    /// Checks whether the firmware supports the requested settings.
    pub fn find<T: Transport>(
        control: &mut Control<T>,
        wanted: &QueueSettings,
    ) -> Result<Self, NicError> {
        let address = if control.ours {
            control.extension(Extension::Queues)?
        } else {
            0
        };
        if address == 0 {
            return Err(NicError::NoQueues);
        }
        let mut words = [0; BlockWord::ALL.len()];
        window::read(&mut control.transport, address, &mut words)?;
        let word = |word: BlockWord| words.get(word as usize / 4).copied().unwrap_or_default();
        let most = word(BlockWord::Queues).min(QUEUES_MAX as u32);
        if u32::from(wanted.queues) > most {
            return Err(NicError::BadSetting {
                what: "queues",
                value: wanted.queues.into(),
                allowed: format!("1 to {most} with this firmware"),
            });
        }
        let kind = wanted.classification.kind;
        let there = word(BlockWord::Classifiers);
        if there & kind.mask() == 0 {
            let kinds = ClassifierKind::ALL.into_iter();
            let names: Vec<_> = kinds
                .filter(|kind| there & kind.mask() != 0)
                .map(ClassifierKind::name)
                .collect();
            return Err(NicError::BadSetting {
                what: "classifier",
                value: kind as u32,
                allowed: format!("one that this firmware has ({})", names.join(", ")),
            });
        }
        Ok(Self {
            address,
            buffers: word(BlockWord::BufferMailbox),
            rearm: word(BlockWord::RearmMailbox),
        })
    }

    /// BAR offsets of a queue's mailboxes: buffer producer and re-arm.
    pub fn mailboxes(&self, queue: u8) -> Result<(u32, u32), NicError> {
        let mailbox = |what, first| {
            block::mailbox_offset(first, queue.into()).ok_or_else(|| NicError::BadIndex {
                what,
                value: first,
                allowed: "of mailboxes that classic mode leaves free".to_owned(),
            })
        };
        Ok((
            mailbox("buffer mailbox", self.buffers)?,
            mailbox("re-arm mailbox", self.rearm)?,
        ))
    }

    /// Writes the address of the control block.
    pub fn set_control<T: Transport>(
        &self,
        transport: &mut T,
        address: u64,
    ) -> Result<(), NicError> {
        let at = self.address.wrapping_add(BlockWord::ControlHigh as u32);
        let words = [(address >> 32) as u32, address as u32];
        Ok(window::write(transport, at, &words)?)
    }

    /// The firmware's counters of each queue.
    pub fn counters<T: Transport>(
        &self,
        transport: &mut T,
        queues: u8,
    ) -> Result<Vec<QueueCounters>, NicError> {
        let mut words = [0; QUEUES_MAX * block::COUNTERS_BYTES as usize / 4];
        let at = self.address.wrapping_add(block::FIRST_COUNTERS);
        window::read(transport, at, &mut words)?;
        let each = words.chunks_exact(block::COUNTERS_BYTES as usize / 4);
        Ok(each
            .take(queues.into())
            .map(QueueCounters::of_words)
            .collect())
    }
}
