//! Transfers without the assist: before it runs, and after a fatal error.
//!
//! Hardware reference, section 6.1, "direct use": write address, place and length, then the state,
//! and poll the channel.

use tigon2_chip::Register;
use tigon2_chip::bits::DmaState;
use tigon2_hal::Bus;
use tigon2_hal::assist::HostAddress;

/// Polls of a channel's state; a transfer of 1168 bytes takes far fewer.
const POLLS: u32 = 1 << 20;

/// The registers of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    high: Register,
    low: Register,
    local: Register,
    length: Register,
    state: Register,
}

/// Host to NIC.
pub const READ: Channel = Channel {
    high: Register::DmaReadHostHigh,
    low: Register::DmaReadHostLow,
    local: Register::DmaReadLocal,
    length: Register::DmaReadLength,
    state: Register::DmaReadState,
};

/// NIC to host.
pub const WRITE: Channel = Channel {
    high: Register::DmaWriteHostHigh,
    low: Register::DmaWriteHostLow,
    local: Register::DmaWriteLocal,
    length: Register::DmaWriteLength,
    state: Register::DmaWriteState,
};

/// Resets a channel: drops its transfer and clears its error.
pub fn reset<B: Bus>(bus: &mut B, channel: Channel) {
    let reset = DmaState::new().with_reset(true).into_bits();
    bus.write(channel.state, reset);
}

/// Moves `length` bytes and waits for completion. The assist must be off or paused.
///
/// # Errors
/// The channel's state when it reports an error or does not complete.
#[inline(never)]
pub fn transfer<B: Bus>(
    bus: &mut B,
    channel: Channel,
    host: HostAddress,
    local: u32,
    length: u32,
    state: u32,
) -> Result<(), u32> {
    bus.write(channel.high, host.high);
    bus.write(channel.low, host.low);
    bus.write(channel.local, local);
    bus.write(channel.length, length);
    bus.write(channel.state, state);
    let state = finished(bus, channel);
    if state.start() || state.into_bits() & DmaState::BOOT_ERRORS != 0 {
        return Err(state.into_bits());
    }
    Ok(())
}

/// Waits until a channel is idle, with a bound; returns its state.
pub fn finished<B: Bus>(bus: &mut B, channel: Channel) -> DmaState {
    let mut state = DmaState::from_bits(bus.read(channel.state));
    for _ in 0..POLLS {
        if !state.start() {
            break;
        }
        state = DmaState::from_bits(bus.read(channel.state));
    }
    state
}
