//! The serial EEPROM's two-wire bus as an embedded-hal I2C bus.
//!
//! Hardware reference, section 9, `R[44]` bits 20 to 23. Crates such as `eeprom24x` drive the
//! 24Cxx part on it. The host's driver uses the same lines before it starts the firmware; the
//! firmware must not use them at the same time.

use crate::Bus;
use crate::timer::Delay;
use embedded_hal::delay::DelayNs;
use embedded_hal::i2c::{
    ErrorKind, ErrorType, I2c, NoAcknowledgeSource, Operation, SevenBitAddress,
};
use tigon2_chip::Register;
use tigon2_chip::bits::MiscLocalControl;

/// Microseconds for which each level is held: 100 kHz parts require 4.7.
const HOLD: u32 = 5;

const CLOCK: u32 = MiscLocalControl::new().with_eeprom_clock(true).into_bits();
const DRIVE: u32 = MiscLocalControl::new().with_eeprom_drive(true).into_bits();
const OUT: u32 = MiscLocalControl::new().with_eeprom_out(true).into_bits();
const IN: u32 = MiscLocalControl::new().with_eeprom_in(true).into_bits();
const STROBE: u32 = MiscLocalControl::new()
    .with_raise_interrupt(true)
    .into_bits();

/// The device did not acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAcknowledged(NoAcknowledgeSource);

impl embedded_hal::i2c::Error for NotAcknowledged {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NoAcknowledge(self.0)
    }
}

/// The bus with the EEPROM on it.
#[derive(Debug)]
pub struct EepromBus<'a, B: Bus>(
    /// The bus for accesses to `R[44]`.
    pub &'a mut B,
);

impl<B: Bus> EepromBus<'_, B> {
    /// Ends any unfinished transfer: nine clocks with the data line released exceed any byte, then
    /// START and STOP follow.
    pub fn clear(&mut self) {
        self.lines(CLOCK, 0);
        for _ in 0..9 {
            self.sample();
        }
        self.start();
        self.stop();
    }

    fn lines(&mut self, mask: u32, value: u32) {
        self.0
            .modify(Register::MiscLocalControl, mask | STROBE, value & !STROBE);
        Delay(&mut *self.0).delay_us(HOLD);
    }

    fn data(&mut self, high: bool) {
        self.lines(DRIVE | OUT, if high { DRIVE | OUT } else { DRIVE });
    }

    fn start(&mut self) {
        self.data(true);
        self.lines(CLOCK, CLOCK);
        self.data(false);
        self.lines(CLOCK, 0);
    }

    fn stop(&mut self) {
        self.data(false);
        self.lines(CLOCK, CLOCK);
        self.data(true);
    }

    /// One clock with the data line released; the level while the clock was high.
    fn sample(&mut self) -> bool {
        self.lines(DRIVE, 0);
        self.lines(CLOCK, CLOCK);
        let level = self.0.read(Register::MiscLocalControl) & IN != 0;
        self.lines(CLOCK, 0);
        level
    }

    fn send(&mut self, byte: u8, what: NoAcknowledgeSource) -> Result<(), NotAcknowledged> {
        for bit in (0..8).rev() {
            self.data(byte >> bit & 1 != 0);
            self.lines(CLOCK, CLOCK);
            self.lines(CLOCK, 0);
        }
        if self.sample() {
            Err(NotAcknowledged(what))
        } else {
            Ok(())
        }
    }

    fn receive(&mut self, acknowledge: bool) -> u8 {
        let mut byte = 0;
        for _ in 0..8 {
            byte = byte << 1 | u8::from(self.sample());
        }
        self.data(!acknowledge);
        self.lines(CLOCK, CLOCK);
        self.lines(CLOCK, 0);
        byte
    }

    fn operate(
        &mut self,
        address: SevenBitAddress,
        operations: &mut [Operation<'_>],
    ) -> Result<(), NotAcknowledged> {
        let mut reading = None;
        let mut operations = operations.iter_mut().peekable();
        while let Some(operation) = operations.next() {
            let is_read = matches!(operation, Operation::Read(_));
            if reading != Some(is_read) {
                self.start();
                self.send(
                    address << 1 | u8::from(is_read),
                    NoAcknowledgeSource::Address,
                )?;
                reading = Some(is_read);
            }
            match operation {
                Operation::Write(bytes) => {
                    for byte in bytes.iter() {
                        self.send(*byte, NoAcknowledgeSource::Data)?;
                    }
                }
                Operation::Read(bytes) => {
                    let more = matches!(operations.peek(), Some(Operation::Read(_)));
                    let mut bytes = bytes.iter_mut().peekable();
                    while let Some(byte) = bytes.next() {
                        *byte = self.receive(more || bytes.peek().is_some());
                    }
                }
            }
        }
        Ok(())
    }
}

impl<B: Bus> ErrorType for EepromBus<'_, B> {
    type Error = NotAcknowledged;
}

impl<B: Bus> I2c for EepromBus<'_, B> {
    fn transaction(
        &mut self,
        address: SevenBitAddress,
        operations: &mut [Operation<'_>],
    ) -> Result<(), NotAcknowledged> {
        let result = self.operate(address, operations);
        self.stop();
        result
    }
}
