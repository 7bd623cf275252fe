//! The serial EEPROM, bit-banged through `R[44]`.
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
//!
//! Parts of more than 64 KB take the upper address bits from their select bytes. The card's CPUs
//! must be halted, because nothing else may drive the wires meanwhile.

use thiserror::Error;
use tigon2_chip::bits::MiscLocalControl;
use tigon2_chip::eeprom::{BLOCK_BYTES, MAC_OFFSET, MAX_BYTES, select_write};
use tigon2_chip::registers::Register;

use crate::transport::{Transport, TransportError};

/// Bytes that hold the MAC address: two zero bytes and the six of the address.
const MAC_FIELD_BYTES: usize = 8;

/// How often a part that is busy writing is polled. The emulated card is ready at once, a real one
/// after at most 10 ms; a poll takes 20 us or more.
const QUESTIONS: u32 = 1000;

/// Why the EEPROM could not be read or written.
#[derive(Debug, Error)]
pub enum EepromError {
    /// The device did not acknowledge a byte: it is missing or not ready.
    #[error("the serial EEPROM does not acknowledge {what} (at byte {address:#06x})")]
    NoAcknowledge {
        /// The unacknowledged byte.
        what: &'static str,
        /// The EEPROM address of the access.
        address: u32,
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
    /// Takes control of the wires, both high (idle).
    fn new(transport: &'a mut T) -> Result<Self, TransportError> {
        let now = transport.read(Register::MiscLocalControl.offset())?;
        // The interrupt strobe reads 0; it must never be written back as 1.
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

    /// Releases the data line, so that the EEPROM can drive it.
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

    /// Receives a byte and acknowledges it if `more` follow (otherwise the line stays high).
    fn receive(&mut self, more: bool) -> Result<u8, TransportError> {
        self.release()?;
        let mut byte = 0;
        for _ in 0..8 {
            self.clock(true)?;
            byte = byte << 1 | u8::from(self.sample()?);
            self.clock(false)?;
        }
        self.data(!more)?;
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
    let mut byte = [0];
    read(transport, address.into(), &mut byte)?;
    Ok(byte[0])
}

/// Reads consecutive bytes.
///
/// # Errors
/// [`EepromError`] if the device does not acknowledge or the card is gone.
pub fn read<T: Transport>(
    transport: &mut T,
    address: u32,
    out: &mut [u8],
) -> Result<(), EepromError> {
    in_dialogue(transport, |wires| {
        seek(wires, address)?;
        wires.start()?;
        let select = wires.send(select_write(address) | 1)?;
        expect(select, "its select byte for reading", address)?;
        let mut left = out.len();
        for byte in out {
            left -= 1;
            *byte = wires.receive(left > 0)?;
        }
        Ok(())
    })
}

/// Writes bytes of one page and waits until the device has stored them.
///
/// # Errors
/// [`EepromError`] if the device does not acknowledge or the card is gone.
pub fn write_page<T: Transport>(
    transport: &mut T,
    address: u32,
    bytes: &[u8],
) -> Result<(), EepromError> {
    in_dialogue(transport, |wires| {
        seek(wires, address)?;
        for byte in bytes {
            expect(wires.send(*byte)?, "a byte to write", address)?;
        }
        Ok(())
    })?;
    for _ in 0..QUESTIONS {
        if answers(transport, address)? {
            return Ok(());
        }
    }
    expect(false, "the end of a write", address)
}

/// The size of the device, by the select bytes that it acknowledges. Sizes up to 64 KB look the
/// same and count as 64 KB.
///
/// # Errors
/// [`EepromError`] if the device does not acknowledge or the card is gone.
pub fn size<T: Transport>(transport: &mut T) -> Result<u32, EepromError> {
    expect(answers(transport, 0)?, "its select byte", 0)?;
    let mut bytes = BLOCK_BYTES;
    while bytes < MAX_BYTES && answers(transport, bytes)? {
        bytes += bytes;
    }
    Ok(bytes)
}

/// Ends an unfinished transfer: the card's boot code may have been halted in the middle of one.
///
/// # Errors
/// [`TransportError`] if the card is gone.
pub fn clear<T: Transport>(transport: &mut T) -> Result<(), TransportError> {
    let mut wires = Wires::new(transport)?;
    wires.clock(false)?;
    wires.release()?;
    for _ in 0..9 {
        wires.clock(true)?;
        wires.clock(false)?;
    }
    wires.start()?;
    wires.stop()
}

/// Whether the device acknowledges the select byte of an address.
fn answers<T: Transport>(transport: &mut T, address: u32) -> Result<bool, TransportError> {
    let mut wires = Wires::new(transport)?;
    wires.start()?;
    let answer = wires.send(select_write(address))?;
    wires.stop()?;
    Ok(answer)
}

fn in_dialogue<T: Transport>(
    transport: &mut T,
    dialogue: impl FnOnce(&mut Wires<'_, T>) -> Result<(), EepromError>,
) -> Result<(), EepromError> {
    let mut wires = Wires::new(transport)?;
    let result = dialogue(&mut wires);
    // Also after a failure: a device in the middle of a byte would not understand the next START.
    wires.stop()?;
    result
}

fn expect(acknowledged: bool, what: &'static str, address: u32) -> Result<(), EepromError> {
    if acknowledged {
        Ok(())
    } else {
        Err(EepromError::NoAcknowledge { what, address })
    }
}

/// Sends the address of the next access.
fn seek<T: Transport>(wires: &mut Wires<'_, T>, address: u32) -> Result<(), EepromError> {
    let [high, low] = (address as u16).to_be_bytes();
    wires.start()?;
    expect(
        wires.send(select_write(address))?,
        "its select byte",
        address,
    )?;
    expect(wires.send(high)?, "the high address byte", address)?;
    expect(wires.send(low)?, "the low address byte", address)
}

/// Reads the station (MAC) address from bytes 0x8C..0x93.
///
/// # Errors
/// [`EepromError`] if the device does not answer, or if what it holds is no
/// address of one station (all zero, or with the multicast bit set).
pub fn station_address<T: Transport>(transport: &mut T) -> Result<[u8; 6], EepromError> {
    clear(transport)?;
    let mut field = [0; MAC_FIELD_BYTES];
    read(transport, MAC_OFFSET.into(), &mut field)?;
    let [_, _, a, b, c, d, e, f] = field;
    let station = [a, b, c, d, e, f];
    if a & 1 == 1 || station == [0; 6] {
        return Err(EepromError::NoAddress(station));
    }
    Ok(station)
}
