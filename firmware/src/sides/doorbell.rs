//! The doorbells between the CPUs: what the other one has written is looked at.
//!
//! A bell says only that there is something; what it is stands in the
//! [shared](crate::memory::shared) words. It is answered first, so that nothing that is
//! written meanwhile is missed.

use super::{SideA, SideB, command, cross_call};
use crate::control::host_events;
use crate::memory::shared::{ERRORS, STARVED};
use crate::path::{buffer_fetch, send};
use host_interface::event;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// Doorbell A: BDs have come for a frame that waits, the host is to hear of sent frames or
/// of events, a call was answered.
#[inline(always)]
pub fn doorbell_a<B: Dispatch>(a: &mut SideA<B>) {
    a.io.bus.answer(Cpu::A);
    if a.receive.is_starved() {
        STARVED.set(&a.io.me, &mut a.io.bus, 0);
        a.receive.try_again();
        a.io.bus.set(EventBit::ReceiveComplete);
    }
    if a.send_index.is_behind(&mut a.io) {
        a.io.bus.set(EventBit::WriteSendConsumer);
    }
    let errors = ERRORS.get(&mut a.io.bus);
    if a.host_events.is_behind(errors) || a.io.rare_work {
        rare(a, errors);
    }
}

#[inline(never)]
fn rare<B: Dispatch>(a: &mut SideA<B>, errors: u32) {
    let code = event::ERROR_BAD_CONFIGURATION;
    a.host_events.follow(&mut a.io, errors, code);
    if a.calls.is_open() {
        command::run(a);
    }
    host_events::send(&mut a.host_events, &mut a.io, &a.config);
    a.io.rare_work = a.calls.is_open() || !a.io.outbox.is_empty();
}

/// Doorbell B: the host has moved producers, or CPU A calls.
#[inline(always)]
pub fn doorbell_b<B: Dispatch>(b: &mut SideB<B>) {
    b.io.bus.answer(Cpu::B);
    send::host_produced(&mut b.send, &mut b.io);
    buffer_fetch::host_produced(&mut b.buffer_fetch, &mut b.io);
    cross_call::answer(b);
}
