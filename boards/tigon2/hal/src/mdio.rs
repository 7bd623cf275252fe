//! The management bus of a copper PHY, bit-banged on three lines of `R[44]`.
//!
//! Hardware reference, section 9, "MDIO framing by firmware" (C). A frame takes about a
//! quarter of a millisecond: every level is held for a microsecond or two.

use crate::Bus;
use crate::timer::Delay;
use embedded_hal::delay::DelayNs;
use tigon2_chip::Register;
use tigon2_chip::bits::MiscLocalControl;
use tigon2_chip::mdio::{HEADER_BITS, PREAMBLE_BITS, read_header, write_frame};

const CLOCK: u32 = MiscLocalControl::new().with_mdio_clock(true).into_bits();
const DRIVE: u32 = MiscLocalControl::new().with_mdio_drive(true).into_bits();
const OUT: u32 = MiscLocalControl::new().with_mdio_out(true).into_bits();
const IN: u32 = MiscLocalControl::new().with_mdio_in(true).into_bits();
/// The interrupt strobe reads 0, but a sticky one must not be written back.
const STROBE: u32 = MiscLocalControl::new()
    .with_raise_interrupt(true)
    .into_bits();

/// The lines during a frame.
struct Lines<'a, B: Bus> {
    bus: &'a mut B,
    /// `R[44]` without the lines.
    rest: u32,
}

impl<B: Bus> Lines<'_, B> {
    fn new(bus: &mut B) -> Lines<'_, B> {
        let rest = bus.read(Register::MiscLocalControl) & !(CLOCK | DRIVE | OUT | IN | STROBE);
        Lines { bus, rest }
    }

    /// One clock with the line at these levels; returns the PHY's level before the rising edge.
    fn clock(&mut self, levels: u32) -> bool {
        self.bus
            .write(Register::MiscLocalControl, self.rest | levels);
        Delay(self.bus).delay_us(1);
        let seen = self.bus.read(Register::MiscLocalControl) & IN != 0;
        self.bus
            .write(Register::MiscLocalControl, self.rest | levels | CLOCK);
        Delay(self.bus).delay_us(1);
        seen
    }

    /// Sends the lowest `count` bits of `bits`, most significant first.
    fn send(&mut self, bits: u32, count: u32) {
        for bit in (0..count).rev() {
            let out = if bits & 1 << bit != 0 { OUT } else { 0 };
            self.clock(DRIVE | out);
        }
    }

    fn release(&mut self) {
        self.bus.write(Register::MiscLocalControl, self.rest);
    }
}

/// Reads a register of a PHY (both below 32); 0 if no PHY answers and the line is low.
#[inline(never)]
pub fn read<B: Bus>(bus: &mut B, phy: u8, register: u8) -> u16 {
    let mut lines = Lines::new(bus);
    lines.send(u32::MAX, PREAMBLE_BITS);
    lines.send(read_header(phy, register), HEADER_BITS);
    // The turnaround: the PHY drives the line.
    lines.clock(0);
    lines.clock(0);
    let mut value = 0;
    for _ in 0..16 {
        value = value << 1 | u16::from(lines.clock(0));
    }
    lines.release();
    value
}

/// Writes a register of a PHY (both below 32).
#[inline(never)]
pub fn write<B: Bus>(bus: &mut B, phy: u8, register: u8, value: u16) {
    let mut lines = Lines::new(bus);
    lines.send(u32::MAX, PREAMBLE_BITS);
    lines.send(write_frame(phy, register, value), 32);
    lines.release();
}
