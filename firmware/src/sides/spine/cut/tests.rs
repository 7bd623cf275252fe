//! Who may say what becomes of what a run had, and when that is forgotten.

use super::*;
use crate::memory::words::Words;

#[test]
fn init_alone_says_what_becomes_of_what_a_run_had() {
    let mut bus = Words::default();
    let mut effects = Effects::new();
    let what = WhenCut::DropFrame as u32;
    assert_eq!(set(&effects, &mut bus, what), Status::Full);
    effects.begin_init();
    assert_eq!(set(&effects, &mut bus, what), Status::Noted);
    effects.end_init();
    assert_eq!(set(&effects, &mut bus, 0), Status::Full);
    assert_eq!(bus.load(word(0)), what);
    forget(&mut bus, 1);
    assert_eq!(bus.load(word(0)), what);
    forget(&mut bus, 0);
    assert_eq!(bus.load(word(0)), 0);
}
