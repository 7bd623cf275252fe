//! Tests handlers that are loaded while the firmware runs; functions of the test are their code.

use crate::machine::{Machine, ModelBus, Setup};
use host_interface::extension::Extension;
use host_interface::loadable::{BLOCK_BYTES, Header, ROWS, RowWord, row_word};
use tigon_firmware::events::LATER;
use tigon_firmware::io::loadable::EVENTS;
use tigon2_chip::mailbox::{BAR_BASE, BYTES};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;

/// A card, and its block.
struct Loaded {
    machine: Machine,
    block: u32,
    room: u32,
}

impl Loaded {
    fn new() -> Loaded {
        let machine = Machine::up(&Setup::default());
        let block = machine.extension(Extension::Loadable);
        assert_ne!(block, 0, "there is room in firmware for a host");
        let room = machine.bench().word(block + Header::Room as u32);
        Loaded {
            machine,
            block,
            room,
        }
    }

    /// A word of a row, as the host reads it.
    fn word(&self, row: u32, word: RowWord) -> u32 {
        let address = self.block + row_word(row, word);
        self.machine.bench().word(address)
    }

    /// Loads `code` at the room's word `place`, and names it in a row.
    fn load(&mut self, row: u32, place: u32, argument: u32, code: fn(&mut ModelBus, u32) -> u32) {
        let entry = self.room + 4 * place;
        self.machine.load_code(entry, code);
        let mut bench = self.machine.bench();
        for (word, value) in [(RowWord::Argument, argument), (RowWord::Entry, entry)] {
            bench.set_word(self.block + row_word(row, word), value);
        }
    }

    /// Writes the row's mailbox.
    fn ring(&mut self, row: u32) {
        let first = self.block + Header::Mailbox as u32;
        let mailbox = self.machine.bench().word(first) + row;
        self.machine.set_bar(BAR_BASE + BYTES * mailbox + 4, 1);
        self.machine.settle();
    }
}

/// Adds one to the word at its argument. Takes 50 microseconds.
fn count(bus: &mut ModelBus, argument: u32) -> u32 {
    let count = bus.load(argument) + 1;
    bus.store(argument, count);
    bus.0.borrow_mut().pass(50_000);
    0
}

/// The same, until the word is 3.
fn count_to_three(bus: &mut ModelBus, argument: u32) -> u32 {
    count(bus, argument);
    u32::from(bus.load(argument) < 3)
}

#[test]
fn a_loaded_handler_runs_with_its_argument_and_is_accounted_for() {
    let mut card = Loaded::new();
    let word = card.room + 0x40;
    card.load(0, 0, word, count);
    assert_eq!(card.word(0, RowWord::Runs), 0, "nobody has rung");
    for runs in 1..=5 {
        card.ring(0);
        assert_eq!(card.machine.bench().word(word), runs);
        assert_eq!(card.word(0, RowWord::Runs), runs);
        let microseconds = card.word(0, RowWord::Microseconds);
        assert!(
            (50 * runs..=52 * runs).contains(&microseconds),
            "{microseconds}"
        );
    }
    assert_eq!(card.word(1, RowWord::Runs), 0, "the other row's account");
    assert_eq!(card.word(1, RowWord::Microseconds), 0);
}

#[test]
fn a_handler_that_wants_to_run_again_does() {
    let mut card = Loaded::new();
    let word = card.room + 0x40;
    card.load(1, 2, word, count_to_three);
    card.ring(1);
    assert_eq!(card.machine.bench().word(word), 3);
    assert_eq!(card.word(1, RowWord::Runs), 3);
}

#[test]
fn a_row_without_entry_does_nothing_and_can_get_one_again() {
    let mut card = Loaded::new();
    let word = card.room + 0x40;
    card.ring(0);
    assert_eq!(card.word(0, RowWord::Runs), 0);
    card.load(0, 0, word, count);
    card.ring(0);
    let entry = card.block + row_word(0, RowWord::Entry);
    card.machine.bench().set_word(entry, 0);
    card.ring(0);
    assert_eq!(card.machine.bench().word(word), 1);
    card.load(0, 1, word, count_to_three);
    card.ring(0);
    assert_eq!(card.machine.bench().word(word), 3);
    assert_eq!(card.word(0, RowWord::Runs), 3);
}

/// Firmware code can set the event as well as the host.
#[test]
fn the_rows_go_by_the_priority_of_their_bits() {
    let mut card = Loaded::new();
    let first = card.room + 0x40;
    // Each notes the number of the other's runs.
    fn note(bus: &mut ModelBus, argument: u32) -> u32 {
        let runs = bus.load(argument + 4);
        bus.store(argument, runs + 1);
        0
    }
    card.load(0, 0, first, note);
    card.load(1, 1, first + 4, count);
    for event in EVENTS {
        card.machine.a().io.bus.set(event);
    }
    card.machine.settle();
    assert_eq!(
        card.machine.bench().word(first),
        2,
        "the urgent one was first"
    );
}

#[test]
fn the_block_says_where_and_how_much() {
    let card = Loaded::new();
    let word = |word: Header| card.machine.bench().word(card.block + word as u32);
    assert_eq!(word(Header::Rows), ROWS);
    assert_eq!(word(Header::Room), card.block + BLOCK_BYTES);
    let end = word(Header::Room) + word(Header::RoomBytes);
    let block = tigon_firmware::memory::layout::block_base(0x10_0000, 0);
    assert!(end <= block, "{end:#x} is in front of K = {block:#x}");
    assert_eq!(LATER.len(), ROWS as usize);
}
