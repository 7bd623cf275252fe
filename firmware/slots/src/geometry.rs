//! The layout of an EEPROM of a given size.

/// Bytes of a page, which the part writes at once. This crate does not rely on page writes being
/// atomic.
pub const PAGE_BYTES: u32 = 256;
/// The first page: manufacturing data, which updates never touch.
pub const MANUFACTURING_BYTES: u32 = PAGE_BYTES;
/// Offsets of the two copies of the boot record.
pub const RECORD_COPIES: [u32; 2] = [0x100, 0x200];
/// Offset of slot 0.
pub const FIRST_SLOT: u32 = 0x400;
/// Smallest part with room for two useful slots.
pub const MIN_BYTES: u32 = 0x1000;
/// Largest part that a select byte with two address bits can address.
pub const MAX_BYTES: u32 = 0x4_0000;

/// One of the two slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// The lower half.
    Zero,
    /// The upper half.
    One,
}

impl Slot {
    /// Both.
    pub const ALL: [Slot; 2] = [Slot::Zero, Slot::One];

    /// 0 or 1.
    pub const fn index(self) -> usize {
        match self {
            Slot::Zero => 0,
            Slot::One => 1,
        }
    }

    /// The slot with a number, if there is one.
    pub const fn from_index(index: u32) -> Option<Slot> {
        match index {
            0 => Some(Slot::Zero),
            1 => Some(Slot::One),
            _ => None,
        }
    }

    /// The other slot.
    pub const fn other(self) -> Slot {
        match self {
            Slot::Zero => Slot::One,
            Slot::One => Slot::Zero,
        }
    }
}

impl core::fmt::Display for Slot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "slot {}", self.index())
    }
}

/// The layout of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    bytes: u32,
    slot_bytes: u32,
}

impl Geometry {
    /// The layout of a part of `bytes`; `None` if two slots do not fit or some address cannot be
    /// sent to it.
    pub const fn of(bytes: u32) -> Option<Geometry> {
        if bytes < MIN_BYTES || bytes > MAX_BYTES || !bytes.is_power_of_two() {
            return None;
        }
        let slot_bytes = ((bytes - FIRST_SLOT) >> 1) & !(PAGE_BYTES - 1);
        Some(Geometry { bytes, slot_bytes })
    }

    /// Bytes of the part.
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// Bytes of a slot, including its header page.
    pub const fn slot_bytes(self) -> u32 {
        self.slot_bytes
    }

    /// Largest image, in bytes.
    pub const fn image_bytes(self) -> u32 {
        self.slot_bytes - PAGE_BYTES
    }

    /// Offset of a slot's header.
    pub const fn header_at(self, slot: Slot) -> u32 {
        match slot {
            Slot::Zero => FIRST_SLOT,
            Slot::One => FIRST_SLOT + self.slot_bytes,
        }
    }

    /// Offset of a slot's image.
    pub const fn image_at(self, slot: Slot) -> u32 {
        self.header_at(slot) + PAGE_BYTES
    }
}

const _: () = {
    assert!(MANUFACTURING_BYTES <= RECORD_COPIES[0]);
    assert!(RECORD_COPIES[1] + PAGE_BYTES <= FIRST_SLOT);
    assert!(FIRST_SLOT.is_multiple_of(PAGE_BYTES));
};
