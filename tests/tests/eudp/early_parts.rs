//! Fragments that are written to a process's memory while they arrive.

use crate::arriving::{pass_until, reject_until, send, there};
use crate::card::{Card, PEER, PORT, bytes};
use eudp::{Checksum, Completion, CutThrough, EndpointConfig, Refusals, Status};
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

/// One whose endpoint knows the source, so any fragment may come first.
fn connected(cut: CutThrough) -> Card {
    let config = EndpointConfig {
        connected: Some(PEER),
        mtu: 9000,
        ..EndpointConfig::default()
    };
    Card::with_config(Sim::timed("default"), cut, config)
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

/// Two full frames or three come in an order: without a pause, or such that CPU A has time for each.
/// Returns how long after the last one's end the datagram was there in the mean, in nanoseconds, and how
/// many frames were there in part when they were about to end, of those behind the first.
fn in_order(cut: CutThrough, order: &[usize], pause: u64) -> (i64, usize) {
    let mut card = connected(cut);
    let (mut sum, mut early) = (0, 0);
    let length = order.len() * MOST - 8;
    for number in 0..16 {
        let sent = bytes(number, length);
        card.post(0, BUFFER, number);
        let frames = card.fragments((number as u16, PORT), &sent, MOST);
        let mut end = send(&mut card, &frames[order[0]]);
        for place in &order[1..] {
            if pause != 0 {
                pass_until(&mut card, end + pause);
            }
            end = send(&mut card, &frames[*place]);
            if pause != 0 {
                pass_until(&mut card, end - 500);
                let from = (place * MOST).saturating_sub(8);
                early += usize::from(there(&card, from, &sent[from..]) > 4000);
            }
        }
        assert_eq!(card.completion(), Card::received(number, length, true));
        sum += card.now() - end;
        assert!(card.memory(0, length) == sent);
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
    (sum as i64 / 16, early)
}

/// What comes in an order is there sooner if it is written while it arrives, and not later if CPU A has
/// too little time for that.
fn is_sooner_in(order: &[usize]) {
    for (pause, sooner) in [(40_000, 20_000), (0, -1000)] {
        let [(stored, none), (through, early)] =
            [CutThrough::Off, CutThrough::OfBus].map(|cut| in_order(cut, order, pause));
        println!("{order:?}, {pause} ns between them: {stored} ns if stored, {through} if not");
        assert_eq!(none, 0);
        // CPU A's work of each millisecond takes the time of some.
        let all = 16 * (order.len() - 1);
        assert!(pause == 0 || early >= all * 13 / 16, "{early} of {all}");
        assert!(through + sooner < stored, "{order:?}");
    }
}

/// A fragment behind a gap is written while it arrives, and the one that fills the gap, too.
#[test]
fn a_fragment_out_of_order_is_written_while_it_arrives() {
    is_sooner_in(&[0, 2, 1]);
}

/// A first fragment that comes last is written while it arrives.
#[test]
fn a_first_fragment_that_comes_last_is_there_sooner() {
    is_sooner_in(&[1, 0]);
    is_sooner_in(&[2, 1, 0]);
}

/// A damaged fragment behind a gap, in a gap or in front of all others is as if it had not come. If it
/// is one that is there, nothing of it is written; and if all others are there, its datagram is not
/// complete.
#[test]
fn a_damaged_fragment_out_of_order_spoils_nothing() {
    let mut card = connected(CutThrough::OfBus);
    let length = FIRST + 3 * MOST;
    let begins = [0, FIRST, FIRST + MOST, FIRST + 2 * MOST];
    let faults = ["receive crc 1", "receive truncated+crc 1"];
    let (mut early, mut number) = (0, 0);
    for order in [[0, 2, 1, 3], [0, 3, 2, 1], [3, 2, 1, 0], [2, 0, 3, 1]] {
        // The one of this place is damaged when so many of them are there.
        for (damaged, here) in [(1, 1), (2, 2), (3, 3), (1, 2), (0, 3)] {
            let sent = bytes(number, length);
            card.post(0, 65_535, number);
            let frames = card.fragments((number as u16, PORT), &sent, MOST);
            for place in &order[..here] {
                let end = send(&mut card, &frames[*place]);
                pass_until(&mut card, end + 30_000);
            }
            let fault = faults[number as usize % faults.len()];
            let parsed: Fault = fault.parse().expect("a fault");
            card.stage.engine.machine().lock().inject(parsed);
            // Its bytes are others than those of the good one.
            let place: usize = order[damaged];
            let headers = if place == 0 { 42 } else { 34 };
            let (front, data) = frames[place].split_at(headers);
            let wrong: Vec<u8> = data.iter().map(|byte| !byte).collect();
            let end = send(&mut card, &[front, &wrong].concat());
            pass_until(&mut card, end - 500);
            let written = there(&card, begins[place], &wrong);
            let case = format!("{order:?}, {damaged} behind {here}, {fault}: {written}");
            if damaged < here {
                assert_eq!(written, 0, "{case}");
            }
            early += u32::from(written > 2000);
            assert!(card.rests(), "{case}");
            for place in &order[..here] {
                let from = begins[*place];
                let bytes = frames[*place].len() - if *place == 0 { 42 } else { 34 };
                assert!(card.memory(from, bytes) == sent[from..][..bytes], "{case}");
            }
            for place in &order[here..] {
                send(&mut card, &frames[*place]);
            }
            assert_eq!(card.completion(), Card::received(number, length, true));
            assert!(card.memory(0, length) == sent, "{case}");
            number += 1;
        }
    }
    // CPU A's work of each millisecond may take the time of some.
    println!("{early} of 12 were written early");
    assert!(early >= 9);
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

/// The MAC drops the next fragment, of which CPU A has seen the headers, and the one behind it is there
/// before CPU A looks again, and begins with the same bytes. It is not taken for the first one.
#[test]
fn a_fragment_in_the_place_of_another_one_is_its_own() {
    let mut card = card();
    let first = card.now() + 1_000_000;
    for number in 0..50 {
        let mut sent = bytes(number, 12_000);
        for fragment in sent.chunks_mut(4000) {
            fragment[..16].fill(0);
        }
        // So fragments begin where these bytes do, but for the first.
        sent.drain(..8);
        card.post(0, BUFFER, number);
        let frames = card.fragments((number as u16, PORT), &sent, 4000);
        // At one of these places of the millisecond, the frame ends while CPU A ages datagrams.
        let begin = first + u64::from(number) * 1_020_000;
        pass_until(&mut card, begin - 100_000);
        send(&mut card, &frames[0]);
        pass_until(&mut card, begin);
        let end = send(&mut card, &frames[1]);
        pass_until(&mut card, begin + 5000);
        reject_until(&mut card, end + 200);
        send(&mut card, &frames[2]);
        send(&mut card, &frames[1]);
        assert_eq!(card.completion(), Card::received(number, sent.len(), true));
        assert!(card.memory(0, sent.len()) == sent, "{number}");
    }
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
