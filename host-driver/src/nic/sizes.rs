//! Sizes of frames and of their slots.

/// Bytes of a send or receive slot for standard frames.
pub const SLOT_BYTES: usize = 2048;
/// Bytes of a send or receive slot for jumbo frames.
pub const JUMBO_SLOT_BYTES: usize = 16 * 1024;
/// Shortest useful frame: an Ethernet header.
pub const MIN_FRAME: usize = 14;

/// Bytes that an Ethernet header and a VLAN tag add to a packet.
pub(super) const FRAME_OVERHEAD: u16 = 18;
/// Bytes of the CRC, which is delivered on request.
const CRC_BYTES: usize = 4;

/// Longest frame of an MTU, without CRC, including a VLAN tag.
pub(super) fn largest_frame(mtu: u16) -> usize {
    usize::from(mtu) + usize::from(FRAME_OVERHEAD)
}

/// Bytes of a slot of the mini ring.
pub(super) fn mini_slot(longest: u16) -> usize {
    (usize::from(longest) + CRC_BYTES).next_power_of_two()
}
