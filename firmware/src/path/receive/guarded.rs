//! Frames among which somebody else than the host wants some.
//!
//! As [`frame::complete`](super::frame::complete), with a look at each frame: what nobody wants
//! goes the ways that it always goes, in runs; what somebody wants ends the run and is handed
//! out. It stays the oldest frame until it is [let go](let_go) or [passed on](pass_on).

use super::deliver::Accepted;
use super::fast_path::{self, End};
use super::frame::{self, CRC, HEADER, end_of};
use super::index::returned;
use super::{Receive, returns, slow_path};
use crate::io::{IoA, filter};
use host_interface::bd::destination::MULTICAST;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// What came of looking.
#[derive(Clone, Copy, Debug)]
pub enum Next<W> {
    /// There is no frame that could be seen to now.
    Done,
    /// This one is wanted, by whom it says.
    Wanted(ReceivedFrame, W),
}

/// Delivers up to `left` frames until one is wanted: `find` is asked with the start of a frame
/// and its length without CRC. Bad frames and those of groups that the host has not subscribed to
/// are not asked for.
#[inline(always)]
pub fn next<B: Dispatch, W>(
    receive: &mut Receive,
    io: &mut IoA<B>,
    left: &mut u32,
    find: impl Fn(&mut B, u32, u32) -> Option<W>,
) -> Next<W> {
    while *left != 0 {
        if receive.wants | receive.untidy == 0 {
            let run = fast_path::run(receive, io, *left, |bus, start, length| {
                find(bus, start, length).is_some()
            });
            if run.count != 0 {
                *left -= run.count;
                returned(receive, io, run.count, run.now);
            }
            match run.end {
                End::Done => return Next::Done,
                End::OtherLength(length) if receive.changes_ring(length) => continue,
                _ => {}
            }
        }
        let bus = &mut io.bus;
        if let Some(frame) = receive.ring.oldest(bus)
            && frame.errors == 0
            && frame.length >= HEADER + CRC
            && filter::destination(bus, frame.start) != MULTICAST
            && let Some(wanted) = find(bus, frame.start, frame.length - CRC)
        {
            return Next::Wanted(frame, wanted);
        }
        if !pass_on(receive, io) {
            return Next::Done;
        }
        *left -= 1;
    }
    Next::Done
}

/// The oldest frame goes where it would have gone, by the way that takes all frames; `false` if
/// there is none, or if it has to wait.
#[inline(never)]
pub fn pass_on<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) -> bool {
    let bus = &mut io.bus;
    let Some(frame) = receive.ring.oldest(bus) else {
        return false;
    };
    let destination = filter::destination(bus, frame.start);
    let (id, flaws) = match frame::judge(receive, io, frame, destination) {
        Ok(judged) => judged,
        Err(reason) => {
            frame::drop(receive, io, frame, reason);
            return true;
        }
    };
    let bus = &mut io.bus;
    if receive.rings.get_mut(id).is_empty(bus) {
        frame::wait_for_bds(receive, io, id);
        return false;
    }
    if receive.returns.is_full(bus) {
        frame::wait_for_returns(io);
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

/// The oldest frame, this one, was seen to: its bytes are free when no older frame is being read
/// any more.
#[inline(always)]
pub fn let_go<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, frame: ReceivedFrame) {
    io.free_later(end_of(receive.base, &frame));
    receive.ring.release();
    io.await_writes();
    io.free();
}

/// What follows a run, wherever its frames went.
#[inline(always)]
pub fn finish<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>) {
    let enough = if receive.index.is_due() {
        1
    } else {
        returns::MANY
    };
    returns::queue(receive, io, enough);
    receive.ring.give_back(&mut io.bus);
}
