//! Attentions of the MAC: counted and cleared.
//!
//! Hardware reference, section 10.4. The events are held back until the next
//! housekeeping, so that a flood of them cannot starve the packet path.

use super::receive_state;
use crate::statistics::count;
use crate::{SideA, fatal};
use host_interface::extension::FatalCode;
use tigon2_chip::Register;
use tigon2_chip::bits::MacRxState;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// MAC RX attention. The attentions are cleared, which leaves nothing to recover: the MAC
/// goes on by itself when its buffer has room again.
pub fn receive_attention<B: Dispatch>(a: &mut SideA<B>) {
    let state = receive_state(&mut a.bus);
    if state.into_bits() & MacRxState::FATAL_ATTENTION != 0 {
        return fatal::report(a, FatalCode::Mac, state.into_bits());
    }
    // Reading it back as it is clears what was read (write 1 to clear).
    a.bus.write(Register::MacRxState, state.into_bits());
    count!(a, mac_receive_attentions);
    if state.link_attention() {
        count!(a, mac_link_attentions);
    }
    if state.sync_attention() {
        count!(a, mac_sync_attentions);
    }
    if state.config_attention() {
        count!(a, mac_config_attentions);
    }
    if state.buffer_attention() {
        count!(a, mac_buffer_attentions);
    }
    a.bus.clear(EventBit::MacRxAttention);
}

/// MAC TX attention.
pub fn transmit_attention<B: Dispatch>(a: &mut SideA<B>) {
    let state = a.bus.read(Register::MacTxState);
    a.bus.write(Register::MacTxState, state);
    count!(a, mac_transmit_attentions);
    a.bus.clear(EventBit::MacTxAttention);
}
