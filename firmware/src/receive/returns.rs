//! The return BDs of several frames, in one transfer.
//!
//! They are made in a ring in NIC memory beside the host's, so that those of consecutive
//! frames lie one behind the other in both:
//!
//! ```text
//!                   queued      producer
//!                     v            v
//! host's ring   ...+==+============+--------      entries
//! slots         ...+==+============+--------      modulo 64
//!   on their way or    | data is    |
//!   there              | queued     |
//! ```
//!
//! A slot is free again when its BD has been moved. 64 are enough: each BD that was not is
//! behind the data of its frame in the descriptor ring, which has 64, or in the transfer
//! that the channel works on, of [`FRAMES`](super::frame::FRAMES) at most; frames without
//! data are queued by themselves.

use crate::SideA;
use crate::dma::write;
use crate::layout::RETURN_SLOTS;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// Transfers for the return BDs of a run: one, or two round the end of the slots.
pub(super) const TRANSFERS: u32 = 2;

/// Queues the return BDs of the frames whose data is queued. There is room for
/// [`TRANSFERS`].
#[inline(always)]
pub(super) fn queue<B: Dispatch>(a: &mut SideA<B>) {
    while a.receive.return_queued != a.receive.return_producer {
        run(a);
    }
}

/// Queues those up to the end of the slots, which is that of the host's ring, too.
#[inline(always)]
fn run<B: Dispatch>(a: &mut SideA<B>) {
    let receive = &mut a.receive;
    let first = receive.return_queued;
    let count = receive.return_producer.wrapping_sub(first) & receive.return_mask;
    let to_end = RETURN_SLOTS - (first & (RETURN_SLOTS - 1));
    let count = if count < to_end { count } else { to_end };
    let transfer = Transfer {
        host: receive.returns.plus(first << 5),
        local: receive.slot(first),
        length: count << 5,
        state: a.states.words,
        note: write::QUIET,
    };
    receive.return_queued = (first + count) & receive.return_mask;
    a.write_ring.put(&mut a.bus, &transfer);
}
