//! Tests the interrupt pin (toolchain notes of `docs/qemu.md`, "Interrupt").

use crate::fake::FakeCard;
use crate::pc::{BAR, Memory, Pc, tools_or_skip};

#[test]
fn the_pin_goes_up_and_an_access_after_the_card_lowered_it_ends_it() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    assert!(!pc.is_interrupted());
    card.interrupts.set_level(true);
    pc.wait_interrupt(true);
    card.interrupts.set_level(false);
    pc.read('l', BAR);
    pc.wait_interrupt(false);
    // Nothing is left over that would raise it again.
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(!pc.is_interrupted());
    assert_eq!(card.interrupts.signals(), 1);
}

#[test]
fn a_pin_that_stays_high_comes_back_after_each_access() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    card.interrupts.set_level(true);
    for round in 1..=20 {
        pc.wait_interrupt(true);
        assert_eq!(card.interrupts.signals(), round);
        if round.is_multiple_of(2) {
            pc.read('l', BAR);
        } else {
            pc.write('l', BAR + 0x800, 1);
        }
        crate::pc::wait_for("no signal came again", || card.interrupts.signals() > round);
    }
}

#[test]
fn without_an_access_a_pin_is_signalled_once() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    for _ in 0..50 {
        card.interrupts.set_level(true);
        card.interrupts.set_level(false);
    }
    pc.wait_interrupt(true);
    assert_eq!(card.interrupts.signals(), 1);
    assert!(card.interrupts.is_masked());
    pc.write('l', BAR, 0);
    pc.wait_interrupt(false);
    crate::pc::wait_for("never unmasked", || !card.interrupts.is_masked());
}

#[test]
fn a_guest_may_disable_the_pin_in_the_command_register() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    pc.config_write(0, 0x04, 0x0406);
    card.interrupts.set_level(true);
    crate::pc::wait_for("never signalled", || card.interrupts.signals() == 1);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(!pc.is_interrupted());
    pc.config_write(0, 0x04, 0x0006);
    pc.wait_interrupt(true);
}

#[test]
fn a_reset_lowers_the_pin() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    card.interrupts.set_level(true);
    pc.wait_interrupt(true);
    card.interrupts.set_level(false);
    pc.port_write('b', 0xCF9, 0x02);
    pc.port_write('b', 0xCF9, 0x06);
    pc.wait_interrupt(false);
    // And the next interrupt comes.
    card.interrupts.set_level(true);
    pc.wait_interrupt(true);
}
