//! A channel stopped with an error.
//!
//! Hardware reference, sections 6.1 and 6.2: the attention events, bit 0 of the channel's
//! state, and the pause of the assist "used round error recovery" (all I). What the
//! channel does after an error is not known; here it stands at its descriptor until
//! software resets it. The host named memory that it does not have, so the descriptor is
//! passed over, what it was for is dropped, and both directions go on.

use super::{read, write};
use crate::layout::{STAGING, STATISTICS};
use crate::statistics::count;
use crate::{Firmware, direct, host_events, receive, send, trace};
use host_interface::event;
use host_interface::trace::Topic;
use tigon2_chip::Register;
use tigon2_chip::bits::{AssistState, DmaState};
use tigon2_hal::Bus;

/// DMA read attention.
#[inline(never)]
pub fn read_attention<B: Bus>(firmware: &mut Firmware<B>) {
    let state = firmware.bus.read(Register::DmaReadState);
    let left = firmware.bus.read(Register::DmaReadLength);
    if is_benign(state, left) {
        let clear = state & !DmaState::ERRORS;
        return firmware.bus.write(Register::DmaReadState, clear);
    }
    pause(&mut firmware.bus, true);
    count!(firmware, dma_read_master_aborts);
    if let Some(descriptor) = firmware.read_ring.current(&mut firmware.bus) {
        let kind = describe(&mut firmware.bus, 0, state, descriptor);
        if kind & read::SEND_DATA != 0 {
            send::fault::data(firmware, descriptor);
        } else {
            bds(firmware, descriptor, kind);
        }
        firmware.read_ring.skip(&mut firmware.bus);
    }
    direct::reset(&mut firmware.bus, direct::READ);
    pause(&mut firmware.bus, false);
}

/// BDs could not be fetched: they are fetched again when the host rings next. What was
/// requested behind them is given up as well, so that no BD arrives before its turn.
fn bds<B: Bus>(firmware: &mut Firmware<B>, failed: u32, kind: u32) {
    let mut next = Some(failed);
    let mut again = true;
    while let Some(descriptor) = next {
        let bus = &mut firmware.bus;
        if bus.load(descriptor + 24) == kind {
            bus.store(descriptor + 24, read::NOTHING);
            let local = bus.load(descriptor + 8);
            let wanted = if kind == read::SEND_BDS {
                send::fault::bds(&mut firmware.send, local, again);
                true
            } else {
                receive::fault::bds(&mut firmware.receive, kind, local, again)
            };
            again &= !wanted;
        }
        next = firmware.read_ring.behind(descriptor);
    }
    host_events::post_error(firmware, event::ERROR_BAD_CONFIGURATION);
}

/// DMA write attention.
#[inline(never)]
pub fn write_attention<B: Bus>(firmware: &mut Firmware<B>) {
    let state = firmware.bus.read(Register::DmaWriteState);
    let left = firmware.bus.read(Register::DmaWriteLength);
    if is_benign(state, left) {
        let clear = state & !DmaState::ERRORS;
        return firmware.bus.write(Register::DmaWriteState, clear);
    }
    pause(&mut firmware.bus, true);
    count!(firmware, dma_write_master_aborts);
    if let Some(descriptor) = firmware.write_ring.current(&mut firmware.bus) {
        let kind = describe(&mut firmware.bus, 1, state, descriptor);
        let told = written(firmware, descriptor, kind);
        firmware.write_ring.skip(&mut firmware.bus);
        direct::reset(&mut firmware.bus, direct::WRITE);
        pause(&mut firmware.bus, false);
        if told {
            host_events::post_error(firmware, event::ERROR_BAD_CONFIGURATION);
        }
    } else {
        direct::reset(&mut firmware.bus, direct::WRITE);
        pause(&mut firmware.bus, false);
    }
}

/// Something could not be written. Returns whether the host can be told: not of events
/// that do not reach it.
fn written<B: Bus>(firmware: &mut Firmware<B>, descriptor: u32, kind: u32) -> bool {
    let bus = &mut firmware.bus;
    let (local, length) = (bus.load(descriptor + 8), bus.load(descriptor + 12) & 0xFFFF);
    match kind {
        write::SEND_INDEX | write::RETURN_INDEX => bus.store(descriptor + 24, write::QUIET),
        write::EVENT_INDEX => {
            bus.store(descriptor + 24, write::QUIET);
            return false;
        }
        // The receive buffer lies behind all tables.
        _ if local > STATISTICS => receive::fault::data(firmware, descriptor),
        // An event, or the seed of a frame's sum: the frame's data will tell.
        _ if (STAGING..STATISTICS).contains(&local) && length <= 8 => return false,
        _ => {}
    }
    true
}

/// The end of a transfer at a 4 GB boundary is benign and cleared (6.1, I).
fn is_benign(state: u32, left: u32) -> bool {
    state & DmaState::ERRORS == DmaState::BOUNDARY_4GB && left == 0
}

/// Has the assist load no descriptor, or go on.
fn pause<B: Bus>(bus: &mut B, on: bool) {
    let bit = AssistState::new().with_pause(true).into_bits();
    bus.modify(Register::AssistState, bit, if on { bit } else { 0 });
}

/// Traces the transfer that failed; returns its kind.
fn describe<B: Bus>(bus: &mut B, direction: u32, state: u32, descriptor: u32) -> u32 {
    let kind = bus.load(descriptor + 24);
    let (high, low) = (bus.load(descriptor), bus.load(descriptor + 4));
    trace::record(bus, Topic::Dma, direction, [state, high, low, kind]);
    kind
}
