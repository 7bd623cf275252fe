//! Tests the states of the interrupt pin and of the message interrupt.
//!
//! Hardware reference, "What a vfio-user server in front of the card learns": a client unmasks
//! before the pin is low, so the server checks the level again a little later.

mod common;

use common::*;
use rustix::fd::{AsFd, OwnedFd};
use std::time::Duration;
use vfio_user_nic::message::irq::{INTX, MSI};
use vfio_user_nic::message::region::BAR0;
use vfio_user_nic::{Client, Errno};

fn listening(bench: &Bench, index: u32) -> (Client, OwnedFd) {
    let mut client = bench.client();
    let event = event();
    client.set_irq_eventfd(index, Some(event.as_fd())).unwrap();
    (client, event)
}

#[test]
fn the_pin_signals_once_and_masks_itself() {
    let bench = Bench::new();
    let (mut client, event) = listening(&bench, INTX);
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, LONG), 1);
    assert!(bench.interrupts.is_masked());
    // More edges change nothing until the client unmasks.
    bench.interrupts.set_level(false);
    bench.interrupts.set_level(true);
    bench.interrupts.set_level(false);
    assert_eq!(signals(&event, SHORT), 0);
    // The pin is low: an unmask brings nothing, the next edge a signal.
    client.unmask_irq(INTX).unwrap();
    assert_eq!(signals(&event, SHORT), 0);
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, LONG), 1);
}

#[test]
fn a_pin_that_is_still_high_signals_again_after_the_unmask() {
    let bench = Bench::new();
    let (mut client, event) = listening(&bench, INTX);
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, LONG), 1);
    for _ in 0..100 {
        client.unmask_irq(INTX).unwrap();
        assert_eq!(signals(&event, LONG), 1);
    }
    assert_eq!(bench.interrupts.signals(), 101);
}

/// A guest's handler reads a register (the client unmasks), then lowers the pin:
/// no second signal.
#[test]
fn a_pin_lowered_soon_after_the_unmask_gives_no_spurious_signal() {
    let bench = Bench::with(|config| config.unmask_delay = Duration::from_millis(500));
    let (mut client, event) = listening(&bench, INTX);
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, LONG), 1);
    client.unmask_irq(INTX).unwrap();
    client.region_write(BAR0, PIN, &0u32.to_ne_bytes()).unwrap();
    assert_eq!(signals(&event, Duration::from_millis(700)), 0);
    // A new edge within the delay is a new interrupt, and is not held back.
    client.region_write(BAR0, PIN, &1u32.to_ne_bytes()).unwrap();
    assert_eq!(signals(&event, LONG), 1);
}

#[test]
fn without_a_delay_the_signal_follows_at_once() {
    let bench = Bench::with(|config| config.unmask_delay = Duration::ZERO);
    let (mut client, event) = listening(&bench, INTX);
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, LONG), 1);
    client.unmask_irq(INTX).unwrap();
    // It was there before the reply.
    assert_eq!(signals(&event, Duration::ZERO), 1);
}

#[test]
fn a_mask_holds_a_signal_back_until_the_unmask() {
    let bench = Bench::new();
    let (mut client, event) = listening(&bench, INTX);
    client.mask_irq(INTX).unwrap();
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, SHORT), 0);
    client.post_unmask_irq(INTX);
    client.flush().unwrap();
    assert_eq!(signals(&event, LONG), 1);
}

#[test]
fn a_mask_takes_back_the_look_after_an_unmask() {
    let bench = Bench::with(|config| config.unmask_delay = Duration::from_millis(400));
    let (mut client, event) = listening(&bench, INTX);
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, LONG), 1);
    client.unmask_irq(INTX).unwrap();
    client.mask_irq(INTX).unwrap();
    assert_eq!(signals(&event, Duration::from_millis(600)), 0);
}

#[test]
fn a_high_pin_signals_as_soon_as_somebody_listens() {
    let bench = Bench::new();
    bench.interrupts.set_level(true);
    let (mut client, event) = listening(&bench, INTX);
    assert_eq!(signals(&event, LONG), 1);
    // Disconnected, it is silent; its mask is gone with it.
    client.set_irq_eventfd(INTX, None).unwrap();
    bench.interrupts.set_level(false);
    bench.interrupts.set_level(true);
    assert_eq!(signals(&event, SHORT), 0);
    assert!(!bench.interrupts.is_connected());
}

#[test]
fn the_message_takes_the_pins_place() {
    let bench = Bench::with(|config| config.layout.msi = true);
    let (mut client, pin) = listening(&bench, INTX);
    let message = event();
    client.set_irq_eventfd(MSI, Some(message.as_fd())).unwrap();
    for _ in 0..3 {
        // Messages need no unmask.
        bench.interrupts.set_level(true);
        assert_eq!(signals(&message, LONG), 1);
        bench.interrupts.set_level(false);
    }
    assert_eq!(signals(&pin, SHORT), 0);
}

#[test]
fn a_client_may_trigger_by_itself() {
    let bench = Bench::new();
    let (mut client, event) = listening(&bench, INTX);
    client.trigger_irq(INTX).unwrap();
    assert_eq!(signals(&event, LONG), 1);
}

#[test]
fn interrupts_that_are_not_there_are_refused() {
    let bench = Bench::new();
    let mut client = bench.client();
    let event = event();
    let results = [
        client.set_irq_eventfd(MSI, Some(event.as_fd())),
        client.set_irq_eventfd(4, Some(event.as_fd())),
        client.set_irq_eventfd(77, Some(event.as_fd())),
        client.unmask_irq(MSI),
        // Not an eventfd: the server would write numbers into somebody's file.
        client.set_irq_eventfd(INTX, Some(memory(0x1000).as_fd())),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(refused_with(&error), Some(Errno::INVAL), "{error}");
    }
    assert!(!bench.interrupts.is_connected());
}

/// A client that never reads its eventfd cannot make the device wait.
#[test]
fn a_full_eventfd_does_not_block_the_device() {
    use rustix::event::{EventfdFlags, eventfd};
    let bench = Bench::with(|config| config.layout.msi = true);
    let mut client = bench.client();
    let blocking = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&blocking, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    client.set_irq_eventfd(MSI, Some(blocking.as_fd())).unwrap();
    bench.interrupts.set_level(true);
    bench.interrupts.set_level(false);
    bench.interrupts.set_level(true);
    assert!(bench.interrupts.level());
}
