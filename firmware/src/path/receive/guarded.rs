//! Receives frames while extensions or endpoints want some of them.
//!
//! It works as [`complete`](super::handlers::complete) does but looks at each frame. Frames for
//! the host take the usual paths, in runs. A frame that somebody else wants ends the run and is
//! handed out; it stays the oldest frame until it is [let go](let_go), or [passed](Look::passed) to
//! the host.

use super::deliver::Accepted;
use super::fast_path::{self, End};
use super::frame::{CRC, HEADER, end_of};
use super::index::returned;
use super::state::Receive;
use super::{judge, returns, slow_path};
use crate::io::{IoA, filter};
use host_interface::bd::destination::MULTICAST;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::{Arriving, ReceivedFrame};

/// What came of looking.
#[derive(Clone, Copy, Debug)]
pub enum Next<W> {
    /// There is no frame that could be seen to now.
    Done,
    /// This one is wanted, by whom it says.
    Wanted(ReceivedFrame, W),
}

/// Who wants frames.
pub trait Guard {
    /// What tells most frames from those that somebody wants.
    type Key: Key;
    /// Whom it names.
    type Who;

    /// The key as it is now.
    fn key(&self) -> Self::Key;

    /// Who wants the frame at `start`, of `length` bytes without CRC. The receive buffer begins
    /// at `base`.
    fn find<B: Bus>(&self, bus: &mut B, start: u32, length: u32, base: u32) -> Option<Self::Who>;
}

/// All that is asked of most frames; few words, so that they stay in registers.
pub trait Key: Copy {
    /// Bit 0: whether somebody may want the frame at `start`.
    fn may_want<B: Bus>(self, bus: &mut B, start: u32) -> u32;
}

/// Where [`next`] goes on.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Start of a frame that is the host's, whoever may want it; 0 for none.
    pub passed: u32,
    /// The frame before the oldest one was wanted, so this one is likely to be.
    pub is_likely: bool,
}

impl Look {
    /// Nothing is known of the oldest frame.
    pub const NEW: Look = Look {
        passed: 0,
        is_likely: false,
    };
}

/// Delivers up to `left` frames until one is wanted. Bad frames and those of groups that the host
/// has not subscribed to are not asked for.
#[inline(always)]
pub fn next<B: Dispatch, G: Guard>(
    receive: &mut Receive,
    io: &mut IoA<B>,
    left: &mut u32,
    look: &mut Look,
    guard: &G,
) -> Next<G::Who> {
    while *left != 0 {
        if !look.is_likely && receive.wants | receive.untidy == 0 {
            let (key, passed) = (guard.key(), look.passed);
            let run = fast_path::run(receive, io, *left, |bus, start, _| {
                // The lowest bit of the first byte is that of a group.
                let looks = u32::from(bus.load_byte(start)) | key.may_want(bus, start);
                if looks & 1 == 0 {
                    return false;
                }
                rarely();
                start != passed
            });
            if run.count != 0 {
                look.passed = 0;
                *left -= run.count;
                returned(&mut receive.index, io, run.count, run.now);
            }
            match run.end {
                End::Done => return Next::Done,
                End::OtherLength(length) if receive.changes_ring(length) => continue,
                _ => {}
            }
        }
        let bus = &mut io.bus;
        let Some(frame) = receive.ring.oldest(bus) else {
            return Next::Done;
        };
        let likely = core::mem::take(&mut look.is_likely);
        if frame.errors == 0
            && frame.length >= HEADER + CRC
            && frame.start != look.passed
            && guard.key().may_want(bus, frame.start) & 1 != 0
            && filter::destination(bus, frame.start) != MULTICAST
        {
            if let Some(who) = guard.find(bus, frame.start, frame.length - CRC, receive.base) {
                look.is_likely = true;
                return Next::Wanted(frame, who);
            }
            look.passed = frame.start;
            continue;
        }
        if likely && receive.wants | receive.untidy == 0 {
            continue;
        }
        if !pass_on(receive, io) {
            return Next::Done;
        }
        look.passed = 0;
        *left -= 1;
    }
    Next::Done
}

/// Has the compiler lay out the other branch as the straight way.
#[cold]
#[inline(always)]
const fn rarely() {}

/// The oldest frame goes where it would have gone, by the way that takes all frames; `false` if
/// there is none, or if it has to wait.
#[inline(never)]
pub fn pass_on<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) -> bool {
    let bus = &mut io.bus;
    let Some(frame) = receive.ring.oldest(bus) else {
        return false;
    };
    let destination = filter::destination(bus, frame.start);
    let (id, flaws) = match judge::judge(receive, io, frame, destination) {
        Ok(judged) => judged,
        Err(reason) => {
            judge::drop_frame(receive, io, frame, reason);
            return true;
        }
    };
    let bus = &mut io.bus;
    if receive.rings.get_mut(id).is_empty(bus) {
        judge::wait_for_bds(receive, io, id);
        return false;
    }
    if receive.returns.is_full(bus) {
        judge::wait_for_returns(io);
        return false;
    }
    let accepted = Accepted {
        frame,
        length: frame.length.wrapping_sub(CRC),
        id,
        flaws,
        destination,
    };
    slow_path::deliver(receive, io, accepted)
}

/// The oldest frame, if there is any.
#[inline(always)]
pub fn oldest<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) -> Option<ReceivedFrame> {
    receive.ring.oldest(&mut io.bus)
}

/// Whether a frame arrives behind those that were let go.
#[inline(always)]
pub fn arriving<B: Dispatch>(receive: &Receive, io: &mut IoA<B>) -> Arriving {
    receive.ring.arriving(&mut io.bus)
}

/// Where the frame begins that arrives: behind the last one, as that one's descriptor says, or where
/// the buffer does if there was none.
#[inline(always)]
pub fn next_start<B: Dispatch>(receive: &Receive, io: &mut IoA<B>) -> u32 {
    let last = receive.ring.last(&mut io.bus);
    if last.length == 0 {
        return receive.base;
    }
    end_of(receive.base, &last)
}

/// Whether a frame is one without errors, of `least` bytes without CRC and more, for this card's own
/// address.
#[inline(always)]
pub fn is_own<B: Dispatch>(io: &mut IoA<B>, frame: &ReceivedFrame, least: u32) -> bool {
    frame.errors == 0
        && frame.length >= least + CRC
        && !filter::is_of_group(&mut io.bus, frame.start)
}

/// What follows frames of which none went to the host.
#[inline(always)]
pub fn finish_own<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    free_room(io);
    give_back(receive, io);
}

/// The oldest frame, this one, was seen to: its bytes are free when no older frame is being read
/// any more.
#[inline(always)]
pub fn let_go<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, frame: ReceivedFrame) {
    io.free_later(end_of(receive.base, &frame));
    receive.ring.release();
}

/// The oldest frame was seen to, and a transfer that is queued now frees its bytes, and all that are
/// to be freed.
#[inline(always)]
pub fn let_go_with_data<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    io.frees_with_data();
    receive.ring.release();
}

/// Whether a frame has ended behind those that were let go.
#[inline(always)]
pub fn has_more<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) -> bool {
    receive.ring.has_more(&mut io.bus)
}

/// Whether there is something to [settle](settle).
#[inline(always)]
pub fn is_unsettled<B: Dispatch>(receive: &Receive, io: &IoA<B>) -> bool {
    io.frees_later() || receive.returns.waiting() != 0
}

/// Returns the descriptors of the frames that were seen to.
#[inline(always)]
pub fn give_back<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    receive.ring.give_back(&mut io.bus);
}

/// What follows a run, wherever its frames went.
#[inline(always)]
pub fn finish<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    settle(receive, io);
    give_back(receive, io);
}

/// Frees the room of frames that no transfer frees, now or once older ones are written.
#[inline(always)]
fn free_room<B: Dispatch>(io: &mut IoA<B>) {
    if io.frees_later() {
        io.await_writes();
        io.free();
    }
}

/// Frees the room of a run's frames, and reports those that are the host's.
#[inline(always)]
pub fn settle<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    free_room(io);
    if receive.returns.waiting() != 0 {
        let enough = if receive.index.is_due() {
            1
        } else {
            returns::MANY
        };
        returns::queue(&mut receive.returns, io, enough);
    }
}
