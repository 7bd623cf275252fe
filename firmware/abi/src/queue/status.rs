//! Between a queue and its thread: the status line and the re-arm word.
//!
//! ```text
//!   card:  frame for an armed queue ──► polled; status line; interrupt
//!   host:  thread polls up to the producer, finds no more
//!          re-arm = consumer ─────────► armed; if the queue holds more: interrupt at once
//! ```
//!
//! The card decides whether the queue was empty, because it knows what it has delivered: no frame
//! is lost between "empty" and "re-armed".

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A queue's status line: 16 bytes of host memory at a multiple of 16, so that one page holds it
/// and one transfer writes it. Only the card writes it, before the interrupt.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StatusLine {
    /// Producer of the return ring.
    pub producer: u32,
    /// Interrupts raised for this queue; wraps. The service routine compares it with its last
    /// value.
    pub interrupts: u32,
    /// Zero.
    pub reserved: [u32; 2],
}

/// Bytes and alignment of a status line.
pub const STATUS_BYTES: usize = 16;

/// What the host writes into a queue's re-arm mailbox.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RearmWord {
    /// bits 15:0: index up to which the thread has taken frames from the return ring.
    pub consumer: u16,
    #[bits(15)]
    __: u16,
    /// bit 31: the thread continues to poll; only the index is used.
    pub stay_polled: bool,
}

const _: () = assert!(size_of::<StatusLine>() == STATUS_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn words_of_the_host_are_where_the_card_writes_them() {
        assert_eq!(offset_of!(StatusLine, producer), 0);
        assert_eq!(offset_of!(StatusLine, interrupts), 4);
        let poll = RearmWord::new().with_consumer(0x1FF).with_stay_polled(true);
        assert_eq!(poll.into_bits(), 0x8000_01FF);
        assert_eq!(RearmWord::new().with_consumer(7).into_bits(), 7);
    }
}
