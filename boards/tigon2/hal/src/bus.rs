//! One CPU's view of the chip: registers and SRAM.

use tigon2_chip::{HostAddress, HostAddressAt, Register};

/// One CPU's view of the chip (hardware reference, section 2).
///
/// Addresses are NIC addresses: SRAM with its aliases, but not the scratch pads, which hold Rust's
/// own variables. Words are values; the byte order in SRAM is big-endian. An address must be
/// aligned to the size of the access (3.1: behaviour otherwise unknown).
pub trait Bus {
    /// Reads a register.
    fn read(&mut self, register: Register) -> u32;

    /// Writes a register.
    fn write(&mut self, register: Register, value: u32);

    /// Loads a word from SRAM.
    fn load(&mut self, address: u32) -> u32;

    /// Stores a word to SRAM.
    fn store(&mut self, address: u32, value: u32);

    /// Loads a halfword from SRAM.
    fn load_half(&mut self, address: u32) -> u16;

    /// Stores a halfword to SRAM.
    fn store_half(&mut self, address: u32, value: u16);

    /// Loads a byte from SRAM.
    fn load_byte(&mut self, address: u32) -> u8;

    /// Stores a byte to SRAM.
    fn store_byte(&mut self, address: u32, value: u8);

    /// Loads the two words of a host address from SRAM.
    #[inline(always)]
    fn load_host_address(&mut self, at: u32) -> HostAddress {
        let at = HostAddressAt(at);
        HostAddress {
            high: self.load(at.high()),
            low: self.load(at.low()),
        }
    }

    /// Stores the two words of a host address to SRAM.
    #[inline(always)]
    fn store_host_address(&mut self, at: u32, address: HostAddress) {
        let at = HostAddressAt(at);
        self.store(at.high(), address.high);
        self.store(at.low(), address.low);
    }

    /// Changes some bits of a register that only this CPU writes: those of `mask` take their values
    /// from `value`.
    #[inline(always)]
    fn modify(&mut self, register: Register, mask: u32, value: u32) {
        let old = self.read(register);
        self.write(register, (old & !mask) | (value & mask));
    }
}
