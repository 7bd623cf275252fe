//! Custom counters, for changed handlers that count something more.
//!
//! Add a name to [`NAMES`], and a line where the event happens:
//!
//! ```ignore
//! custom_counters::count(bus, const { custom_counters::number("pings") });
//! ```
//!
//! The count lies in NIC memory beside its name, so `tigonctl stats` shows it without any change.
//! Counting costs a call, a load and a store of SRAM; nothing else costs anything. As with every
//! word in SRAM, only one CPU may count it.

use crate::memory::layout::CUSTOM_COUNTERS;
use host_interface::custom_counters::{CustomCounterAt, ENTRY_BYTES, MOST, NAME_WORDS, name_words};
use host_interface::extension::Extension;
use tigon2_hal::Bus;

/// The names of the custom counters: up to 15, of up to 12 letters.
pub const NAMES: &[&str] = &[];

/// The chip cannot multiply.
const ENTRY_SHIFT: u32 = ENTRY_BYTES.trailing_zeros();

const _: () = {
    assert!(NAMES.len() < MOST, "the list ends with an entry of no name");
    assert!(ENTRY_BYTES.is_power_of_two());
};

/// The names as words of their entries.
const WORDS: [[u32; NAME_WORDS]; NAMES.len()] = {
    let mut words = [[0; NAME_WORDS]; NAMES.len()];
    let mut number = 0;
    while number < NAMES.len() {
        words[number] = name_words(NAMES[number]);
        number += 1;
    }
    words
};

/// The number of a name: a constant, so that a wrong name does not compile.
pub const fn number(name: &str) -> u32 {
    let wanted = name_words(name);
    let mut number = 0;
    while number < NAMES.len() {
        let [a, b, c] = WORDS[number];
        if a == wanted[0] && b == wanted[1] && c == wanted[2] {
            return number as u32;
        }
        number += 1;
    }
    panic!("no such name in NAMES")
}

/// Increments a counter.
#[inline(never)]
pub fn count<B: Bus>(bus: &mut B, number: u32) {
    let address = CustomCounterAt(CUSTOM_COUNTERS + (number << ENTRY_SHIFT)).count();
    let value = bus.load(address).wrapping_add(1);
    bus.store(address, value);
}

/// Writes the names, and publishes their place if there are any.
pub(crate) fn prepare<B: Bus>(bus: &mut B) {
    if NAMES.is_empty() {
        return;
    }
    let mut at = CUSTOM_COUNTERS;
    for [first, second, third] in WORDS {
        for word in [0, first, second, third] {
            bus.store(at, word);
            at += 4;
        }
    }
    // The end: an entry without a name.
    bus.store(CustomCounterAt(at).name(), 0);
    bus.store(Extension::CustomCounters.nic_address(), CUSTOM_COUNTERS);
}
