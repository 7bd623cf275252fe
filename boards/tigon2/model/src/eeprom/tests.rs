use super::*;
use crate::testing::Bench;
use tigon2_chip::bits::MiscLocalControl;
use tigon2_chip::eeprom::SELECT_READ;

/// A driver's bit-banged master on R[44], through the BAR.
struct Master(Bench);

impl Master {
    fn lines(&mut self, clock: bool, drive: bool, data: bool) {
        let value = MiscLocalControl::from_bits(self.0.bar_read(0x44))
            .with_eeprom_clock(clock)
            .with_eeprom_drive(drive)
            .with_eeprom_out(data);
        self.0.bar_write(0x44, value.into_bits());
    }

    fn start(&mut self) {
        self.lines(false, true, true);
        self.lines(true, true, true);
        self.lines(true, true, false);
        self.lines(false, true, false);
    }

    fn stop(&mut self) {
        self.lines(false, true, false);
        self.lines(true, true, false);
        self.lines(true, true, true);
    }

    fn clock_in(&mut self) -> bool {
        self.lines(false, false, false);
        self.lines(true, false, false);
        let bit = MiscLocalControl::from_bits(self.0.bar_read(0x44)).eeprom_in();
        self.lines(false, false, false);
        bit
    }

    /// Sends a byte; whether the slave acknowledged.
    fn send(&mut self, byte: u8) -> bool {
        for bit in (0..8).rev() {
            let data = byte & 1 << bit != 0;
            self.lines(false, true, data);
            self.lines(true, true, data);
            // Clock and data fall in one write, as the real driver may do it.
            self.lines(false, true, false);
        }
        !self.clock_in()
    }

    fn take(&mut self, acknowledge: bool) -> u8 {
        let byte = (0..8).fold(0, |byte, _| byte << 1 | u8::from(self.clock_in()));
        self.lines(false, true, !acknowledge);
        self.lines(true, true, !acknowledge);
        self.lines(false, true, !acknowledge);
        byte
    }

    /// The sequence of reference 19 for one byte.
    fn read_byte(&mut self, address: u16) -> u8 {
        self.start();
        assert!(self.send(SELECT_WRITE), "select acknowledged");
        assert!(self.send((address >> 8) as u8));
        assert!(self.send(address as u8));
        self.start();
        assert!(self.send(SELECT_READ));
        let byte = self.take(false);
        self.stop();
        byte
    }

    fn write_bytes(&mut self, address: u16, data: &[u8]) {
        self.start();
        assert!(self.send(SELECT_WRITE));
        assert!(self.send((address >> 8) as u8));
        assert!(self.send(address as u8));
        for byte in data {
            assert!(self.send(*byte));
        }
        self.stop();
    }
}

/// Reference 19: eight single-byte reads 0x8C..0x93 give two zeros and the address (C!).
#[test]
fn the_driver_reads_the_mac_address() {
    let mut master = Master(Bench::default());
    let address = [0x00, 0x60, 0xCF, 0x20, 0x12, 0x34];
    master.0.card.eeprom_mut().set_mac_address(address);
    let read: Vec<u8> = (0x8C..0x94).map(|at| master.read_byte(at)).collect();
    assert_eq!(read, [0, 0, 0x00, 0x60, 0xCF, 0x20, 0x12, 0x34]);
}

#[test]
fn a_sequential_read_goes_on_until_it_is_not_acknowledged() {
    let mut master = Master(Bench::default());
    let address = master.0.card.inspect().eeprom().mac_address();
    master.read_byte(0x8D);
    // Current-address read: the counter stands behind the last byte.
    master.start();
    assert!(master.send(SELECT_READ));
    let read: Vec<u8> = (0..6).map(|n| master.take(n != 5)).collect();
    master.stop();
    assert_eq!(read, address);
}

#[test]
fn another_select_byte_is_not_acknowledged() {
    let mut master = Master(Bench::default());
    master.start();
    assert!(!master.send(0xA8));
    master.stop();
    assert_eq!(master.read_byte(0x8C), 0, "and the bus still works");
}

#[test]
fn writes_stay_in_their_page_and_are_kept() {
    let mut master = Master(Bench::default());
    master.write_bytes(0x2FE, &[1, 2, 3, 4]);
    assert_eq!(master.read_byte(0x2FE), 1);
    assert_eq!(master.read_byte(0x2FF), 2);
    assert_eq!(master.read_byte(0x200), 3);
    assert_eq!(master.read_byte(0x201), 4);
    assert_eq!(master.read_byte(0x300), 0xFF);
    assert_eq!(
        master.0.card.inspect().eeprom().bytes()[0x2FE..0x300],
        [1, 2]
    );
    assert_eq!(master.0.card.inspect().eeprom().writes(), 1);
}

/// The board's part has 256 KB: two address bits are in the select byte.
#[test]
fn the_upper_address_bits_are_in_the_select_byte() {
    let mut master = Master(Bench::default());
    master.0.card.eeprom_mut().load(&[0x11; 0x4_0000]);
    master.start();
    assert!(master.send(0xA4));
    for byte in [0x12, 0x34, 0x77] {
        assert!(master.send(byte));
    }
    master.stop();
    assert_eq!(master.0.card.inspect().eeprom().bytes()[0x2_1234], 0x77);
    assert_eq!(master.read_byte(0x1234), 0x11);
}

#[test]
fn a_small_part_answers_to_one_select_byte_only() {
    let mut part = Eeprom::new(0x2000, 32);
    assert!(part.is_selected(0xA0) && part.is_selected(0xA1));
    assert!(!part.is_selected(0xA2) && !part.is_selected(0xA6));
}

/// A write takes time, during which no select byte is acknowledged.
#[test]
fn a_part_that_writes_is_busy() {
    let mut master = Master(Bench::default());
    master.0.card.eeprom_mut().set_busy_selects(2);
    master.write_bytes(0x300, &[9]);
    for _ in 0..2 {
        master.start();
        assert!(!master.send(SELECT_WRITE));
        master.stop();
    }
    assert_eq!(master.read_byte(0x300), 9);
}

/// Reference 19: while the host drives, bit 23 reads the driven level.
#[test]
fn the_data_line_shows_what_is_driven() {
    let mut master = Master(Bench::default());
    for level in [true, false, true] {
        master.lines(false, true, level);
        let read = MiscLocalControl::from_bits(master.0.bar_read(0x44)).eeprom_in();
        assert_eq!(read, level);
    }
    master.lines(false, false, false);
    let read = MiscLocalControl::from_bits(master.0.bar_read(0x44)).eeprom_in();
    assert!(read, "pulled up when nobody drives");
}
