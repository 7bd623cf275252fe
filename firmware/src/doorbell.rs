//! The doorbells between the CPUs: what the other one has written is looked at.
//!
//! A bell says only that there is something; what it is stands in the
//! [shared](crate::shared) words. It is answered first, so that nothing that is written
//! meanwhile is missed.

use crate::shared::{ERRORS, STARVED};
use crate::{SideA, SideB, command, host_events, question, refill, send, send_index};
use host_interface::event;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::events::Dispatch;

/// Doorbell A: BDs have come for a frame that waits, the host is to hear of sent frames or
/// of errors, a question was answered.
#[inline(always)]
pub fn of_a<B: Dispatch>(a: &mut SideA<B>) {
    a.bus.answer(Cpu::A);
    #[cfg(feature = "lanes")]
    crate::lanes::returned(a);
    if a.receive.is_starved() {
        STARVED.set(&a.me, &mut a.bus, 0);
        a.receive.try_again();
        a.bus.set(EventBit::ReceiveComplete);
    }
    if send_index::is_behind(a) {
        a.bus.set(EventBit::WriteSendConsumer);
    }
    let errors = ERRORS.get(&mut a.bus);
    if a.host_events.errors_of_b != errors || a.asked.is_open() {
        rare(a, errors);
    }
}

#[inline(never)]
fn rare<B: Dispatch>(a: &mut SideA<B>, errors: u32) {
    while a.host_events.errors_of_b != errors {
        a.host_events.errors_of_b = a.host_events.errors_of_b.wrapping_add(1);
        host_events::post_error(a, event::ERROR_BAD_CONFIGURATION);
    }
    if a.asked.is_open() {
        command::run(a);
    }
}

/// CPU B has the host told that it configured something that cannot be: an error event.
#[inline(never)]
pub fn post_error<B: Dispatch>(b: &mut SideB<B>) {
    let errors = ERRORS.get(&mut b.bus).wrapping_add(1);
    ERRORS.set(&b.me, &mut b.bus, errors);
    b.ring();
}

/// Doorbell B: the host has moved producers, or CPU A asks something.
#[inline(always)]
pub fn of_b<B: Dispatch>(b: &mut SideB<B>) {
    b.bus.answer(Cpu::B);
    send::host_produced(b);
    refill::host_produced(b);
    question::answer(b);
}
