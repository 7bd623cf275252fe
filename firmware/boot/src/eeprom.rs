//! The board's EEPROM as [`boot_slots`] storage: `eeprom24x` on the HAL's I2C bus.

use boot_slots::Storage;
use core::cell::RefCell;
use eeprom24x::{Eeprom24x, SlaveAddr};
use tigon2_hal::Bus;
use tigon2_hal::eeprom::EepromBus;

/// How often a part that is busy writing is polled: for at least 10 ms, since a poll takes more
/// than 20 us.
const QUESTIONS: u32 = 1000;

/// The part does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAnswer;

/// Frees the bus after an unfinished transfer.
pub fn clear<B: Bus>(bus: &mut B) {
    EepromBus(bus).clear();
}

/// A part with up to 18 address bits and pages of 256 bytes.
pub struct Part<'a, 'b, B: Bus>(&'a RefCell<&'b mut B>);

impl<'a, 'b, B: Bus> Part<'a, 'b, B> {
    /// The part on a bus that others use between its transfers.
    pub fn new(bus: &'a RefCell<&'b mut B>) -> Self {
        Part(bus)
    }
}

impl<B: Bus> Storage for Part<'_, '_, B> {
    type Error = NoAnswer;

    fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), NoAnswer> {
        let mut bus = self.0.borrow_mut();
        let mut part = Eeprom24x::new_24xm02(EepromBus(&mut **bus), SlaveAddr::Default);
        part.read_data(at, out).map_err(|_| NoAnswer)
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), NoAnswer> {
        let mut bus = self.0.borrow_mut();
        let mut part = Eeprom24x::new_24xm02(EepromBus(&mut **bus), SlaveAddr::Default);
        part.write_page(at, bytes).map_err(|_| NoAnswer)?;
        for _ in 0..QUESTIONS {
            if part.read_byte(at).is_ok() {
                return Ok(());
            }
        }
        Err(NoAnswer)
    }
}
