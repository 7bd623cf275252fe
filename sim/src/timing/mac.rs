//! The timing of both sides of the MAC.
//!
//! ```text
//!   transmit   TxPrd covers the frame
//!              | preamble |  frame, CRC  | gap |
//!              desc, 9 reads, then 1 every 8 byte times        F4, TxCon at the end
//!   receive    | preamble |  frame, CRC  | gap |
//!                   16 byte times, then 1 write every 8        E0 when all are written
//! ```

use super::fine::Fine;
use crate::timing::port::{Client, Port};
use tigon2_chip::mac::{CRC_BYTES, MIN_FRAME};

/// Preamble, start delimiter and gap, in bytes.
const BETWEEN: u64 = 20;
/// The gap alone.
const GAP: u64 = 12;
/// Reads that the transmitter asks for at once: its FIFO, and the descriptor.
pub(crate) const TRANSMIT_AHEAD: u64 = 9 + 1;
/// Byte times from the start of a received frame, and those of an access, to its first
/// write.
const RECEIVE_AFTER: u64 = 8;
/// Accesses behind the data of a received frame: descriptor, statistics read and write.
pub(super) const RECEIVE_EXTRA: u64 = 3;
/// Picoseconds of a byte at 1 Gb/s.
const GIGABIT_BYTE_PS: u64 = 8000;
/// Picoseconds of a second.
const SECOND_PS: u64 = 1_000_000_000_000;

/// One side at work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    /// When the frame began.
    pub(super) start: Fine,
    /// When it ends on the wire, and the cycle.
    end: Fine,
    pub(super) ends: u64,
    /// Accesses that were asked for, and how many there are in all.
    pub(super) asked: u64,
    pub(super) all: u64,
    /// Accesses that were granted.
    pub(super) granted: u64,
    /// The cycle in which the next one is asked for; [`u64::MAX`] if that was the last.
    pub(super) due: u64,
}

impl Side {
    fn new(start: Fine, end: Fine, all: u64) -> Side {
        Side {
            start,
            end,
            ends: end.ceil(),
            asked: 0,
            all,
            granted: 0,
            due: u64::MAX,
        }
    }

    /// The cycle in which a transmitter asks for its next access: the descriptor and the
    /// FIFO at once, then a word each so many byte times.
    #[inline]
    pub(super) fn next_read(&self, byte: Fine, access: u64) -> u64 {
        if self.asked == self.all {
            return u64::MAX;
        }
        let ahead = self.asked.saturating_sub(TRANSMIT_AHEAD - 1);
        self.start.plus(byte.times(ahead * access)).ceil()
    }

    /// The cycle in which a receiver asks for its next access: a word each so many byte
    /// times, what is behind the data as soon as that is there.
    #[inline]
    pub(super) fn next_write(&self, byte: Fine, access: u64) -> u64 {
        if self.asked == self.all {
            return u64::MAX;
        }
        let data = self.asked.min(self.all - RECEIVE_EXTRA - 1);
        self.write_time(data, byte, access).min(self.end).ceil()
    }

    /// When a receiver has word `data` of the frame.
    #[inline]
    pub(super) fn write_time(&self, data: u64, byte: Fine, access: u64) -> Fine {
        self.start
            .plus(byte.times(RECEIVE_AFTER + (data + 1) * access))
    }
}

/// What the machine has to do for the MAC now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// A frame has left.
    pub sent: bool,
    /// The transmitter could take the next frame.
    pub may_send: bool,
    /// A frame has arrived; [`MacEngine::received`] ends it.
    pub received: bool,
    /// The receiver could take the next frame.
    pub may_receive: bool,
}

/// Both sides.
#[derive(Clone, Debug)]
pub struct MacEngine {
    /// The first cycle in which there is something to do.
    pub wake: u64,
    byte_ps: u64,
    pub(super) byte: Fine,
    /// Bytes of an access.
    pub(super) access: u64,
    core_hz: u64,
    pub(super) transmit: Option<Side>,
    transmit_free: Fine,
    pub(super) receive: Option<Side>,
    /// The cycle in which the next frame begins to arrive.
    pub(super) arrival: u64,
    /// The transmitter has not looked for a frame since the card changed.
    pub(super) look: bool,
    /// Neither side has looked at anything since then.
    pub(super) changed: bool,
}

impl MacEngine {
    /// An idle MAC beside CPUs of `core_hz`, at an SRAM port so many bytes wide.
    pub fn new(core_hz: u32, port_bytes: u32) -> MacEngine {
        MacEngine {
            wake: 0,
            byte_ps: GIGABIT_BYTE_PS,
            byte: Fine::periods(GIGABIT_BYTE_PS, core_hz.into(), SECOND_PS),
            access: port_bytes.into(),
            core_hz: core_hz.into(),
            transmit: None,
            transmit_free: Fine::default(),
            receive: None,
            arrival: 0,
            look: true,
            changed: true,
        }
    }

    /// Whether no frame is on its way.
    pub fn is_quiet(&self) -> bool {
        self.transmit.is_none() && self.receive.is_none()
    }

    /// The card has changed: the transmitter looks for a frame in the next cycle.
    #[inline]
    pub fn recheck(&mut self) {
        self.wake = 0;
        self.look = true;
        self.changed = true;
    }

    /// Whether the transmitter has not looked for a frame yet.
    #[inline]
    pub fn looks(&self) -> bool {
        self.look
    }

    /// The transmitter has looked for a frame.
    #[inline]
    pub fn looked(&mut self) {
        self.look = false;
    }

    /// The time of a byte on the wire in picoseconds, from the next frames on.
    pub fn set_speed(&mut self, byte_ps: u64) {
        if self.byte_ps != byte_ps {
            self.byte_ps = byte_ps;
            self.byte = Fine::periods(byte_ps, self.core_hz, SECOND_PS);
        }
    }

    fn bytes(&self, count: u64) -> Fine {
        self.byte.times(count)
    }

    /// The transmitter has taken a frame of `length` bytes, in `cycle`.
    pub fn send(&mut self, cycle: u64, length: usize) {
        let length = length as u64;
        // Right behind the last frame if that has just ended.
        let start = self.transmit_free.no_earlier_than(cycle);
        let wire = length.max(MIN_FRAME as u64) + CRC_BYTES as u64 + BETWEEN;
        let end = start.plus(self.bytes(wire));
        let all = 1 + length.div_ceil(self.access);
        let mut side = Side::new(start, end, all);
        side.due = side.next_read(self.byte, self.access);
        self.transmit = Some(side);
    }

    /// When the frame that leaves began, in nanoseconds since power-on.
    pub fn sending_since(&self) -> Option<u64> {
        let side = self.transmit.as_ref()?;
        Some(side.start.at_rate(self.core_hz, 1_000_000_000))
    }

    /// The frame that arrives ends at a time, and not where its sender meant it to end.
    pub fn cut_received(&mut self, end: Fine) {
        let (byte, access) = (self.byte, self.access);
        self.changed = true;
        self.wake = 0;
        if let Some(side) = &mut self.receive
            && end < side.end
        {
            let there = |word: &u64| side.write_time(*word, byte, access) <= end;
            let words = (0..side.all - RECEIVE_EXTRA).take_while(there).count() as u64;
            side.all = words.max(side.asked.min(side.all - RECEIVE_EXTRA)) + RECEIVE_EXTRA;
            side.end = end;
            side.ends = end.ceil();
            side.due = side.next_write(byte, access);
        }
    }

    /// Whether a frame leaves.
    #[inline]
    pub fn is_sending(&self) -> bool {
        self.transmit.is_some()
    }

    /// Cycles from this one to the end of the CRC of the frame that leaves.
    pub fn left(&self, cycle: u64) -> u64 {
        let gap = self.bytes(GAP).ceil();
        let side = self.transmit.as_ref();
        side.map_or(0, |side| side.ends.saturating_sub(gap + cycle))
    }

    /// The frame that leaves ends in `cycle`, without a good CRC; the gap follows.
    pub fn cut(&mut self, cycle: u64, port: &mut Port) {
        port.withdraw(Client::MacTransmit);
        self.transmit = None;
        self.transmit_free = Fine::cycle(cycle).plus(self.bytes(GAP));
        self.look = true;
    }

    /// A time in nanoseconds since power-on.
    pub fn at(&self, nanoseconds: u64) -> Fine {
        Fine::periods(nanoseconds, self.core_hz, 1_000_000_000)
    }

    /// A frame of `length` bytes without CRC begins to arrive.
    pub fn receive(&mut self, start: Fine, length: usize) {
        let length = length.max(MIN_FRAME) as u64 + CRC_BYTES as u64;
        let end = start.plus(self.bytes(length + 8));
        let all = length.div_ceil(self.access) + RECEIVE_EXTRA;
        let mut side = Side::new(start, end, all);
        side.due = side.next_write(self.byte, self.access);
        self.receive = Some(side);
    }

    /// What is due in `cycle`. A side that is done is idle afterwards.
    #[inline]
    pub fn tick(&mut self, cycle: u64, port: &mut Port) -> Due {
        let (byte, access) = (self.byte, self.access);
        let mut due = Due::default();
        if let Some(side) = &mut self.transmit {
            while side.due <= cycle {
                side.asked += 1;
                side.due = side.next_read(byte, access);
            }
            if side.asked > side.granted {
                port.request(Client::MacTransmit, false);
            }
            if side.ends <= cycle {
                port.withdraw(Client::MacTransmit);
                self.transmit_free = side.end;
                self.transmit = None;
                self.look = true;
                due.sent = true;
            }
        }
        if let Some(side) = &mut self.receive {
            while side.due <= cycle {
                side.asked += 1;
                side.due = side.next_write(byte, access);
            }
            if side.asked > side.granted {
                port.request(Client::MacReceive, true);
            }
            due.received = side.granted == side.all && side.ends <= cycle;
        }
        due.may_send = self.transmit.is_none() && self.transmit_free <= Fine::cycle(cycle + 1);
        due.may_receive = self.receive.is_none();
        due
    }

    /// The frame that has arrived is stored or dropped: the receiver is idle.
    pub fn received(&mut self) {
        self.receive = None;
    }

    /// Bytes that the transmitter has read of its frame; the first access is its descriptor.
    #[inline]
    pub fn fetched(&self) -> u64 {
        let granted = self.transmit.as_ref().map_or(0, |side| side.granted);
        granted.saturating_sub(1) * self.access
    }

    /// Bytes that the receiver has stored of the frame that arrives, its CRC included.
    #[inline]
    pub fn stored(&self) -> u64 {
        let granted = self.receive.as_ref().map_or(0, |side| side.granted);
        granted * self.access
    }

    /// The SRAM port was given to the transmitter.
    #[inline]
    pub fn transmit_granted(&mut self, port: &mut Port) {
        granted(&mut self.transmit, port, Client::MacTransmit);
    }

    /// The SRAM port was given to the receiver.
    #[inline]
    pub fn receive_granted(&mut self, cycle: u64, port: &mut Port) {
        if granted(&mut self.receive, port, Client::MacReceive) {
            self.wake = self.wake.min(cycle + 1);
        }
    }

    /// The first cycle in which a frame may have left, may have arrived or begins to.
    #[inline]
    pub(crate) fn quiet_until(&self) -> u64 {
        let ends = |side: &Option<Side>| side.as_ref().map(|side| side.ends);
        let received = ends(&self.receive).unwrap_or(self.arrival);
        ends(&self.transmit).unwrap_or(u64::MAX).min(received)
    }

    /// Asks for the accesses that are due in `cycle`, if that is all there is to do: no
    /// frame begins or ends, none is looked for. Returns whether it was.
    #[inline]
    pub fn only_asks(&mut self, cycle: u64, port: &mut Port) -> bool {
        let looks = self.look && self.transmit.is_none();
        if self.changed || looks || self.is_quiet() || self.quiet_until() <= cycle {
            return false;
        }
        self.tick(cycle, port);
        self.plan(cycle, self.arrival);
        true
    }

    /// Works out when there is something to do after `cycle`; a frame from the wire begins
    /// in cycle `arrival`.
    pub fn plan(&mut self, cycle: u64, arrival: u64) {
        self.arrival = arrival;
        self.changed = false;
        let transmit = match &self.transmit {
            Some(side) => Some(side.due.min(side.ends)),
            // A frame that was cut is followed by its gap before anybody looks for the next.
            None if self.look && self.transmit_free > Fine::cycle(cycle + 1) => {
                Some(self.transmit_free.ceil() - 1)
            }
            None => None,
        };
        let receive = match &self.receive {
            None => arrival,
            Some(side) if side.asked < side.all => side.due,
            Some(side) if side.granted == side.all => side.ends,
            // The last grant wakes the engine.
            Some(_) => u64::MAX,
        };
        self.wake = transmit.unwrap_or(u64::MAX).min(receive).max(cycle + 1);
    }
}

/// Counts a grant; whether it was the last one.
fn granted(side: &mut Option<Side>, port: &mut Port, client: Client) -> bool {
    let Some(side) = side else {
        port.withdraw(client);
        return false;
    };
    side.granted += 1;
    if side.granted == side.asked {
        port.withdraw(client);
    }
    side.granted == side.all
}
