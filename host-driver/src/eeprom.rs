//! The serial EEPROM, read by moving its two wires through `R[44]`.
//!
//! Hardware reference, sections 9 (`R[44]`) and "Serial EEPROM, confirmed": a
//! 24Cxx-type two-wire device at select byte 0xA0 (write) / 0xA1 (read) with a
//! 16-bit word address, high byte first. The line level is bit 22 while bit 21 is
//! set, else it is pulled up; bit 20 is the clock; bit 23 reads the line.
//!
//! ```text
//! one byte:  START A0 ack  hi ack  lo ack  START A1 ack  d7..d0 nack  STOP
//! START = data falls while the clock is high, STOP = data rises while it is high
//! ```

use thiserror::Error;
use tigon2_chip::bits::MiscLocalControl;
use tigon2_chip::eeprom::{MAC_OFFSET, SELECT_READ, SELECT_WRITE};
use tigon2_chip::registers::Register;

use crate::transport::{Transport, TransportError};

/// Bytes that hold the MAC address: two zero bytes and the six of the address.
const MAC_FIELD_BYTES: usize = 8;

/// Why the EEPROM could not be read.
#[derive(Debug, Error)]
pub enum EepromError {
    /// The device did not acknowledge a byte: there is none, or it is not ready.
    #[error("the serial EEPROM does not acknowledge {what} (reading byte {address:#06x})")]
    NoAcknowledge {
        /// Which byte of the dialogue stayed unanswered.
        what: &'static str,
        /// The EEPROM address that was being read.
        address: u16,
    },
    /// The address field holds no usable station address.
    #[error("the serial EEPROM holds no station address (found {})", hex(.0))]
    NoAddress([u8; 6]),
    /// The card could not be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(":")
}

/// The two wires, as `R[44]` moves them; everything else in `R[44]` is kept.
struct Wires<'a, T: Transport> {
    transport: &'a mut T,
    control: MiscLocalControl,
}

impl<'a, T: Transport> Wires<'a, T> {
    /// Takes the wires over, both high (idle).
    fn new(transport: &'a mut T) -> Result<Self, TransportError> {
        let now = transport.read(Register::MiscLocalControl.offset())?;
        // The interrupt strobe reads 0; it must in no case be written back as 1.
        let control = MiscLocalControl::from_bits(now).with_raise_interrupt(false);
        let mut wires = Self { transport, control };
        wires.data(true)?;
        wires.clock(true)?;
        Ok(wires)
    }

    fn put(&mut self) -> Result<(), TransportError> {
        self.transport.write(
            Register::MiscLocalControl.offset(),
            self.control.into_bits(),
        )
    }

    /// Drives the data line.
    fn data(&mut self, level: bool) -> Result<(), TransportError> {
        self.control = self.control.with_eeprom_drive(true).with_eeprom_out(level);
        self.put()
    }

    /// Lets go of the data line, so that the EEPROM can drive it.
    fn release(&mut self) -> Result<(), TransportError> {
        self.control = self.control.with_eeprom_drive(false).with_eeprom_out(true);
        self.put()
    }

    fn clock(&mut self, level: bool) -> Result<(), TransportError> {
        self.control = self.control.with_eeprom_clock(level);
        self.put()
    }

    fn sample(&mut self) -> Result<bool, TransportError> {
        let now = self.transport.read(Register::MiscLocalControl.offset())?;
        Ok(MiscLocalControl::from_bits(now).eeprom_in())
    }

    fn start(&mut self) -> Result<(), TransportError> {
        // A repeated START comes with the clock low: raise data before the clock,
        // or this would be a STOP.
        self.data(true)?;
        self.clock(true)?;
        self.data(false)?;
        self.clock(false)
    }

    fn stop(&mut self) -> Result<(), TransportError> {
        self.data(false)?;
        self.clock(true)?;
        self.data(true)
    }

    /// Sends a byte, most significant bit first; true if it was acknowledged.
    fn send(&mut self, byte: u8) -> Result<bool, TransportError> {
        for bit in (0..8).rev() {
            self.data(byte >> bit & 1 == 1)?;
            self.clock(true)?;
            self.clock(false)?;
        }
        self.release()?;
        self.clock(true)?;
        let acknowledged = !self.sample()?;
        self.clock(false)?;
        Ok(acknowledged)
    }

    /// Receives a byte and answers with "no more" (line left high).
    fn receive_last(&mut self) -> Result<u8, TransportError> {
        self.release()?;
        let mut byte = 0;
        for _ in 0..8 {
            self.clock(true)?;
            byte = byte << 1 | u8::from(self.sample()?);
            self.clock(false)?;
        }
        self.data(true)?;
        self.clock(true)?;
        self.clock(false)?;
        Ok(byte)
    }
}

/// Reads one byte at an EEPROM address.
///
/// # Errors
/// [`EepromError`] if the device does not acknowledge or the card is gone.
pub fn read_byte<T: Transport>(transport: &mut T, address: u16) -> Result<u8, EepromError> {
    let mut wires = Wires::new(transport)?;
    let result = dialogue(&mut wires, address);
    // Also after a failure: a device that is left in the middle of a byte would
    // not understand the next START.
    wires.stop()?;
    result
}

fn dialogue<T: Transport>(wires: &mut Wires<'_, T>, address: u16) -> Result<u8, EepromError> {
    let [high, low] = address.to_be_bytes();
    let expect = |acknowledged, what| {
        if acknowledged {
            Ok(())
        } else {
            Err(EepromError::NoAcknowledge { what, address })
        }
    };
    wires.start()?;
    expect(wires.send(SELECT_WRITE)?, "its select byte")?;
    expect(wires.send(high)?, "the high address byte")?;
    expect(wires.send(low)?, "the low address byte")?;
    wires.start()?;
    expect(wires.send(SELECT_READ)?, "its select byte for reading")?;
    Ok(wires.receive_last()?)
}

/// Reads the station (MAC) address from bytes 0x8C..0x93.
///
/// # Errors
/// [`EepromError`] if the device does not answer, or if what it holds is no
/// address of one station (all zero, or with the multicast bit set).
pub fn station_address<T: Transport>(transport: &mut T) -> Result<[u8; 6], EepromError> {
    let mut field = [0; MAC_FIELD_BYTES];
    for (address, byte) in (MAC_OFFSET..).zip(&mut field) {
        *byte = read_byte(transport, address)?;
    }
    let [_, _, a, b, c, d, e, f] = field;
    let station = [a, b, c, d, e, f];
    if a & 1 == 1 || station == [0; 6] {
        return Err(EepromError::NoAddress(station));
    }
    Ok(station)
}
