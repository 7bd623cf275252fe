//! Deadlines: coalescing of both sides, and the housekeeping of each millisecond.
//!
//! Hardware reference, sections 7 and 15. Vendor firmware lets CPU B count ticks of 5
//! microseconds; here each side sets the timer event for its own next deadline. Coalescing
//! belongs to the side whose index is told, housekeeping to the side whose state it is.

use crate::{SideA, SideB, command, host_events, interrupt, link, receive, send, statistics};
use host_interface::gencom::Gencom;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Microseconds between two turns of housekeeping.
const PERIOD: u32 = 1000;
/// Microseconds until a full transmit buffer is looked at again: those in which the wire
/// takes some 6 KB of the hundreds in it.
const AWAITED: u32 = 50;
/// Turns between two copies of the counters to NIC memory, a hundredth of a second: copying
/// them costs some 4000 cycles while the engines have most of the SRAM port.
const PUBLISHED: u32 = 10;

/// One deadline.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    time: u32,
    armed: bool,
}

impl Deadline {
    const NONE: Deadline = Deadline {
        time: 0,
        armed: false,
    };

    /// Set to so many ticks from now.
    #[inline(always)]
    const fn after(now: u32, ticks: u32) -> Deadline {
        Deadline {
            time: now.wrapping_add(ticks),
            armed: true,
        }
    }

    /// Whether it is set.
    #[inline(always)]
    pub const fn is_armed(&self) -> bool {
        self.armed
    }

    /// Takes it back.
    #[inline(always)]
    pub const fn disarm(&mut self) {
        self.armed = false;
    }

    fn take(&mut self, now: u32) -> bool {
        let due = self.armed && timer::reached(now, self.time);
        if due {
            self.armed = false;
        }
        due
    }
}

/// What CPU A's side has to do by the clock, in microseconds of the chip's counter.
#[derive(Debug)]
pub struct Deadlines {
    /// Telling the host the return producer index.
    pub receive: Deadline,
    /// Housekeeping.
    period: Period,
    /// The statistics' turn.
    statistics: Deadline,
    /// Hundredths of a second since the start.
    hundredths: u32,
    turns: Turns,
}

impl Deadlines {
    /// None.
    pub const fn new() -> Deadlines {
        Deadlines {
            receive: Deadline::NONE,
            period: Period(0),
            statistics: Deadline::NONE,
            hundredths: 0,
            turns: Turns(0),
        }
    }

    /// Hundredths of a second since the start, as RFC 1213 counts time.
    pub const fn hundredths(&self) -> u32 {
        self.hundredths
    }

    /// A millisecond is over. Returns whether a hundredth of a second is.
    fn count(&mut self) -> bool {
        let over = self.turns.count();
        if over {
            self.hundredths = self.hundredths.wrapping_add(1);
        }
        over
    }
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines::new()
    }
}

/// What CPU B's side has to do by the clock.
#[derive(Debug)]
pub struct SendDeadlines {
    /// Telling the host the send consumer index.
    pub send: Deadline,
    /// Looking whether the transmit buffer has room again.
    room: Deadline,
    /// Housekeeping.
    period: Period,
    turns: Turns,
}

impl SendDeadlines {
    /// None.
    pub const fn new() -> SendDeadlines {
        SendDeadlines {
            send: Deadline::NONE,
            room: Deadline::NONE,
            period: Period(0),
            turns: Turns(0),
        }
    }
}

impl Default for SendDeadlines {
    fn default() -> SendDeadlines {
        SendDeadlines::new()
    }
}

/// When housekeeping is due next.
#[derive(Clone, Copy, Debug)]
struct Period(u32);

impl Period {
    fn take(&mut self, now: u32) -> bool {
        let due = timer::reached(now, self.0);
        if due {
            let next = self.0.wrapping_add(PERIOD);
            let late = timer::reached(now, next);
            self.0 = if late { now.wrapping_add(PERIOD) } else { next };
        }
        due
    }
}

/// Turns of housekeeping since the counters were copied.
#[derive(Clone, Copy, Debug)]
struct Turns(u32);

impl Turns {
    /// One more. Returns whether it is the counters' turn.
    fn count(&mut self) -> bool {
        self.0 += 1;
        let over = self.0 == PUBLISHED;
        if over {
            self.0 = 0;
        }
        over
    }
}

/// Starts housekeeping of CPU A.
pub fn start<B: Dispatch>(a: &mut SideA<B>) {
    let now = timer::now(&mut a.bus);
    a.deadlines.period = Period(now.wrapping_add(PERIOD));
    reload(a);
    arm(a, now);
}

/// Starts that of CPU B.
pub fn start_send<B: Dispatch>(b: &mut SideB<B>) {
    let now = timer::now(&mut b.bus);
    b.deadlines.period = Period(now.wrapping_add(PERIOD));
    reload_send(b);
    rearm_send(b, now);
}

/// Sets the send side's deadline.
#[inline(always)]
pub fn arm_send<B: Dispatch>(b: &mut SideB<B>, ticks: u32) {
    let now = timer::now(&mut b.bus);
    b.deadlines.send = Deadline::after(now, ticks);
    rearm_send(b, now);
}

/// The transmit buffer is full: the MAC, which has no event for what it has sent, is looked
/// at again after a while.
pub fn await_room<B: Dispatch>(b: &mut SideB<B>) {
    if !b.deadlines.room.armed {
        let now = timer::now(&mut b.bus);
        b.deadlines.room = Deadline::after(now, AWAITED);
        rearm_send(b, now);
    }
}

/// Sets the receive side's deadline.
#[inline(always)]
pub fn arm_receive<B: Dispatch>(a: &mut SideA<B>, ticks: u32) {
    let now = timer::now(&mut a.bus);
    a.deadlines.receive = Deadline::after(now, ticks);
    arm(a, now);
}

/// The earlier of a time and a deadline.
#[inline(always)]
fn first(time: u32, deadline: Deadline) -> u32 {
    let sooner = (deadline.time.wrapping_sub(time) as i32) < 0;
    if deadline.armed && sooner {
        deadline.time
    } else {
        time
    }
}

/// Sets the chip's reference to CPU A's next deadline.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn arm<B: Dispatch>(a: &mut SideA<B>, now: u32) {
    let next = first(a.deadlines.period.0, a.deadlines.receive);
    a.bus.arm(Cpu::A, now, next);
}

/// Sets the chip's reference to CPU B's next deadline.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.text"))]
#[inline(never)]
fn rearm_send<B: Dispatch>(b: &mut SideB<B>, now: u32) {
    let next = first(b.deadlines.period.0, b.deadlines.send);
    let next = first(next, b.deadlines.room);
    b.bus.arm(Cpu::B, now, next);
}

/// Timer, of CPU A's side.
#[inline(always)]
pub fn handle<B: Dispatch>(a: &mut SideA<B>) {
    let now = timer::now(&mut a.bus);
    if a.deadlines.receive.take(now) {
        a.bus.set(EventBit::UpdateReceiveReturnProducer);
    }
    if a.deadlines.period.take(now) {
        housekeeping(a);
    }
    arm(a, now);
}

/// Timer, of CPU B's side. Not often enough for the scratch pad.
#[inline(never)]
pub fn handle_send<B: Dispatch>(b: &mut SideB<B>) {
    let now = timer::now(&mut b.bus);
    if b.deadlines.send.take(now) {
        b.bus.set(EventBit::UpdateSendConsumer);
    }
    if b.deadlines.room.take(now) {
        b.bus.set(EventBit::SendDataReady);
    }
    if b.deadlines.period.take(now) {
        reload_send(b);
        if b.deadlines.turns.count() {
            statistics::publish_b(b);
        }
    }
    rearm_send(b, now);
}

/// What CPU A looks at each millisecond.
#[inline(never)]
fn housekeeping<B: Dispatch>(a: &mut SideA<B>) {
    link::tick(a);
    reload(a);
    receive::retry(a);
    a.bus.set(EventBit::MacRxAttention);
    a.bus.set(EventBit::MacTxAttention);
    command::run(a);
    // What is held is counted already.
    let _ = host_events::send_waiting(a);
    interrupt::make_up(a);
    if a.deadlines.count() {
        statistics::publish_a(a);
    }
    refresh(a);
}

/// Sends the statistics when it is their turn: every so many microseconds, to the next
/// millisecond.
fn refresh<B: Dispatch>(a: &mut SideA<B>) {
    /// The longest interval: the counter's comparison is signed (reference 7).
    const LONGEST: u32 = 1 << 30;
    let ticks = a.bus.load(Gencom::StatisticsTicks.nic_address());
    let ticks = if ticks < LONGEST { ticks } else { LONGEST };
    let now = timer::now(&mut a.bus);
    let turn = &mut a.deadlines.statistics;
    if ticks == 0 {
        return turn.disarm();
    }
    let due = turn.take(now);
    if due {
        turn.time = turn.time.wrapping_add(ticks);
    }
    // The first one, one that is late, and one that was set with longer ticks.
    let left = turn.time.wrapping_sub(now);
    if !(due || turn.armed) || left == 0 || left > ticks {
        turn.time = now.wrapping_add(ticks);
    }
    turn.armed = true;
    // Without room the statistics of this turn are left out.
    if due && statistics::update(a).is_err() {
        statistics::count!(a, dma_write_ring_full);
    }
}

/// Takes the words that drivers change while the firmware runs.
fn reload<B: Dispatch>(a: &mut SideA<B>) {
    let bus = &mut a.bus;
    let receive_ticks = bus.load(Gencom::ReceiveTicks.nic_address());
    let receive_bds = bus.load(Gencom::ReceiveMaxBds.nic_address());
    let mtu = bus.load(Gencom::InterfaceMtu.nic_address());
    receive::index::set_coalescing(a, receive_ticks, receive_bds);
    receive::set_longest(a, mtu);
}

/// Those of them that CPU B needs.
fn reload_send<B: Dispatch>(b: &mut SideB<B>) {
    let bus = &mut b.bus;
    let send_ticks = bus.load(Gencom::TransmitTicks.nic_address());
    let send_bds = bus.load(Gencom::TransmitMaxBds.nic_address());
    send::set_coalescing(b, send_ticks, send_bds);
}
