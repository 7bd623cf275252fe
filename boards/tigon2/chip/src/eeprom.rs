//! The serial EEPROM: a 24Cxx part on two lines of `R[44]`.
//!
//! Hardware reference, section 9 and "Serial EEPROM, confirmed": two-wire slave, 16-bit
//! word address with the high byte first, acknowledge = data low on the ninth clock.
//!
//! Parts of more than 64 KB (24CM01, 24CM02) take the upper address bits from bits 2:1 of the
//! select byte, where smaller parts have their pins: drivers that only know 0xA0 reach the first
//! 64 KB.

/// First byte of a transfer that writes (C!).
pub const SELECT_WRITE: u8 = 0xA0;
/// First byte of a transfer that reads (C!).
pub const SELECT_READ: u8 = 0xA1;
/// The seven-bit bus address in the select bytes.
pub const BUS_ADDRESS: u8 = SELECT_WRITE >> 1;
/// Bytes that one select byte reaches.
pub const BLOCK_BYTES: u32 = 0x1_0000;
/// Largest part: two address bits in the select byte.
pub const MAX_BYTES: u32 = 4 * BLOCK_BYTES;
/// The address bits of a select byte.
pub const SELECT_BLOCK: u8 = 0b0000_0110;

/// The select byte of a write to (or, with the last bit set, a read from) an address.
pub const fn select_write(address: u32) -> u8 {
    SELECT_WRITE | ((address >> 15) as u8 & SELECT_BLOCK)
}

/// The block of 64 KB that a select byte names, in bytes from the start.
pub const fn block_of(select: u8) -> u32 {
    ((select & SELECT_BLOCK) as u32) << 15
}

/// Where the MAC address block starts: two zero bytes and six address bytes (C!).
pub const MAC_OFFSET: u16 = 0x8C;
/// Bytes of the MAC address block (C!).
pub const MAC_BLOCK_BYTES: usize = 8;

/// The MAC address block that holds an address.
pub const fn mac_block(address: [u8; 6]) -> [u8; MAC_BLOCK_BYTES] {
    let [a, b, c, d, e, f] = address;
    [0, 0, a, b, c, d, e, f]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference, "Serial EEPROM, confirmed": bytes 0x8C/0x8D are zeros, MAC in 0x8E..0x93.
    #[test]
    fn the_address_block_starts_with_two_zeros() {
        let block = mac_block([0x00, 0x60, 0xCF, 0x20, 0x12, 0x34]);
        assert_eq!(block, [0, 0, 0x00, 0x60, 0xCF, 0x20, 0x12, 0x34]);
        assert_eq!(MAC_OFFSET as usize + block.len() - 1, 0x93);
        assert_eq!(BUS_ADDRESS << 1 | 1, SELECT_READ);
    }

    #[test]
    fn select_bytes_carry_the_upper_address_bits() {
        assert_eq!(select_write(0x0_FFFF), 0xA0);
        assert_eq!(select_write(0x1_0000), 0xA2);
        assert_eq!(select_write(0x3_FFFF), 0xA6);
        for block in 0..4 {
            let address = block * BLOCK_BYTES;
            assert_eq!(block_of(select_write(address) | 1), address);
        }
    }
}
