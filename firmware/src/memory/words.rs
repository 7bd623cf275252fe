//! SRAM for unit tests: a word is 0 until it is stored.

extern crate std;

use std::collections::BTreeMap;
use tigon2_chip::Register;
use tigon2_hal::Bus;

/// SRAM by words, without registers.
#[derive(Debug, Default)]
pub struct Words {
    words: BTreeMap<u32, u32>,
    has_parts: bool,
}

impl Words {
    /// SRAM from which halfwords and bytes may be loaded, too.
    pub fn with_parts() -> Words {
        Words {
            has_parts: true,
            ..Words::default()
        }
    }
}

impl Bus for Words {
    fn read(&mut self, register: Register) -> u32 {
        panic!("{register:?} is read")
    }
    fn write(&mut self, register: Register, _: u32) {
        panic!("{register:?} is written")
    }
    fn load(&mut self, address: u32) -> u32 {
        self.words.get(&address).copied().unwrap_or_default()
    }
    fn store(&mut self, address: u32, value: u32) {
        self.words.insert(address, value);
    }
    fn load_half(&mut self, address: u32) -> u16 {
        assert!(self.has_parts, "a halfword is loaded");
        (self.load(address & !3) >> (16 - 8 * (address & 2))) as u16
    }
    fn store_half(&mut self, _: u32, _: u16) {
        panic!("a halfword is stored")
    }
    fn load_byte(&mut self, address: u32) -> u8 {
        assert!(self.has_parts, "a byte is loaded");
        (self.load(address & !3) >> (24 - 8 * (address & 3))) as u8
    }
    fn store_byte(&mut self, _: u32, _: u8) {
        panic!("a byte is stored")
    }
}
