//! Frames that go nowhere, each counted with its reason.

use crate::Firmware;
use host_interface::extension::Drop;
use tigon2_hal::Bus;

/// Counts a dropped frame.
#[inline(always)]
pub fn count<B: Bus>(firmware: &mut Firmware<B>, reason: Drop) {
    if let Some(count) = firmware.counters.drops.get_mut(reason as usize) {
        *count = count.wrapping_add(1);
    }
}
