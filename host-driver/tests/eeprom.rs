//! Tests the serial EEPROM by bit-banging, against the hardware model's.

mod support;

use host_driver::eeprom::{EepromError, read_byte, station_address};
use host_driver::transport::{Transport, Vector};
use support::{STATION, ScriptedCard};
use tigon2_chip::Register;

/// Reference, "Serial EEPROM, confirmed": MAC in 0x8E..0x93, read byte by byte (C!).
#[test]
fn the_station_address_is_read() {
    let mut card = ScriptedCard::default();
    assert_eq!(station_address(&mut card).expect("an EEPROM"), STATION);
}

#[test]
fn every_byte_is_read_at_its_own_address() {
    let mut card = ScriptedCard::default();
    let contents: Vec<u8> = (0..1024u32).map(|at| (at * 7 + at / 256) as u8).collect();
    card.bench.card.eeprom_mut().load(&contents);
    for address in [0u16, 1, 0x8C, 0x93, 0xFF, 0x100, 0x1FF, 0x3FF] {
        let byte = read_byte(&mut card, address).expect("an EEPROM");
        assert_eq!(byte, contents[usize::from(address)], "at {address:#x}");
    }
}

/// Reference 9: R[44] holds LEDs, SRAM size and MDIO too; they stay (C).
#[test]
fn other_bits_of_the_register_are_kept() {
    let mut card = ScriptedCard::default();
    let offset = Register::MiscLocalControl.offset();
    let others = 0x0000_A260;
    card.write(offset, others).expect("a card");
    read_byte(&mut card, 0x8C).expect("an EEPROM");
    let now = card.read(offset).expect("a card");
    assert_eq!(now & 0x0000_FFFF, others);
}

/// A card whose EEPROM data line nobody pulls down.
struct NoEeprom(ScriptedCard);

impl Transport for NoEeprom {
    fn read(&mut self, offset: u32) -> Result<u32, host_driver::TransportError> {
        let word = self.0.read(offset)?;
        let pulled_up = if offset == Register::MiscLocalControl.offset() {
            1 << 23
        } else {
            0
        };
        Ok(word | pulled_up)
    }
    fn write(&mut self, offset: u32, value: u32) -> Result<(), host_driver::TransportError> {
        self.0.write(offset, value)
    }
    fn config_read(&mut self, offset: u32) -> Result<u32, host_driver::TransportError> {
        self.0.config_read(offset)
    }
    fn config_write(&mut self, offset: u32, value: u32) -> Result<(), host_driver::TransportError> {
        self.0.config_write(offset, value)
    }
    fn allocate(
        &mut self,
        bytes: usize,
    ) -> Result<host_driver::DmaMemory, host_driver::TransportError> {
        self.0.allocate(bytes)
    }
    fn wait(
        &mut self,
        vector: Vector,
        timeout: std::time::Duration,
    ) -> Result<bool, host_driver::TransportError> {
        self.0.wait(vector, timeout)
    }
    fn unmask(&mut self, vector: Vector) -> Result<(), host_driver::TransportError> {
        self.0.unmask(vector)
    }
    fn reset(&mut self) -> Result<(), host_driver::TransportError> {
        self.0.reset()
    }
}

/// Reference, "Serial EEPROM, confirmed": a missing acknowledge fails the probe (C!).
#[test]
fn a_missing_acknowledge_is_an_error() {
    let mut card = NoEeprom(ScriptedCard::default());
    let error = station_address(&mut card).expect_err("nobody answers");
    assert!(
        matches!(error, EepromError::NoAcknowledge { address: 0x8C, .. }),
        "{error}"
    );
}

#[test]
fn what_is_no_station_address_is_refused() {
    for wrong in [[0; 6], [0xFF; 6], [0x01, 0, 0x5E, 0, 0, 1]] {
        let mut card = ScriptedCard::default();
        card.bench.card.eeprom_mut().set_mac_address(wrong);
        let error = station_address(&mut card).expect_err("no address of a station");
        assert!(matches!(error, EepromError::NoAddress(found) if found == wrong));
    }
}
