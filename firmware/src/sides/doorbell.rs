//! The doorbells between the CPUs.
//!
//! A doorbell says only that something changed; the [shared](crate::memory::shared) words say
//! what. The handler clears the doorbell first, so that it misses nothing that is written
//! meanwhile.

use super::{SideA, SideB, command, cross_call, eudp, spine};
use crate::control::host_events;
use crate::memory::shared::{ERRORS, STARVED};
use crate::path::{buffer_fetch, send};
use host_interface::event;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// Doorbell A: BDs have arrived for a waiting frame, the host is to be notified of sent frames or
/// of events, or a cross call is answered.
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
    eudp::events::called(&mut a.eudp, &mut a.io);
    spine::message::arrived(&mut a.spine, &mut a.io);
    spine::called(&mut a.spine, &mut a.io);
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

/// Doorbell B: the host has advanced producers, or CPU A makes a cross call.
#[inline(always)]
pub fn doorbell_b<B: Dispatch>(b: &mut SideB<B>) {
    b.io.bus.answer(Cpu::B);
    // A peer's frames are in the transmit buffer already. If the host's frames need the path that
    // they have, the doorbell rings again.
    spine::watch::called(&mut b.spine, &mut b.send, &mut b.io);
    send::host_produced(&mut b.send, &mut b.io);
    buffer_fetch::host_produced(&mut b.buffer_fetch, &mut b.io);
    cross_call::answer(b);
    eudp::handlers::begin(b);
}
