//! Tests which effects are noted and which are refused.

use super::*;

/// Room for all, and two frames that are kept.
const THERE: There = There {
    slot: 5,
    room: 3,
    kept: 0b1001,
    free_count: 7,
};

#[test]
fn each_list_ends_at_its_bound() {
    let mut effects = Effects::new();
    effects.begin(0, 60, THERE);
    for n in 0..PATCHES as u32 {
        assert_eq!(effects.patch(n % 15, n), Status::Noted);
    }
    assert_eq!(effects.patch(0, 0), Status::Full);
    assert_eq!(effects.patches().len(), PATCHES);
    assert_eq!(effects.patch_three(0, [0; 3]), Status::Full);
    for _ in 0..COUNTS {
        assert_eq!(effects.count(7), Status::Noted);
    }
    assert_eq!(effects.count(7), Status::Full);
}

#[test]
fn what_cannot_be_is_not_noted() {
    let mut effects = Effects::new();
    effects.begin(0, 61, THERE);
    assert_eq!(effects.patch(15, 0), Status::Noted, "the last byte's word");
    assert_eq!(effects.patch(16, 0), Status::Full);
    assert_eq!(effects.patch(u32::MAX, 0), Status::Full);
    assert_eq!(effects.patch_three(14, [0; 3]), Status::Full, "word 16");
    assert_eq!(effects.patch_three(u32::MAX, [0; 3]), Status::Full);
    assert_eq!(effects.patch_three(13, [7, 8, 9]), Status::Noted);
    assert_eq!(effects.patches()[1..], [(13, 7), (14, 8), (15, 9)]);
    assert_eq!(effects.count(8), Status::Full);
    assert_eq!(effects.install(0x3_0000, 0, 0), Status::Full, "not in init");
    let full = There { room: 0, ..THERE };
    let no_slot = There {
        slot: NONE,
        ..THERE
    };
    for (frame, there) in [
        (0, THERE),
        (FRAME_MAX + 1, THERE),
        (60, full),
        (60, no_slot),
    ] {
        effects.begin(0, frame, there);
        assert_eq!(effects.transmit(), Status::Full);
        assert!(!effects.transmits());
    }
    effects.begin(0, 60, THERE);
    assert_eq!(effects.transmit(), Status::Noted);
    assert_eq!(effects.transmit(), Status::Full, "once");
}

#[test]
fn a_run_begins_with_nothing() {
    let mut effects = Effects::new();
    effects.begin(0, 60, THERE);
    effects.patch(1, 2);
    effects.count(1);
    effects.transmit();
    effects.begin(0, 60, THERE);
    assert!(effects.patches().is_empty() && effects.counts().is_empty());
    assert!(!effects.transmits());
}

#[test]
fn init_installs_each_number_once() {
    let mut effects = Effects::new();
    effects.begin_init();
    assert_eq!(effects.install(0x3_0000, 7, 5), Status::Noted);
    assert_eq!(effects.install(0x3_0010, 7, 5), Status::Full);
    assert_eq!(effects.install(0x3_0010, 8, 5), Status::Full);
    assert_eq!(effects.transmit(), Status::Full);
    assert_eq!(effects.handlers[7].entry, 0x3_0000);
    effects.begin_init();
    assert_eq!(effects.handlers, [Installed::NONE; 8]);
}

#[test]
fn frames_are_kept_sent_and_released_by_who_keeps_them() {
    let mut effects = Effects::new();
    effects.begin(0, 60, THERE);
    assert!(!effects.moves_frames());
    assert_eq!(effects.keep(), 5);
    assert_eq!(effects.keep(), NONE, "once");
    for slot in [1, 2, 4, 5, 11, 12, 31, 32, 35, u32::MAX] {
        assert_eq!(effects.send(slot), Status::Full, "{slot}");
        assert_eq!(effects.release(slot), Status::Full, "{slot}");
    }
    assert_eq!(effects.send(3), Status::Noted);
    assert_eq!(effects.send(3), Status::Full, "once");
    assert_eq!(effects.release(3), Status::Noted);
    assert_eq!(effects.transmit(), Status::Noted);
    assert_eq!(effects.send(0), Status::Noted);
    assert!(effects.moves_frames() && effects.transmits() && effects.keeps_frame());
    assert_eq!((effects.sent(), effects.released()), (0b1001, 0b1000));
    effects.begin(0, 60, There { room: 1, ..THERE });
    assert_eq!(effects.send(0), Status::Noted);
    assert_eq!(effects.transmit(), Status::Full, "the queue is full");
    for there in [
        There {
            free_count: 4,
            ..THERE
        },
        There {
            slot: NONE,
            ..THERE
        },
    ] {
        effects.begin(0, 60, there);
        assert_eq!(effects.keep(), NONE);
        assert!(!effects.moves_frames());
    }
}

#[test]
fn a_frame_goes_to_the_peer_once_and_where_it_has_room() {
    let mut effects = Effects::new();
    effects.begin(0, 60, THERE);
    assert_eq!(effects.forward(true), Status::Noted);
    assert_eq!(effects.forward(true), Status::Full);
    assert!(effects.forwards() && !effects.moves_frames());
    for (bytes, has_room) in [(60, false), (FRAME_MAX + 1, true), (0, true)] {
        effects.begin(0, bytes, THERE);
        assert_eq!(effects.forward(has_room), Status::Full);
        assert!(!effects.forwards());
    }
}

/// Where they lie is somebody else's when they would be read.
#[test]
fn the_data_of_a_message_do_not_go_to_the_peer() {
    let mut effects = Effects::new();
    effects.begin(OF_MESSAGE, 60, THERE);
    assert_eq!(effects.forward(true), Status::Full);
    assert!(!effects.forwards() && !effects.asks_for_more());
    assert_eq!(effects.transmit(), Status::Noted);
    assert!(effects.only_transmits() && effects.asks_for_more());
}
