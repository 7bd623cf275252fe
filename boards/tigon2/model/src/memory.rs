//! NIC memory: the wrap of the SRAM and the spill window.
//!
//! Hardware reference, section 2. With S bytes installed, every address below 8 MB is an alias of
//! address mod S. Firmware detects the memory's size by the aliases, and uses them.
//!
//! ```text
//! 0x000000          S          2S                0x800000     0xC00000
//! |---- SRAM -------|-- alias --|-- alias ... ----|-- spill ----|
//! ```

use crate::environment::Sram;
use tigon2_chip::memory::{SPILL_WINDOW, SRAM_MAX_BYTES};

/// The significant bits of `R[150]` and `R[250]`: the window moves in steps of 4 KB, as the
/// vendor's K does (2.2).
pub const SPILL_BASE_MASK: u32 = !0xFFF;

/// The mapping from NIC addresses to installed SRAM, and word access through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SramMap {
    bytes: u32,
}

impl SramMap {
    /// A map for `bytes` of SRAM, a power of two not above 8 MB (the board is checked).
    pub const fn new(bytes: u32) -> Self {
        SramMap { bytes }
    }

    /// Installed bytes.
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// The physical address behind a NIC address: it wraps at the installed size (2, C!).
    pub const fn physical(self, address: u32) -> u32 {
        address & (self.bytes - 1)
    }

    /// The physical address behind an address of the spill window of a CPU whose `R[150]`
    /// or `R[250]` is `base` (2, C!).
    pub const fn spill(self, address: u32, base: u32) -> u32 {
        self.physical(address.wrapping_sub(base & SPILL_BASE_MASK))
    }

    /// The physical address that a CPU reaches at `address`: SRAM, an alias or the spill
    /// window; `None` elsewhere.
    pub fn decode(self, address: u32, spill_base: u32) -> Option<u32> {
        if address < SRAM_MAX_BYTES {
            Some(self.physical(address))
        } else if SPILL_WINDOW.contains(&address) {
            Some(self.spill(address, spill_base))
        } else {
            None
        }
    }

    /// Copies bytes from NIC address `address` on, across the wrap.
    pub fn read(self, sram: &dyn Sram, address: u32, out: &mut [u8]) {
        let mut at = self.physical(address);
        let mut rest = out;
        while !rest.is_empty() {
            let length = rest.len().min((self.bytes - at) as usize);
            let (now, later) = rest.split_at_mut(length);
            sram.read(at, now);
            rest = later;
            at = 0;
        }
    }

    /// Stores bytes from NIC address `address` on, across the wrap.
    pub fn write(self, sram: &mut dyn Sram, address: u32, data: &[u8]) {
        let mut at = self.physical(address);
        let mut rest = data;
        while !rest.is_empty() {
            let length = rest.len().min((self.bytes - at) as usize);
            let (now, later) = rest.split_at(length);
            sram.write(at, now);
            rest = later;
            at = 0;
        }
    }

    /// The word at an aligned NIC address; bits 1:0 are ignored.
    pub fn word(self, sram: &dyn Sram, address: u32) -> u32 {
        let mut bytes = [0; 4];
        sram.read(self.physical(address) & !3, &mut bytes);
        u32::from_be_bytes(bytes)
    }

    /// Stores the word at an aligned NIC address; bits 1:0 are ignored.
    pub fn set_word(self, sram: &mut dyn Sram, address: u32, value: u32) {
        sram.write(self.physical(address) & !3, &value.to_be_bytes());
    }

    /// Adds one to the word at an aligned NIC address.
    pub fn increment(self, sram: &mut dyn Sram, address: u32) {
        let value = self.word(sram, address).wrapping_add(1);
        self.set_word(sram, address, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::VecSram;

    /// Reference 2: SRAM wraps at its installed size, for 0..8 MB; the probe writes 0 at 2S
    /// and a pattern at S and reads the pattern back at 2S when S is the size (C!).
    #[test]
    fn the_size_probe_of_firmware_finds_the_installed_size() {
        for installed in [0x8_0000, 0x10_0000, 0x20_0000] {
            let map = SramMap::new(installed);
            let mut sram = VecSram::new(installed);
            let mut size = 0x4_0000;
            while size < SRAM_MAX_BYTES {
                map.set_word(&mut sram, 2 * size, 0);
                map.set_word(&mut sram, size, 0xA5A5_5A5A);
                if map.word(&sram, 2 * size) == 0xA5A5_5A5A {
                    break;
                }
                size *= 2;
            }
            assert_eq!(size, installed);
        }
    }

    /// Reference 2: spill address = address - base, modulo the SRAM's size (C!); with
    /// R[150] = 0x00BFF000 - K the last page of the window is the block's first page.
    #[test]
    fn the_spill_window_subtracts_its_base() {
        let map = SramMap::new(0x10_0000);
        let k = 0x12_F000;
        let base = 0x00BF_F000 - k;
        assert_eq!(map.decode(0x00BF_F000, base), Some(0x2_F000));
        assert_eq!(map.decode(0x00BF_FFFC, base), Some(0x2_FFFC));
        assert_eq!(map.decode(0x00BF_F000, 0x00C0_0000), Some(0xF_F000));
        assert_eq!(map.decode(0x00C0_0000, base), None);
        assert_eq!(map.decode(0xC000_0000, base), None);
    }

    /// Reference 2: the packet buffers of a 1 MB card are in the alias below 0x200000 (C!).
    #[test]
    fn transfers_run_over_the_wrap() {
        let map = SramMap::new(0x10_0000);
        let mut sram = VecSram::new(0x10_0000);
        map.write(&mut sram, 0x1F_FFFE, &[1, 2, 3, 4]);
        let mut bytes = [0; 4];
        map.read(&sram, 0x0F_FFFE, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4]);
        assert_eq!(map.word(&sram, 0) >> 16, 0x0304);
    }

    /// Reference 1: NIC-side data is big-endian.
    #[test]
    fn words_are_big_endian() {
        let map = SramMap::new(0x10_0000);
        let mut sram = VecSram::new(0x10_0000);
        map.set_word(&mut sram, 0x80, 0x0102_0304);
        let mut bytes = [0; 4];
        map.read(&sram, 0x80, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4]);
        map.increment(&mut sram, 0x80);
        assert_eq!(map.word(&sram, 0x80), 0x0102_0305);
    }
}
