//! Tests a power failure at every single write of an update: the card boots the old image or the
//! new one, never anything else.

use crate::part::{BOARD, NoPower, Part, Torn, code, file};
use boot_slots::Slot;
use boot_slots::restore::restore;
use boot_slots::select::{Choice, Reason};
use boot_slots::update::{Choices, Downgrade, confirm, prefer};

const OLD: u32 = 1;
const NEW: u32 = 2;

/// Cuts `update` at each of its writes, in each way, and looks what is booted then.
fn cut_everywhere(before: &Part, old: &[u8], new: &[u8], update: impl Fn(&mut Part)) -> usize {
    assert_eq!(before.started().as_deref(), Some(old), "before");
    let mut whole = before.powered();
    update(&mut whole);
    assert_eq!(whole.started().as_deref(), Some(new), "afterwards");
    let mut seen_old = 0;
    for write in 0..whole.writes {
        for torn in Torn::ALL {
            let mut part = before.powered();
            part.cut = Some((write, torn));
            update(&mut part);
            let started = part.started();
            let started = started.as_deref();
            assert!(
                started == Some(old) || started == Some(new),
                "write {write} {torn:?}: {:?}",
                part.powered().boot().0
            );
            seen_old += usize::from(started == Some(old));
            assert_eq!(
                part.bytes[..0x100],
                before.bytes[..0x100],
                "manufacturing data"
            );
            // And the update can simply be made again.
            let mut again = part.powered();
            update(&mut again);
            assert_eq!(
                again.started().as_deref(),
                Some(new),
                "write {write} {torn:?}"
            );
        }
    }
    assert!(seen_old >= whole.writes, "most cuts leave the old image");
    whole.writes
}

fn with_old(bytes: usize, words: usize) -> Part {
    let mut part = Part::new(bytes);
    part.install(&file(words, OLD), Choices::CONFIRMED)
        .expect("room");
    part.powered()
}

#[test]
fn a_first_update_is_safe_at_every_write() {
    let part = with_old(0x4000, 1000);
    let writes = cut_everywhere(&part, &code(1000, OLD), &code(1200, NEW), |part| {
        let _ = part.install(&file(1200, NEW), Choices::TRIAL);
    });
    // Erase, 19 pages, header, record.
    assert_eq!(writes, 22);
}

/// The slot that is written held a confirmed image until then.
#[test]
fn a_later_update_is_safe_at_every_write() {
    let mut part = Part::new(0x4000);
    part.install(&file(900, 7), Choices::CONFIRMED)
        .expect("room");
    part.install(&file(1000, OLD), Choices::CONFIRMED)
        .expect("room");
    cut_everywhere(
        &part.powered(),
        &code(1000, OLD),
        &code(1200, NEW),
        |part| {
            let _ = part.install(&file(1200, NEW), Choices::TRIAL);
        },
    );
}

/// The user names the slot that is started now: the other one takes over first.
#[test]
fn an_update_of_the_preferred_slot_is_safe_at_every_write() {
    let mut part = Part::new(0x4000);
    part.install(&file(900, OLD), Choices::CONFIRMED)
        .expect("room");
    assert_eq!(
        part.install(&file(1000, 7), Choices::CONFIRMED),
        Ok(Slot::One)
    );
    let choices = Choices {
        slot: Some(Slot::One),
        confirmed: true,
        ..Choices::default()
    };
    let middle = code(1000, 7);
    for torn in Torn::ALL {
        let mut whole = part.powered();
        whole.install(&file(1200, NEW), choices).expect("room");
        for write in 0..whole.writes {
            let mut part = part.powered();
            part.cut = Some((write, torn));
            assert!(part.install(&file(1200, NEW), choices).is_err());
            let started = part.started().expect("something starts");
            let known = [middle.clone(), code(900, OLD), code(1200, NEW)];
            assert!(known.contains(&started), "write {write} {torn:?}");
        }
    }
}

/// At the size of the board's own part, with an image of the firmware's size.
#[test]
fn an_update_of_full_size_is_safe_at_every_write() {
    let part = with_old(0x4_0000, 11_000);
    let new = code(11_200, NEW);
    let mut whole = part.powered();
    whole
        .install(&file(11_200, NEW), Choices::TRIAL)
        .expect("room");
    assert_eq!(whole.started().as_deref(), Some(new.as_slice()));
    let old = code(11_000, OLD);
    let file = file(11_200, NEW);
    for write in 0..whole.writes {
        let mut part = part.powered();
        part.cut = Some((write, Torn::FirstHalf));
        assert!(part.install(&file, Choices::TRIAL).is_err());
        let started = part.started().expect("something starts");
        assert!(started == old || started == new, "write {write}");
    }
}

/// The boot code itself writes: it counts trial boots.
#[test]
fn a_trial_boot_that_is_cut_short_still_boots_next_time() {
    let mut part = with_old(0x4000, 1000);
    part.install(&file(1000, NEW), Choices::TRIAL)
        .expect("room");
    for torn in Torn::ALL {
        let mut part = part.powered();
        part.cut = Some((0, torn));
        let (choice, _) = part.boot();
        // Without power nothing is started, whatever the boot code says.
        assert!(
            !matches!(
                choice,
                Choice::Start {
                    slot: Slot::One,
                    ..
                }
            ),
            "{torn:?}"
        );
        let started = part.started().expect("something starts");
        assert_eq!(started, code(1000, NEW), "{torn:?}");
    }
}

#[test]
fn confirming_and_preferring_are_safe_at_every_write() {
    let mut part = with_old(0x4000, 1000);
    part.install(&file(1000, NEW), Choices::TRIAL)
        .expect("room");
    let new = code(1000, NEW);
    cut_everywhere(&part.powered(), &new, &new, |part| {
        let _ = confirm(part, Slot::One);
    });
    let old = code(1000, OLD);
    cut_everywhere(&part.powered(), &new, &old, |part| {
        let _ = prefer(part, Slot::Zero, Downgrade::Refuse);
    });
}

/// Nothing could be started before: then nothing or the new image is.
#[test]
fn a_first_image_starts_only_when_it_is_whole() {
    let blank = Part::new(0x4000);
    assert_eq!(blank.powered().boot().0, Choice::Blank);
    let mut whole = blank.powered();
    whole
        .install(&file(1000, NEW), Choices::TRIAL)
        .expect("room");
    for write in 0..whole.writes {
        for torn in Torn::ALL {
            let mut part = blank.powered();
            part.cut = Some((write, torn));
            assert!(part.install(&file(1000, NEW), Choices::TRIAL).is_err());
            let started = part.started();
            assert!(started.is_none() || started == Some(code(1000, NEW)));
        }
    }
}

#[test]
fn an_image_that_is_never_confirmed_falls_back_after_its_trials() {
    let mut part = with_old(0x4000, 1000);
    part.install(&file(1000, NEW), Choices::TRIAL)
        .expect("room");
    for _ in 0..3 {
        let (choice, image) = part.boot();
        let trial = Choice::Start {
            slot: Slot::One,
            start: 0x4000,
            trial: true,
        };
        assert_eq!((choice, image), (trial, code(1000, NEW)));
    }
    for _ in 0..3 {
        let (choice, image) = part.boot();
        let fallen_back = Choice::Start {
            slot: Slot::Zero,
            start: 0x4000,
            trial: false,
        };
        assert_eq!((choice, image), (fallen_back, code(1000, OLD)));
    }
    // It may be confirmed by hand all the same.
    confirm(&mut part, Slot::One).expect("an image");
    assert_eq!(part.boot().1, code(1000, NEW));
}

#[test]
fn a_confirmed_image_stays() {
    let mut part = with_old(0x4000, 1000);
    part.install(&file(1000, NEW), Choices::TRIAL)
        .expect("room");
    part.boot();
    confirm(&mut part, Slot::One).expect("an image");
    let writes = part.writes;
    for _ in 0..10 {
        assert_eq!(part.boot().1, code(1000, NEW));
    }
    assert_eq!(part.writes, writes, "a confirmed image wears nothing");
}

/// A part that is protected against writing cannot count: the trial is not taken.
#[test]
fn a_trial_that_cannot_be_counted_is_not_taken() {
    struct Protected(Part);
    impl boot_slots::Storage for Protected {
        type Error = NoPower;
        fn read(&mut self, at: u32, out: &mut [u8]) -> Result<(), NoPower> {
            self.0.read(at, out)
        }
        fn write(&mut self, _at: u32, _bytes: &[u8]) -> Result<(), NoPower> {
            Ok(())
        }
    }
    let mut part = Part::new(0x4000);
    part.install(&file(1000, NEW), Choices::TRIAL)
        .expect("room");
    let mut memory = boot_slots::select::Nowhere;
    let choice = boot_slots::select::choose(&mut Protected(part), BOARD, &mut memory);
    assert_eq!(choice, Choice::Failed([Reason::NotCounted, Reason::Empty]));
}

fn put_back(part: &mut Part, backup: &Part) {
    let geometry = part.geometry();
    let _ = restore(
        part,
        geometry,
        BOARD,
        &backup.bytes,
        Downgrade::Refuse,
        &mut |_, _, _| {},
    );
}

/// A part with an image in slot 0 and perhaps one in slot 1, the slot that comes first last.
fn with(images: &[(Slot, usize, u32, bool)]) -> Part {
    let mut part = Part::new(0x4000);
    for (slot, words, build, confirmed) in images {
        let choices = Choices {
            slot: Some(*slot),
            confirmed: *confirmed,
            ..Choices::default()
        };
        assert_eq!(part.install(&file(*words, *build), choices), Ok(*slot));
    }
    part.powered()
}

/// Whichever slot starts now and whichever the backup starts, alone or not, on trial or not:
/// a restore is as safe as an update, and afterwards all is as it was.
#[test]
fn a_restore_is_safe_at_every_write() {
    use Slot::{One, Zero};
    let now = [
        with(&[(Zero, 1000, OLD, true)]),
        with(&[(Zero, 900, 7, true), (One, 1000, OLD, true)]),
        with(&[(One, 900, 7, true), (Zero, 1000, OLD, true)]),
    ];
    let backups = [
        with(&[(Zero, 1200, NEW, true)]),
        with(&[(One, 1200, NEW, true)]),
        with(&[(Zero, 800, 8, true), (One, 1200, NEW, true)]),
        with(&[(One, 800, 8, true), (Zero, 1200, NEW, true)]),
        with(&[(One, 800, 8, true), (Zero, 1200, NEW, false)]),
        // Its records are many writes further.
        (0..9).fold(
            with(&[(Zero, 800, 8, true), (One, 1200, NEW, true)]),
            |mut part, n| {
                let slot = if n % 2 == 0 { Zero } else { One };
                prefer(&mut part, slot, Downgrade::Refuse).expect("it starts");
                prefer(&mut part, One, Downgrade::Refuse).expect("it starts");
                part.powered()
            },
        ),
    ];
    for part in &now {
        for backup in &backups {
            let (old, new) = (code(1000, OLD), code(1200, NEW));
            cut_everywhere(part, &old, &new, |part| put_back(part, backup));
            let mut whole = part.powered();
            put_back(&mut whole, backup);
            assert!(whole.bytes == backup.bytes, "all is as it was");
        }
    }
}

/// Restored once more, nothing is written.
#[test]
fn a_restore_of_what_is_there_writes_nothing() {
    let mut part = with(&[(Slot::Zero, 800, 8, true), (Slot::One, 1200, NEW, false)]);
    let backup = part.clone();
    put_back(&mut part, &backup);
    assert_eq!(part.writes, 0);
}

/// A backup of a blank part, and one put back to a blank part.
#[test]
fn a_restore_with_nothing_to_lose_or_to_win() {
    let full = with(&[(Slot::Zero, 1200, NEW, true)]);
    let mut part = Part::new(0x4000);
    put_back(&mut part, &full);
    assert!(part.bytes == full.bytes);
    let mut part = full.powered();
    put_back(&mut part, &Part::new(0x4000));
    assert!(part.bytes == Part::new(0x4000).bytes);
    for write in 0..part.writes {
        for torn in Torn::ALL {
            let mut part = full.powered();
            part.cut = Some((write, torn));
            put_back(&mut part, &Part::new(0x4000));
            let started = part.started();
            assert!(
                started.is_none_or(|image| image == code(1200, NEW)),
                "{write} {torn:?}"
            );
        }
    }
}
