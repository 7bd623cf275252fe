//! Queue mode: received frames are sorted into one queue for each CPU of the host.
//!
//! "Packet classification in the NIC for improved SMP-based Internet servers" (KNET), section 3;
//! [`host_interface::queue`] is the interface. A frame is classified, takes a BD of its queue, and
//! its data goes to the host. The return BDs of a queue follow, several in one transfer, and its
//! status line by count or time:
//!
//! ```text
//!             classify        data, in the order of the wire     return BDs, queue by queue
//!   MAC ring ─────────► queue ─────────────────────────────► host
//!                         │ no BD, or return ring full: dropped and counted at once
//! ```
//!
//! So a queue with a slow thread delays no other queue and causes no PAUSE. None of this runs in
//! classic mode, except one test of a flag when frames have arrived.
//!
//! The code that processes a run of frames sorted by source address lies in CPU A's scratch pad,
//! where CPU B has its state: a debugger distinguishes the two CPUs by the addresses of their
//! code. All other code executes at most once in a run and lies in SRAM.
//!
//! | module | what |
//! | --- | --- |
//! | this one | a run of frames |
//! | [`state`] | all queues |
//! | [`queue`] | the rings of one queue |
//! | [`classify`] | from a frame to its queue |
//! | `fast_path` | frames that need no inspection |
//! | `verdicts` | which of the next frames are classified |
//! | `slow_path` | all others, and drops |
//! | `notify` | when a queue is reported |
//! | [`report`] | return BDs, status lines, polled marks, interrupts |
//! | [`open`] | validates the control block; opens and closes the queues |

pub mod classify;
mod fast_path;
mod notify;
pub mod open;
pub mod queue;
mod refused;
pub mod report;
mod slow_path;
pub mod state;
mod verdicts;

use super::returns::MANY;
use super::state::Receive;
use crate::io::IoA;
use crate::memory::layout::QUEUE_WINDOW;
use crate::memory::shared::QUEUE_MOVES;
use crate::memory::statistics::count;
use fast_path::{End, Run};
use host_interface::queue::{QueueCounter, RearmWord, block};
use notify::Notify;
use queue::Queue;
use report::send_returns;
pub use state::Queues;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Frames that are sorted in a run of the handler: more than in classic mode, so that there are
/// several for each queue.
const MOST: u32 = 48;

/// Receive Complete in queue mode: handles some frames.
#[inline(never)]
pub fn complete<B: Dispatch>(receive: &mut Receive, queues: &mut Queues, io: &mut IoA<B>) {
    // Return BDs that found no descriptor go first: there is room for as many more as one run
    // makes.
    if queues.stuck && !send_stuck(queues, io) {
        return;
    }
    let run = fast_path::run(receive, queues, io, MOST);
    let (count, touched) = if run.is(End::Done) {
        (run.count(), run.touched())
    } else {
        go_on(receive, queues, io, run)
    };
    receive.ring.give_back(&mut io.bus);
    queues.verdicts.share(io, count);
    let reports = finish(queues, io, touched);
    let counters = &mut receive.counters;
    counters.return_updates = counters.return_updates.wrapping_add(reports);
}

/// The same after a first run of the fast path that has not delivered all frames. Returns their
/// number, and the queues that got some.
#[inline(never)]
fn go_on<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    mut run: Run,
) -> (u32, u32) {
    let mut left = MOST;
    let mut touched = 0;
    loop {
        left -= run.count();
        touched |= run.touched();
        if run.is(End::Done) {
            break;
        }
        if run.is(End::Full) && !io.has_write_room(fast_path::TRANSFERS) {
            count!(io.bus, no_write_descriptors);
            break;
        }
        let found = queues.found;
        let slow = run.is(End::Slow)
            || run.is(End::Look) && {
                let queue = queues.table.get_mut(found.queue() as usize);
                !queue.is_some_and(|queue| queue.needs_look() && queue.look(&mut io.bus))
            };
        if slow {
            match slow_path::one(receive, queues, io, found.verdict()) {
                Some(queue) => touched |= queue,
                None => break,
            }
            queues.verdicts.released(1);
            left -= 1;
        }
        if left == 0 {
            break;
        }
        run = fast_path::run(receive, queues, io, left);
    }
    (MOST - left, touched)
}

/// Sends return BDs that found no descriptor; `false` if there is still none.
#[inline(never)]
fn send_stuck<B: Dispatch>(queues: &mut Queues, io: &mut IoA<B>) -> bool {
    for (queue, host) in queues.open_table() {
        queue.settle_now();
        if !send_returns(queue, *host, io, MANY) {
            return false;
        }
    }
    queues.stuck = false;
    true
}

/// Queues the return BDs, reports and fetches that follow a run in which the queues of `touched`
/// got frames. Gives the number of reports.
#[inline(always)]
fn finish<B: Dispatch>(queues: &mut Queues, io: &mut IoA<B>, touched: u32) -> u32 {
    let Queues {
        table,
        notify,
        returns,
        due,
        stuck,
        ..
    } = queues;
    let mut moved = false;
    let mut reports = 0;
    let mut left = touched;
    let mut number = 0;
    while left != 0 {
        while left & 1 == 0 {
            left >>= 1;
            number += 1;
        }
        // One index: a compiler would have an address for each array in the other turns, too.
        number = barrier(number);
        let at = number as usize;
        if let (Some(queue), Some(notify), Some(host)) =
            (table.get_mut(at), notify.get_mut(at), returns.get(at))
            && !leaves_for_later(queue, notify)
        {
            queue.settle();
            let bit = notify.judge(queue, io);
            if bit == 0 {
                *stuck |= !send_returns(queue, *host, io, MANY);
            } else if report::report_queue(queue, notify, *host, io) {
                *due &= !bit;
                reports += 1;
            } else {
                *due |= bit;
            }
            // Afterwards: the host waits for the report.
            moved |= queue.share(&io.me, &mut io.bus);
        }
        left >>= 1;
        number += 1;
    }
    if *due != 0 {
        report::soon(io);
    }
    if moved {
        ring_b(io);
    }
    reports
}

/// Whether a queue has few frames and is left for a later run, or for its time to be over. The slow
/// path settles a queue: frames that were settled and left count, too, as their slots are needed
/// again.
#[inline(always)]
fn leaves_for_later(queue: &Queue, notify: &Notify) -> bool {
    notify.is_armed() && queue.unsettled() < notify.batch && queue.waiting() < MANY
}

/// Rings CPU B, which checks how far it may fetch.
#[inline(never)]
fn ring_b<B: Dispatch>(io: &mut IoA<B>) {
    let moves = QUEUE_MOVES.get(&mut io.bus).wrapping_add(1);
    QUEUE_MOVES.set(&io.me, &mut io.bus, moves);
    io.ring_b();
}

/// The host wrote mailboxes of queues, a bit for each: buffer producers and re-arm words.
#[inline(never)]
pub fn mailboxes<B: Dispatch>(queues: &mut Queues, io: &mut IoA<B>, produced: u32, rearmed: u32) {
    let mut moved = false;
    for (number, queue) in (0..queues.open).zip(&mut queues.table) {
        let bit = 1 << number;
        if produced & bit != 0 {
            let producer = io.bus.load(mailbox(block::BUFFER_MAILBOX + number));
            if queue.produced(producer).is_err() {
                queue.count(&mut io.bus, QueueCounter::BadIndices);
            }
            moved |= queue.share(&io.me, &mut io.bus);
        }
        if rearmed & bit != 0 {
            let word = io.bus.load(mailbox(block::REARM_MAILBOX + number));
            let word = RearmWord::from_bits(word);
            let holds = queue.rearm(&mut io.bus, word);
            if holds == Ok(true) && !word.stay_polled() {
                queues.due |= bit;
            }
        }
    }
    if queues.due != 0 {
        report::soon(io);
    }
    if moved {
        ring_b(io);
    }
}

/// NIC address of the low word of a mailbox.
const fn mailbox(number: u32) -> u32 {
    tigon2_chip::memory::MAILBOXES + (number << 3) + 4
}

const _: () = {
    assert!(tigon2_chip::mailbox::BYTES == 1 << 3);
    // Return BDs that wait for others, those of a run, and those behind as many frames as the
    // write ring takes: no slot is used again before its BD is with the host.
    assert!(2 * MANY + MOST + 64 <= QUEUE_WINDOW);
};
