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

/// The address of an unconfigured card.
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

/// The next clocks of the slave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Take bits from the master; the number so far.
    Take(u8),
    /// Pull the line low during the ninth clock.
    Acknowledge,
    /// Send bits; the number so far.
    Send(u8),
    /// Wait for the master's acknowledge.
    Listen,
}

/// The EEPROM: contents and bus state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eeprom {
    bytes: Vec<u8>,
    clock: bool,
    /// Level that the master gives the line (true also when it does not drive).
    master: bool,
    /// Whether the slave releases the line.
    slave: bool,
    phase: Phase,
    step: Step,
    shift: u8,
    address: usize,
    /// Bytes of the page being written, as far as they have arrived: a write transfer wraps within
    /// one page.
    page: Vec<Option<u8>>,
    /// Select bytes that are not acknowledged after a write.
    busy_selects: u32,
    /// How many of them are left.
    busy: u32,
    /// Pages written since power-on.
    writes: u64,
}

impl Eeprom {
    /// A part of `bytes` with pages of `page_bytes` (powers of two), erased except for the MAC
    /// address block.
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

    /// Makes the part busy after each write until it was selected this many times, in place of the
    /// time that a write takes.
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

    /// The master changed its lines: clock, and data high (or released) or low.
    ///
    /// One register write may change both: a falling clock takes effect first, a rising one last,
    /// so that it causes no false START or STOP (19).
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

    /// Whether a select byte, except its lowest bit, addresses this part.
    fn is_selected(&mut self, byte: u8) -> bool {
        if byte & !(SELECT_BLOCK | 1) != SELECT_WRITE || block_of(byte) >= self.blocks() {
            return false;
        }
        let busy = self.busy > 0;
        self.busy = self.busy.saturating_sub(1);
        !busy
    }

    /// Address blocks of this part.
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

    /// Eight bits have arrived; drives the acknowledge if they are for this part.
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
                // A current-address read continues from the counter, in the selected block.
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
mod tests;
