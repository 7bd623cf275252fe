//! The serial EEPROM: a 24Cxx slave on two bit-banged lines.
//!
//! Hardware reference, section 9 and "Serial EEPROM, confirmed".
//!
//! ```text
//! START  1010 0bb 0  A  aaaaaaaa  A  aaaaaaaa  A  dddddddd  A ...  STOP      write
//! START  1010 0bb 0  A  aaaaaaaa  A  aaaaaaaa  A
//! START  1010 0bb 1  A  dddddddd  a  dddddddd  N  STOP                       read
//! ```
//!
//! `bb` are the upper address bits of a part with more than 64 KB, else 00.
//!
//! The line is open-drain: its level is the AND of both ends, pulled up. START and STOP are
//! data changes while the clock is high; the slave samples on the rising edge and drives
//! after the falling edge.

use tigon2_chip::eeprom::{
    BLOCK_BYTES, MAC_BLOCK_BYTES, MAC_OFFSET, SELECT_BLOCK, SELECT_WRITE, block_of, mac_block,
};

/// The address with which an unconfigured card comes.
pub const DEFAULT_MAC: [u8; 6] = [0x00, 0x60, 0xCF, 0x00, 0x00, 0x01];

/// What the next byte of a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not addressed: waiting for START.
    Idle,
    /// The select byte after START.
    Select,
    /// High byte of the word address.
    AddressHigh,
    /// Low byte of the word address.
    AddressLow,
    /// Bytes to store.
    Write,
    /// Bytes to send.
    Read,
}

/// What happens at the next clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Take bits from the master; this many so far.
    Take(u8),
    /// Pull the line low during the ninth clock.
    Acknowledge,
    /// Send bits; this many are out.
    Send(u8),
    /// Listen whether the master acknowledges.
    Listen,
}

/// The EEPROM: contents and bus state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eeprom {
    bytes: Vec<u8>,
    clock: bool,
    /// Level that the master gives the line (true also when it does not drive).
    master: bool,
    /// The slave lets go of the line.
    slave: bool,
    phase: Phase,
    step: Step,
    shift: u8,
    address: usize,
    /// Bytes of the page that is written, as far as they have come in: a write transfer
    /// wraps inside of one.
    page: Vec<Option<u8>>,
    /// Select bytes that are not acknowledged after a write.
    busy_selects: u32,
    /// How many of them are left.
    busy: u32,
    /// Pages written since power-on.
    writes: u64,
}

impl Eeprom {
    /// A part of `bytes` with pages of `page_bytes` (powers of two): erased but for the
    /// MAC address block.
    pub fn new(bytes: u32, page_bytes: u32) -> Self {
        let mut eeprom = Eeprom {
            bytes: vec![0xFF; bytes as usize],
            clock: false,
            master: true,
            slave: true,
            phase: Phase::Idle,
            step: Step::Take(0),
            shift: 0,
            address: 0,
            page: vec![None; page_bytes as usize],
            busy_selects: 0,
            busy: 0,
            writes: 0,
        };
        eeprom.set_mac_address(DEFAULT_MAC);
        eeprom
    }

    /// The contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Lets the part be busy after each write until it was selected so many times: the
    /// stand-in for the time that a write takes.
    pub fn set_busy_selects(&mut self, selects: u32) {
        self.busy_selects = selects;
    }

    /// Writes that became permanent since power-on.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Replaces the contents from byte 0 on; bytes beyond the part's size are ignored.
    pub fn load(&mut self, contents: &[u8]) {
        let length = contents.len().min(self.bytes.len());
        self.bytes[..length].copy_from_slice(&contents[..length]);
    }

    /// Writes the MAC address block: two zero bytes and the address at 0x8C (9).
    pub fn set_mac_address(&mut self, address: [u8; 6]) {
        let at = MAC_OFFSET as usize;
        if let Some(block) = self.bytes.get_mut(at..at + MAC_BLOCK_BYTES) {
            block.copy_from_slice(&mac_block(address));
        }
    }

    /// The address in the MAC address block.
    pub fn mac_address(&self) -> [u8; 6] {
        let at = MAC_OFFSET as usize + 2;
        std::array::from_fn(|n| self.bytes.get(at + n).copied().unwrap_or(0xFF))
    }

    /// The level of the data line, `R[44]` bit 23 (19).
    pub fn line(&self) -> bool {
        self.master && self.slave
    }

    /// The master changed its lines: clock, and data high (or let go) or low.
    ///
    /// One register write may move both: a falling clock comes first, a rising one last,
    /// so that it is no false START or STOP (19).
    pub fn set_lines(&mut self, clock: bool, data: bool) {
        if self.clock && !clock {
            self.clock = false;
            self.falling_edge();
        }
        if self.master != data {
            let before = self.line();
            self.master = data;
            match (self.clock, before, self.line()) {
                (true, true, false) => self.start(),
                (true, false, true) => self.stop(),
                _ => {}
            }
        }
        if !self.clock && clock {
            self.clock = true;
            self.rising_edge();
        }
    }

    fn start(&mut self) {
        self.phase = Phase::Select;
        self.step = Step::Take(0);
        self.slave = true;
        self.page.fill(None);
    }

    /// A write becomes permanent at STOP.
    fn stop(&mut self) {
        if self.phase == Phase::Write && self.page.iter().any(Option::is_some) {
            self.busy = self.busy_selects;
            self.writes += 1;
            let first = self.address & !(self.page.len() - 1);
            for (slot, byte) in self.page.iter().enumerate() {
                if let (Some(byte), Some(cell)) = (byte, self.bytes.get_mut(first + slot)) {
                    *cell = *byte;
                }
            }
        }
        self.phase = Phase::Idle;
        self.slave = true;
        self.page.fill(None);
    }

    /// Whether a select byte is for this part, but for its lowest bit.
    fn is_selected(&mut self, byte: u8) -> bool {
        if byte & !(SELECT_BLOCK | 1) != SELECT_WRITE || block_of(byte) >= self.blocks() {
            return false;
        }
        let busy = self.busy > 0;
        self.busy = self.busy.saturating_sub(1);
        !busy
    }

    /// Bytes that the select bytes of this part reach.
    fn blocks(&self) -> u32 {
        (self.bytes.len() as u32).max(BLOCK_BYTES)
    }

    fn rising_edge(&mut self) {
        if self.phase == Phase::Idle {
            return;
        }
        let level = self.line();
        match self.step {
            Step::Take(bits) => {
                self.shift = self.shift << 1 | u8::from(level);
                self.step = Step::Take(bits + 1);
            }
            Step::Listen if level => self.phase = Phase::Idle,
            Step::Listen | Step::Acknowledge | Step::Send(_) => {}
        }
    }

    fn falling_edge(&mut self) {
        if self.phase == Phase::Idle {
            return;
        }
        match self.step {
            Step::Take(8) => self.take_byte(),
            Step::Take(_) => {}
            Step::Acknowledge => {
                self.slave = true;
                if self.phase == Phase::Read {
                    self.load_byte();
                } else {
                    self.step = Step::Take(0);
                }
            }
            Step::Send(8) => {
                self.slave = true;
                self.step = Step::Listen;
            }
            Step::Send(bits) => self.send_bit(bits),
            Step::Listen => self.load_byte(),
        }
    }

    /// Eight bits have come in; drives the acknowledge if they are for this part.
    fn take_byte(&mut self) {
        let byte = self.shift;
        let selected = self.phase == Phase::Select && self.is_selected(byte);
        self.phase = match self.phase {
            Phase::Select if !selected => Phase::Idle,
            Phase::Select if byte & 1 == 0 => {
                self.address = block_of(byte) as usize;
                Phase::AddressHigh
            }
            Phase::Select => {
                // A current-address read goes on from the counter, in the block named.
                let within = self.address & (BLOCK_BYTES as usize - 1);
                self.address = (block_of(byte) as usize | within) & (self.bytes.len() - 1);
                Phase::Read
            }
            Phase::AddressHigh => {
                self.address |= usize::from(byte) << 8;
                Phase::AddressLow
            }
            Phase::AddressLow => {
                self.address = (self.address | usize::from(byte)) & (self.bytes.len() - 1);
                Phase::Write
            }
            Phase::Write => {
                let mask = self.page.len() - 1;
                let slot = self.address & mask;
                self.page[slot] = Some(byte);
                self.address = (self.address & !mask) | ((slot + 1) & mask);
                Phase::Write
            }
            Phase::Read | Phase::Idle => Phase::Idle,
        };
        if self.phase == Phase::Idle {
            self.slave = true;
        } else {
            self.slave = false;
            self.step = Step::Acknowledge;
        }
    }

    fn load_byte(&mut self) {
        self.shift = self.bytes.get(self.address).copied().unwrap_or(0xFF);
        self.address = (self.address + 1) & (self.bytes.len() - 1);
        self.send_bit(0);
    }

    fn send_bit(&mut self, sent: u8) {
        self.slave = self.shift & 0x80 != 0;
        self.shift <<= 1;
        self.step = Step::Send(sent + 1);
    }
}

#[cfg(test)]
mod tests {
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
}
