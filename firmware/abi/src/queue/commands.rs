//! Commands of queue mode and the events that answer them.
//!
//! The words have the format of [`crate::command`] and [`crate::event`], with numbers that the
//! published interface leaves free. A firmware without queues answers them with the error event
//! for unknown commands; so does one with queues before they are open, except for
//! [`QueueCommand::Open`].

/// A command, bits 31:24 of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum QueueCommand {
    /// 0x20 open the queues of the control block; the stack must be down.
    Open = 0x20,
    /// 0x21 close the queues and return to classic mode.
    Close = 0x21,
    /// 0x22 read classifier, hash types, key and table again. The new classifier also applies to
    /// frames that are already in the card's buffer, so a flow whose queue changes may be
    /// reordered.
    UpdateClassifier = 0x22,
    /// 0x23 send a flow's frames to the queue in the index; its hash is the next entry of the ring.
    /// Reserved: rejected with [`QueueResult::NotSupported`].
    SteerFlow = 0x23,
    /// 0x24 send a flow's frames by the table again; its hash is the next entry. Reserved: rejected
    /// with [`QueueResult::NotSupported`].
    ForgetFlow = 0x24,
}

impl QueueCommand {
    /// All commands.
    pub const ALL: [QueueCommand; 5] = [
        QueueCommand::Open,
        QueueCommand::Close,
        QueueCommand::UpdateClassifier,
        QueueCommand::SteerFlow,
        QueueCommand::ForgetFlow,
    ];

    /// The command with a number, if there is one.
    pub const fn from_number(number: u8) -> Option<QueueCommand> {
        match number {
            0x20 => Some(QueueCommand::Open),
            0x21 => Some(QueueCommand::Close),
            0x22 => Some(QueueCommand::UpdateClassifier),
            0x23 => Some(QueueCommand::SteerFlow),
            0x24 => Some(QueueCommand::ForgetFlow),
            _ => None,
        }
    }

    /// How many ring entries the command takes after its own.
    pub const fn extra_entries(self) -> u32 {
        match self {
            QueueCommand::SteerFlow | QueueCommand::ForgetFlow => 1,
            _ => 0,
        }
    }

    /// Its word in the ring, with an index of 12 bits.
    pub const fn word(self, index: u16) -> u32 {
        (self as u32) << 24 | index as u32 & 0xFFF
    }

    /// The event that answers it.
    pub const fn answer(self) -> QueueEvent {
        match self {
            QueueCommand::Open => QueueEvent::Opened,
            QueueCommand::Close => QueueEvent::Closed,
            QueueCommand::UpdateClassifier => QueueEvent::ClassifierUpdated,
            QueueCommand::SteerFlow => QueueEvent::FlowSteered,
            QueueCommand::ForgetFlow => QueueEvent::FlowForgotten,
        }
    }
}

/// An event, bits 31:24 of its first word; bits 23:12 are a [`QueueResult`], bits 11:0 the queue
/// or table entry that the result concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum QueueEvent {
    /// 0x20 answers [`QueueCommand::Open`].
    Opened = 0x20,
    /// 0x21 answers [`QueueCommand::Close`].
    Closed = 0x21,
    /// 0x22 answers [`QueueCommand::UpdateClassifier`].
    ClassifierUpdated = 0x22,
    /// 0x23 answers [`QueueCommand::SteerFlow`].
    FlowSteered = 0x23,
    /// 0x24 answers [`QueueCommand::ForgetFlow`].
    FlowForgotten = 0x24,
}

impl QueueEvent {
    /// All events.
    pub const ALL: [QueueEvent; 5] = [
        QueueEvent::Opened,
        QueueEvent::Closed,
        QueueEvent::ClassifierUpdated,
        QueueEvent::FlowSteered,
        QueueEvent::FlowForgotten,
    ];

    /// Its two words, with the result and its index.
    pub const fn pack(self, result: QueueResult, index: u16) -> [u32; 2] {
        let word = (self as u32) << 24 | (result as u32) << 12 | index as u32 & 0xFFF;
        [word, 0]
    }

    /// Event, result and index in the first word of a ring entry; `None` for another event or an
    /// unknown result.
    pub const fn unpack(word: u32) -> Option<(QueueEvent, QueueResult, u16)> {
        let event = match (word >> 24) as u8 {
            0x20 => QueueEvent::Opened,
            0x21 => QueueEvent::Closed,
            0x22 => QueueEvent::ClassifierUpdated,
            0x23 => QueueEvent::FlowSteered,
            0x24 => QueueEvent::FlowForgotten,
            _ => return None,
        };
        let number = word >> 12 & 0xFFF;
        if number >= QueueResult::ALL.len() as u32 {
            return None;
        }
        let result = QueueResult::ALL[number as usize];
        Some((event, result, (word & 0xFFF) as u16))
    }
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[repr(u32)]
pub enum QueueResult {
    /// Success.
    #[error("done")]
    Done = 0,
    /// The queues are open already.
    #[error("the queues are open already")]
    AlreadyOpen = 1,
    /// The host's stack is up.
    #[error("the host's stack is up")]
    StackUp = 2,
    /// The control block's address is 0 or misaligned, or the block could not be read.
    #[error("the control block cannot be read")]
    ControlBlock = 3,
    /// 0 queues, more than the firmware has, or no power of two where the classifier needs one.
    #[error("no such number of queues")]
    QueueCount = 4,
    /// Unknown classifier.
    #[error("no such classifier")]
    Classifier = 5,
    /// Unsupported hash type.
    #[error("no such type of hash")]
    HashTypes = 6,
    /// The table entry in the index names a queue that is not open.
    #[error("a table entry names a queue that is not open")]
    TableEntry = 7,
    /// The buffer ring of the queue in the index: bad size or address, or it overlaps another ring.
    #[error("a buffer ring cannot be used")]
    BufferRing = 8,
    /// The return ring of the queue in the index: bad size or address, or it overlaps another ring.
    #[error("a return ring cannot be used")]
    ReturnRing = 9,
    /// The address of the status line of the queue in the index is 0 or misaligned.
    #[error("a status line cannot be used")]
    StatusLine = 10,
    /// The queue in the index requests an interrupt message that does not exist.
    #[error("no such interrupt message")]
    Message = 11,
    /// The command is reserved.
    #[error("not supported")]
    NotSupported = 12,
}

impl QueueResult {
    /// All, in the order of their numbers.
    pub const ALL: [QueueResult; 13] = [
        QueueResult::Done,
        QueueResult::AlreadyOpen,
        QueueResult::StackUp,
        QueueResult::ControlBlock,
        QueueResult::QueueCount,
        QueueResult::Classifier,
        QueueResult::HashTypes,
        QueueResult::TableEntry,
        QueueResult::BufferRing,
        QueueResult::ReturnRing,
        QueueResult::StatusLine,
        QueueResult::Message,
        QueueResult::NotSupported,
    ];
}

const _: () = {
    let mut index = 0;
    while index < QueueCommand::ALL.len() {
        let number = QueueCommand::ALL[index] as u8;
        // Neither is one of the published interface.
        assert!(crate::command::CommandCode::from_number(number as u32).is_none());
        assert!(crate::event::EventCode::from_number(number as u32).is_none());
        assert!(QueueEvent::ALL[index] as u8 == number);
        index += 1;
    }
    let mut index = 0;
    while index < QueueResult::ALL.len() {
        assert!(QueueResult::ALL[index] as usize == index);
        index += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, UnknownCommand};

    /// The firmware of classic mode refuses all of them.
    #[test]
    fn commands_are_unknown_to_the_published_interface() {
        for command in QueueCommand::ALL {
            let word = command.word(0xFFFF);
            assert_eq!(Command::unpack(word), Err(UnknownCommand(word)));
            assert_eq!(QueueCommand::from_number((word >> 24) as u8), Some(command));
            assert_eq!(word & 0xFF_FFFF, 0xFFF);
        }
        assert_eq!(QueueCommand::from_number(0x25), None);
        assert_eq!(QueueCommand::SteerFlow.extra_entries(), 1);
        assert_eq!(QueueCommand::Open.extra_entries(), 0);
    }

    #[test]
    fn events_carry_result_and_index() {
        for command in QueueCommand::ALL {
            for result in QueueResult::ALL {
                let [word, second] = command.answer().pack(result, 5);
                assert_eq!(
                    QueueEvent::unpack(word),
                    Some((command.answer(), result, 5))
                );
                assert_eq!(second, 0);
            }
        }
        assert_eq!(QueueEvent::unpack(0x2000_D000), None, "no such result");
        assert_eq!(QueueEvent::unpack(0x0100_0000), None, "no event of queues");
    }
}
