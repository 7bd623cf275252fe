//! MAC attentions: each is counted and cleared.
//!
//! Hardware reference, section 10.4. Both attention events stay masked until the next
//! housekeeping, so that a flood of them cannot starve the packet path.

use super::receive_state;
use crate::io::IoA;
use crate::memory::statistics::count;
use tigon2_chip::Register;
use tigon2_chip::bits::MacRxState;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// The MAC has stopped, by its state register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacStopped(pub u32);

/// MAC RX attention. Clearing the attentions is enough: the MAC continues by itself when its
/// buffer has room again.
///
/// # Errors
/// [`MacStopped`] for an attention that is fatal.
pub fn receive_attention<B: Dispatch>(io: &mut IoA<B>) -> Result<(), MacStopped> {
    let state = receive_state(&mut io.bus);
    if state.into_bits() & MacRxState::FATAL_ATTENTION != 0 {
        return Err(MacStopped(state.into_bits()));
    }
    // Writing back what was read clears it (write 1 to clear).
    io.bus.write(Register::MacRxState, state.into_bits());
    count!(io.bus, mac_receive_attentions);
    if state.link_attention() {
        count!(io.bus, mac_link_attentions);
    }
    if state.sync_attention() {
        count!(io.bus, mac_sync_attentions);
    }
    if state.config_attention() {
        count!(io.bus, mac_config_attentions);
    }
    if state.buffer_attention() {
        count!(io.bus, mac_buffer_attentions);
    }
    io.bus.clear(EventBit::MacRxAttention);
    io.hasten();
    Ok(())
}

/// MAC TX attention.
pub fn transmit_attention<B: Dispatch>(io: &mut IoA<B>) {
    io.clear_transmitter_attention();
    count!(io.bus, mac_transmit_attentions);
    io.bus.clear(EventBit::MacTxAttention);
    io.hasten();
}
