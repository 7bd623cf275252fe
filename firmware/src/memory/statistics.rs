//! The words of the statistics block in NIC memory.
//!
//! Host/NIC software interface, "Statistics block". The field of
//! [`host_interface::statistics::Statistics`] names a word; each word has one writer.

use super::layout::STATISTICS;
use core::mem::offset_of;
use host_interface::statistics::Counter64;
use tigon2_hal::Bus;

/// Increments a word of the block, named by its field.
macro_rules! count {
    ($bus:expr, $field:ident) => {
        $crate::memory::statistics::add(
            &mut $bus,
            core::mem::offset_of!(host_interface::statistics::Statistics, $field),
        )
    };
}
pub(crate) use count;

/// Increments the word at a byte offset of the block.
pub fn add<B: Bus>(bus: &mut B, offset: usize) {
    let address = STATISTICS + offset as u32;
    let value = bus.load(address).wrapping_add(1);
    bus.store(address, value);
}

/// The word at a byte offset of the block.
pub fn get<B: Bus>(bus: &mut B, offset: usize) -> u32 {
    bus.load(STATISTICS + offset as u32)
}

/// Sets the word at a byte offset of the block.
pub fn set<B: Bus>(bus: &mut B, offset: usize, value: u32) {
    bus.store(STATISTICS + offset as u32, value);
}

/// Sets the two words at a byte offset of the block.
pub fn set64<B: Bus>(bus: &mut B, offset: usize, value: Counter64) {
    set(bus, offset + offset_of!(Counter64, high), value.high);
    set(bus, offset + offset_of!(Counter64, low), value.low);
}
