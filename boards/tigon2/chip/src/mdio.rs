//! Frames of the PHY management bus on three lines of `R[44]`.
//!
//! Hardware reference, section 9, "MDIO framing by firmware": 32 ones, start 01, operation,
//! PHY, register, turnaround, 16 data bits with the most significant first; each level is
//! held 1-2 microseconds.

/// Ones before a frame (C).
pub const PREAMBLE_BITS: u32 = 32;
/// Start bits 01 (C).
pub const START: u32 = 0b01;
/// Operation bits of a read (C).
pub const READ: u32 = 0b10;
/// Operation bits of a write (C).
pub const WRITE: u32 = 0b01;
/// The PHY's address on boards that have one (C).
pub const PHY_ADDRESS: u8 = 1;
/// Bits of a frame before the turnaround: start, operation, PHY, register (C).
pub const HEADER_BITS: u32 = 14;
/// Turnaround bits that the master drives before the data of a write.
pub const TURNAROUND: u32 = 0b10;

/// The 14 header bits of a read of a PHY's register (both below 32), first bit on the wire
/// most significant.
pub const fn read_header(phy: u8, register: u8) -> u32 {
    header(READ, phy, register)
}

/// The 32 bits of a write to a PHY's register (both below 32), first bit on the wire most
/// significant.
pub const fn write_frame(phy: u8, register: u8, value: u16) -> u32 {
    header(WRITE, phy, register) << 18 | TURNAROUND << 16 | value as u32
}

const fn header(operation: u32, phy: u8, register: u8) -> u32 {
    START << 12 | operation << 10 | (phy as u32 & 31) << 5 | register as u32 & 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 9: start 01, read 10 / write 01, PHY 1, register, turnaround, data.
    #[test]
    fn frames_have_the_bits_in_wire_order() {
        let bits = |groups: &[&str]| u32::from_str_radix(&groups.concat(), 2);
        let read = bits(&["01", "10", "00001", "00010"]);
        assert_eq!(Ok(read_header(PHY_ADDRESS, 2)), read);
        let write = bits(&["01", "01", "00001", "00000", "10", "0001001000000000"]);
        assert_eq!(Ok(write_frame(PHY_ADDRESS, 0, 0x1200)), write);
    }
}
