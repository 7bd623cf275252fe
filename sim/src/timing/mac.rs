//! Both sides of the MAC in time.
//!
//! ```text
//!   transmit   TxPrd covers the frame
//!              | preamble |  frame, CRC  | gap |
//!              desc, 9 reads, then 1 every 8 byte times        F4, TxCon at the end
//!   receive    | preamble |  frame, CRC  | gap |
//!                   16 byte times, then 1 write every 8        E0 when all are written
//! ```

use super::Fine;
use crate::timing::port::{Client, Port};
use tigon2_chip::mac::{CRC_BYTES, MIN_FRAME};

/// Preamble, start delimiter and gap, in bytes.
const BETWEEN: u64 = 20;
/// Reads that the transmitter asks for at once: its FIFO, and the descriptor.
const TRANSMIT_AHEAD: u64 = 9 + 1;
/// Byte times from the start of a received frame, and those of an access, to its first
/// write.
const RECEIVE_AFTER: u64 = 8;
/// Accesses behind the data of a received frame: descriptor, statistics read and write.
const RECEIVE_EXTRA: u64 = 3;
/// Picoseconds of a byte at 1 Gb/s.
const GIGABIT_BYTE_PS: u64 = 8000;
/// Picoseconds of a second.
const SECOND_PS: u64 = 1_000_000_000_000;

/// One side at work.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// When the frame began.
    start: Fine,
    /// When it ends on the wire.
    end: Fine,
    /// Accesses that were asked for, and how many there are in all.
    asked: u64,
    all: u64,
    /// Accesses that were granted.
    granted: u64,
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
    byte: Fine,
    /// Bytes of an access.
    access: u64,
    core_hz: u64,
    transmit: Option<Side>,
    transmit_free: Fine,
    receive: Option<Side>,
    /// The cycle in which the next frame begins to arrive.
    arrival: u64,
    /// The transmitter has not looked for a frame since the card changed.
    look: bool,
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
        self.transmit = Some(Side {
            start,
            end: start.plus(self.bytes(wire)),
            asked: 0,
            all: 1 + length.div_ceil(self.access),
            granted: 0,
        });
    }

    /// A time in nanoseconds since power-on.
    pub fn at(&self, nanoseconds: u64) -> Fine {
        Fine::periods(nanoseconds, self.core_hz, 1_000_000_000)
    }

    /// A frame of `length` bytes without CRC begins to arrive.
    pub fn receive(&mut self, start: Fine, length: usize) {
        let length = length.max(MIN_FRAME) as u64 + CRC_BYTES as u64;
        self.receive = Some(Side {
            start,
            end: start.plus(self.bytes(length + 8)),
            asked: 0,
            all: length.div_ceil(self.access) + RECEIVE_EXTRA,
            granted: 0,
        });
    }

    /// What is due in `cycle`. A side that is done is idle afterwards.
    #[inline]
    pub fn tick(&mut self, cycle: u64, port: &mut Port) -> Due {
        let now = Fine::cycle(cycle);
        let (byte, access) = (self.byte, self.access);
        let mut due = Due::default();
        if let Some(side) = &mut self.transmit {
            // The descriptor and the FIFO at once, then a word each 8 byte times.
            while side.asked < side.all && {
                let ahead = side.asked.saturating_sub(TRANSMIT_AHEAD - 1);
                side.start.plus(byte.times(ahead * access)) <= now
            } {
                side.asked += 1;
            }
            if side.asked > side.granted {
                port.request(Client::MacTransmit, false);
            }
            if side.end <= now {
                port.withdraw(Client::MacTransmit);
                self.transmit_free = side.end;
                self.transmit = None;
                self.look = true;
                due.sent = true;
            }
        }
        if let Some(side) = &mut self.receive {
            while side.asked < side.all && {
                let data = side.asked.min(side.all - RECEIVE_EXTRA - 1);
                let at = side
                    .start
                    .plus(byte.times(RECEIVE_AFTER + (data + 1) * access));
                at.min(side.end) <= now
            } {
                side.asked += 1;
            }
            if side.asked > side.granted {
                port.request(Client::MacReceive, true);
            }
            due.received = side.granted == side.all && side.end <= now;
        }
        due.may_send = self.transmit.is_none() && self.transmit_free <= Fine::cycle(cycle + 1);
        due.may_receive = self.receive.is_none();
        due
    }

    /// The frame that has arrived is stored or dropped: the receiver is idle.
    pub fn received(&mut self) {
        self.receive = None;
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
        let sent = self
            .transmit
            .as_ref()
            .map_or(u64::MAX, |side| side.end.ceil());
        let receives = self.receive.as_ref();
        let received = receives.map_or(self.arrival, |side| side.end.ceil());
        sent.min(received)
    }

    /// Works out when there is something to do after `cycle`; a frame from the wire begins
    /// in cycle `arrival`.
    pub fn plan(&mut self, cycle: u64, arrival: u64) {
        let (byte, access) = (self.byte, self.access);
        self.arrival = arrival;
        let transmit = self.transmit.as_ref().map(|side| {
            let ahead = side.asked.saturating_sub(TRANSMIT_AHEAD - 1);
            if side.asked < side.all {
                side.end
                    .min(side.start.plus(byte.times(ahead * access)))
                    .ceil()
            } else {
                side.end.ceil()
            }
        });
        let receive = match &self.receive {
            None => arrival,
            Some(side) if side.asked < side.all => {
                let data = side.asked.min(side.all - RECEIVE_EXTRA - 1);
                let at = side
                    .start
                    .plus(byte.times(RECEIVE_AFTER + (data + 1) * access));
                at.min(side.end).ceil()
            }
            Some(side) if side.granted == side.all => side.end.ceil(),
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
