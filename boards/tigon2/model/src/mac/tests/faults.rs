//! Injected faults: damaged frames and collisions.

use super::*;
use crate::Fault;

/// The errors, their words and their bits of word 1 (10.3).
const ERRORS: [(&str, RxError); 9] = [
    ("crc", RxError::CRC),
    ("collision", RxError::COLLISION),
    ("link-lost", RxError::LINK_LOST),
    ("phy-decode", RxError::PHY_DECODE),
    ("odd-nibbles", RxError::ODD_NIBBLES),
    ("mac-abort", RxError::MAC_ABORT),
    ("runt", RxError::RUNT),
    ("truncated", RxError::TRUNCATED),
    ("giant", RxError::GIANT),
];

fn inject(bench: &mut Bench, words: &str) {
    let fault: Fault = words.parse().expect("words of a fault");
    bench.card.inject(fault);
}

/// All MAC counters that are not 0.
fn counters(bench: &Bench) -> Vec<(u32, u32)> {
    let all = (0x80..0x100).step_by(4).map(|at| (at, bench.word(at)));
    all.filter(|(_, count)| *count != 0).collect()
}

/// Reference 10.3: errors are bits 31:16 of word 1, CRC 16 to truncated 23 (C), giant 24;
/// reference 10.5: CRC errors count at 0xC8.
#[test]
fn every_error_reaches_its_descriptor() {
    for (n, (word, error)) in (16..).zip(ERRORS) {
        let mut bench = bench();
        inject(&mut bench, &format!("receive {word} 2"));
        for _ in 0..3 {
            assert_eq!(bench.receive(&frame_to(STATION, 100)), Reception::Accepted);
        }
        let length = match error {
            RxError::RUNT => 32 + 4,
            RxError::TRUNCATED => 50 + 4,
            _ => 100 + 4,
        };
        let words: Vec<u32> = (0..3).map(|n| bench.word(RX_RING + 8 * n + 4)).collect();
        assert_eq!(words, [1 << n | length, 1 << n | length, 104], "{word}");
        let crc_errors = if error == RxError::CRC { 2 } else { 0 };
        assert_eq!(statistic(&bench, MacStatistic::CrcErrors), crc_errors);
        assert_eq!(statistic(&bench, MacStatistic::AcceptedUnicast), 3);
    }
}

/// Reference 10.3: the CRC that is stored with a CRC error is not the frame's.
#[test]
fn a_frame_with_a_crc_error_has_a_wrong_crc() {
    let mut bench = bench();
    inject(&mut bench, "receive crc");
    let frame = frame_to(STATION, 60);
    for at in [0, 64] {
        bench.receive(&frame);
        let good = bench.bytes(RX_BASE + at + 60, 4) == crc32fast::hash(&frame).to_le_bytes();
        assert_eq!(good, at == 64);
    }
}

/// Reference 10.3: bytes that the wire has changed are stored as they have come, with flag 16 of a wrong
/// CRC; the frame counts at 0xC8.
#[test]
fn a_damaged_frame_has_wrong_bytes_and_a_wrong_crc() {
    let mut bench = bench();
    let frame = frame_to(STATION, 100);
    for (n, (words, places)) in (0..).zip([
        ("receive damaged:17", 17..18),
        ("receive damaged:17x4", 17..21),
        ("receive damaged:udp-length", 39..40),
        ("receive damaged:99", 99..100),
        // With bytes of the CRC, and one of these alone.
        ("receive damaged:97x6", 97..100),
        ("receive damaged:101", 0..0),
    ]) {
        inject(&mut bench, words);
        let start = bench.read(R::RxProducer);
        assert_eq!(bench.receive(&frame), Reception::Accepted);
        let mut wrong = frame.clone();
        for at in places {
            wrong[at] = !frame[at];
        }
        assert_eq!(bench.bytes(start, 100), wrong, "{words}");
        let crc = bench.bytes(start + 100, 4);
        assert_ne!(crc, crc32fast::hash(&wrong).to_le_bytes(), "{words}");
        assert_eq!(bench.word(RX_RING + 8 * n + 4), 1 << 16 | 104, "{words}");
    }
    assert_eq!(statistic(&bench, MacStatistic::CrcErrors), 6);
}

/// Who looks into the buffer while a damaged frame arrives finds the wrong bytes where its end has them,
/// and nothing of a frame whose wrong address is a stranger's.
#[test]
fn damaged_bytes_are_there_before_the_frames_end() {
    for (words, count) in [
        ("receive damaged:17 2", 1),
        ("receive damaged 2", 1),
        // Some of them are there at one look, and the others at the next.
        ("receive damaged:149x8 2", 8),
    ] {
        let mut bench = bench();
        // No random place is in the address.
        let frame = frame_to(STATION, 304);
        inject(&mut bench, words);
        for _ in 0..2 {
            let start = bench.read(R::RxProducer);
            bench.card.set_receiving(true);
            for bytes in [16, 152, 304] {
                bench.with(|card, env| card.received_so_far(env, &frame, bytes));
            }
            let early = bench.bytes(start, 304);
            assert_eq!(bench.receive(&frame), Reception::Accepted);
            bench.card.set_receiving(false);
            let end = bench.bytes(start, 304);
            assert_eq!(early, end, "{words}");
            let wrong = end.iter().zip(&frame).filter(|(is, sent)| is != sent);
            assert_eq!(wrong.count(), count, "{words}");
        }
    }
    let mut bench = bench();
    let frame = frame_to(STATION, 300);
    inject(&mut bench, "receive damaged:destination");
    bench.card.set_receiving(true);
    bench.with(|card, env| card.received_so_far(env, &frame, 296));
    assert_eq!(bench.bytes(RX_BASE, 8), [0; 8]);
    let filtered = Reception::Dropped(DropReason::Filtered);
    assert_eq!(bench.receive(&frame), filtered);
}

/// The filter ignores errors, and dropped frames use up the fault.
#[test]
fn damaged_frames_are_filtered() {
    let mut bench = bench();
    inject(&mut bench, "receive crc");
    let filtered = Reception::Dropped(DropReason::Filtered);
    assert_eq!(bench.receive(&frame_to([2; 6], 60)), filtered);
    assert_eq!(bench.receive(&frame_to(STATION, 60)), Reception::Accepted);
    assert_eq!(bench.word(RX_RING + 4), 64);
}

/// Reference 10.5: excess 0x80, frames with 1..15 collisions 0x84-0xBC, late 0xC0, deferrals
/// 0xC4, underruns 0xCC, carrier sense 0xD0, collisions 0xF0.
#[test]
fn what_frames_meet_in_half_duplex_is_counted() {
    for (words, sent, expected) in [
        ("transmit collisions:1 2", 2, vec![(0x84, 2), (0xF0, 2)]),
        ("transmit collisions:15", 2, vec![(0xBC, 1), (0xF0, 15)]),
        ("transmit excess-collisions", 1, vec![(0x80, 1), (0xF0, 16)]),
        ("transmit late-collision", 1, vec![(0xC0, 1), (0xF0, 1)]),
        ("transmit deferral", 2, vec![(0xC4, 1)]),
        ("transmit no-carrier", 2, vec![(0xD0, 1)]),
        ("transmit underrun", 1, vec![(0xCC, 1)]),
        ("none", 2, vec![]),
    ] {
        let mut bench = bench();
        // Half duplex: bit 5 of R[200] is 0.
        bench.write(R::MacTxState, 0xC2);
        inject(&mut bench, words);
        for _ in 0..2 {
            bench.send(&frame_to([2; 6], 100));
        }
        assert_eq!(bench.sent().len(), sent, "{words}");
        assert_eq!(counters(&bench), expected, "{words}");
        let consumer = bench.read(R::TxDescriptorConsumer);
        assert_eq!(consumer, TX_RING + 16, "both are done");
    }
}

/// There are no collisions in full duplex: the fault waits.
#[test]
fn full_duplex_has_no_collisions() {
    let mut bench = bench();
    inject(&mut bench, "transmit late-collision");
    bench.send(&frame_to([2; 6], 100));
    assert_eq!((bench.sent().len(), counters(&bench)), (1, vec![]));
    bench.write(R::MacTxState, 0xC2);
    bench.send(&frame_to([2; 6], 100));
    assert_eq!(
        (bench.sent().len(), counters(&bench)),
        (0, vec![(0xC0, 1), (0xF0, 1)])
    );
}
