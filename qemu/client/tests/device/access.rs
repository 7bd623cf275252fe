//! Tests accesses to configuration space and BAR 0.

use crate::fake::{BAR_BYTES, FakeCard};
use crate::pc::{BAR, Memory, Pc, tools_or_skip};
use vfio_user_nic::message::region;

#[test]
fn the_guest_finds_the_card_by_its_own_identity() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    card.registers().config[0x40..0x44].copy_from_slice(&[1, 2, 3, 4]);
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    assert_eq!(pc.config_read(0, 0x00), 0x0001_12AE);
    assert_eq!(pc.config_read(0, 0x08), 0x0200_0001);
    assert_eq!(pc.config_read(0, 0x2C), 0x0001_12AE);
    assert_eq!(pc.config_read(0, 0x3C) & 0xFF00, 0x0100, "interrupt pin A");
    // What no standard defines is the card's, and is read anew each time.
    assert_eq!(pc.config_read(0, 0x40), 0x0403_0201);
    card.registers().config[0x40] = 9;
    assert_eq!(pc.config_read(0, 0x40), 0x0403_0209);
    assert_eq!(pc.config_read_sized(0, 0x42, 'w'), 0x0403);
    assert_eq!(pc.config_read_sized(0, 0x01, 'b'), 0x12);
}

#[test]
fn the_bar_has_the_cards_size_and_lies_where_the_guest_puts_it() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    pc.config_write(0, 0x10, u32::MAX);
    assert_eq!(pc.config_read(0, 0x10), !(BAR_BYTES as u32 - 1));
    let elsewhere = 0xE800_0000;
    pc.config_write(0, 0x10, elsewhere);
    card.registers().bar[0x200] = 0x5A;
    assert_eq!(pc.read('l', u64::from(elsewhere) + 0x200), 0x5A);
    // The card is notified, as a real one would be.
    let last = card.registers().writes.last().cloned();
    let wanted = (region::CONFIG, 0x10, elsewhere.to_le_bytes().to_vec());
    assert_eq!(last, Some(wanted));
}

#[test]
fn writes_arrive_in_order_and_before_the_next_read() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    // Writes are posted: the answer to a read says that those of the start have come.
    pc.read('l', BAR);
    card.registers().writes.clear();
    for i in 0..200 {
        pc.write('l', BAR + 0x800, i);
    }
    assert_eq!(pc.read('l', BAR + 0x800), 199);
    let writes = std::mem::take(&mut card.registers().writes);
    let values: Vec<u8> = writes.iter().map(|(_, _, data)| data[0]).collect();
    assert_eq!(values, (0..200).collect::<Vec<u8>>());
    assert!(writes.iter().all(|w| (w.0, w.1) == (region::BAR0, 0x800)));
}

#[test]
fn accesses_keep_their_size_and_long_ones_are_two() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    card.registers().writes.clear();
    pc.write('b', BAR + 0x11, 0xA1);
    pc.write('w', BAR + 0x12, 0xB1B2);
    pc.write('q', BAR + 0x18, 0x1122_3344_5566_7788);
    assert_eq!(pc.read('q', BAR + 0x18), 0x1122_3344_5566_7788);
    assert_eq!(pc.read('l', BAR + 0x10), 0xB1B2_A100);
    let writes: Vec<_> = card.registers().writes.clone();
    // The write that switched the card's memory on is posted, too, and may come late.
    let to_bar = writes.iter().filter(|w| w.0 == region::BAR0);
    let sizes: Vec<_> = to_bar.map(|w| (w.1, w.2.len())).collect();
    assert_eq!(sizes, [(0x11, 1), (0x12, 2), (0x18, 4), (0x1C, 4)]);
}

#[test]
fn a_reset_of_the_pc_resets_the_card() {
    let tools = tools_or_skip!();
    let card = FakeCard::new();
    let mut pc = Pc::start(&tools, Memory::Shared, &[&card]);
    let before = card.registers().resets;
    // The chip set's reset register: a hard reset.
    pc.port_write('b', 0xCF9, 0x02);
    pc.port_write('b', 0xCF9, 0x06);
    crate::pc::wait_for("the card was never reset", || {
        card.registers().resets > before
    });
    assert_eq!(pc.config_read(0, 0x10), 0, "the BAR is nowhere again");
    pc.set_up(0);
    card.registers().bar[0] = 7;
    assert_eq!(pc.read('l', BAR), 7);
}

#[test]
fn two_cards_in_one_pc_do_not_meet() {
    let tools = tools_or_skip!();
    let (first, second) = (FakeCard::new(), FakeCard::new());
    let mut pc = Pc::start(&tools, Memory::Shared, &[&first, &second]);
    pc.write('l', BAR + 0x40, 1);
    pc.write('l', BAR + 0x1_0040, 2);
    assert_eq!(pc.read('l', BAR + 0x40), 1);
    assert_eq!(pc.read('l', BAR + 0x1_0040), 2);
    assert_eq!(first.registers().bar[0x40], 1);
    assert_eq!(second.registers().bar[0x40], 2);
    let mut word = [0; 4];
    pc.write('l', 0x2000, 0xCAFE);
    for card in [&first, &second] {
        assert_eq!(card.dma.read(0x2000, &mut word), Ok(()));
        assert_eq!(word, [0xFE, 0xCA, 0, 0]);
    }
}
