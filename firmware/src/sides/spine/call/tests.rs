//! Who may call what, whose time it takes, and whose cut it is.

use super::*;
use crate::memory::words::Words;

const SUM: u32 = 0xABCD;
const CALLER: Caller = Caller {
    domain: 1,
    run: 640,
};

/// Domain 0 has 10 us and exports [`SUM`], which domain 1 may call, whose runs have 30 us.
fn card() -> Words {
    let mut bus = Words::default();
    bus.store(SPINE_EXPORTS, SUM);
    bus.store(SPINE_EXPORTS + ENTRY, 0x2_0000);
    for (domain, time) in [(0, 10), (1, 30)] {
        let word = SPINE_BLOCK + domain_word(domain, DomainWord::Watchdog);
        bus.store(word, time);
    }
    bus.store(SPINE_BLOCK + may_call(1), 1);
    bus
}

/// The run that CPU B sees, and its time.
fn running(bus: &mut Words) -> (u32, u32) {
    let word = SPINE_RUNNING.get(bus);
    (word >> 8, word & 0xFF)
}

#[test]
fn a_call_has_the_callees_time_and_a_return_what_the_caller_has_left() {
    let mut bus = card();
    assert_eq!(begin(&mut bus, CALLER, SUM, 100), Ok(0x2_0000));
    assert_eq!(running(&mut bus), (641, 10));
    assert_eq!(account(&mut bus, CALLER.run), Some(0));
    end(&mut bus, CALLER, 108);
    assert_eq!(running(&mut bus), (642, 22));
    assert_eq!(account(&mut bus, CALLER.run), None);
    // It has less time left than the procedure has: a cut is its own.
    assert_eq!(begin(&mut bus, CALLER, SUM, 125), Ok(0x2_0000));
    assert_eq!(running(&mut bus), (643, 5));
    assert_eq!(account(&mut bus, CALLER.run), None);
    end(&mut bus, CALLER, 131);
    assert_eq!(running(&mut bus), (644, 1));
    assert_eq!(begin(&mut bus, CALLER, SUM, 131), Err(NotCalled::Over));
}

#[test]
fn what_a_run_that_was_cut_off_has_left_is_not_the_next_ones() {
    let mut bus = card();
    assert!(begin(&mut bus, CALLER, SUM, 7).is_ok());
    assert_eq!(account(&mut bus, CALLER.run), Some(0));
    let next = CALLER.run + RUN_STEP;
    assert_eq!(account(&mut bus, next), None);
    let caller = Caller {
        run: next,
        ..CALLER
    };
    assert!(begin(&mut bus, caller, SUM, 5000).is_ok());
    assert_eq!(running(&mut bus), (next + 1, 10));
}

#[test]
fn a_run_calls_fifteen_times() {
    let mut bus = card();
    for _ in 0..15 {
        assert!(begin(&mut bus, CALLER, SUM, 7).is_ok());
        end(&mut bus, CALLER, 7);
    }
    assert_eq!(begin(&mut bus, CALLER, SUM, 7), Err(NotCalled::Full));
    // Its numbers are not those of the next run.
    assert!(running(&mut bus).0 < CALLER.run + RUN_STEP);
}

#[test]
fn only_what_is_exported_granted_and_not_suspended_is_called() {
    let mut bus = card();
    let absent = Err(NotCalled::Absent);
    assert_eq!(begin(&mut bus, CALLER, SUM + 1, 7), absent);
    let stranger = Caller { domain: 2, run: 32 };
    assert_eq!(begin(&mut bus, stranger, SUM, 7), absent);
    let suspended = SPINE_BLOCK + domain_count(0, DomainCount::Suspended);
    bus.store(suspended, 1);
    assert_eq!(begin(&mut bus, CALLER, SUM, 7), absent);
    bus.store(suspended, 0);
    assert!(begin(&mut bus, CALLER, SUM, 7).is_ok());
    forget(&mut bus, 0);
    assert_eq!(begin(&mut bus, CALLER, SUM, 7), absent);
}

#[test]
fn a_name_that_another_domain_exports_too_is_not_called_there() {
    let mut bus = card();
    // Domain 3 was there first, under the same name.
    bus.store(SPINE_EXPORTS + ENTRY, 3 << DOMAIN_SHIFT | 0x3_0000);
    bus.store(SPINE_EXPORTS + ROW_BYTES, SUM);
    bus.store(SPINE_EXPORTS + ROW_BYTES + ENTRY, 0x2_0000);
    assert_eq!(begin(&mut bus, CALLER, SUM, 7), Ok(0x2_0000));
}

#[test]
fn init_exports_as_many_as_there_is_room_for_and_only_entries() {
    let mut bus = Words::default();
    let mut effects = Effects::new();
    assert_eq!(export(&effects, &mut bus, SUM, 0x2_0000), Status::Full);
    effects.begin_init();
    for number in 0..EXPORTS {
        let entry = 0x2_0000 + 16 * number;
        assert_eq!(export(&effects, &mut bus, number, entry), Status::Noted);
    }
    assert_eq!(export(&effects, &mut bus, SUM, 0x2_0000), Status::Full);
    let entries = [0x2_0000, 0x2_0010];
    assert!(!are_entries(&mut bus, 0, &entries));
    assert!(are_entries(&mut bus, 1, &[]));
    forget(&mut bus, 0);
    assert!(are_entries(&mut bus, 0, &[]));
}

/// Memory is not empty when firmware starts.
#[test]
fn nothing_of_an_earlier_firmware_is_called() {
    let mut bus = card();
    assert!(begin(&mut bus, CALLER, SUM, 7).is_ok());
    clear(&mut bus);
    assert_eq!(account(&mut bus, CALLER.run), None);
    assert_eq!(begin(&mut bus, CALLER, SUM, 7), Err(NotCalled::Absent));
}
