//! Message rings: how applications and handlers exchange messages.
//!
//! Paper, section 3.2. An *endpoint* is one end that messages come from and go to. Each of the
//! [`ENDPOINTS`] has a piece of the host's memory with two rings of messages and, behind them,
//! data that messages refer to (bulk messages):
//!
//! ```text
//!   +0x000  head, 256 bytes                                HeadWord
//!   +0x100  ring to the card: messages of 256 bytes        slot = serial - 1, modulo the slots
//!   +...    ring from the card: the same
//!   +...    bulk data
//!
//!   message  +0    60 words of arguments
//!            +240  header                                  HeaderWord
//! ```
//!
//! Words are words of value in all of it, bulk data are bytes. The serial, counted from 1 on, is a
//! message's last word: it is there when all of it is.
//!
//! An endpoint's doorbell is a halfword of a mailbox that four endpoints share: how many messages
//! it has written in bits 7:0, how many of the card's it has taken in bits 15:8, both modulo 256.
//! The process that drives the card writes all mailboxes, so each word stands for itself and one
//! that is overwritten before the firmware looks is not missed.
//!
//! ```text
//!   mailbox FIRST_MAILBOX + n   high word                   low word, which rings
//!                               endpoint 4n │ endpoint 4n+1  endpoint 4n+2 │ endpoint 4n+3
//! ```
//!
//! Credits are what the rings have room for. A host that claims more messages than its ring has
//! slots is beyond its credit: nothing is fetched, and it is counted. A handler's message to an
//! endpoint without room is refused when it is asked for.
//!
//! On the wire a message is a frame of [`ETHER_TYPE`]:
//!
//! ```text
//!   +0   destination, source, EtherType
//!   +14  words of arguments, in 16 bits
//!   +16  domain in bits 15:8, handler in bits 7:0 of a word
//!   +20  arguments
//! ```

use super::{ARGUMENT_WORDS, DOMAINS, HANDLERS};
use tigon2_chip::mailbox::COUNT;
use tigon2_chip::table;

/// Endpoints in the host's memory.
pub const ENDPOINTS: u32 = 64;
/// Endpoints that share a mailbox.
pub const PER_MAILBOX: u32 = 4;
/// Mailboxes of endpoints.
pub const MAILBOXES: u32 = ENDPOINTS / PER_MAILBOX;
/// The first one of them.
pub const FIRST_MAILBOX: u32 = 8;
/// Slots of a ring, at least; a power of two.
pub const SLOTS_LEAST: u32 = 4;
/// Slots of a ring, at most: half of what a doorbell counts to.
pub const SLOTS_MOST: u32 = 64;
/// Bytes of a message.
pub const MESSAGE_BYTES: u32 = 256;
/// Bytes in front of the rings.
pub const HEAD_BYTES: u32 = 256;
/// Bytes of an endpoint's row in the SPINE block.
pub const ENDPOINT_BYTES: u32 = 64;
/// Bytes of bulk data that a message refers to, at most: what a slot of the pool holds.
pub const BULK_MOST: u32 = 1536;
/// The EtherType of messages: the second one for local experiments.
pub const ETHER_TYPE: u16 = 0x88B6;
/// Bytes of a message's frame in front of its arguments.
pub const FRAME_HEADER: u32 = 20;

/// Where a message comes from, as its handler sees it: the wire.
pub const WIRE: u32 = 0;
/// The process that drives the card: endpoint 0 of the rings. Endpoint n has the number n + 1.
pub const DRIVER: u32 = 1;
/// The handler's own domain.
pub const ITSELF: u32 = 0x100;
/// The other card on the bus: [`super::peer`].
pub const PEER: u32 = 0x101;

table! {
    /// Whom a handler lets call it: bits of a word.
    pub enum Caller: u32 {
        /// The process that drives the card.
        Driver = 1,
        /// Applications with an endpoint, as far as that was granted the handler.
        Application = 2,
        /// The wire.
        Wire = 4,
        /// Handlers of its own domain.
        Itself = 8,
        /// Handlers of the other card on the bus.
        Peer = 16,
    }
}

/// In place of an offset of data, in a message to the driver: it came to the domain and handler
/// that it names, whose run was cut off. Its sender stands in the lower bits.
pub const CUT_MESSAGE: u32 = 1 << 31;

/// Whom handlers let call them that have not said it.
pub const DEFAULT_CALLERS: u32 = Caller::Driver as u32 | Caller::Itself as u32;

table! {
    /// A word of an endpoint's row, by its offset.
    pub enum EndpointWord: u32 {
        /// By the host: host address of its memory, high word.
        High = 0x00,
        /// Low word.
        Low = 0x04,
        /// Slots of each ring, a power of two.
        Slots = 0x08,
        /// Handlers that it may call, a bit for each: that of the domain's number times 8, and the
        /// handler's.
        Handlers = 0x0C,
        /// Bytes of bulk data behind its rings.
        Bulk = 0x10,
        /// Whether an interrupt follows a message from the card.
        Interrupts = 0x14,
        /// By the firmware: 1 while it is open.
        Open = 0x18,
        /// Messages that were fetched; wraps.
        Fetched = 0x1C,
        /// Messages that ran a handler to its end, or [were passed](super::WhenCut::PassMessage) to
        /// the driver; wraps.
        Delivered = 0x20,
        /// Messages to it; wraps.
        Sent = 0x24,
        /// Messages that were dropped, by [`Dropped`], from this word on.
        Dropped = 0x28,
    }
}

table! {
    /// Why a message was dropped: the number of its count.
    pub enum Dropped: u32 {
        /// Its header is not that of the next message, or says more than there is.
        Malformed = 0,
        /// There is no such handler, or its domain is suspended.
        NoHandler = 1,
        /// The endpoint may not call the handler, or the handler takes no call of that kind.
        NotAllowed = 2,
        /// The doorbell says more than the ring holds.
        BeyondCredit = 3,
        /// The handler was cut off.
        Cut = 4,
    }
}

table! {
    /// A word of a message's header, by its offset in the message.
    pub enum HeaderWord: u32 {
        /// Words of arguments in bits 31:16; domain in bits 15:8 and handler in bits 7:0, those
        /// that it is for or that it comes from.
        Shape = 240,
        /// Offset of its data behind the rings, a multiple of 8.
        BulkOffset = 244,
        /// Bytes of that; 0 for a small message.
        BulkBytes = 248,
        /// Its number, from 1 on.
        Serial = 252,
    }
}

table! {
    /// A word of an endpoint's head, by its offset.
    pub enum HeadWord: u32 {
        /// By the card: messages that were fetched; wraps.
        Fetched = 0x00,
        /// By the application: messages that it has written; wraps.
        Produced = 0x40,
        /// By the application: the card's messages that it has taken; wraps.
        Taken = 0x44,
    }
}

/// Where an endpoint's halfword is: the mailbox's number, whether in its low word, and the shift.
pub const fn doorbell(endpoint: u32) -> (u32, bool, u32) {
    let place = endpoint & (PER_MAILBOX - 1);
    let mailbox = FIRST_MAILBOX + endpoint / PER_MAILBOX;
    (mailbox, place >= 2, (1 - (place & 1)) << 4)
}

/// Offset of the ring from the card in an endpoint's memory.
pub const fn from_card(slots: u32) -> u32 {
    HEAD_BYTES + slots * MESSAGE_BYTES
}

/// Offset of the bulk data in an endpoint's memory.
pub const fn bulk(slots: u32) -> u32 {
    HEAD_BYTES + 2 * slots * MESSAGE_BYTES
}

const _: () = {
    assert!(HeaderWord::Shape as u32 == 4 * ARGUMENT_WORDS);
    assert!(HeaderWord::Serial as u32 + 4 == MESSAGE_BYTES);
    assert!(FIRST_MAILBOX + MAILBOXES <= super::MAILBOX && super::MAILBOX < COUNT);
    assert!(
        DOMAINS * HANDLERS == 32,
        "EndpointWord::Handlers has a bit for each"
    );
    assert!(EndpointWord::Dropped as u32 + 4 * Dropped::ALL.len() as u32 <= ENDPOINT_BYTES);
    assert!(SLOTS_MOST * 2 <= 256);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doorbells_are_apart() {
        let mut seen = Vec::new();
        for endpoint in 0..ENDPOINTS {
            let place = doorbell(endpoint);
            assert!(!seen.contains(&place));
            seen.push(place);
        }
        assert_eq!(doorbell(0), (8, false, 16));
        assert_eq!(doorbell(3), (8, true, 0));
        assert_eq!(doorbell(63), (23, true, 0));
    }
}
