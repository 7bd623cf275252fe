//! The peer page: how two cards on one PCI bus hand frames and messages to each other without the
//! host.
//!
//! SPINE paper, section 5.2. The host tells each card where the other one's BAR 0 and peer page are,
//! and leases it the other one's window: from then on the peer alone moves `R[68]`, and the host
//! itself has its [requests](super::access). The host leases both windows before it opens one card,
//! and closes both before it opens one again or takes a window back. A card *grants*
//! rooms in its transmit buffer, each a page of the window, and numbers them; the other card fills
//! them in their order and rings. No CPU copies a frame.
//!
//! ```text
//!   card that grants                                  card that sends
//!   rooms of the transmit buffer ── numbers, DMA ──►  granted rooms, in its peer page
//!        ▲                                             │
//!        └── R[68] = room; frame, trailer; mailbox ◄── DMA from its receive buffer
//!   MAC ring ──► wire
//! ```
//!
//! A room ends with its trailer: the room's number in bits 31:16, the frame's bytes in bits 15:0. The
//! frame lies in front of it, 8-byte aligned, so the trailer is the last word of the page or the one
//! before it, and then the last one is 0. Rooms that were not filled when the card has frames of its own become void; then the
//! number of the first one that counts goes up.
//!
//! Frames may also go by a ring in host memory ([`RING`]): the other card's send ring, which its
//! driver lends. A frame is written into the buffer of the next BD, then the BD's length and flags,
//! then the other card's mailbox. The other card takes it as it takes its driver's frames, and writes
//! its send consumer index into this page. So its firmware knows nothing of it, and R[68] stays at the
//! page.
//!
//! A message goes into a slot of the other card's page, by the window, too. Its serial says which
//! slot, and that all of it is there. The other card writes back how many it has taken; so many more
//! may follow.
//!
//! ```text
//! +0x000  words of the page                       PeerWord
//! +0x040  by the peer: first number that counts, a free word, ROOMS granted rooms
//! +0x0A0  the same for the peer, as it gets it
//! +0x100  words on their way to the peer
//! +0x140  the ring                                RingWord
//! +0x180  leases                                  super::lease
//! +0x400  by the peer: MESSAGES messages of 256 bytes, as in rings; with a ring, BDs and producer
//!         indices on their way
//! ```

use super::rings::MESSAGE_BYTES;
use tigon2_chip::table;

/// Bytes of the page, and of a room: what the window shows.
pub const PAGE_BYTES: u32 = 0x800;
/// Rooms that are granted at a time, at most.
pub const ROOMS: u32 = 16;
/// The mailbox that says that rooms were filled, or that there is a message.
pub const MAILBOX: u32 = 28;
/// Longest frame without CRC that a room takes.
pub const LONGEST: u32 = 1536;

/// Offset of what the peer has granted.
pub const GRANTED: u32 = 0x40;
/// Offset of the granted rooms in that.
pub const ROOM_WORDS: u32 = 8;
/// Bytes of it.
pub const GRANT_BYTES: u32 = ROOM_WORDS + 4 * ROOMS;
/// Offset of what this card has granted.
pub const OWN: u32 = 0xA0;
/// Offset of a word behind that: 1 while the card lends its transmit path to the peer.
pub const LENT: u32 = OWN + GRANT_BYTES;
/// Offset of words on their way, one for each room.
pub const STAGING: u32 = 0x100;

/// Offset of the messages that the peer sends.
pub const MESSAGES_AT: u32 = 0x400;
/// Messages of a card's that the other one has not taken, at most: a power of two.
pub const MESSAGES: u32 = 4;

/// This card grants rooms to the peer.
pub const GRANTS: u32 = 1;
/// This card sends frames to the peer.
pub const SENDS: u32 = 2;
/// The cards exchange messages. Where this ends, the firmware forgets those that are under way.
pub const EXCHANGES: u32 = 4;

/// With [`SENDS`], and without [`EXCHANGES`]: frames go by a ring in host memory, which [`RingWord`]
/// describes.
pub const RING: u32 = 8;

/// Offset of the words of the ring.
pub const RING_WORDS: u32 = 0x140;
/// Frames by the ring that are on their way, at most: a power of two.
pub const RING_STAGED: u32 = 32;
/// Offset of the second halves of their BDs: the first halves have the buffers' addresses.
pub const RING_BDS: u32 = 0x400;
/// Offset of the producer indices behind them, a word each.
pub const RING_PRODUCERS: u32 = RING_BDS + 8 * RING_STAGED;

table! {
    /// A word of the ring, by its offset from [`RING_WORDS`].
    pub enum RingWord: u32 {
        /// By the host: address on the bus of its BDs, upper half.
        BdsHigh = 0x00,
        /// Lower half.
        BdsLow = 0x04,
        /// By the host: address on the bus of the first BD's buffer, upper half. The others follow.
        BuffersHigh = 0x08,
        /// Lower half.
        BuffersLow = 0x0C,
        /// By the host: how many BDs there are, a power of two.
        Entries = 0x10,
        /// By the host: the bytes of a buffer are 1 shifted by so many.
        Shift = 0x14,
        /// The index behind the last BD that was written.
        Producer = 0x18,
    }
}

table! {
    /// A word of the page, by its offset.
    pub enum PeerWord: u32 {
        /// By the host: address on the bus of the other card's BAR 0, upper half.
        BarHigh = 0x00,
        /// Lower half.
        BarLow = 0x04,
        /// By the host: NIC address of its peer page.
        Page = 0x08,
        /// By the host: [`GRANTS`], [`SENDS`], [`EXCHANGES`]; 0 closes.
        Roles = 0x0C,
        /// Frames that were handed to the peer.
        Sent = 0x10,
        /// Frames that were dropped because their room became void.
        NoRoom = 0x14,
        /// Frames of the peer's that the MAC was given.
        Taken = 0x18,
        /// Rooms that became void before they were filled.
        Void = 0x1C,
        /// The number of the next room to fill.
        Next = 0x20,
        /// Messages that were sent to the peer; wraps.
        MessagesSent = 0x24,
        /// By the peer: those of them that it has taken; wraps.
        MessagesAcknowledged = 0x28,
        /// Messages of the peer's that were taken; wraps.
        MessagesTaken = 0x2C,
        /// Those of them that the peer was told of; wraps.
        MessagesTold = 0x30,
        /// Messages of the peer's that ran no handler to its end; wraps.
        MessagesDropped = 0x34,
        /// By the peer: its send consumer index, and another word.
        RingConsumer = 0x38,
    }
}

/// What stands in the list of granted rooms for a room: the page's address, and the lower bits of
/// its number; never 0.
#[inline(always)]
pub const fn granted(page: u32, number: u32) -> u32 {
    page | NUMBERED | number & (NUMBERED - 1)
}

/// The page of such a word, if it is that of a number.
#[inline(always)]
pub const fn room(word: u32, number: u32) -> Option<u32> {
    if word & (PAGE_BYTES - 1) == granted(0, number) {
        Some(word & !(PAGE_BYTES - 1))
    } else {
        None
    }
}

/// The trailer behind a frame in a room.
#[inline(always)]
pub const fn trailer(number: u32, bytes: u32) -> u32 {
    number << 16 | bytes
}

/// Offset in a room of the trailer behind `bytes`, a multiple of 4, so that they begin at a multiple
/// of 8.
#[inline(always)]
pub const fn trailer_at(bytes: u32) -> u32 {
    (PAGE_BYTES - 8) + (bytes & 4)
}

/// Offset in the page of the slot of the message with a serial.
#[inline(always)]
pub const fn message_at(serial: u32) -> u32 {
    MESSAGES_AT + ((serial & (MESSAGES - 1)) << MESSAGE_BYTES.trailing_zeros())
}

const NUMBERED: u32 = 0x400;

const _: () = {
    assert!(GRANTED + GRANT_BYTES <= OWN && LENT + 4 <= STAGING);
    assert!(ROOMS.is_power_of_two() && STAGING + 4 * ROOMS <= PAGE_BYTES);
    assert!(MESSAGES.is_power_of_two() && MESSAGES_AT + MESSAGES * MESSAGE_BYTES <= PAGE_BYTES);
    assert!(LONGEST + 8 <= PAGE_BYTES && NUMBERED * 2 == PAGE_BYTES);
    assert!(STAGING + 4 * ROOMS <= RING_WORDS);
    assert!(RING_STAGED.is_power_of_two() && RING_PRODUCERS + 4 * RING_STAGED <= PAGE_BYTES);
    assert!(PeerWord::RingConsumer as u32 + 8 <= GRANTED);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_known_by_their_numbers() {
        let word = granted(0x14_0800, 0x1_0005);
        assert_eq!(room(word, 5), Some(0x14_0800));
        assert_eq!(room(word, 6), None);
        assert_eq!(room(0, 0), None);
        for bytes in (60..=LONGEST).map(|bytes| bytes.next_multiple_of(4)) {
            assert_eq!((trailer_at(bytes) - bytes) % 8, 0);
        }
    }
}
