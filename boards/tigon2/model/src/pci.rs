//! The PCI function's configuration space.
//!
//! Host interface, "PCI function": Ethernet controller, BAR 0 of 16 KB, INTA#, no capabilities. It
//! has 256 bytes; bytes after them read as ones and ignore writes.
//!
//! ```text
//! 00 vendor, device   04 command, status   08 revision, class   0C cache line, latency
//! 10 BAR 0            2C subsystem         3C interrupt line, pin, min_gnt, max_lat
//! ```

use crate::board::PciIdentity;

/// Size of the space in bytes.
pub const CONFIGURATION_BYTES: usize = 256;
/// Size of BAR 0 in bytes.
pub const BAR_BYTES: u32 = 0x4000;

const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const CACHE_LINE: usize = 0x0C;
const LATENCY: usize = 0x0D;
const BAR0: usize = 0x10;
const INTERRUPT_LINE: usize = 0x3C;
const INTERRUPT_PIN: usize = 0x3D;

/// Command bits that can be set: memory, bus master, invalidate, parity, SERR, INTx disable.
const COMMAND_WRITABLE: u16 = 0x0556;
const COMMAND_INTX_DISABLE: u16 = 1 << 10;
/// Status: 66 MHz capable, fast back-to-back capable, medium DEVSEL timing.
const STATUS_FIXED: u16 = 0x02A0;
const STATUS_INTERRUPT: u16 = 1 << 3;
/// Error bits of the status register, write 1 to clear.
const STATUS_ERRORS: u16 = 0xF900;
/// Ethernet controller.
const CLASS: [u8; 3] = [0x00, 0x00, 0x02];
/// The card requests long bursts: 16 us, at least every 16 us.
const MIN_GRANT_AND_MAX_LATENCY: [u8; 2] = [0x40, 0x40];

/// Configuration space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciFunction {
    bytes: [u8; CONFIGURATION_BYTES],
}

impl PciFunction {
    /// The space after a PCI reset.
    pub fn new(identity: &PciIdentity) -> Self {
        let mut function = PciFunction {
            bytes: [0; CONFIGURATION_BYTES],
        };
        function.put(0x00, &identity.vendor.to_le_bytes());
        function.put(0x02, &identity.device.to_le_bytes());
        function.put(STATUS, &STATUS_FIXED.to_le_bytes());
        function.put(0x08, &[identity.revision]);
        function.put(0x09, &CLASS);
        function.put(0x2C, &identity.subsystem_vendor.to_le_bytes());
        function.put(0x2E, &identity.subsystem.to_le_bytes());
        function.put(INTERRUPT_PIN, &[1]);
        function.put(0x3E, &MIN_GRANT_AND_MAX_LATENCY);
        function
    }

    /// Command bit 10: INTA# is disabled.
    pub fn intx_disabled(&self) -> bool {
        self.command() & COMMAND_INTX_DISABLE != 0
    }

    /// The command register.
    pub fn command(&self) -> u16 {
        u16::from_le_bytes([self.bytes[COMMAND], self.bytes[COMMAND + 1]])
    }

    /// Base address of BAR 0.
    pub fn bar0(&self) -> u32 {
        self.word(BAR0)
    }

    /// Copies bytes from `offset` on; bytes outside of the space read as ones.
    pub fn read(&self, offset: usize, out: &mut [u8], interrupt_pending: bool) {
        for (index, byte) in out.iter_mut().enumerate() {
            let at = offset.saturating_add(index);
            *byte = self.bytes.get(at).copied().unwrap_or(0xFF);
            if at == STATUS && interrupt_pending {
                *byte |= STATUS_INTERRUPT as u8;
            }
        }
    }

    /// Stores bytes from `offset` on, as far as they are writable.
    pub fn write(&mut self, offset: usize, data: &[u8]) {
        for (index, value) in data.iter().enumerate() {
            let at = offset.saturating_add(index);
            let writable = match at {
                COMMAND => COMMAND_WRITABLE.to_le_bytes()[0],
                0x05 => COMMAND_WRITABLE.to_le_bytes()[1],
                CACHE_LINE | LATENCY | INTERRUPT_LINE => 0xFF,
                BAR0..0x14 => (!(BAR_BYTES - 1)).to_le_bytes()[at - BAR0],
                0x07 => {
                    self.bytes[at] &= !(value & STATUS_ERRORS.to_le_bytes()[1]);
                    continue;
                }
                _ => continue,
            };
            self.bytes[at] = self.bytes[at] & !writable | value & writable;
        }
    }

    /// `R[00..3C]`: the word of the header at an aligned offset, as the host reads it (9).
    pub fn word(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        self.read(offset & !3, &mut bytes, false);
        u32::from_le_bytes(bytes)
    }

    fn put(&mut self, offset: usize, data: &[u8]) {
        self.bytes[offset..offset + data.len()].copy_from_slice(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use crate::{Board, Effect};
    use tigon2_chip::Register;

    fn function() -> PciFunction {
        PciFunction::new(&Board::default().pci)
    }

    /// Host interface, "PCI function": 12AE:0001, class 02 00 00, INTA#.
    #[test]
    fn identity() {
        let function = function();
        assert_eq!(function.word(0x00), 0x0001_12AE);
        assert_eq!(function.word(0x08) >> 8, 0x02_0000);
        let mut header = [0xAA];
        function.read(0x0E, &mut header, false);
        assert_eq!(header, [0], "one function, plain header");
        function.read(INTERRUPT_PIN, &mut header, false);
        assert_eq!(header, [1]);
        assert_eq!(function.word(0x34), 0, "no capabilities");
        assert_eq!(function.word(STATUS) >> 16 & 0x10, 0, "no capability list");
    }

    /// Host interface: BAR 0 is 16 KB of 32-bit, non-prefetchable memory; the others are not
    /// there.
    #[test]
    fn bar_sizing() {
        let mut function = function();
        function.write(BAR0, &[0xFF; 24]);
        assert_eq!(function.bar0(), 0xFFFF_C000);
        assert_eq!(function.word(0x14), 0);
        function.write(BAR0, &0xFEB0_0000u32.to_le_bytes());
        assert_eq!(function.bar0(), 0xFEB0_0000);
    }

    /// Reference 19: the driver corrects cache line size and latency.
    #[test]
    fn writable_and_fixed_bytes() {
        let mut function = function();
        function.write(0, &[0x5A; CONFIGURATION_BYTES]);
        assert_eq!(function.word(0x00), 0x0001_12AE);
        assert_eq!(function.word(CACHE_LINE) & 0xFFFF, 0x5A5A);
        assert_eq!(function.command(), 0x5A5A & COMMAND_WRITABLE);
        assert_eq!(function.word(0x2C), 0x0001_12AE);
        let mut outside = [0; 8];
        function.read(0xFC, &mut outside, false);
        assert_eq!(outside, [0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        function.write(usize::MAX, &[1, 2, 3]);
    }

    /// PCI: the status bit shows the interrupt, INTx disable keeps it off the pin.
    #[test]
    fn intx_disable() {
        let mut bench = Bench::default();
        bench.with(|card, env| card.config_write(env, COMMAND, &[0x06, 0x04]));
        bench.write(Register::MiscLocalControl, 4);
        assert_eq!(bench.effects(), []);
        let mut status = [0; 2];
        bench.card.config_read(STATUS, &mut status);
        assert_ne!(u16::from_le_bytes(status) & STATUS_INTERRUPT, 0);
        bench.with(|card, env| card.config_write(env, COMMAND, &[0x06, 0x00]));
        assert_eq!(bench.effects(), [Effect::Interrupt(true)]);
    }

    /// Reference 9: R[00..3C] are copies of configuration space (C).
    #[test]
    fn the_header_is_visible_as_registers() {
        let mut bench = Bench::default();
        assert_eq!(bench.bar_read(0x00), 0x0001_12AE);
        let cpu = bench.with(|card, env| card.cpu_read(env, crate::Cpu::A, 0x2C));
        assert_eq!(cpu, 0x0001_12AE);
    }
}
