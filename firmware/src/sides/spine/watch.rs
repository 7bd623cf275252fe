//! The watchdog: CPU B looks after CPU A while extensions are loaded.
//!
//! Paper, section 3.3.2. CPU A says in a word which run is in work. CPU B looks as often as the
//! shortest watchdog says; a run that it sees a second time, and that had its time since the
//! first, is cut off: CPU A is halted, its program counter set to the way out, and CPU A goes on.
//! So a run is cut off after its time and before twice that and what CPU B is at. Where a computer
//! emulates the CPUs and may hold one of them up, the host sets a floor to all times.
//!
//! Where CPU A stands decides:
//!
//! | program counter | what happens |
//! | --- | --- |
//! | in the arena, or in an import | it is set to `abort`: imports change nothing but effects |
//! | anywhere else | the run is over by now |
//!
//! A fault of the CPU in an extension's text leaves CPU A halted, and is seen by the same look.
//! A halt by the host looks the same: it has to last from one look to the next, by when the host
//! has halted CPU B, too.

use super::enter::{self, Ended};
use super::fetch::{Fetcher, OF_ENDPOINTS};
use super::peer::rooms::Rooms;
use super::supply::{self, AGAIN, Taker};
use crate::io::IoB;
use crate::io::deadline::SlotB;
use crate::memory::layout::{ARENA, ARENA_END, RESERVE_MOST, SPINE};
use crate::memory::shared::{SPINE_CALLS, SPINE_ENDED, SPINE_RUNNING, SPINE_WATCH};
use crate::path::send::SendPath;
use host_interface::spine::peer;
use host_interface::spine::rings::FIRST_MAILBOX;
use tigon2_chip::Register;
use tigon2_chip::bits::CpuState;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Where [`SPINE_WATCH`] has the period of looks, and where the time that a run has at least.
pub(super) const PERIOD_MASK: u32 = 0xFF;
pub(super) const FLOOR_SHIFT: u32 = 8;

/// SPINE's part of CPU B's side: nothing in firmware that loads no extensions.
#[derive(Debug)]
pub struct SpineB([Watcher; SPINE]);

impl SpineB {
    /// Nothing is loaded.
    pub const fn new() -> SpineB {
        SpineB([const { Watcher::new() }; SPINE])
    }
}

impl Default for SpineB {
    fn default() -> SpineB {
        SpineB::new()
    }
}

/// What CPU B knows of extensions.
#[derive(Debug)]
struct Watcher {
    /// CPU A's calls that were seen; another number while any doorbell is to be looked at.
    calls: u32,
    /// The run that was in work at the last look.
    run: u32,
    /// When it was first seen.
    since: u32,
    /// [`SPINE_WATCH`]: microseconds between two looks, and above them those that a run has at
    /// least; 0 while nothing is loaded.
    watch: u32,
    /// Whether frames wait for the wire.
    waits: u32,
    /// CPU A was halted at the last look.
    halted: u32,
    /// After a look another deadline had passed: the timer's next event is for that.
    is_behind: bool,
    taker: Taker,
    fetcher: Fetcher,
    rooms: Rooms,
}

impl Watcher {
    const fn new() -> Watcher {
        Watcher {
            calls: 0,
            run: 0,
            since: 0,
            watch: 0,
            waits: 0,
            halted: 0,
            is_behind: false,
            taker: Taker::new(),
            fetcher: Fetcher::NONE,
            rooms: Rooms::NONE,
        }
    }
}

/// Doorbell B: frames to transmit, another watchdog.
#[inline(always)]
pub fn called<B: Dispatch>(spine: &mut SpineB, send: &mut SendPath, io: &mut IoB<B>) {
    if let Some(watcher) = spine.0.first_mut() {
        let calls = SPINE_CALLS.get(&mut io.bus);
        if calls != watcher.calls {
            watcher.calls = calls;
            look_round(watcher, send, io);
        }
    }
}

/// The mailboxes that are CPU B's.
const RUNG: u32 = OF_ENDPOINTS | 1 << peer::MAILBOX;

/// Mailbox: endpoints have messages, the peer has filled rooms. What other mailboxes say is CPU A's.
pub fn bell<B: Dispatch>(spine: &mut SpineB, send: &mut SendPath, io: &mut IoB<B>) {
    let pending = io.bus.read(Register::MailboxEventB);
    io.bus.write(Register::MailboxEventB, pending);
    let Some(watcher) = spine.0.first_mut() else {
        return;
    };
    let has_bells = pending & OF_ENDPOINTS != 0;
    let asked = has_bells && watcher.fetcher.ask_expected(io, pending >> FIRST_MAILBOX);
    // By a jump, for which nothing is saved.
    rung(watcher, send, io, pending & !ASKED | u32::from(asked));
}

/// With the mailboxes that were written: the expected message was asked for. Mailbox 0 is CPU A's.
const ASKED: u32 = 1;

/// These mailboxes were written. While an endpoint is open CPU B sees the event of CPU A's, too, and has
/// little to do then.
#[inline(never)]
fn rung<B: Dispatch>(watcher: &mut Watcher, send: &mut SendPath, io: &mut IoB<B>, boxes: u32) {
    if boxes & RUNG != 0 {
        see_to(watcher, send, io, boxes);
    }
}

#[inline(never)]
fn see_to<B: Dispatch>(watcher: &mut Watcher, send: &mut SendPath, io: &mut IoB<B>, boxes: u32) {
    if boxes & 1 << peer::MAILBOX != 0 {
        look_round(watcher, send, io);
    }
    if boxes & ASKED != 0 {
        watcher.fetcher.has_asked(io);
    }
    let boxes = boxes & OF_ENDPOINTS;
    if boxes != 0 && !watcher.fetcher.rung(io, boxes >> FIRST_MAILBOX) {
        see(watcher, send, io, false, false);
    }
}

/// CPU A has called, for messages or frames of extensions, or the peer has.
#[inline(never)]
fn look_round<B: Dispatch>(watcher: &mut Watcher, send: &mut SendPath, io: &mut IoB<B>) {
    let again = watcher.rooms.serve(send, io);
    look_further(watcher, send, io, again);
}

#[inline(never)]
fn look_further<B: Dispatch>(
    watcher: &mut Watcher,
    send: &mut SendPath,
    io: &mut IoB<B>,
    again: bool,
) {
    let is_asked = watcher.fetcher.look(io, watcher.rooms.are_granted());
    if again || !is_asked || send.is_lent() || !is_idle(watcher, io) {
        see(watcher, send, io, is_asked, again);
    }
}

/// Whether there is nothing to do for CPU A but what it had fetched.
#[inline(always)]
fn is_idle<B: Dispatch>(watcher: &Watcher, io: &mut IoB<B>) -> bool {
    let watch = SPINE_WATCH.get(&mut io.bus);
    watcher.waits == 0 && !supply::waits(&watcher.taker, io) && watch == watcher.watch
}

/// What is not there while nothing changes; with `is_asked` all messages are asked for, with `again`
/// the peer's rooms are to be looked at soon.
#[inline(never)]
fn see<B: Dispatch>(
    watcher: &mut Watcher,
    send: &mut SendPath,
    io: &mut IoB<B>,
    is_asked: bool,
    again: bool,
) {
    supply::transmit(&mut watcher.taker, send, io);
    let waits = supply::waits(&watcher.taker, io) || !is_asked || again;
    watcher.waits = u32::from(waits);
    if waits || send.is_lent() {
        // The doorbell is rung without a call, too.
        watcher.calls = !SPINE_CALLS.get(&mut io.bus);
    }
    if again {
        io.arm_within(SlotB::Watch, AGAIN);
    }
    watcher.watch = SPINE_WATCH.get(&mut io.bus);
    if watcher.watch != 0 {
        io.arm_within(SlotB::Watch, watcher.watch & PERIOD_MASK);
    }
}

/// A request for messages is done.
#[inline(always)]
pub fn fetched<B: Dispatch>(spine: &mut SpineB, io: &mut IoB<B>) {
    if let Some(watcher) = spine.0.first_mut() {
        watcher.fetcher.has_fetched(io);
    }
}

/// The timer. Returns whether it was time for a look, which most of the time shows nothing. Other
/// deadlines then have the timer's next event, whether or not it is time for another look by then,
/// and between two looks other events have a turn, see [`IoB::set_timer`].
#[inline(always)]
pub fn due<B: Dispatch>(spine: &mut SpineB, send: &mut SendPath, io: &mut IoB<B>) -> bool {
    let Some(watcher) = spine.0.first_mut() else {
        return false;
    };
    let (run, now) = run_and_time(io);
    if core::mem::take(&mut watcher.is_behind) || !io.take_due(SlotB::Watch, now) {
        return false;
    }
    let mut wait = watcher.watch & PERIOD_MASK;
    if run != watcher.run {
        watcher.run = run;
        watcher.since = now;
        watcher.halted = 0;
    } else if run != 0 {
        let left = look_to_the_end(watcher, io);
        if left != 0 && left < wait {
            wait = left;
        }
    }
    let mut begun = now;
    if watcher.waits != 0 || watcher.watch == 0 {
        see_in_time(watcher, send, io);
        begun = timer::now(&mut io.bus);
    } else {
        io.arm_unset(SlotB::Watch, now, wait);
    }
    io.set_timer(begun);
    watcher.is_behind = io.is_behind();
    true
}

/// It is time for a look.
#[inline(never)]
fn see_in_time<B: Dispatch>(watcher: &mut Watcher, send: &mut SendPath, io: &mut IoB<B>) {
    let again = watcher.rooms.serve(send, io);
    let is_asked = watcher.fetcher.look(io, watcher.rooms.are_granted());
    see(watcher, send, io, is_asked, again);
}

/// Microseconds that are shorter than what CPU B does between two looks.
const SHORT: u32 = 4;

/// In the middle of something long, so that a watchdog's time holds.
#[inline(always)]
pub fn glance<B: Dispatch>(spine: &mut SpineB, io: &mut IoB<B>) {
    if let Some(watcher) = spine.0.first_mut() {
        glance_at(watcher, io);
    }
}

#[inline(never)]
fn glance_at<B: Dispatch>(watcher: &mut Watcher, io: &mut IoB<B>) {
    if watcher.watch != 0 {
        let _ = look_to_the_end(watcher, io);
    }
}

/// Looks at the run in work, and waits for the end of its time if that is near. As [`look`].
#[inline(never)]
fn look_to_the_end<B: Dispatch>(watcher: &mut Watcher, io: &mut IoB<B>) -> u32 {
    loop {
        let (run, now) = run_and_time(io);
        let left = look(watcher, io, run, now);
        if left == 0 || left > SHORT {
            return left;
        }
    }
}

/// The run in work, and the time since when that is known: in this order, else whatever holds CPU B up in
/// between is taken off the time of a run that has just begun.
#[inline(always)]
fn run_and_time<B: Dispatch>(io: &mut IoB<B>) -> (u32, u32) {
    let run = SPINE_RUNNING.get(&mut io.bus);
    (run, timer::now(&mut io.bus))
}

/// Looks at the run in work. Returns how many microseconds are left of its time; 0 if it has just
/// been seen for the first time, or is over.
#[inline(always)]
fn look<B: Dispatch>(watcher: &mut Watcher, io: &mut IoB<B>, run: u32, now: u32) -> u32 {
    if run == 0 || run != watcher.run {
        watcher.run = run;
        watcher.since = now;
        watcher.halted = 0;
        return 0;
    }
    let state = io.bus.read(Register::CpuAState);
    let halted = state & CpuState::HALTED != 0;
    let faulted = halted && watcher.halted != 0;
    watcher.halted = u32::from(halted);
    if faulted {
        let pc = io.bus.read(Register::CpuAPc);
        if is_extension(pc) {
            abort(io, Ended::Fault);
            start_a(io, state);
        }
        return 0;
    }
    let its_time = (run & 0xFF).max(watcher.watch >> FLOOR_SHIFT);
    let left = its_time.saturating_sub(now.wrapping_sub(watcher.since));
    if halted {
        return 0;
    }
    if left != 0 {
        return left;
    }
    let halt = CpuState::new().with_halt(true).into_bits();
    io.bus.write(Register::CpuAState, state | halt);
    // Whether it is still that run is known only now that CPU A stands.
    if SPINE_RUNNING.get(&mut io.bus) == run {
        let pc = io.bus.read(Register::CpuAPc);
        if is_extension(pc) {
            abort(io, Ended::Overrun);
        }
    }
    start_a(io, state);
    0
}

/// Whether an instruction is an extension's, or one that only extensions call.
fn is_extension(pc: u32) -> bool {
    (ARENA..ARENA_END + RESERVE_MOST).contains(&pc)
        || enter::text_outside_arena()
            .iter()
            .any(|text| text.contains(&pc))
}

/// CPU A, which stands, goes on at the way out.
fn abort<B: Dispatch>(io: &mut IoB<B>, why: Ended) {
    SPINE_ENDED.set(&io.me, &mut io.bus, why as u32);
    // Before CPU A asks.
    let _ = SPINE_ENDED.get(&mut io.bus);
    io.bus.write(Register::CpuAPc, enter::abort_entry());
}

fn start_a<B: Dispatch>(io: &mut IoB<B>, state: u32) {
    io.bus.write(Register::CpuAState, state & !CpuState::HALTED);
}
