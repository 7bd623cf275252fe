//! What the library refuses, and what goes wrong on the card.

use host_interface::eudp::{
    DATAGRAM_MAX, DESCRIPTORS_MAX, INLINE_BYTES, LAYOUT, Outcome, SEGMENTS, SLOTS,
};
use thiserror::Error;

/// Why something of the broker's is not done.
#[derive(Debug, Error)]
pub enum EudpError<E: std::error::Error, M: std::error::Error> {
    /// The card is gone.
    #[error("the card: {0}")]
    Card(E),
    /// The memory is not what the card can reach.
    #[error("the memory: {0}")]
    Memory(M),
    /// The firmware has no endpoints.
    #[error("the firmware on the card has no endpoints")]
    NoEndpoints,
    /// The firmware has another layout of its block.
    #[error("the firmware's block has layout {0}, this host knows {LAYOUT}")]
    Layout(u32),
    /// The firmware does not answer.
    #[error("the firmware does not answer")]
    NoAnswer,
    /// The firmware refuses.
    #[error("the firmware refuses: {0:?}")]
    Refused(Outcome),
    /// There are as many as there can be.
    #[error("all {most} {what} are in use")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        most: u32,
    },
    /// An MTU that no endpoint has.
    #[error("a packet cannot have {0} bytes: 576 to 9000 are allowed")]
    Mtu(u32),
    /// A VLAN that there is not.
    #[error("there is no VLAN {0}: 1 to 4094 are allowed")]
    Vlan(u16),
    /// Queues of a length that there is not.
    #[error(
        "a queue cannot have {0} descriptors: it takes a power of two from {SLOTS} to {DESCRIPTORS_MAX}"
    )]
    Descriptors(u32),
    /// A pool of a size that there is not.
    #[error("a pool cannot have {0} buffers: 1 to {SLOTS} are allowed")]
    Buffers(u32),
    /// A pool's buffer is not lent.
    #[error("a pool's buffer: {0}")]
    Post(SendError<E>),
}

/// Why a descriptor is not posted.
#[derive(Debug, Error)]
pub enum SendError<E: std::error::Error> {
    /// The card is gone.
    #[error("the card: {0}")]
    Card(E),
    /// The next completion is for [`Pool::poll`](crate::Pool::poll).
    #[error("the next datagram is in the pool, which has to be asked for it")]
    Pooled,
    /// A datagram that no UDP can carry.
    #[error("a datagram cannot have {0} bytes: at most {DATAGRAM_MAX} are allowed")]
    TooLong(usize),
    /// A datagram of more than one packet, to where there may be no fragments.
    #[error("{bytes} bytes need fragments, which their destination excludes: {most} fit a packet")]
    NeedsFragments {
        /// Bytes of the datagram.
        bytes: usize,
        /// Bytes of the longest one that fits.
        most: usize,
    },
    /// More data than a descriptor has room for.
    #[error("{0} bytes do not fit the descriptor: it holds {INLINE_BYTES}")]
    TooLongInline(usize),
    /// More pieces than a descriptor has room for.
    #[error("{0} pieces do not fit the descriptor: it holds 1 to {SEGMENTS}")]
    Segments(usize),
    /// Memory for a datagram that the card may only read.
    #[error("the card may only read one of the regions: nothing can be received there")]
    ReadOnly,
    /// A piece that is not in its region, is empty, or is longer than a datagram.
    #[error("{bytes} bytes at {offset:#x} are not within the region of {there} bytes")]
    Outside {
        /// First byte.
        offset: u32,
        /// Bytes.
        bytes: u32,
        /// The region's.
        there: u32,
    },
}
