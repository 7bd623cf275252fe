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
//! | this one | all queues, and a run of frames |
//! | [`queue`] | the rings of one queue |
//! | [`classify`] | from a frame to its queue |
//! | `fast_path` | frames that need no inspection |
//! | `verdicts` | which of the next frames are classified |
//! | `slow_path` | all others, and drops |
//! | [`report`] | status lines, polled marks, interrupts |
//! | [`open`] | validates the control block; opens and closes the queues |

pub mod classify;
mod fast_path;
pub mod open;
pub mod queue;
pub mod report;
mod slow_path;
mod verdicts;

use super::Receive;
use super::returns::MANY;
use crate::io::IoA;
use crate::memory::layout::{QUEUE_RINGS, QUEUE_SHIFT, QUEUE_WINDOW, QUEUES};
use crate::memory::shared::QUEUE_MOVES;
use crate::memory::statistics::count;
use classify::Classify;
use fast_path::{End, Run};
use host_interface::queue::{QueueCounter, RearmWord, block};
use queue::Queue;
use report::Notify;
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;
use verdicts::Verdicts;

/// Frames that are sorted in a run of the handler: more than in classic mode, so that there are
/// several for each queue.
const MOST: u32 = 48;

/// All queues.
#[derive(Debug)]
pub struct Queues {
    table: [Queue; QUEUES],
    /// The number of open queues; 0 in classic mode.
    open: u32,
    /// Selects a frame's queue.
    classify: Classify,
    /// When and where each queue is reported.
    notify: [Notify; QUEUES],
    /// Queues to report now, a bit for each.
    due: u32,
    /// The verdicts on the next frames.
    verdicts: Verdicts,
    /// Whether return BDs found no descriptor.
    stuck: bool,
    /// The return rings in host memory.
    returns: [HostAddress; QUEUES],
}

impl Queues {
    /// No queue is open.
    pub const fn new() -> Queues {
        Queues {
            table: [const { Queue::UNUSED }; QUEUES],
            open: 0,
            classify: Classify::SINGLE,
            notify: [Notify::UNUSED; QUEUES],
            due: 0,
            verdicts: Verdicts::CLOSED,
            stuck: false,
            returns: [const { HostAddress { high: 0, low: 0 } }; QUEUES],
        }
    }

    /// Whether the card is in queue mode.
    #[inline(always)]
    pub const fn is_open(&self) -> bool {
        QUEUES != 0 && self.open != 0
    }

    /// The data of a frame whose return BD is at `slot` could not be written.
    pub(super) fn refused<B: Bus>(&mut self, bus: &mut B, slot: u32) {
        let number = slot.wrapping_sub(QUEUE_RINGS) >> QUEUE_SHIFT;
        if let Some(queue) = self.table.get_mut(number as usize) {
            queue.count(bus, QueueCounter::Fault);
            queue.is_untidy();
        }
    }

    /// The open queues, each with its return ring in host memory.
    #[inline(always)]
    fn open_table(&mut self) -> impl Iterator<Item = (&mut Queue, &HostAddress)> {
        let open = self.open as usize;
        let table = self.table.get_mut(..open).unwrap_or_default();
        table.iter_mut().zip(&self.returns)
    }

    /// The number of open queues.
    pub const fn count(&self) -> u32 {
        self.open
    }
}

impl Default for Queues {
    fn default() -> Queues {
        Queues::new()
    }
}

/// Receive Complete in queue mode: handles some frames.
#[inline(never)]
pub fn complete<B: Dispatch>(receive: &mut Receive, queues: &mut Queues, io: &mut IoA<B>) {
    // Return BDs that found no descriptor go first: there is room for as many more as one run
    // makes.
    if queues.stuck && !send_stuck(queues, io) {
        return;
    }
    let run = fast_path::run(receive, queues, io, MOST);
    if matches!(run.end, End::Done) {
        end_run(receive, queues, io, run.count, run.touched);
    } else {
        go_on(receive, queues, io, run);
    }
}

/// The same after a first run of the fast path that has not delivered all frames.
#[inline(never)]
fn go_on<B: Dispatch>(receive: &mut Receive, queues: &mut Queues, io: &mut IoA<B>, mut run: Run) {
    let mut left = MOST;
    let mut touched = 0;
    loop {
        left -= run.count;
        touched |= run.touched;
        let found = match run.end {
            End::Done => break,
            End::Again => None,
            End::Full if io.has_write_room(fast_path::TRANSFERS) => None,
            End::Full => {
                count!(io.bus, no_write_descriptors);
                break;
            }
            End::Look(found) => {
                let queue = queues.table.get_mut(found.queue() as usize);
                let ready =
                    queue.is_some_and(|queue| queue.needs_look() && queue.look(&mut io.bus));
                (!ready).then_some(found)
            }
            End::Slow(found) => Some(found),
        };
        if let Some(found) = found {
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
    end_run(receive, queues, io, MOST - left, touched);
}

/// Gives back the descriptors of `count` frames, and finishes the queues that got some.
#[inline(never)]
fn end_run<B: Dispatch>(
    receive: &mut Receive,
    queues: &mut Queues,
    io: &mut IoA<B>,
    count: u32,
    touched: u32,
) {
    receive.ring.give_back(&mut io.bus);
    queues.verdicts.share(io, count);
    let reports = finish(queues, io, touched);
    let counters = &mut receive.counters;
    counters.return_updates = counters.return_updates.wrapping_add(reports);
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
        // One index: a compiler would have an address for each array in the other turns, too.
        number = barrier(number);
        let at = number as usize;
        if left & 1 != 0
            && let (Some(queue), Some(notify), Some(host)) =
                (table.get_mut(at), notify.get_mut(at), returns.get(at))
            && !leaves_for_later(queue, notify)
        {
            queue.settle();
            let bit = notify.judge(queue, io);
            if bit == 0 {
                *stuck |= !send_returns(queue, *host, io, MANY);
            } else if report::tell(queue, notify, *host, io) {
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
        tell_b(io);
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
fn tell_b<B: Dispatch>(io: &mut IoA<B>) {
    let moves = QUEUE_MOVES.get(&mut io.bus).wrapping_add(1);
    QUEUE_MOVES.set(&io.me, &mut io.bus, moves);
    io.ring_b();
}

/// As [`send_returns_here`], for callers that cannot spare the room.
#[inline(never)]
fn send_returns<B: Dispatch>(
    queue: &mut Queue,
    host: HostAddress,
    io: &mut IoA<B>,
    enough: u32,
) -> bool {
    send_returns_here(queue, host, io, enough)
}

/// Sends return BDs of a queue until fewer than `enough` are left; `false` if there is no
/// descriptor for them.
#[inline(always)]
fn send_returns_here<B: Dispatch>(
    queue: &mut Queue,
    host: HostAddress,
    io: &mut IoA<B>,
    enough: u32,
) -> bool {
    while queue.waiting() >= enough {
        if !io.has_write_room(1) {
            return false;
        }
        let transfer = queue.next_run(host, io.states.words);
        io.write_ring.put(&mut io.bus, &transfer);
    }
    true
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
        tell_b(io);
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
