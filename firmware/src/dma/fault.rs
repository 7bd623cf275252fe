//! A channel stopped with an error.
//!
//! Hardware reference, sections 6.1 and 6.2: the attention events, bit 0 of the channel's
//! state, and the pause of the assist "used round error recovery" (all I). What the
//! channel does after an error is not known; here it stands at its descriptor until
//! software resets it. The host named memory that it does not have, so the descriptor is
//! passed over, what it was for is dropped, and both directions go on.

use super::{read, write};
use crate::layout::{STAGING, STATISTICS, TABLES_END};
use crate::log::log_warn;
use crate::statistics::count;
use crate::{SideA, SideB, direct, doorbell, host_events, receive, refill, send, trace};
use host_interface::event;
use host_interface::trace::Topic;
use tigon2_chip::Register;
use tigon2_chip::bits::{AssistState, DmaState};
use tigon2_hal::events::Dispatch;
use tigon2_hal::semaphore;

/// DMA read attention.
#[inline(never)]
pub fn read_attention<B: Dispatch>(b: &mut SideB<B>) {
    let state = b.bus.read(Register::DmaReadState);
    let left = b.bus.read(Register::DmaReadLength);
    if is_benign(state, left) {
        let clear = state & !DmaState::ERRORS;
        return b.bus.write(Register::DmaReadState, clear);
    }
    log_warn!("DMA read error {=u32:#x}, {=u32} bytes left", state, left);
    b.counters.read_aborts += 1;
    pause(&mut b.bus);
    if let Some(descriptor) = b.read_ring.current(&mut b.bus) {
        let kind = b.read_ring.note(descriptor) & read::KIND;
        describe(&mut b.bus, 0, state, descriptor, kind);
        if kind & read::SEND_DATA != 0 {
            send::fault::data(b, descriptor);
        } else {
            bds(b, descriptor, kind);
        }
        b.read_ring.skip(&mut b.bus);
    }
    direct::reset(&mut b.bus, direct::READ);
    go_on(&mut b.bus);
}

/// BDs could not be fetched: they are fetched again when the host rings next. What was
/// requested behind them is given up as well, so that no BD arrives before its turn.
fn bds<B: Dispatch>(b: &mut SideB<B>, failed: u32, kind: u32) {
    let mut next = Some(failed);
    let mut again = true;
    while let Some(descriptor) = next {
        if b.read_ring.note(descriptor) & read::KIND == kind {
            b.read_ring.set_note(descriptor, read::NOTHING);
            let local = b.bus.load(descriptor + 8);
            let wanted = if kind == read::SEND_BDS {
                send::fault::bds(&mut b.send, local, again);
                true
            } else {
                refill::given_up(b, kind, local, again)
            };
            again &= !wanted;
        }
        next = b.read_ring.behind(descriptor);
    }
    doorbell::post_error(b);
}

/// DMA write attention.
#[inline(never)]
pub fn write_attention<B: Dispatch>(a: &mut SideA<B>) {
    let state = a.bus.read(Register::DmaWriteState);
    let left = a.bus.read(Register::DmaWriteLength);
    if is_benign(state, left) {
        let clear = state & !DmaState::ERRORS;
        return a.bus.write(Register::DmaWriteState, clear);
    }
    log_warn!("DMA write error {=u32:#x}, {=u32} bytes left", state, left);
    pause(&mut a.bus);
    count!(a, dma_write_master_aborts);
    if let Some(descriptor) = a.write_ring.current(&mut a.bus) {
        let kind = a.write_ring.note(descriptor) & write::KIND;
        describe(&mut a.bus, 1, state, descriptor, kind);
        let told = written(a, descriptor, kind);
        a.write_ring.skip(&mut a.bus);
        direct::reset(&mut a.bus, direct::WRITE);
        go_on(&mut a.bus);
        if told {
            host_events::post_error(a, event::ERROR_BAD_CONFIGURATION);
        }
    } else {
        direct::reset(&mut a.bus, direct::WRITE);
        go_on(&mut a.bus);
    }
}

/// Something could not be written. Returns whether the host can be told: not of events
/// that do not reach it.
fn written<B: Dispatch>(a: &mut SideA<B>, descriptor: u32, kind: u32) -> bool {
    let bus = &mut a.bus;
    let (local, length) = (bus.load(descriptor + 8), bus.load(descriptor + 12) & 0xFFFF);
    match kind {
        write::SEND_INDEX | write::RETURN_INDEX | write::EVENT_INDEX => {
            a.write_ring.set_note(descriptor, write::QUIET);
            a.awaited -= 1;
            return kind != write::EVENT_INDEX;
        }
        // The receive buffer lies behind all tables.
        _ if local >= TABLES_END => receive::fault::data(a, descriptor),
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

/// Has the assist load no descriptor. The register and what else recovery touches are not
/// one CPU's alone, so it owns the semaphore until it [goes on](go_on).
fn pause<B: Dispatch>(bus: &mut B) {
    let cpu = bus.core(|core| core.cpu());
    semaphore::acquire(bus, cpu);
    let bit = AssistState::new().with_pause(true).into_bits();
    bus.modify(Register::AssistState, bit, bit);
}

fn go_on<B: Dispatch>(bus: &mut B) {
    let bit = AssistState::new().with_pause(true).into_bits();
    bus.modify(Register::AssistState, bit, 0);
    let cpu = bus.core(|core| core.cpu());
    semaphore::release(bus, cpu);
}

/// Traces the transfer of a kind that failed.
fn describe<B: Dispatch>(bus: &mut B, direction: u32, state: u32, descriptor: u32, kind: u32) {
    let (high, low) = (bus.load(descriptor), bus.load(descriptor + 4));
    trace::record(bus, Topic::Dma, direction, [state, high, low, kind]);
}
