//! The timer: deadlines, and the housekeeping of each millisecond.
//!
//! Hardware reference, sections 7 and 15. In vendor firmware CPU B counts ticks of 5 microseconds;
//! here each side sets the timer event to its own next [deadline](crate::io::deadline). Each side
//! coalesces the reports of its own index and does the housekeeping of its own state.

use super::{SideA, SideB, command, eudp, spine, statistics};
use crate::control::{host_events, link};
use crate::io::deadline::{Deadline, SlotA, SlotB};
use crate::memory::layout::{QUEUES, SPINE};
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

    /// Counts a millisecond. Returns whether a hundredth of a second has passed.
    fn count(&mut self) -> bool {
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
        housekeeping(a);
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
        } else if !eudp::handlers::is_watching(&b.eudp) && b.turns.count() {
            statistics::publish_b(b);
        }
    }
    if SPINE == 0 {
        // A deadline may have passed meanwhile; with SPINE `set_timer` itself reads the time again.
        now = timer::now(&mut b.io.bus);
    }
    b.io.set_timer(now);
}

/// CPU A's housekeeping of each millisecond.
#[inline(never)]
fn housekeeping<B: Dispatch>(a: &mut SideA<B>) {
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
    if a.housekeeping.count() {
        statistics::publish_a(a);
    }
    refresh(a);
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
