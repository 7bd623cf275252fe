//! Fragments that are written to a process's memory while they arrive.

use crate::arriving::{pass_until, reject_until, send, there};
use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, Completion, CutThrough, Refusals, Status};
use integration_tests::{Engine, Sim};
use std::time::Duration;
use tigon2_model::faults::Fault;
use tigon2_sim::timing::Parameters;

/// Bytes of the IP payload in a frame of an MTU of 9000.
const MOST: usize = 8976;
/// Bytes of data in the first frame: behind the UDP header.
const FIRST: usize = MOST - 8;
/// Two full frames.
const TWO: usize = FIRST + MOST;
const BUFFER: u32 = 32768;

fn card() -> Card {
    Card::timed(CutThrough::OfBus, Checksum::None, 9000)
}

/// The second of two fragments is written before its frame has ended, so the datagram is there sooner
/// than if each is written when it is whole.
#[test]
fn the_next_fragment_is_written_while_it_arrives() {
    let [stored, through] = [CutThrough::Off, CutThrough::OfBus].map(|cut| {
        let mut card = Card::timed(cut, Checksum::None, 9000);
        let (mut sum, mut early) = (0, 0);
        for number in 0..16 {
            let sent = bytes(number, TWO);
            card.post(0, BUFFER, number);
            let mut end = 0;
            for frame in card.fragments((number as u16, PORT), &sent, MOST) {
                end = send(&mut card, &frame);
            }
            pass_until(&mut card, end - 500);
            let written = there(&card, 0, &sent);
            if cut == CutThrough::Off {
                assert!((FIRST..FIRST + 8).contains(&written), "{written}");
            }
            early += u32::from(written > FIRST + 4000);
            assert_eq!(card.completion(), Card::received(number, TWO, true));
            sum += card.now() - end;
            assert!(card.memory(0, TWO) == sent);
        }
        // CPU A's work of each millisecond takes the time of some.
        assert!(cut == CutThrough::Off || early >= 13, "{early} of 16");
        assert_eq!(card.refusals(), Refusals::default());
        card.follow();
        sum / 16
    });
    println!("{stored} ns after the end if stored, {through} if cut through");
    assert!(through + 9000 < stored);
}

/// A long datagram: each fragment behind the first is written while it arrives.
#[test]
fn each_fragment_of_a_long_datagram_is_written_early() {
    let mut card = card();
    let mut early = 0;
    for number in 0..4 {
        let sent = bytes(number, 65_507);
        card.post(0, 65_535, number);
        let frames = card.fragments((number as u16, PORT), &sent, MOST);
        let mut begins = FIRST;
        let ends: Vec<u64> = frames.iter().map(|frame| send(&mut card, frame)).collect();
        for end in &ends[1..ends.len() - 1] {
            pass_until(&mut card, end - 500);
            early += u32::from(there(&card, 0, &sent) > begins + 4000);
            begins += MOST;
        }
        assert_eq!(card.completion(), Card::received(number, 65_507, true));
        assert!(card.memory(0, 65_507) == sent);
    }
    assert!(early >= 20, "{early} of 24");
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// A fragment whose frame ends badly is as if it had not come: its datagram becomes whole when the
/// fragment comes again.
#[test]
fn a_fragment_that_ends_badly_may_come_again() {
    let mut card = card();
    let faults = [
        "receive crc 1",
        "receive truncated+crc 1",
        "receive phy-decode 1",
    ];
    let mut early = 0;
    for (number, fault) in (0..).zip(faults.repeat(4)) {
        let sent = bytes(number, TWO);
        card.post(0, BUFFER, number);
        let frames = card.fragments((number as u16, PORT), &sent, MOST);
        let end = send(&mut card, &frames[0]);
        pass_until(&mut card, end + 1000);
        let fault: Fault = fault.parse().expect("a fault");
        card.stage.engine.machine().lock().inject(fault);
        // Its bytes are others than those of the good one.
        let wrong: Vec<u8> = frames[1][34..].iter().map(|byte| !byte).collect();
        let wrong = [&frames[1][..34], &wrong].concat();
        let end = send(&mut card, &wrong);
        pass_until(&mut card, end - 500);
        let written = there(&card, FIRST, &wrong[34..]);
        early += u32::from(written > 2000);
        assert!(card.rests(), "{fault:?}");
        send(&mut card, &frames[1]);
        assert_eq!(card.completion(), Card::received(number, TWO, true));
        assert!(card.memory(0, TWO) == sent, "{fault:?}");
    }
    assert!(early >= 9, "{early} of 12 were written early");
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// What is there already is not written over before a frame's end: a damaged frame that says that it
/// is a fragment which has come spoils nothing, whether that is the first or the last that came.
#[test]
fn a_damaged_duplicate_spoils_nothing() {
    let mut card = card();
    let length = FIRST + 2 * MOST;
    for (number, again) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        let sent = bytes(number, length);
        card.post(0, BUFFER, number);
        let frames = card.fragments((number as u16, PORT), &sent, MOST);
        for frame in &frames[..2] {
            let end = send(&mut card, frame);
            pass_until(&mut card, end + 30_000);
        }
        let fault: Fault = "receive crc 1".parse().expect("a fault");
        card.stage.engine.machine().lock().inject(fault);
        let wrong: Vec<u8> = frames[again][42..].iter().map(|byte| !byte).collect();
        let wrong = [&frames[again][..42], &wrong].concat();
        let end = send(&mut card, &wrong);
        pass_until(&mut card, end - 500);
        assert!(there(&card, 0, &sent) >= FIRST + MOST, "fragment {again}");
        assert!(card.rests());
        send(&mut card, &frames[2]);
        assert_eq!(card.completion(), Card::received(number, length, true));
        assert!(card.memory(0, length) == sent, "fragment {again}");
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// A datagram that is given up while its next fragment arrives: when its descriptor is back, nothing of
/// its memory changes any more.
#[test]
fn nothing_is_written_of_a_datagram_that_is_given_up() {
    let mut in_between = 0;
    for step in 0..16u64 {
        let mut card = card();
        let sent = bytes(1, TWO);
        card.post(0, BUFFER, 1);
        let frames = card.fragments((1, PORT), &sent, MOST);
        let end = send(&mut card, &frames[0]);
        // It is given up in the millisecond behind this one, which the chip's clock calls 200.
        pass_until(&mut card, end + 195_900_000 + 12_000 * step);
        let end = send(&mut card, &frames[1]);
        let completion = card.completion();
        let at = card.now();
        let memory = card.memory(0, TWO);
        if completion == Card::received(1, TWO, true) {
            assert!(memory == sent);
            continue;
        }
        let Completion::Received { cookie, status, .. } = completion else {
            panic!("{completion:?}")
        };
        assert_eq!((cookie, status), (1, Status::Incomplete));
        in_between += u32::from(at < end && there(&card, 0, &sent) > FIRST + 500);
        assert!(card.rests());
        assert!(card.memory(0, TWO) == memory, "step {step}");
        card.post(0, BUFFER, 2);
        for frame in card.fragments((2, PORT), &sent, MOST) {
            send(&mut card, &frame);
        }
        assert_eq!(card.completion(), Card::received(2, TWO, true));
        assert_eq!(card.refusals().expired, 1);
        card.follow();
    }
    println!("{in_between} while the fragment was written");
    assert!(in_between > 1);
}

/// Memory that goes away while a fragment is written costs its owner that datagram.
#[test]
fn memory_that_goes_away_costs_the_datagram() {
    let mut lost = 0;
    for number in 0..24u32 {
        let mut card = card();
        let sent = bytes(number, TWO);
        card.post(0, BUFFER, number);
        let frames = card.fragments((1, PORT), &sent, MOST);
        let end = send(&mut card, &frames[0]);
        pass_until(&mut card, end + 30_000);
        let end = send(&mut card, &frames[1]);
        pass_until(&mut card, end + 4000 * u64::from(number) - 70_000);
        let machine = card.stage.engine.machine().clone();
        machine.lock().unmap(&card.memory);
        let completion = card.completion();
        machine.lock().map(card.memory.clone());
        if completion == Card::received(number, TWO, true) {
            assert!(card.memory(0, TWO) == sent);
        } else {
            let Completion::Received { cookie, status, .. } = completion else {
                panic!("{completion:?}")
            };
            assert_eq!((cookie, status), (number, Status::Incomplete));
            lost += 1;
        }
        assert!(card.rests());
        card.post(0, BUFFER, 77);
        for frame in card.fragments((2, PORT), &sent, MOST) {
            send(&mut card, &frame);
        }
        assert_eq!(card.completion(), Card::received(77, TWO, true));
        assert!(card.memory(0, TWO) == sent);
        card.follow();
    }
    println!("lost: {lost}");
    assert!((10..24).contains(&lost), "{lost}");
}

/// A frame that the MAC drops at its end leaves nothing, and the fragment may come again.
#[test]
fn a_fragment_without_an_end_is_forgotten() {
    let mut card = card();
    let mut early = 0;
    for number in 0..16 {
        // The second one comes while the first one is written, or can be written from its headers on.
        let pause = [1000, 60_000][number as usize % 2];
        let sent = bytes(number, TWO);
        card.post(0, BUFFER, number);
        let frames = card.fragments((number as u16, PORT), &sent, MOST);
        let end = send(&mut card, &frames[0]);
        pass_until(&mut card, end + pause);
        let end = send(&mut card, &frames[1]);
        pass_until(&mut card, end - 5000);
        early += u32::from(pause > 1000 && there(&card, 0, &sent) > FIRST + 2000);
        reject_until(&mut card, end + 1000);
        assert!(card.rests());
        send(&mut card, &frames[1]);
        assert_eq!(card.completion(), Card::received(number, TWO, true));
        assert!(card.memory(0, TWO) == sent);
    }
    // CPU A's work of each millisecond takes the time of one.
    assert!(early >= 7, "{early} of 8 were written early");
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// Datagrams of up to 30 000 bytes in fragments, good and damaged ones, and whole ones between them, on
/// buses that stall: each becomes whole.
#[test]
fn fragments_become_whole_on_buses_that_stall() {
    for (seed, stall) in (1..).zip([0, 300, 2000]) {
        let parameters = Parameters {
            pci_wr: Parameters::default().pci_wr + stall,
            jit: 1.0,
            ..Parameters::default()
        };
        let sim = Sim::timed_by(parameters, seed);
        let mut card = Card::on(sim, CutThrough::OfBus, Checksum::None, 9000);
        for number in 0..30u32 {
            let length = (number * 7919 + seed as u32 * 1013) as usize % 21_000 + 9000;
            let sent = bytes(number, length);
            card.post(0, BUFFER, number);
            card.post(BUFFER, BUFFER, 1000 + number);
            let frames = card.fragments((number as u16, PORT), &sent, MOST);
            let pause = Duration::from_nanos(u64::from(number) * 971 % 40_000);
            let mut end = 0;
            for (index, frame) in frames.iter().enumerate() {
                if number as usize % 4 == index {
                    // Neither the one before nor the next one is to be damaged.
                    pass_until(&mut card, end + 1000);
                    let fault: Fault = "receive crc 1".parse().expect("a fault");
                    card.stage.engine.machine().lock().inject(fault);
                    end = send(&mut card, frame);
                    pass_until(&mut card, end + 1000);
                }
                end = send(&mut card, frame);
                card.stage.engine.pass(pause);
            }
            let between = card.inbound(PORT, &bytes(number, 3000));
            send(&mut card, &between);
            assert_eq!(card.completion(), Card::received(number, length, true));
            assert_eq!(card.completed(3000), 1000 + number);
            assert!(card.memory(0, length) == sent, "{number}, {stall} clocks");
        }
        assert_eq!(card.refusals(), Refusals::default());
        card.follow();
    }
}
