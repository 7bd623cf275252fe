//! The two-word host address of descriptors and blocks in NIC memory.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A 64-bit address in host memory as two words, high word first (6.3, C).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct HostAddress {
    /// Bits 63:32.
    pub high: u32,
    /// Bits 31:0.
    pub low: u32,
}

crate::place! {
    /// A [`HostAddress`] in NIC memory.
    HostAddressAt: HostAddress { high, low }
}

const _: () = {
    assert!(size_of::<HostAddress>() == 8);
    assert!(HostAddressAt(0).high() == 0 && HostAddressAt(0).low() == 4);
};

impl HostAddress {
    /// Address 0, which drivers use for "none".
    pub const NULL: HostAddress = HostAddress { high: 0, low: 0 };

    /// The two words of an address.
    #[inline(always)]
    pub const fn new(address: u64) -> Self {
        HostAddress {
            high: (address >> 32) as u32,
            low: address as u32,
        }
    }

    /// The address.
    #[inline(always)]
    pub const fn get(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }

    /// The address `bytes` later.
    #[inline(always)]
    pub const fn plus(self, bytes: u32) -> HostAddress {
        let (low, carry) = self.low.overflowing_add(bytes);
        HostAddress {
            high: self.high.wrapping_add(carry as u32),
            low,
        }
    }

    /// Whether the address is 0, which drivers use for "none".
    #[inline(always)]
    pub const fn is_null(self) -> bool {
        self.high | self.low == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_two_words() {
        let address = HostAddress::new(0x2_0000_3000);
        assert_eq!((address.high, address.low), (2, 0x3000));
        assert_eq!(address.get(), 0x2_0000_3000);
        assert!(HostAddress::default().is_null() && !address.is_null());
        assert_eq!(HostAddress::default(), HostAddress::NULL);
    }

    /// 32-bit arithmetic carries into the high word, and wraps at the end of the space.
    #[test]
    fn adding_carries_into_the_high_word() {
        let near_the_end = HostAddress::new(0x1_FFFF_FFF0);
        assert_eq!(near_the_end.plus(0x20), HostAddress::new(0x2_0000_0010));
        assert_eq!(HostAddress::new(u64::MAX).plus(1), HostAddress::NULL);
    }
}
