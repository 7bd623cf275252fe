//! The two LEDs of a two-LED board as embedded-hal output pins.
//!
//! Hardware reference, section 9, `R[44]` bits 5 and 6 (I).

use crate::Bus;
use core::convert::Infallible;
use embedded_hal::digital::{ErrorType, OutputPin, StatefulOutputPin};
use tigon2_chip::Register;
use tigon2_chip::bits::MiscLocalControl;

/// Which LED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Bit 5.
    First,
    /// Bit 6.
    Second,
}

/// One LED. It borrows the bus, so it is created for each use.
#[derive(Debug)]
pub struct Led<'a, B: Bus> {
    bus: &'a mut B,
    mask: u32,
}

impl<'a, B: Bus> Led<'a, B> {
    /// The LED `which`.
    pub fn new(bus: &'a mut B, which: Which) -> Led<'a, B> {
        let mask = match which {
            Which::First => MiscLocalControl::new().with_led_clock(true),
            Which::Second => MiscLocalControl::new().with_led_data(true),
        };
        Led {
            bus,
            mask: mask.into_bits(),
        }
    }

    fn set(&mut self, value: u32) {
        // The interrupt strobe reads 0, but a sticky one must not be written back.
        let strobe = MiscLocalControl::new()
            .with_raise_interrupt(true)
            .into_bits();
        self.bus.modify(
            Register::MiscLocalControl,
            self.mask | strobe,
            value & !strobe,
        );
    }
}

impl<B: Bus> ErrorType for Led<'_, B> {
    type Error = Infallible;
}

impl<B: Bus> OutputPin for Led<'_, B> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.set(0);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.set(u32::MAX);
        Ok(())
    }
}

impl<B: Bus> StatefulOutputPin for Led<'_, B> {
    fn is_set_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.bus.read(Register::MiscLocalControl) & self.mask != 0)
    }

    fn is_set_low(&mut self) -> Result<bool, Infallible> {
        self.is_set_high().map(|high| !high)
    }
}
