//! What passes between a queue and its thread: the status line and the re-arm word.
//!
//! ```text
//!   card:  frame for an armed queue ──► polled; status line; interrupt
//!   host:  thread polls up to the producer, finds no more
//!          re-arm = consumer ─────────► armed; if the queue holds more: interrupt at once
//! ```
//!
//! Whether the queue was empty is decided by the card, which knows what it has handed over:
//! nothing can be lost between "empty" and "re-armed".

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A queue's status line: 16 bytes of host memory at a multiple of 16, so that they share a
/// page and one transfer. Written by the card alone, before the interrupt.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StatusLine {
    /// Producer of the return ring.
    pub producer: u32,
    /// Interrupts raised for this queue; wraps. The service routine compares it with what it
    /// saw before.
    pub interrupts: u32,
    /// Zero.
    pub reserved: [u32; 2],
}

/// Bytes of a status line, and what its address is a multiple of.
pub const STATUS_BYTES: usize = 16;

/// What the host writes into a queue's re-arm mailbox.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct RearmWord {
    /// bits 15:0: index up to which the thread has taken frames off the return ring.
    pub consumer: u16,
    #[bits(15)]
    __: u16,
    /// bit 31: the thread goes on polling; only the index counts.
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
