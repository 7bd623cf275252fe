//! Simulates many consecutive cycles in which engines only transfer data.
//!
//! Between the cycles in which a transfer or a frame begins or ends, the DMA channels and the MAC
//! only request the SRAM port and transfer a beat each time they get it. The cycles of their
//! requests are known in advance, as a bit for each cycle; the rest is a few numbers. A cycle is
//! then arithmetic without a branch for each client, since no processor could predict which client
//! is next.
//!
//! ```text
//!   cycle      from                          last: a CPU's turn
//!   bus        1 . 1 1 . 1 1 1 . 1 1 .   ──► FIFO ───┐
//!   receive    . . 1 . . . . . 1 . . .   ──► credit ─┼─ the first that has any
//!   transmit   1 . . . . . 1 . . . . .   ──► credit ─┘  gets the port
//! ```
//!
//! Any other event ends the flow before it, and the engines then simulate it themselves, in the
//! same cycle as without this module.

use super::dma::{DmaEngine, Phase, Transaction};
use super::fine::{FRACTION, Fine};
use super::mac::{MacEngine, RECEIVE_EXTRA, TRANSMIT_AHEAD};
use super::pipeline;
use super::timed::Timed;
use tigon2_model::Direction;

/// With fewer beats on the bus it is not worth while.
const WORTH: u32 = 8;
/// A cycle as a [`Fine`] time.
const CYCLE: u64 = 1 << FRACTION;
/// Most cycles of a flow: a bit each.
const LONGEST: u64 = 63;

/// How far data has flowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flowed {
    /// Everything is done for the cycles in front of this one.
    pub(crate) cycle: u64,
    /// In this cycle the engines have had their turn, but the port is not granted yet.
    pub(crate) engines: bool,
}

/// What the engines hold of the port's accesses, and what goes on.
#[derive(Clone, Copy, Default)]
struct Stock {
    /// Words that each side of the MAC has asked for and not got.
    receive: u32,
    transmit: u32,
    /// Beats in the FIFOs, and those that the write channel has still to fetch.
    read: u32,
    write: u32,
    fetch: u32,
    /// Beats of the transaction on the bus.
    beats: u32,
}

/// What is known in advance: a bit for each cycle, and the cycle in which that ends.
#[derive(Default)]
struct Calendar {
    bus: u64,
    receive: u64,
    transmit: u64,
    /// The first cycle in which anything else happens, from the first one of the flow on.
    stop: u64,
    /// The same for the DMA channels alone, since power-on.
    channels: u64,
    /// Whether the beats on the bus come from the host.
    reads: bool,
    /// Whose grant is more than a beat: the channels from and to the host, CPUs.
    special: [u32; 3],
}

impl Calendar {
    /// Of the DMA channels.
    #[inline(always)]
    fn channels(&mut self, stock: &mut Stock, dma: &DmaEngine, from: u64) {
        let mut stop = u64::MAX;
        for direction in Direction::ALL {
            let index = direction.index();
            let mut special = false;
            let (mut fifo, mut fetch) = (0, 0);
            match dma.phases[index] {
                Phase::Idle if dma.look[index] => stop = stop.min(dma.wake),
                Phase::Idle => {}
                Phase::Descriptor(_) => {
                    special = true;
                    (fifo, fetch) = match direction {
                        Direction::Read => (1, 0),
                        Direction::Write => (0, 1),
                    };
                }
                Phase::Start(at) | Phase::End(at) => stop = stop.min(at),
                Phase::Live(live) => {
                    (fifo, fetch) = (live.fifo, live.sram);
                    special = live.bus == 0;
                    if live.bus == 0 && live.fifo == 0 {
                        stop = 0;
                    }
                }
            }
            match direction {
                Direction::Read => stock.read = fifo,
                Direction::Write => (stock.write, stock.fetch) = (fifo, fetch),
            }
            self.special[index] = special.into();
        }
        self.channels = stop;
        self.stop = self.stop.min(stop.saturating_sub(from));
    }

    /// Of the beats on the bus; the flow ends in front of the last one, and of the last one before a
    /// stall.
    #[inline(always)]
    fn beats(&mut self, bus: &Transaction, beat: Fine, from: u64) {
        let mut next = bus.next;
        if next.ceil() < from {
            self.stop = 0;
            return;
        }
        for left in (1..=bus.beats).rev() {
            let at = next.ceil() - from;
            if at >= self.stop {
                break;
            }
            if left == bus.stall.at + 1 {
                self.stop = at;
                break;
            }
            self.bus |= 1 << at;
            next = next.plus(beat);
        }
    }

    /// Of both sides of the MAC.
    #[inline(always)]
    fn wire(&mut self, stock: &mut Stock, mac: &MacEngine, from: u64) {
        let step = mac.byte.0 * mac.access;
        if mac.changed || mac.look && mac.transmit.is_none() || step < CYCLE {
            self.stop = 0;
            return;
        }
        match &mac.receive {
            None => self.stop = self.stop.min(mac.arrival.saturating_sub(from)),
            Some(side) => {
                let complete = side.asked == side.all;
                // The last grant determines when it ends.
                if complete && side.granted != side.all {
                    self.stop = 0;
                    return;
                }
                self.stop = self.stop.min(side.ends.saturating_sub(from));
                stock.receive = (side.asked - side.granted) as u32;
                let time = side.write_time(side.asked, mac.byte, mac.access).0;
                let words = (side.all - RECEIVE_EXTRA - 1).saturating_sub(side.asked);
                if !complete {
                    self.receive = self.words(from, words, time, step);
                }
            }
        }
        if let Some(side) = &mac.transmit {
            self.stop = self.stop.min(side.ends.saturating_sub(from));
            stock.transmit = (side.asked - side.granted) as u32;
            let left = side.all - side.asked;
            // The descriptor and the FIFO are asked for at once, behind the last word
            // comes none.
            let ahead = TRANSMIT_AHEAD - 1;
            let words = if side.asked < ahead {
                0
            } else {
                left.saturating_sub(1)
            };
            let time = side.start.0 + side.asked.saturating_sub(ahead) * step;
            if left != 0 {
                self.transmit = self.words(from, words, time, step);
            }
        }
    }

    /// When one side of the MAC asks for `left` words: at `time`, and a `step` later each. In
    /// front of the next one the flow stops, if not at the end of the frame already.
    #[inline(always)]
    fn words(&mut self, from: u64, mut left: u64, mut time: u64, step: u64) -> u64 {
        let mut asks = 0;
        if Fine(time).ceil() < from {
            self.stop = 0;
        }
        loop {
            let at = Fine(time).ceil().saturating_sub(from);
            if at >= self.stop {
                return asks;
            }
            if left == 0 {
                self.stop = at;
                return asks;
            }
            asks |= 1 << at;
            time += step;
            left -= 1;
        }
    }
}

impl Stock {
    /// Lets data flow for so many cycles; returns how many it were before somebody got the
    /// port for more than a beat. `READS`: beats come from the bus; `SPECIAL`: there is
    /// such a grant.
    #[inline(always)]
    fn flow<const READS: bool, const SPECIAL: bool>(
        &mut self,
        calendar: &Calendar,
        cycles: u64,
        fifo: u32,
    ) -> u64 {
        let mut now = *self;
        let mut at = 0;
        while at < cycles {
            let asking = now.asked::<READS>(calendar, at, fifo);
            // Who is first gets the port.
            let receive = u32::from(asking.receive != 0);
            let transmit = u32::from(asking.transmit != 0) & !receive;
            let taken = receive | transmit;
            let read = u32::from(asking.read != 0) & !taken;
            let taken = taken | read;
            let write = u32::from(asking.fetch != 0) & u32::from(asking.write < fifo) & !taken;
            let taken = taken | write;
            if SPECIAL {
                let [reads, writes, cpus] = calendar.special;
                if (read & reads) | (write & writes) | ((taken ^ 1) & cpus) != 0 {
                    break;
                }
            }
            now = Stock {
                receive: asking.receive - receive,
                transmit: asking.transmit - transmit,
                read: asking.read - read,
                write: asking.write + write,
                fetch: asking.fetch - write,
                beats: asking.beats,
            };
            // No client requests it: skip to the next request.
            let rest = (calendar.bus | calendar.receive | calendar.transmit) >> at >> 1;
            let skip = if taken == 0 { rest.trailing_zeros() } else { 0 };
            at = (at + 1 + u64::from(skip)).min(cycles);
        }
        *self = now;
        at
    }

    /// This with the beat of the bus and the words of the wire of a cycle.
    #[inline(always)]
    fn asked<const READS: bool>(&self, calendar: &Calendar, at: u64, fifo: u32) -> Stock {
        let room = if READS {
            self.read < fifo
        } else {
            self.write != 0
        };
        let beat = (calendar.bus >> at) as u32 & u32::from(room);
        Stock {
            receive: self.receive + ((calendar.receive >> at) as u32 & 1),
            transmit: self.transmit + ((calendar.transmit >> at) as u32 & 1),
            read: self.read + if READS { beat } else { 0 },
            write: self.write - if READS { 0 } else { beat },
            fetch: self.fetch,
            beats: self.beats - beat,
        }
    }
}

impl Timed {
    /// Whether data flows through this board in such a way: everybody gets the port for a
    /// cycle and 8 bytes, in a fixed order, and nothing is asked for twice in a cycle.
    pub(super) fn may_flow(&self) -> bool {
        self.port.is_even() && self.parameters.port_bytes == 8 && self.dma.beat.0 >= CYCLE
    }

    /// Lets data flow from cycle `from` to cycle `last`, in which no CPU needs anything but
    /// the port; ends before if anything else happens.
    pub(crate) fn flow(&mut self, from: u64, last: u64) -> Flowed {
        let turn = last - from;
        let (before, calendar) = self.known(from, turn);
        if calendar.stop == 0 {
            return Flowed {
                cycle: from,
                engines: false,
            };
        }
        let mut stock = before;
        let fifo = self.parameters.fifo;
        let most = calendar.stop.min(turn);
        let cycles = match (calendar.reads, calendar.special != [0; 3]) {
            (true, true) => stock.flow::<true, true>(&calendar, most, fifo),
            (true, false) => stock.flow::<true, false>(&calendar, most, fifo),
            (false, true) => stock.flow::<false, true>(&calendar, most, fifo),
            (false, false) => stock.flow::<false, false>(&calendar, most, fifo),
        };
        // The engines' turn in the cycle in which others have theirs.
        let engines = cycles < calendar.stop;
        if engines {
            stock = match calendar.reads {
                true => stock.asked::<true>(&calendar, cycles, fifo),
                false => stock.asked::<false>(&calendar, cycles, fifo),
            };
        }
        self.flowed(
            from,
            cycles + u64::from(engines),
            &calendar,
            &before,
            &stock,
        );
        Flowed {
            cycle: from + cycles,
            engines,
        }
    }

    /// What is known of the cycles from `from` to a CPU's turn so many cycles later.
    #[inline(always)]
    fn known(&self, from: u64, turn: u64) -> (Stock, Calendar) {
        let mut stock = Stock::default();
        let mut calendar = Calendar {
            stop: LONGEST.min(turn + 1),
            special: [0, 0, u32::from(self.port.wanted_by_cpus() != 0)],
            ..Calendar::default()
        };
        let Some(bus) = &self.dma.bus else {
            calendar.stop = 0;
            return (stock, calendar);
        };
        stock.beats = bus.beats;
        calendar.reads = bus.owner == Direction::Read;
        calendar.channels(&mut stock, &self.dma, from);
        calendar.wire(&mut stock, &self.mac, from);
        if calendar.stop != 0 {
            calendar.beats(bus, self.dma.beat, from);
        }
        (stock, calendar)
    }

    /// Leaves everybody where they are after the engines' turn in so many cycles.
    #[inline(always)]
    fn flowed(&mut self, from: u64, turns: u64, calendar: &Calendar, before: &Stock, now: &Stock) {
        let passed = |bits: u64| (bits & ((1 << turns) - 1)).count_ones();
        let (received, sent) = (passed(calendar.receive), passed(calendar.transmit));
        let beats = before.beats - now.beats;
        let read = if calendar.reads { beats } else { 0 };
        let grants = [
            received + before.receive - now.receive,
            sent + before.transmit - now.transmit,
            read + before.read - now.read,
            before.fetch - now.fetch,
        ];
        let wants = [
            now.receive != 0,
            now.transmit != 0,
            now.read != 0,
            now.fetch != 0 && now.write < self.parameters.fifo,
        ];
        self.port.flowed(grants, wants);
        let [receive, transmit, read, write] = grants;
        let next = from + turns;
        self.mac.flowed([received, sent], [receive, transmit], next);
        let fifos = [now.read, now.write];
        self.dma
            .flowed((passed(calendar.bus), beats), fifos, [read, write]);
        self.dma.wake = self.dma.wake.min(calendar.channels).max(next);
        let cycles = grants.iter().copied().map(u64::from).sum();
        let cpus = self.port.wanted_by_cpus();
        pipeline::hold_up(&mut self.pipelines, cpus, cycles);
    }
}

impl DmaEngine {
    /// Whether so much is on the bus that it is worth while to let it flow.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.bus.as_ref().is_some_and(|bus| bus.beats >= WORTH)
    }

    /// Data has flowed: so many beats of the bus have passed and so many of them moved; then
    /// there was so much in the FIFOs, after so many grants. The next beat wakes the engine.
    #[inline(always)]
    fn flowed(&mut self, bus: (u32, u32), fifo: [u32; 2], grants: [u32; 2]) {
        let mut moved = [0; 2];
        if let Some(transaction) = &mut self.bus {
            moved[transaction.owner.index()] = bus.1;
            transaction.beats -= bus.1;
            transaction.next = transaction.next.plus(self.beat.times(bus.0.into()));
            self.wake = transaction.next.ceil();
        }
        for (index, phase) in self.phases.iter_mut().enumerate() {
            if let Phase::Live(live) = phase {
                live.bus -= moved[index];
                live.fifo = fifo[index];
                live.sram -= grants[index];
            }
        }
    }
}

impl MacEngine {
    /// Data has flowed up to `cycle`: so many words were asked for and granted, by the
    /// receiver and the transmitter.
    #[inline(always)]
    fn flowed(&mut self, asked: [u32; 2], granted: [u32; 2], cycle: u64) {
        if let Some(side) = &mut self.receive {
            side.granted += u64::from(granted[0]);
            if asked[0] != 0 {
                side.asked += u64::from(asked[0]);
                side.due = side.next_write(self.byte, self.access);
            }
        }
        if let Some(side) = &mut self.transmit {
            side.granted += u64::from(granted[1]);
            if asked[1] != 0 {
                side.asked += u64::from(asked[1]);
                side.due = side.next_read(self.byte, self.access);
            }
        }
        self.plan(cycle - 1, self.arrival);
    }
}
