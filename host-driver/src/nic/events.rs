//! The event ring: reports of the firmware to the driver.

use host_interface::event::{
    ERROR_BAD_CONFIGURATION, ERROR_FATAL, ERROR_INVALID_COMMAND, ERROR_UNIMPLEMENTED_COMMAND,
    Event, EventCode, LINK_10_100_UP, LINK_DOWN, LINK_GIGABIT_UP,
};
use host_interface::queue::{QueueEvent, QueueResult};
use host_interface::ring;
use serde::{Deserialize, Serialize};

use super::error::NicError;
use super::memory::ControlMemory;

/// The link, as the firmware last reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// No link.
    #[default]
    Down,
    /// 1000 Mb/s.
    Gigabit,
    /// 10 or 100 Mb/s.
    Fast,
}

/// The results of the events so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventLog {
    consumer: u32,
    /// Whether the firmware has reported that it is operational.
    pub operational: bool,
    pub link: Link,
    /// Times that the link changed.
    pub link_changes: u64,
    /// Statistics updates, multicast updates and jumbo resets seen so far.
    pub statistics: u64,
    pub multicast: u64,
    pub jumbo_resets: u64,
    /// Errors reported, and the last one's meaning.
    pub errors: u64,
    /// Errors that may answer a command. A bad configuration does not: the firmware may find it in
    /// a ring at any time.
    pub refusals: u64,
    pub last_error: Option<&'static str>,
    /// The last answer to a command of queue mode, and how many answers came.
    pub queues: Option<(QueueEvent, QueueResult, u16)>,
    answers: u64,
    /// Events that this driver does not know.
    pub unknown: u64,
}

impl EventLog {
    /// Reads new events of the ring. Returns the consumer index to report to the card, if there
    /// were any.
    pub fn take(&mut self, control: &ControlMemory) -> Result<Option<u32>, NicError> {
        let producer = control.event_producer()?;
        if producer >= ring::EVENT_ENTRIES {
            return Err(NicError::BadIndex {
                what: "event producer index",
                value: producer,
                allowed: format!("below {}", ring::EVENT_ENTRIES),
            });
        }
        if producer == self.consumer {
            return Ok(None);
        }
        // At most the whole ring: the producer was read once.
        while self.consumer != producer {
            self.note(control.events().first_word(self.consumer)?);
            self.consumer = ring::advance(self.consumer, 1, ring::EVENT_ENTRIES);
        }
        Ok(Some(self.consumer))
    }

    /// Whether the card has posted events that were not taken yet.
    pub fn pending(&self, control: &ControlMemory) -> Result<bool, NicError> {
        Ok(control.event_producer()? != self.consumer)
    }

    /// The number of answers, if the last one is of this kind: commands of queue mode are issued
    /// one at a time.
    pub fn answers_of(&self, event: QueueEvent) -> u64 {
        match self.queues {
            Some((last, ..)) if last == event => self.answers,
            _ => 0,
        }
    }

    fn note(&mut self, word: u32) {
        let Ok(event) = Event::unpack(word) else {
            match QueueEvent::unpack(word) {
                Some(answer) => {
                    self.queues = Some(answer);
                    self.answers += 1;
                }
                None => self.unknown += 1,
            }
            return;
        };
        match event.event {
            EventCode::FirmwareOperational => self.operational = true,
            EventCode::StatisticsUpdated => self.statistics += 1,
            EventCode::MulticastUpdated => self.multicast += 1,
            EventCode::JumboRingReset => self.jumbo_resets += 1,
            EventCode::LinkState => {
                self.link_changes += 1;
                match event.code {
                    LINK_GIGABIT_UP => self.link = Link::Gigabit,
                    LINK_10_100_UP => self.link = Link::Fast,
                    LINK_DOWN => self.link = Link::Down,
                    _ => self.unknown += 1,
                }
            }
            EventCode::Error => {
                self.errors += 1;
                if event.code != ERROR_BAD_CONFIGURATION {
                    self.refusals += 1;
                }
                self.last_error = Some(match event.code {
                    ERROR_INVALID_COMMAND => "invalid command",
                    ERROR_UNIMPLEMENTED_COMMAND => "command not implemented",
                    ERROR_BAD_CONFIGURATION => "bad configuration",
                    ERROR_FATAL => "the firmware stopped",
                    _ => "unknown error",
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dma::DmaMemory;
    use crate::nic::layout::ControlLayout;

    fn memory(events: &[[u32; 2]], producer: u32) -> ControlMemory {
        let layout = ControlLayout::new();
        let memory = DmaMemory::new(layout.bytes, 0).expect("some pages");
        let control = ControlMemory::new(layout, &memory);
        for (index, event) in (0..).zip(events) {
            control.events().write(index, event).expect("in the ring");
        }
        control.set_event_producer(producer).expect("in the memory");
        control
    }

    #[test]
    fn events_are_taken_once_and_in_order() {
        let events = [
            Event::new(EventCode::FirmwareOperational, 0).pack(),
            Event::new(EventCode::LinkState, LINK_GIGABIT_UP).pack(),
            Event::new(EventCode::LinkState, LINK_DOWN).pack(),
            Event::new(EventCode::Error, ERROR_UNIMPLEMENTED_COMMAND).pack(),
            [0xFF00_0000, 0],
        ];
        let control = memory(&events, 5);
        let mut log = EventLog::default();
        assert_eq!(log.take(&control).expect("a good index"), Some(5));
        assert!(log.operational);
        assert_eq!(log.link, Link::Down);
        assert_eq!(log.link_changes, 2);
        assert_eq!(log.last_error, Some("command not implemented"));
        assert_eq!(log.unknown, 1);
        assert_eq!(log.take(&control).expect("a good index"), None);
    }

    #[test]
    fn a_producer_outside_the_ring_is_refused() {
        let control = memory(&[], ring::EVENT_ENTRIES);
        assert!(matches!(
            EventLog::default().take(&control),
            Err(NicError::BadIndex { value: 256, .. })
        ));
    }

    #[test]
    fn indices_wrap_at_the_end_of_the_ring() {
        let control = memory(&[], 255);
        let mut log = EventLog::default();
        assert_eq!(log.take(&control).expect("a good index"), Some(255));
        assert_eq!(log.unknown, 255, "zero words are no events");
        control.set_event_producer(1).expect("in the memory");
        let up = Event::new(EventCode::LinkState, LINK_GIGABIT_UP).pack();
        control.events().write(255, &up).expect("in the ring");
        assert_eq!(log.take(&control).expect("a good index"), Some(1));
        assert_eq!(log.link, Link::Gigabit);
    }
}
