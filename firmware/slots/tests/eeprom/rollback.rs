//! Tests the rollback counter: no older image replaces a confirmed one unless that is allowed, and
//! images without a counter count as 0.

use crate::part::{BOARD, Part, code, counted, file};
use boot_slots::record::Found;
use boot_slots::restore::restore;
use boot_slots::update::{Choices, Downgrade, UpdateError, confirm, prefer};
use boot_slots::{ImageFile, Record, Slot};

const ALLOWED: Choices = Choices {
    downgrade: Downgrade::Allow,
    ..Choices::CONFIRMED
};

fn counter(part: &Part) -> u32 {
    let found = Record::find(&mut part.powered());
    let Ok(Found::Record(record, _)) = found else {
        panic!("{found:?}");
    };
    record.counter
}

fn older<T>(image: u32, card: u32) -> Result<T, UpdateError<crate::part::NoPower>> {
    Err(UpdateError::Older { image, card })
}

/// A card on which image 3 was confirmed.
fn at_3() -> Part {
    let mut part = Part::new(0x2000);
    part.install(&counted(1, 2), Choices::CONFIRMED)
        .expect("room");
    part.install(&counted(2, 3), Choices::CONFIRMED)
        .expect("newer");
    part.powered()
}

#[test]
fn an_older_image_is_refused_in_either_slot_before_anything_is_written() {
    let mut part = at_3();
    for slot in [None, Some(Slot::Zero), Some(Slot::One)] {
        for confirmed in [false, true] {
            let choices = Choices {
                slot,
                confirmed,
                ..Choices::default()
            };
            assert_eq!(part.install(&counted(9, 2), choices), older(2, 3));
        }
    }
    assert_eq!(part.writes, 0);
    for (build, same_or_newer) in [(4, 3), (5, 7)] {
        part.install(&counted(build, same_or_newer), Choices::CONFIRMED)
            .expect("not older");
    }
    assert_eq!(counter(&part), 7);
}

/// As long as an image is on trial, the card can go back to the one before.
#[test]
fn only_a_confirmation_raises_the_counter() {
    let mut part = at_3();
    let slot = part.install(&counted(4, 8), Choices::TRIAL).expect("newer");
    assert_eq!(counter(&part), 3);
    part.boot();
    confirm(&mut part, slot).expect("it starts");
    assert_eq!(counter(&part), 8);
}

#[test]
fn an_allowed_downgrade_starts_and_leaves_the_counter_as_it_is() {
    let mut part = at_3();
    part.install(&counted(9, 0), ALLOWED).expect("allowed");
    assert_eq!(part.started(), Some(code(300, 9)));
    assert_eq!(counter(&part), 3);
    assert_eq!(
        part.install(&counted(9, 0), Choices::CONFIRMED),
        older(0, 3),
        "the next one is asked for again"
    );
}

/// The other slot often holds the version before: to prefer it is a downgrade.
#[test]
fn an_older_slot_is_preferred_only_if_that_is_allowed() {
    let mut part = at_3();
    let refused = prefer(&mut part, Slot::Zero, Downgrade::Refuse);
    assert_eq!(refused, older(2, 3));
    assert_eq!(part.writes, 0);
    prefer(&mut part, Slot::Zero, Downgrade::Allow).expect("allowed");
    assert_eq!(part.started(), Some(code(300, 1)));
}

/// The boot code knows no counter: it starts the older image if the newer one is damaged.
#[test]
fn the_fallback_may_be_older() {
    let mut part = at_3();
    let image = part.geometry().image_at(Slot::One) as usize;
    part.bytes[image] ^= 1;
    assert_eq!(part.started(), Some(code(300, 1)));
}

/// A trial that is counted is a new record, which the boot code writes.
#[test]
fn the_boot_code_keeps_the_counter() {
    let mut part = at_3();
    part.install(&counted(4, 5), Choices::TRIAL).expect("newer");
    let before = part.writes;
    part.boot();
    assert!(part.writes > before, "the trial is counted");
    assert_eq!(counter(&part), 3);
}

#[test]
fn a_backup_of_an_older_card_is_refused() {
    let mut before = Part::new(0x2000);
    before
        .install(&counted(1, 2), Choices::CONFIRMED)
        .expect("room");
    let geometry = before.geometry();
    let mut part = at_3();
    let put = |part: &mut Part, backup: &Part, downgrade| {
        restore(
            part,
            geometry,
            BOARD,
            &backup.bytes,
            downgrade,
            &mut |_, _, _| {},
        )
    };
    let blank = Part::new(0x2000);
    assert_eq!(put(&mut part, &before, Downgrade::Refuse), older(2, 3));
    assert_eq!(put(&mut part, &blank, Downgrade::Refuse), older(0, 3));
    // The record of a backup is signed by nobody: its image counts, too.
    let mut forged = before.clone();
    let Ok(Found::Record(mut record, _)) = Record::find(&mut forged) else {
        panic!("there is a record");
    };
    record.counter = 9;
    record.write(&mut forged).expect("power is on");
    assert_eq!(put(&mut part, &forged, Downgrade::Refuse), older(2, 3));
    assert_eq!(part.writes, 0);

    assert_eq!(put(&mut part, &before, Downgrade::Allow), Ok(()));
    assert!(part.bytes == before.bytes, "all is as it was");
    assert_eq!(counter(&part), 2);
}

/// Images and records of the time before counters: their bytes are as they were, and all
/// that counts nothing.
#[test]
fn what_knows_no_counter_counts_as_0() {
    let plain = file(300, 1);
    assert_eq!(plain[52..60], [0; 8]);
    assert_eq!(ImageFile::parse(&plain).expect("whole").header.counter, 0);
    let mut part = Part::new(0x2000);
    part.install(&plain, Choices::CONFIRMED).expect("room");
    assert_eq!(part.bytes[0x100 + 40..0x100 + 60], [0; 20]);
    part.install(&file(300, 2), Choices::CONFIRMED)
        .expect("no counter, no rollback");
    assert_eq!(counter(&part), 0);
}

/// The counter is signed.
#[test]
fn the_counter_is_among_the_signed_bytes() {
    let [one, two] = [1, 2].map(|n| {
        let file = counted(1, n);
        ImageFile::parse(&file)
            .expect("whole")
            .header
            .signed_bytes()
    });
    assert_ne!(one, two);
}
