//! The PHY management bus on three lines of `R[44]`, from the PHY's side.
//!
//! Hardware reference, section 9, "MDIO framing by firmware". The PHY samples bits at the rising
//! edge of the clock. In a read the PHY drives the line from the second turnaround bit on; each
//! bit is stable from one rising edge to the next, so that the master samples it before it raises
//! the clock:
//!
//! ```text
//! clock    14 header bits │ T1  │ T2  │ D15 │ D14 ...
//! data in  1              │     0     MSB   D14   D13 ...   behind each rising edge
//! ```

use tigon2_chip::mdio::{HEADER_BITS, PREAMBLE_BITS, READ, START, WRITE};

/// Bits of a frame after the header: turnaround and data.
const BODY_BITS: u32 = 18;

/// The lines as the card drives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MdioLines {
    /// Clock, bit 16 of `R[44]`.
    pub clock: bool,
    /// The card drives the data line, bit 17.
    pub drive: bool,
    /// Its level, bit 18.
    pub out: bool,
}

/// The devices on the bus.
pub trait MdioDevices {
    /// A read; `None` if there is no such PHY.
    fn mdio_read(&mut self, phy: u8, register: u8) -> Option<u16>;
    /// A write.
    fn mdio_write(&mut self, phy: u8, register: u8, value: u16);
}

/// The state of the bus within a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between frames, with this many ones so far.
    Idle { ones: u32 },
    /// In the header: bits and their number.
    Header { bits: u32, count: u32 },
    /// A PHY answers: the line's levels after the next rising edges, the next one in bit 17.
    Reading { line: u32, left: u32 },
    /// The master sends more: bits and their number.
    Writing {
        phy: u8,
        register: u8,
        bits: u32,
        count: u32,
    },
}

/// The bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MdioBus {
    lines: MdioLines,
    state: State,
    /// The level of the data line while the card does not drive it.
    level: bool,
}

impl Default for MdioBus {
    fn default() -> Self {
        MdioBus {
            lines: MdioLines::default(),
            state: State::Idle { ones: 0 },
            level: true,
        }
    }
}

impl MdioBus {
    /// The data line, bit 19 of `R[44]`: the card's level, else the PHY's, else pulled up.
    pub fn data_in(&self) -> bool {
        if self.lines.drive {
            self.lines.out
        } else {
            self.level
        }
    }

    /// The card wrote the lines. One write may change clock and data together.
    pub fn set_lines(&mut self, lines: MdioLines, devices: &mut impl MdioDevices) {
        let rising = lines.clock && !self.lines.clock;
        self.lines = lines;
        if rising {
            let bit = u32::from(!lines.drive || lines.out);
            self.state = self.next(bit, devices);
        }
    }

    fn next(&mut self, bit: u32, devices: &mut impl MdioDevices) -> State {
        match self.state {
            State::Idle { ones } if bit != 0 => State::Idle {
                ones: ones.saturating_add(1),
            },
            State::Idle { ones } if ones < PREAMBLE_BITS => State::Idle { ones: 0 },
            State::Idle { .. } => State::Header { bits: 0, count: 1 },
            State::Header { bits, count } => {
                let (bits, count) = (bits << 1 | bit, count + 1);
                if count == 2 && bits != START {
                    State::Idle { ones: 0 }
                } else if count < HEADER_BITS {
                    State::Header { bits, count }
                } else {
                    Self::addressed(bits, devices)
                }
            }
            State::Reading { line, left } => {
                self.level = line >> (BODY_BITS - 1) & 1 != 0;
                match left {
                    1 => State::Idle { ones: 0 },
                    _ => State::Reading {
                        line: line << 1,
                        left: left - 1,
                    },
                }
            }
            State::Writing {
                phy,
                register,
                bits,
                count,
            } => {
                let (bits, count) = (bits << 1 | bit, count + 1);
                if count < BODY_BITS {
                    return State::Writing {
                        phy,
                        register,
                        bits,
                        count,
                    };
                }
                devices.mdio_write(phy, register, bits as u16);
                State::Idle { ones: 0 }
            }
        }
    }

    /// The header is complete.
    fn addressed(header: u32, devices: &mut impl MdioDevices) -> State {
        let (phy, register) = ((header >> 5 & 31) as u8, (header & 31) as u8);
        match header >> 10 & 3 {
            READ => {
                // Second turnaround bit, data, and the line is free again; without a PHY it stays
                // pulled up.
                let line = match devices.mdio_read(phy, register) {
                    Some(value) => u32::from(value) << 1 | 1,
                    None => u32::MAX,
                };
                State::Reading {
                    line,
                    left: BODY_BITS,
                }
            }
            WRITE => State::Writing {
                phy,
                register,
                bits: 0,
                count: 0,
            },
            _ => State::Idle { ones: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tigon2_chip::mdio;

    /// One PHY at address 1 whose registers hold `0xA500 + register`.
    #[derive(Default)]
    struct OnePhy {
        written: Vec<(u8, u8, u16)>,
    }

    impl MdioDevices for OnePhy {
        fn mdio_read(&mut self, phy: u8, register: u8) -> Option<u16> {
            (phy == 1).then_some(0xA500 + u16::from(register))
        }

        fn mdio_write(&mut self, phy: u8, register: u8, value: u16) {
            self.written.push((phy, register, value));
        }
    }

    /// The master of the reference: data with the clock low, then the clock high.
    struct Master {
        bus: MdioBus,
        phy: OnePhy,
    }

    impl Master {
        fn clock(&mut self, drive: bool, out: bool) {
            for clock in [false, true] {
                let lines = MdioLines { clock, drive, out };
                self.bus.set_lines(lines, &mut self.phy);
            }
        }

        fn send(&mut self, bits: u32, count: u32) {
            for bit in (0..count).rev() {
                self.clock(true, bits >> bit & 1 != 0);
            }
        }

        fn preamble(&mut self, ones: u32) {
            (0..ones).for_each(|_| self.clock(true, true));
        }

        /// Samples each bit before it raises the clock.
        fn receive(&mut self) -> u16 {
            self.clock(false, false);
            self.clock(false, false);
            let mut value = 0;
            for _ in 0..16 {
                let lines = MdioLines::default();
                self.bus.set_lines(lines, &mut self.phy);
                value = value << 1 | u16::from(self.bus.data_in());
                self.clock(false, false);
            }
            value
        }
    }

    fn master() -> Master {
        Master {
            bus: MdioBus::default(),
            phy: OnePhy::default(),
        }
    }

    /// Reference 9: two clocks after the register address, then the master samples bit 19
    /// before it raises the clock; a PHY model at address 1 is found (C).
    #[test]
    fn a_read_presents_each_bit_before_its_clock() {
        let mut master = master();
        for register in [0, 2, 31] {
            master.preamble(32);
            master.send(mdio::read_header(1, register), HEADER_BITS);
            assert_eq!(master.receive(), 0xA500 + u16::from(register));
        }
        master.preamble(32);
        master.send(mdio::read_header(7, 2), HEADER_BITS);
        assert_eq!(master.receive(), 0xFFFF, "nobody is there: pulled up");
    }

    #[test]
    fn the_turnaround_ends_with_a_zero_of_the_phy() {
        let mut master = master();
        master.preamble(40);
        master.send(mdio::read_header(1, 0), HEADER_BITS);
        let lines = MdioLines::default();
        master.bus.set_lines(lines, &mut master.phy);
        assert!(master.bus.data_in(), "nobody drives");
        master.clock(false, false);
        assert!(!master.bus.data_in(), "the PHY drives 0");
        master.clock(false, false);
        assert!(master.bus.data_in(), "0xA500 begins with a one");
    }

    /// Reference 9: 32 ones, start 01, write 01, 5 + 5 address bits, turnaround, 16 data bits
    /// (C).
    #[test]
    fn a_write_arrives_whole() {
        let mut master = master();
        master.preamble(32);
        master.send(mdio::write_frame(0, 4, 0x05E1), 32);
        master.preamble(32);
        master.send(mdio::write_frame(1, 0, 0x1200), 32);
        assert_eq!(master.phy.written, [(0, 4, 0x05E1), (1, 0, 0x1200)]);
    }

    #[test]
    fn frames_that_are_none_are_ignored() {
        let mut master = master();
        master.preamble(31);
        master.send(mdio::write_frame(1, 0, 0xFFFE), 32);
        master.preamble(32);
        master.send(0b00, 2);
        master.preamble(32);
        // Operation 11 is none.
        master.send(0b0111_0000_1000_0010, 16);
        master.preamble(31);
        assert_eq!(master.phy.written, []);
        // And the next good one is understood.
        master.preamble(32);
        master.send(mdio::write_frame(1, 9, 0x0200), 32);
        assert_eq!(master.phy.written, [(1, 9, 0x0200)]);
    }
}
