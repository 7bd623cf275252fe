//! Tests cards that end, hang or refuse requests while the guest keeps running.

use crate::fake::{DMA_ADDRESS, DMA_NOW, FakeCard, TAR_PIT};
use crate::pc::{BAR, Memory, Pc, tools_or_skip, wait_for};

const GONE: &str = "the card is gone for this guest";

#[test]
fn a_card_that_ends_leaves_an_empty_slot_and_one_line() {
    let tools = tools_or_skip!();
    let mut card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    card.interrupts.set_level(true);
    pc.wait_interrupt(true);
    card.die();
    pc.wait_error(GONE);
    pc.wait_interrupt(false);
    for _ in 0..10 {
        assert_eq!(pc.read('l', BAR + 0x40), 0xFFFF_FFFF);
        assert_eq!(pc.read('b', BAR + 0x40), 0xFF);
        pc.write('l', BAR + 0x40, 1);
        assert_eq!(pc.config_read(0, 0), 0xFFFF_FFFF);
        pc.config_write(0, 0x04, 0);
    }
    pc.port_write('b', 0xCF9, 0x02);
    pc.port_write('b', 0xCF9, 0x06);
    assert_eq!(pc.config_read(0, 0), 0xFFFF_FFFF);
    assert!(pc.is_alive());
    let said = pc.errors();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("tigon2-vfio-user: "), "{said}");
}

#[test]
fn a_card_that_does_not_answer_is_given_up_in_time() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    assert_eq!(pc.read('l', BAR + u64::from(TAR_PIT)), 0xFFFF_FFFF);
    pc.wait_error(GONE);
    assert_eq!(pc.read('l', BAR), 0xFFFF_FFFF);
    assert_eq!(pc.errors().lines().count(), 1, "{}", pc.errors());
    // It is notified, so it stops using memory of the guest.
    wait_for("the card still believes in a client", || {
        card.registers().gone == 1
    });
    assert!(card.dma.is_empty());
}

#[test]
fn one_dead_card_leaves_the_other_alone() {
    let tools = tools_or_skip!();
    let (mut first, second) = (FakeCard::new(), FakeCard::new());
    let mut pc = Pc::start(&tools, Memory::Shared, &[&first, &second]);
    first.die();
    pc.wait_error(GONE);
    assert_eq!(pc.read('l', BAR), 0xFFFF_FFFF);
    pc.write('l', BAR + 0x1_0000, 3);
    assert_eq!(pc.read('l', BAR + 0x1_0000), 3);
    second.interrupts.set_level(true);
    pc.wait_interrupt(true);
}

#[test]
fn what_the_card_refuses_reads_as_ones_and_is_told_once() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    // Where there is no memory to read, this register fails.
    pc.write('l', BAR + u64::from(DMA_ADDRESS), 0xF000_0000);
    for _ in 0..5 {
        assert_eq!(pc.read('l', BAR + u64::from(DMA_NOW)), 0xFFFF_FFFF);
    }
    card.registers().bar[0x40] = 6;
    assert_eq!(pc.read('l', BAR + 0x40), 6, "it goes on");
    pc.wait_error("the server refused");
    let said = pc.errors();
    assert_eq!(said.matches("the server refused").count(), 1, "{said}");
}

#[test]
fn a_pc_that_ends_lets_go_of_the_card() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    drop(Pc::start(&tools, Memory::Shared, &[&card]));
    wait_for("the card still believes in a client", || {
        card.registers().gone == 1
    });
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    pc.write('l', BAR + 0x40, 5);
    assert_eq!(pc.read('l', BAR + 0x40), 5);
}
