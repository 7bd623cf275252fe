//! Verdicts: the queue and the hash of a received frame, found before it is delivered.
//!
//! Both CPUs make them, each by its own classifier and [cache of flows](super::flow_cache), and
//! leave them in the ring [`VERDICTS`](super::layout::VERDICTS), one for each descriptor of the
//! MAC:
//!
//! ```text
//!   +0  type of hash, bits 31:24 | queue, 23:16 | 0      all ones: the frame has none
//!   +4  hash
//! ```
//!
//! CPU A may claim a frame that CPU B is just looking at. Both verdicts are the same then, unless
//! CPU B leaves the frame to CPU A: that changes the first word alone, and CPU A classifies the
//! frame once more. A hash of 0 beside it would fall into CPU A's verdict.

use super::flow_cache::{View, look_up};
use super::layout::{HASH_TABLES, VERDICTS, verdict_offset};
use flow_classify::classifier::{Classifier, LEAST, Verdict};
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::mac::ReceivedView;

/// Bytes of the CRC.
const CRC: u32 = 4;
/// How far behind the start of a frame what is looked at reaches.
const REACH: u32 = 64;
/// The first word of a frame without a verdict; the second one means nothing.
pub const NONE: u32 = u32::MAX;

/// Length without CRC of the frame at a position, which [`View::start`] gets; `None` if it has
/// errors, is too short or does not lie in one piece.
#[inline(always)]
pub fn straight<B: Bus>(
    frames: &ReceivedView,
    position: u32,
    view: &mut View<'_, B>,
) -> Option<u32> {
    let frame = frames.at(view.bus, position);
    view.start = frame.start;
    // Errors make it longer than any frame.
    let length = (frame.errors << 16 | frame.length).wrapping_sub(CRC);
    let whole = frame.start + (REACH - 1) < PACKET_MEMORY_END;
    (length.wrapping_sub(LEAST) >> 15 == 0 && whole).then_some(length)
}

/// Leaves the verdict on the frame at a position, if `find` has one for its length.
#[inline(always)]
pub fn judge<B: Bus>(
    frames: &ReceivedView,
    position: u32,
    view: &mut View<'_, B>,
    find: impl FnOnce(&mut View<'_, B>, u32) -> Option<Verdict>,
) -> bool {
    let Some(length) = straight(frames, position, view) else {
        return false;
    };
    let Some(verdict) = find(view, length) else {
        return false;
    };
    let kind = (verdict.hash_type as u32) << 24 | verdict.queue << 16;
    leave(position, view, kind, verdict.hash);
    true
}

/// Leaves the verdict on the frame at a position, which is not in the cache of flows; `false` if
/// it has none.
#[inline(always)]
pub fn judge_new<B: Bus>(
    frames: &ReceivedView,
    position: u32,
    classifier: &Classifier,
    view: &mut View<'_, B>,
) -> bool {
    judge(frames, position, view, |view, length| {
        look_up(classifier, view, length)
    })
}

/// Leaves two words as the verdict on the frame at a position.
#[inline(always)]
pub fn leave<B: Bus>(position: u32, view: &mut View<'_, B>, kind: u32, hash: u32) {
    let at = place(position, view);
    view.bus.store(at + 4, hash);
    view.bus.store(at, kind);
}

/// Leaves the frame at a position to the slow path.
#[inline(always)]
pub fn leave_none<B: Bus>(position: u32, view: &mut View<'_, B>) {
    let at = place(position, view);
    view.bus.store(at, NONE);
}

/// NIC address of the verdict on the frame at a position.
#[inline(always)]
fn place<B: Bus>(position: u32, view: &View<'_, B>) -> u32 {
    view.rows + verdict_offset(ReceivedView::offset(position)) - (HASH_TABLES - VERDICTS)
}
