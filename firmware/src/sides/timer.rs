//! The timer: deadlines, and the housekeeping of each millisecond.
//!
//! Hardware reference, sections 7 and 15. In vendor firmware CPU B counts ticks of 5 microseconds;
//! here each side sets the timer event to its own next [deadline](crate::io::deadline). Each side
//! coalesces the reports of its own index and does the housekeeping of its own state.

use super::{SideA, SideB, command, eudp, spine, statistics};
use crate::control::{host_events, link};
use crate::io::deadline::{Deadline, PERIOD, SlotA, SlotB};
use crate::memory::layout::{EUDP, QUEUES, SPINE};
use crate::memory::statistics::count;
use crate::path::{buffer_fetch, receive, send};
use host_interface::gencom::Gencom;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Housekeeping turns between two copies of the counters to NIC memory, a hundredth of a second: a
/// copy costs some 4000 cycles while the engines use most of the SRAM port.
const PUBLISHED: u32 = 10;
const _: () = assert!(PUBLISHED == statistics::PIECES_OF_B);

/// Milliseconds between two turns of CPU A's housekeeping while a domain is loaded and nothing waits
/// for one: frames for its handlers that arrive meanwhile wait, and leave one behind the other.
const RESTS: u32 = PUBLISHED;

const _: () = assert!(RESTS * PERIOD < 1 << 15);

/// Turns of housekeeping since the counters were copied.
#[derive(Clone, Copy, Debug)]
pub struct Turns(u32);

impl Turns {
    /// No turn.
    pub const fn new() -> Turns {
        Turns(0)
    }

    /// Counts a turn. Returns whether the counters are due.
    fn count(&mut self) -> bool {
        self.0 += 1;
        let over = self.0 == PUBLISHED;
        if over {
            self.0 = 0;
        }
        over
    }

    /// None, from now on: for [`count_until`](Self::count_until).
    const fn from(now: u32) -> Turns {
        Turns(now << 16)
    }

    /// Counts a turn for each millisecond since the last one, a few at most: the time up to which
    /// they were counted is in bits 31:16. Returns the hundredths of a second that have passed.
    fn count_until(&mut self, now: u32) -> u32 {
        let (mut time, mut turn) = (self.0 >> 16, self.0 & 0xFFFF);
        let mut hundredths = 0;
        for _ in 0..=RESTS {
            if now.wrapping_sub(time) & 0xFFFF >= PERIOD {
                time += PERIOD;
                turn += 1;
                if turn == PUBLISHED {
                    turn = 0;
                    hundredths += 1;
                }
            }
        }
        self.0 = time << 16 | turn;
        hundredths
    }
}

impl Default for Turns {
    fn default() -> Turns {
        Turns::new()
    }
}

/// CPU A's housekeeping state.
#[derive(Debug)]
pub struct Housekeeping {
    /// When the statistics are due.
    statistics: Deadline,
    /// Hundredths of a second since the start.
    hundredths: u32,
    turns: Turns,
}

impl Housekeeping {
    /// No turn was done.
    pub const fn new() -> Housekeeping {
        Housekeeping {
            statistics: Deadline::NONE,
            hundredths: 0,
            turns: Turns::new(),
        }
    }

    /// Hundredths of a second since the start, as RFC 1213 counts time.
    pub const fn hundredths(&self) -> u32 {
        self.hundredths
    }

    /// Counts the milliseconds since the last turn. Returns whether a hundredth of a second has
    /// passed.
    fn count(&mut self, now: u32) -> bool {
        if SPINE != 0 {
            let passed = self.turns.count_until(now);
            self.hundredths = self.hundredths.wrapping_add(passed);
            return passed != 0;
        }
        let over = self.turns.count();
        if over {
            self.hundredths = self.hundredths.wrapping_add(1);
        }
        over
    }
}

impl Default for Housekeeping {
    fn default() -> Housekeeping {
        Housekeeping::new()
    }
}

/// Starts CPU A's housekeeping.
pub fn start<B: Dispatch>(a: &mut SideA<B>) {
    reload(a);
    a.io.start_timer();
    if SPINE != 0 {
        let now = timer::now(&mut a.io.bus);
        a.housekeeping.turns = Turns::from(now);
    }
}

/// Starts CPU B's housekeeping.
pub fn start_send<B: Dispatch>(b: &mut SideB<B>) {
    reload_send(b);
    b.io.start_timer();
}

/// The timer handler of CPU A's side.
#[inline(always)]
pub fn handle<B: Dispatch>(a: &mut SideA<B>) {
    let now = timer::now(&mut a.io.bus);
    if a.io.take_due(SlotA::Receive, now) {
        a.io.bus.set(EventBit::UpdateReceiveReturnProducer);
    }
    if a.io.take_period(now) {
        housekeeping(a, now);
        if SPINE != 0 && may_rest(a) {
            a.io.rest(RESTS - 1);
        }
    }
    // A deadline may have passed meanwhile.
    let now = timer::now(&mut a.io.bus);
    a.io.set_timer(now);
}

/// The timer handler of CPU B's side.
#[inline(always)]
pub fn handle_send<B: Dispatch>(b: &mut SideB<B>) {
    if !spine::watch::due(&mut b.spine, &mut b.send, &mut b.io) {
        send_deadlines(b);
    }
}

/// What is not often enough for the scratch pad.
#[inline(never)]
pub(super) fn send_deadlines<B: Dispatch>(b: &mut SideB<B>) {
    let mut now = timer::now(&mut b.io.bus);
    if b.io.take_due(SlotB::Send, now) {
        b.io.bus.set(EventBit::UpdateSendConsumer);
    }
    if b.io.take_due(SlotB::Room, now) {
        b.io.bus.set(EventBit::SendDataReady);
    }
    if b.io.take_period(now) {
        reload_send(b);
        if QUEUES != 0 {
            buffer_fetch::queues::read_control(&mut b.buffer_fetch.queues, &mut b.io);
        }
        // A copy of the counters takes longer than a frame: it is for another time.
        if SPINE != 0 {
            // A piece in each turn, between two looks: the time of a run holds meanwhile.
            spine::watch::glance(&mut b.spine, &mut b.io);
            b.turns.count();
            statistics::publish_piece_of_b(b, b.turns.0);
            now = timer::now(&mut b.io.bus);
        } else if !eudp::handlers::is_watching(&b.eudp) {
            if EUDP != 0 {
                b.io.follow_transmitter();
            }
            if b.turns.count() {
                statistics::publish_b(b);
            }
        }
    }
    if SPINE == 0 {
        // A deadline may have passed meanwhile; with SPINE `set_timer` itself reads the time again.
        now = timer::now(&mut b.io.bus);
    }
    b.io.set_timer(now);
}

/// Whether a domain is loaded, and nothing waits for housekeeping: what does later
/// [hastens](crate::io::IoA::hasten) it.
fn may_rest<B: Dispatch>(a: &mut SideA<B>) -> bool {
    a.spine.has_domain()
        && a.link.is_up()
        && a.io.bus.is_set(EventBit::ReceiveComplete)
        && !a.io.defers_interrupt()
        && a.io.outbox.is_empty()
        && !command::waits(a)
}

/// CPU A's housekeeping of each millisecond, or of several: see [`RESTS`].
#[inline(never)]
fn housekeeping<B: Dispatch>(a: &mut SideA<B>, now: u32) {
    link::tick(&mut a.link, &mut a.io);
    statistics::follow_link(a);
    reload(a);
    receive::retry(&mut a.io);
    eudp::command::look_again(&mut a.eudp, &mut a.io);
    a.io.bus.set(EventBit::MacRxAttention);
    a.io.bus.set(EventBit::MacTxAttention);
    command::run(a);
    // Held events are counted already.
    let _ = host_events::send_waiting(&mut a.host_events, &mut a.io, &a.config);
    a.io.raise_deferred();
    if a.housekeeping.count(now) {
        statistics::publish_a(a);
    }
    refresh(a);
    spine::time::ask(&mut a.spine, &mut a.io.bus);
}

/// Sends the statistics when they are due: at the requested interval in microseconds, rounded to
/// milliseconds.
fn refresh<B: Dispatch>(a: &mut SideA<B>) {
    /// The longest interval: the counter's comparison is signed (reference 7).
    const LONGEST: u32 = 1 << 30;
    let ticks = a.io.bus.load(Gencom::StatisticsTicks.nic_address());
    let ticks = if ticks < LONGEST { ticks } else { LONGEST };
    let now = timer::now(&mut a.io.bus);
    let turn = &mut a.housekeeping.statistics;
    if ticks == 0 {
        return turn.disarm();
    }
    let due = turn.take(now);
    turn.repeat(now, due, ticks);
    // Without room this update is skipped.
    if due && statistics::update(a).is_err() {
        count!(a.io.bus, dma_write_ring_full);
    }
}

/// Takes the words that drivers change while the firmware runs.
fn reload<B: Dispatch>(a: &mut SideA<B>) {
    let bus = &mut a.io.bus;
    let receive_ticks = bus.load(Gencom::ReceiveTicks.nic_address());
    let receive_bds = bus.load(Gencom::ReceiveMaxBds.nic_address());
    let mtu = bus.load(Gencom::InterfaceMtu.nic_address());
    receive::set_coalescing(&mut a.receive, receive_ticks, receive_bds);
    receive::set_longest(&mut a.receive, mtu);
}

/// Takes those of them that CPU B needs.
fn reload_send<B: Dispatch>(b: &mut SideB<B>) {
    let bus = &mut b.io.bus;
    let send_ticks = bus.load(Gencom::TransmitTicks.nic_address());
    let send_bds = bus.load(Gencom::TransmitMaxBds.nic_address());
    send::set_coalescing(&mut b.send, send_ticks, send_bds);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whenever turns come, and where the counter wraps, no millisecond is lost.
    #[test]
    fn milliseconds_are_counted_however_late_a_turn_is() {
        let start = 0xFFFF_F000u32;
        let (mut now, mut turns, mut hundredths) = (start, Turns::from(start), 0);
        for turn in 0..1000u32 {
            now = now.wrapping_add([1000, 10_003, 1999, 3500, 10_999, 400][turn as usize % 6]);
            hundredths += turns.count_until(now);
            assert_eq!(hundredths, now.wrapping_sub(start) / 10_000);
        }
    }
}
