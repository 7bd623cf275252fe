//! The serial EEPROM: a 24Cxx part on two lines of `R[44]`.
//!
//! Hardware reference, section 9 and "Serial EEPROM, confirmed": two-wire slave, 16-bit
//! word address with the high byte first, acknowledge = data low on the ninth clock.

/// First byte of a transfer that writes (C!).
pub const SELECT_WRITE: u8 = 0xA0;
/// First byte of a transfer that reads (C!).
pub const SELECT_READ: u8 = 0xA1;
/// The seven-bit bus address in the select bytes.
pub const BUS_ADDRESS: u8 = SELECT_WRITE >> 1;
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
}
