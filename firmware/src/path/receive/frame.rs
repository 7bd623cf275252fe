//! A frame in the receive buffer: its parts, and where it lies.
//!
//! Hardware reference, section 10.3.

use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::mac::ReceivedFrame;

/// Bytes of the CRC, which the MAC leaves on the frame.
pub const CRC: u32 = 4;
/// Bytes of an Ethernet header.
pub const HEADER: u32 = 14;
/// Bytes of a VLAN tag.
pub const TAG: u32 = 4;

/// Frames of one run: more save little and delay what frees resources.
pub const FRAMES: u32 = 16;

/// The address of a byte of the receive buffer, which begins at `base`, wrapped at its end.
#[inline(always)]
pub const fn wrapped(base: u32, address: u32) -> u32 {
    if address >= PACKET_MEMORY_END {
        address - (PACKET_MEMORY_END - base)
    } else {
        address
    }
}

/// Where the frame after `frame` starts: at the next multiple of 8 bytes, wrapped at the end of
/// the buffer (10.3, C).
pub(super) const fn end_of(base: u32, frame: &ReceivedFrame) -> u32 {
    wrapped(base, (frame.start + frame.length + 7) & !7)
}
