//! The return BDs of several frames, in one transfer.
//!
//! They are made in a ring in NIC memory beside the host's, so that those of consecutive
//! frames lie one behind the other in both:
//!
//! ```text
//!                   queued      producer
//!                     v            v
//! host's ring   ...+==+============+--------      entries
//! slots         ...+==+============+--------      modulo 128
//!   on their way or    | data is    |
//!   there              | queued     |
//! ```
//!
//! A slot is free again when its BD has been moved. 128 are enough. A BD that was not is
//! behind the data of its frame in the descriptor ring, which has 64, or else that data is
//! done: then it is among the transfers of BDs that follow the data of one run, or it waits
//! for such a transfer. Neither are more than [`MANY`] and those of a run of
//! [`FRAMES`](super::frame::FRAMES). Frames without data are queued by themselves.

use super::frame::FRAMES;
use crate::SideA;
use crate::dma::write;
use crate::layout::RETURN_SLOTS;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

/// Transfers for the return BDs of a run and of those that waited: each for [`MANY`], but for
/// the last one, and for another one round the end of the slots.
pub(super) const TRANSFERS: u32 = (FRAMES + MANY - 1).div_ceil(MANY) + 1;

/// Return BDs of one transfer at most. Fewer wait for more, as long as the host is not
/// [told](super::index) of them: it looks at none before.
pub(super) const MANY: u32 = 8;
// See above: those of the ring, of one run, and that wait.
const _: () = assert!(64 + FRAMES + MANY <= RETURN_SLOTS);

/// Where the slot of an entry of the host's ring is among the slots, in bytes.
#[inline(always)]
pub(crate) const fn offset(entry: u32) -> u32 {
    (entry & (RETURN_SLOTS - 1)) << 5
}

/// Queues the return BDs of the frames whose data is queued, until fewer than `enough` are
/// left. There is room for [`TRANSFERS`].
#[inline(always)]
pub(super) fn queue<B: Dispatch>(a: &mut SideA<B>, enough: u32) {
    while a.receive.returns_waiting() >= enough {
        run(a);
    }
}

/// Queues some, up to the end of the slots, which is that of the host's ring, too.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn run<B: Dispatch>(a: &mut SideA<B>) {
    let receive = &mut a.receive;
    let first = receive.return_queued;
    let to_end = RETURN_SLOTS - (first & (RETURN_SLOTS - 1));
    let count = receive.returns_waiting().min(to_end).min(MANY);
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
