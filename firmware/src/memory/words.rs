//! SRAM for unit tests: a word is 0 until it is stored.

extern crate std;

use std::collections::BTreeMap;
use tigon2_chip::Register;
use tigon2_hal::Bus;

/// SRAM by words, without registers.
#[derive(Debug, Default)]
pub struct Words(BTreeMap<u32, u32>);

impl Bus for Words {
    fn read(&mut self, register: Register) -> u32 {
        panic!("{register:?} is read")
    }
    fn write(&mut self, register: Register, _: u32) {
        panic!("{register:?} is written")
    }
    fn load(&mut self, address: u32) -> u32 {
        self.0.get(&address).copied().unwrap_or_default()
    }
    fn store(&mut self, address: u32, value: u32) {
        self.0.insert(address, value);
    }
    fn load_half(&mut self, address: u32) -> u16 {
        (self.load(address & !3) >> (16 - 8 * (address & 2))) as u16
    }
    fn store_half(&mut self, _: u32, _: u16) {
        panic!("a halfword is stored")
    }
    fn load_byte(&mut self, address: u32) -> u8 {
        (self.load(address & !3) >> (24 - 8 * (address & 3))) as u8
    }
    fn store_byte(&mut self, _: u32, _: u8) {
        panic!("a byte is stored")
    }
}
