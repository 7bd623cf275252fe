//! A card's EEPROM as storage, bit-banged by the driver.

use boot_slots::Storage;

use crate::eeprom::{self, EepromError};
use crate::transport::Transport;

/// The EEPROM of a card whose CPUs are halted, so that nothing else drives its wires.
pub struct CardEeprom<'a, T: Transport>(&'a mut T);

impl<'a, T: Transport> CardEeprom<'a, T> {
    /// The EEPROM behind a transport, and its size in bytes.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn new(transport: &'a mut T) -> Result<(Self, u32), EepromError> {
        eeprom::clear(transport)?;
        let bytes = eeprom::size(transport)?;
        Ok((Self(transport), bytes))
    }
}

impl<T: Transport> Storage for CardEeprom<'_, T> {
    type Error = EepromError;

    fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), EepromError> {
        eeprom::read(self.0, at, out)
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), EepromError> {
        eeprom::write_page(self.0, at, bytes)
    }
}
