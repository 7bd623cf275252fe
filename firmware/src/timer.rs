//! Deadlines: coalescing of both sides, and the housekeeping of each millisecond.
//!
//! Hardware reference, sections 7 and 15. Vendor firmware lets CPU B count ticks of 5
//! microseconds; with one CPU the timer event is set for the next deadline instead.

use crate::{Firmware, command, host_events, interrupt, link, receive, send, statistics};
use host_interface::gencom::Gencom;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::{Bus, timer};

/// Microseconds between two turns of housekeeping.
const PERIOD: u32 = 1000;

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

/// When something is due, in microseconds of the chip's counter.
#[derive(Debug)]
pub struct Deadlines {
    /// Telling the host the send consumer index.
    pub send: Deadline,
    /// Telling the host the return producer index.
    pub receive: Deadline,
    /// Housekeeping.
    period: u32,
    /// The statistics' turn.
    statistics: Deadline,
    /// Hundredths of a second since the start, and milliseconds of the next one.
    hundredths: u32,
    milliseconds: u32,
}

impl Deadlines {
    /// None.
    pub const fn new() -> Deadlines {
        Deadlines {
            send: Deadline::NONE,
            receive: Deadline::NONE,
            period: 0,
            statistics: Deadline::NONE,
            hundredths: 0,
            milliseconds: 0,
        }
    }
}

impl Deadlines {
    /// Hundredths of a second since the start, as RFC 1213 counts time.
    pub const fn hundredths(&self) -> u32 {
        self.hundredths
    }

    /// A millisecond is over.
    fn count(&mut self) {
        self.milliseconds += 1;
        if self.milliseconds == 10 {
            self.milliseconds = 0;
            self.hundredths = self.hundredths.wrapping_add(1);
        }
    }
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines::new()
    }
}

/// Starts housekeeping.
pub fn start<B: Bus>(firmware: &mut Firmware<B>) {
    let now = timer::now(&mut firmware.bus);
    firmware.deadlines.period = now.wrapping_add(PERIOD);
    reload(firmware);
    arm(firmware, now);
}

/// Sets the send side's deadline.
#[inline(always)]
pub fn arm_send<B: Bus>(firmware: &mut Firmware<B>, ticks: u32) {
    let now = timer::now(&mut firmware.bus);
    firmware.deadlines.send = Deadline {
        time: now.wrapping_add(ticks),
        armed: true,
    };
    arm(firmware, now);
}

/// Sets the receive side's deadline.
#[inline(always)]
pub fn arm_receive<B: Bus>(firmware: &mut Firmware<B>, ticks: u32) {
    let now = timer::now(&mut firmware.bus);
    firmware.deadlines.receive = Deadline {
        time: now.wrapping_add(ticks),
        armed: true,
    };
    arm(firmware, now);
}

/// Sets the chip's reference to the next deadline.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
fn arm<B: Bus>(firmware: &mut Firmware<B>, now: u32) {
    let deadlines = &firmware.deadlines;
    let mut next = deadlines.period;
    for deadline in [deadlines.send, deadlines.receive] {
        if deadline.armed && (deadline.time.wrapping_sub(next) as i32) < 0 {
            next = deadline.time;
        }
    }
    timer::arm(&mut firmware.bus, Cpu::A, now, next);
}

/// Timer.
#[inline(always)]
pub fn handle<B: Bus>(firmware: &mut Firmware<B>) {
    let now = timer::now(&mut firmware.bus);
    if firmware.deadlines.send.take(now) {
        firmware
            .events
            .set(&mut firmware.bus, EventBit::UpdateSendConsumer);
    }
    if firmware.deadlines.receive.take(now) {
        firmware
            .events
            .set(&mut firmware.bus, EventBit::UpdateReceiveReturnProducer);
    }
    if timer::reached(now, firmware.deadlines.period) {
        let next = firmware.deadlines.period.wrapping_add(PERIOD);
        let late = timer::reached(now, next);
        firmware.deadlines.period = if late { now.wrapping_add(PERIOD) } else { next };
        firmware.deadlines.count();
        housekeeping(firmware);
    }
    arm(firmware, now);
}

/// What is looked at each millisecond.
#[inline(never)]
fn housekeeping<B: Bus>(firmware: &mut Firmware<B>) {
    link::tick(firmware);
    reload(firmware);
    receive::retry(firmware);
    firmware.unmask(EventBit::MacRxAttention);
    firmware.unmask(EventBit::MacTxAttention);
    command::run(firmware);
    // What is held is counted already.
    let _ = host_events::send_waiting(firmware);
    interrupt::make_up(firmware);
    statistics::publish(firmware);
    refresh(firmware);
}

/// Sends the statistics when it is their turn: every so many microseconds, to the next
/// millisecond.
fn refresh<B: Bus>(firmware: &mut Firmware<B>) {
    /// The longest interval: the counter's comparison is signed (reference 7).
    const LONGEST: u32 = 1 << 30;
    let ticks = firmware.bus.load(Gencom::StatisticsTicks.nic_address());
    let ticks = if ticks < LONGEST { ticks } else { LONGEST };
    let now = timer::now(&mut firmware.bus);
    let turn = &mut firmware.deadlines.statistics;
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
    if due && statistics::update(firmware).is_err() {
        statistics::count!(firmware, dma_write_ring_full);
    }
}

/// Takes the words that drivers change while the firmware runs.
fn reload<B: Bus>(firmware: &mut Firmware<B>) {
    let bus = &mut firmware.bus;
    let send_ticks = bus.load(Gencom::TransmitTicks.nic_address());
    let send_bds = bus.load(Gencom::TransmitMaxBds.nic_address());
    let receive_ticks = bus.load(Gencom::ReceiveTicks.nic_address());
    let receive_bds = bus.load(Gencom::ReceiveMaxBds.nic_address());
    let mtu = bus.load(Gencom::InterfaceMtu.nic_address());
    send::set_coalescing(firmware, send_ticks, send_bds);
    receive::index::set_coalescing(firmware, receive_ticks, receive_bds);
    receive::set_longest(firmware, mtu);
}
