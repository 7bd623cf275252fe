//! Tests single-bit damage of the EEPROM: every one is detected, and a damaged image never starts.

use crate::part::{Part, code, file, file_for};
use boot_slots::header::HeaderError;
use boot_slots::select::{Choice, Reason};
use boot_slots::update::{Choices, UpdateError};
use boot_slots::{BoardId, Geometry, ImageFile, Slot};

/// Flips each bit of a part in turn. `good` are the images that may start.
fn flip_every_bit(part: &Part, good: &[Vec<u8>], fallback: bool) {
    let (mut fell_back, mut failed) = (0, 0);
    let first = part.started().expect("it boots");
    for bit in 0..part.bytes.len() * 8 {
        let mut flipped = part.powered();
        flipped.bytes[bit / 8] ^= 1 << (bit % 8);
        match flipped.boot() {
            (Choice::Start { start, .. }, image) => {
                assert_eq!(start, 0x4000);
                assert!(good.contains(&image), "bit {bit}: a damaged image starts");
                fell_back += usize::from(image != first);
            }
            (Choice::Failed(_), _) => failed += 1,
            (Choice::Blank, _) => panic!("bit {bit}: a part in use looks blank"),
        }
    }
    if fallback {
        assert_eq!(failed, 0, "there is always something to start");
    } else {
        assert!(failed >= first.len() * 8, "every bit of the image counts");
    }
    assert!(!fallback || fell_back >= first.len() * 8);
}

#[test]
fn every_bit_of_a_part_with_two_good_images() {
    let mut part = Part::new(0x2000);
    part.install(&file(700, 1), Choices::CONFIRMED)
        .expect("room");
    part.install(&file(760, 2), Choices::CONFIRMED)
        .expect("room");
    flip_every_bit(&part, &[code(700, 1), code(760, 2)], true);
}

#[test]
fn every_bit_of_a_part_with_an_image_on_trial() {
    let mut part = Part::new(0x2000);
    part.install(&file(700, 1), Choices::CONFIRMED)
        .expect("room");
    part.install(&file(760, 2), Choices::TRIAL).expect("room");
    flip_every_bit(&part, &[code(700, 1), code(760, 2)], true);
}

#[test]
fn every_bit_of_a_part_with_one_image() {
    let mut part = Part::new(0x2000);
    part.install(&file(800, 1), Choices::CONFIRMED)
        .expect("room");
    flip_every_bit(&part, &[code(800, 1)], false);
}

/// A fresh part has no image: no bit makes one, and none makes it a failed PROM but those
/// of the records' own places.
#[test]
fn every_bit_of_a_blank_part() {
    let part = Part::new(0x1000);
    for bit in 0..part.bytes.len() * 8 {
        let mut flipped = part.powered();
        flipped.bytes[bit / 8] ^= 1 << (bit % 8);
        let choice = flipped.boot().0;
        let in_a_record = [0x100..0x140, 0x200..0x240]
            .iter()
            .any(|r| r.contains(&(bit / 8)));
        let expected = if in_a_record {
            Choice::Failed([Reason::None; 2])
        } else {
            Choice::Blank
        };
        assert_eq!(choice, expected, "bit {bit}");
    }
}

/// Every bit of a file, and every length that it could be cut to.
#[test]
fn a_damaged_or_cut_file_is_refused() {
    let whole = file(300, 1);
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(ImageFile::parse(&damaged).is_err(), "bit {bit}");
    }
    for length in 0..whole.len() {
        assert!(
            ImageFile::parse(&whole[..length]).is_err(),
            "{length} bytes"
        );
    }
    let longer = [whole.as_slice(), &[0; 4]].concat();
    assert!(matches!(
        ImageFile::parse(&longer),
        Err(HeaderError::Length {
            found: 1204,
            expected: 1200
        })
    ));
}

#[test]
fn what_does_not_belong_on_the_card_is_refused_before_anything_is_written() {
    let mut part = Part::new(0x2000);
    let other = BoardId {
        vendor: 0x12AE,
        device: 2,
    };
    let refused = part
        .install(&file_for(other, 300, 1), Choices::TRIAL)
        .expect_err("other board");
    assert_eq!(
        refused.to_string(),
        "the image is for board 12ae:0002, this is 12ae:0001"
    );
    let refused = part
        .install(&file(2000, 1), Choices::TRIAL)
        .expect_err("too large");
    assert_eq!(
        refused.to_string(),
        "the image has 8000 bytes, a slot holds 3328"
    );
    assert_eq!(part.writes, 0);
}

/// A board's EEPROM on another board: its image is not started there.
#[test]
fn the_boot_code_judges_the_board_itself() {
    let mut part = Part::new(0x2000);
    part.install(&file(300, 1), Choices::CONFIRMED)
        .expect("room");
    let other = BoardId {
        vendor: 0x12AE,
        device: 2,
    };
    let mut memory = boot_slots::select::Nowhere;
    let choice = boot_slots::select::choose(&mut part, other, &mut memory);
    assert_eq!(choice, Choice::Failed([Reason::OtherBoard, Reason::Empty]));
}

#[test]
fn the_only_image_that_starts_is_not_overwritten() {
    let mut part = Part::new(0x2000);
    part.install(&file(300, 1), Choices::CONFIRMED)
        .expect("room");
    let writes = part.writes;
    let choices = Choices {
        slot: Some(Slot::Zero),
        confirmed: false,
        ..Choices::default()
    };
    let refused = part
        .install(&file(300, 2), choices)
        .expect_err("nothing else starts");
    assert_eq!(
        refused,
        UpdateError::OnlyImage {
            slot: Slot::Zero,
            other: Slot::One
        }
    );
    assert_eq!(part.writes, writes);
}

#[test]
fn parts_without_room_for_two_slots_have_no_geometry() {
    for bytes in [0, 256, 0x800, 0x1800, 0x8_0000, u32::MAX] {
        assert_eq!(Geometry::of(bytes), None, "{bytes}");
    }
    let board = Geometry::of(0x4_0000).expect("the board's part");
    assert_eq!(board.image_bytes(), 130_304);
    assert_eq!(board.header_at(Slot::One), 0x2_0200);
    assert!(board.header_at(Slot::One) + board.slot_bytes() <= board.bytes());
}
