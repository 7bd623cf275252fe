//! Events: two words each, NIC to host, in a ring of 256 entries.
//!
//! Host/NIC software interface, "Events". First word: bits 31:24 event, 23:12 code, 11:0
//! index; the second word is reserved.

tigon2_chip::table! {
    /// An event, bits 31:24.
    pub enum EventCode: u8 {
        /// 0x01 the firmware runs.
        FirmwareOperational = 0x01,
        /// 0x04 the statistics were written to the host.
        StatisticsUpdated = 0x04,
        /// 0x06 the link changed: [`LINK_GIGABIT_UP`], [`LINK_DOWN`], [`LINK_10_100_UP`].
        LinkState = 0x06,
        /// 0x07 an error: [`ERROR_INVALID_COMMAND`] and the like.
        Error = 0x07,
        /// 0x08 the multicast list changed: [`MULTICAST_ADDED`], [`MULTICAST_DELETED`].
        MulticastUpdated = 0x08,
        /// 0x09 all jumbo buffers were given back.
        JumboRingReset = 0x09,
    }
}

/// Code of [`EventCode::LinkState`]: a gigabit link is up.
pub const LINK_GIGABIT_UP: u16 = 1;
/// Code of [`EventCode::LinkState`]: no link.
pub const LINK_DOWN: u16 = 2;
/// Code of [`EventCode::LinkState`]: a 10 or 100 Mb/s link is up.
pub const LINK_10_100_UP: u16 = 3;
/// Code of [`EventCode::Error`]: no such command.
pub const ERROR_INVALID_COMMAND: u16 = 1;
/// Code of [`EventCode::Error`]: the command is not implemented.
pub const ERROR_UNIMPLEMENTED_COMMAND: u16 = 2;
/// Code of [`EventCode::Error`]: the configuration is bad.
pub const ERROR_BAD_CONFIGURATION: u16 = 3;
/// Code of [`EventCode::Error`]: the firmware stopped. This project's own, with the fatal code as
/// the event's index; other drivers report an unknown error.
pub const ERROR_FATAL: u16 = 0xFFF;
/// Code of [`EventCode::MulticastUpdated`]: an address was added.
pub const MULTICAST_ADDED: u16 = 1;
/// Code of [`EventCode::MulticastUpdated`]: an address was deleted.
pub const MULTICAST_DELETED: u16 = 2;

/// An event with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub event: EventCode,
    /// 12 bits that depend on the event.
    pub code: u16,
    /// 12 bits that depend on the event.
    pub index: u16,
}

impl Event {
    /// An event with a code and index 0.
    pub const fn new(event: EventCode, code: u16) -> Self {
        Event {
            event,
            code,
            index: 0,
        }
    }

    /// The two words of the ring entry; `code` and `index` are truncated to 12 bits.
    pub const fn pack(self) -> [u32; 2] {
        let word = (self.event as u32) << 24
            | (self.code as u32 & 0xFFF) << 12
            | self.index as u32 & 0xFFF;
        [word, 0]
    }

    /// The event in the first word of a ring entry.
    ///
    /// # Errors
    /// [`UnknownEvent`] if bits 31:24 name no event.
    pub const fn unpack(word: u32) -> Result<Event, UnknownEvent> {
        match EventCode::from_number(word >> 24) {
            Some(event) => Ok(Event {
                event,
                code: (word >> 12 & 0xFFF) as u16,
                index: (word & 0xFFF) as u16,
            }),
            None => Err(UnknownEvent(word)),
        }
    }
}

/// An event word that names no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event word {0:#010x} names no event")]
pub struct UnknownEvent(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    /// Hardware reference 12: event = {code8<<24 | sub12<<12 | idx12, 0} (C).
    #[test]
    fn an_event_is_a_word_and_a_zero() {
        assert_eq!(
            Event::new(EventCode::FirmwareOperational, 0).pack(),
            [0x0100_0000, 0]
        );
        let up = Event::new(EventCode::LinkState, LINK_GIGABIT_UP);
        assert_eq!(up.pack(), [0x0600_1000, 0]);
        assert_eq!(Event::unpack(up.pack()[0]), Ok(up));
    }

    #[test]
    fn every_number_is_either_an_event_or_refused() {
        let mut known = Vec::new();
        for number in 0..=255u8 {
            let word = u32::from(number) << 24;
            match Event::unpack(word) {
                Ok(event) => known.push(event.event),
                Err(error) => assert_eq!(error, UnknownEvent(word)),
            }
        }
        assert_eq!(known, EventCode::ALL);
    }
}
