//! Datagrams that come in fragments, put together in a process's memory.

use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, Completion, CutThrough, Refusals, Status};
use integration_tests::Engine;
use std::time::Duration;

/// Bytes of the IP payload in a frame of an MTU of 1500.
const MOST: usize = 1480;

fn card() -> Card {
    Card::timed(CutThrough::OfBus, Checksum::None, 1500)
}

/// Random numbers below a bound, the same in each run.
pub fn random(seed: u32) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    move |below| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    }
}

/// Random order.
pub fn shuffled<T>(items: &mut [T], random: &mut impl FnMut(usize) -> usize) {
    for last in (1..items.len()).rev() {
        items.swap(last, random(last + 1));
    }
}

#[test]
fn a_long_datagram_is_put_together_in_the_memory_that_was_lent_for_it() {
    for (mtu, lengths) in [
        (1500, &[1473, 2000, 2953, 9000, 30_001, 65_507][..]),
        (9000, &[8973, 65_507]),
    ] {
        let mut card = Card::timed(CutThrough::OfBus, Checksum::None, mtu);
        let most = (mtu as usize - 20) & !7;
        for (number, length) in (0..).zip(lengths) {
            let sent = bytes(number, *length);
            card.post(8192, 65_507, number);
            let frames = card.fragments((number as u16, PORT), &sent, most);
            card.arrive(&frames);
            assert_eq!(card.completion(), Card::received(number, *length, true));
            assert!(card.memory(8192, *length) == sent, "{length} bytes");
        }
        assert_eq!(card.refusals(), Refusals::default());
        card.follow();
    }
}

/// Whole datagrams come between the fragments of two others, and the pieces of memory are odd.
#[test]
fn datagrams_that_come_at_the_same_time_do_not_disturb_each_other() {
    let mut card = card();
    let region = card.region;
    for (cookie, at) in [(0, 0), (1, 0x10000), (2, 0x20000)] {
        // Of the whole datagram only the first of its pieces is filled.
        let pieces = [
            region.segment(at, 1001),
            region.segment(at + 1001, 3),
            region.segment(at + 1004, 4096),
        ];
        card.with(|endpoint, lent| endpoint.post(lent, &pieces, cookie))
            .expect("it is posted");
    }
    card.stage.engine.pass(Duration::from_micros(10));
    let sent = [bytes(1, 4001), bytes(2, 4999), bytes(3, 1000)];
    let first = card.fragments((7, PORT), &sent[0], MOST);
    let second = card.fragments((8, PORT), &sent[1], 512);
    let whole = card.inbound(PORT, &sent[2]);
    card.stage.engine.send(&first[0]);
    card.arrive(&second[..4]);
    card.stage.engine.send(&whole);
    card.arrive(&first[1..]);
    card.arrive(&second[4..]);
    assert_eq!(card.completion(), Card::received(2, 1000, true));
    assert_eq!(card.completion(), Card::received(0, 4001, true));
    assert_eq!(card.completion(), Card::received(1, 4999, true));
    for (at, sent) in [(0, &sent[0]), (0x10000, &sent[1]), (0x20000, &sent[2])] {
        assert!(card.memory(at, sent.len()) == *sent, "{at:#x}");
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// What else happens to a datagram whose fragments come in a random order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// A fragment comes twice.
    Twice,
    /// A fragment with other bounds comes, too.
    Overlap,
    /// A fragment does not come.
    Missing,
}

/// The endpoint knows the source, so any fragment may be the first one. What has all its fragments
/// arrives, whatever came twice; a datagram with an overlap or a gap is given up, and its buffer comes
/// back.
fn in_random_orders(mtu: u32, numbers: std::ops::Range<u32>) {
    let mut card = Card::connected(mtu);
    let (mut whole, mut overlaps, mut missing) = (0, 0, 0);
    for number in numbers {
        let mut random = random(number);
        let beside = match number % 40 {
            7 | 27 => Beside::Overlap,
            13 => Beside::Missing,
            _ => Beside::Twice,
        };
        let length = mtu as usize - 27 + random(6 * mtu as usize);
        let sent = bytes(number, length);
        // Such that there may be no more gaps than a row has room for.
        let longest = (mtu as usize - 20) & !7;
        let most = (length / 12 + 8 + random(longest)).min(longest) & !7;
        let mut frames = card.fragments((number as u16, PORT), &sent, most);
        let other = random(frames.len());
        let again = match beside {
            Beside::Overlap => card.fragment(number as u16, 8, &sent[..most], true),
            _ => frames[other].clone(),
        };
        shuffled(&mut frames, &mut random);
        match beside {
            Beside::Missing => {
                frames.remove(random(frames.len()));
            }
            _ => frames.insert(random(frames.len()), again),
        }
        card.post(4096, 65_535, number);
        card.arrive(&frames);
        if beside == Beside::Missing {
            card.stage.engine.pass(Duration::from_millis(210));
        }
        let completion = card.completion();
        if completion == Card::received(number, length, true) {
            // An overlap with nothing that is not there already is as good as a fragment again.
            assert!(beside != Beside::Missing);
            let there = card.memory(4096, length);
            assert!(there == sent, "{number}: {length} bytes");
            whole += 1;
        } else {
            let Completion::Received { cookie, status, .. } = completion else {
                panic!("{completion:?}")
            };
            assert_eq!((cookie, status), (number, Status::Incomplete));
            assert!(beside != Beside::Twice, "{number}");
            overlaps += u32::from(beside == Beside::Overlap);
            missing += u32::from(beside == Beside::Missing);
        }
    }
    card.stage.engine.pass(Duration::from_millis(1));
    // One that comes when its datagram is complete is none that is known.
    let seen = card.refusals();
    assert!(
        seen.duplicate > whole * 4 / 5 && seen.duplicate <= whole,
        "{seen:?}"
    );
    assert!(overlaps > 5 && missing > 5, "{seen:?}");
    let expected = Refusals {
        duplicate: seen.duplicate,
        overlap: overlaps,
        expired: missing,
        ..Refusals::default()
    };
    assert_eq!(seen, expected);
    card.follow();
}

#[test]
fn fragments_come_in_any_order() {
    in_random_orders(1500, 0..700);
}

#[test]
fn long_fragments_come_in_any_order() {
    in_random_orders(9000, 700..1000);
}

/// All orders of four fragments.
#[test]
fn all_orders_of_four_fragments_arrive() {
    let mut card = Card::connected(1500);
    let mut number = 0;
    for first in 0..4 {
        for second in (0..4).filter(|place| *place != first) {
            for third in (0..4).filter(|place| ![first, second].contains(place)) {
                let last = 6 - first - second - third;
                let sent = bytes(number, 4 * MOST - 9);
                card.post(0, 8192, number);
                let frames = card.fragments((number as u16, PORT), &sent, MOST);
                for place in [first, second, third, last] {
                    card.stage.engine.send(&frames[place]);
                }
                let received = Card::received(number, sent.len(), true);
                assert_eq!(card.completion(), received);
                assert!(card.memory(0, sent.len()) == sent);
                number += 1;
            }
        }
    }
    assert_eq!((number, card.refusals()), (24, Refusals::default()));
}

/// Overlapping fragments are no datagram: nothing is completed as one, and the next is whole again.
#[test]
fn fragments_that_overlap_are_refused() {
    let mut card = card();
    let sent = bytes(1, 4000);
    let frames = card.fragments((1, PORT), &sent, MOST);
    let over = card.fragment(1, MOST - 8, &[0x66; 64], true);
    card.post(0, 8192, 1);
    card.arrive(&[frames[0].clone(), over]);
    assert_eq!(card.ended(), (1, Status::Incomplete, 0));
    // What comes of it afterwards is nothing.
    card.post(0, 8192, 2);
    card.arrive(&frames[1..]);
    assert!(card.rests());
    let frames = card.fragments((2, PORT), &sent, MOST);
    card.arrive(&frames);
    assert_eq!(card.completion(), Card::received(2, 4000, true));
    assert!(card.memory(0, 4000) == sent);
    let seen = Refusals {
        overlap: 1,
        ..Refusals::default()
    };
    assert_eq!(card.refusals(), seen);
    card.follow();
}

/// Each reason has its counter, and none costs the process its buffer.
#[test]
fn datagrams_that_do_not_fit_are_counted_by_reason() {
    let mut card = Card::connected(1500);
    let sent = bytes(1, 3000);
    let mut seen = Refusals::default();
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    // No buffer.
    let frames = card.fragments((next(), PORT), &sent, MOST);
    card.arrive(&frames);
    assert!(card.rests());
    seen.no_buffer += 1;
    assert_eq!(card.refusals(), seen);
    // One that is too short, as the first fragment says: it stays posted.
    card.post(0, 2999, 1);
    let frames = card.fragments((next(), PORT), &sent, MOST);
    card.arrive(&frames);
    assert!(card.rests());
    seen.bad_region += 1;
    assert_eq!(card.refusals(), seen);
    // The same as the last one says, when some were placed.
    let frames = card.fragments((next(), PORT), &sent, MOST);
    card.arrive(&[frames[1].clone(), frames[2].clone()]);
    assert_eq!(card.ended(), (1, Status::Incomplete, 0));
    seen.bad_region += 1;
    // A wrong sum.
    card.post(0, 4096, 2);
    let mut frames = card.fragments((next(), PORT), &sent, MOST);
    frames[1][700] ^= 1;
    card.arrive(&frames);
    assert_eq!(card.ended(), (2, Status::Incomplete, 0));
    seen.bad_sum += 1;
    // The last fragment ends elsewhere than the UDP header says.
    card.post(0, 4096, 3);
    let identification = next();
    let frames = card.fragments((identification, PORT), &sent, MOST);
    let short = card.fragment(identification, 2 * MOST, &[1; 16], false);
    card.arrive(&[frames[0].clone(), short]);
    assert_eq!(card.ended(), (3, Status::Incomplete, 0));
    seen.bad_header += 1;
    // It is for another port.
    card.post(0, 4096, 4);
    let frames = card.fragments((next(), PORT + 1), &sent, MOST);
    card.arrive(&[frames[2].clone(), frames[0].clone()]);
    assert_eq!(card.ended(), (4, Status::Incomplete, 0));
    seen.misplaced += 1;
    // More gaps than there is room for.
    card.post(0, 4096, 5);
    let identification = next();
    for gap in 0..17 {
        let frame = card.fragment(identification, 16 + 16 * gap, &[1; 8], true);
        card.stage.engine.send(&frame);
    }
    assert_eq!(card.ended(), (5, Status::Incomplete, 0));
    seen.no_context += 1;
    assert_eq!(card.refusals(), seen);
    card.follow();
}

/// More datagrams than are known at a time: those that began stay, and end in time or are given up.
#[test]
fn what_does_not_become_whole_is_given_up() {
    let mut card = card();
    let sent = bytes(1, 3000);
    for number in 0..9 {
        card.post(4096 * number, 4096, number);
    }
    let all: Vec<_> = (0..9)
        .map(|number| card.fragments((number, PORT), &sent, MOST))
        .collect();
    for frames in &all {
        card.stage.engine.send(&frames[0]);
    }
    card.arrive(&all[0][1..]);
    assert_eq!(card.completion(), Card::received(0, 3000, true));
    let mut seen = Refusals {
        no_context: 1,
        ..Refusals::default()
    };
    assert_eq!(card.refusals(), seen);
    card.stage.engine.pass(Duration::from_millis(150));
    card.arrive(&all[1][1..]);
    assert_eq!(card.completion(), Card::received(1, 3000, true));
    assert!(card.rests());
    card.stage.engine.pass(Duration::from_millis(60));
    for cookie in 2..8 {
        assert_eq!(card.ended(), (cookie, Status::Incomplete, 0));
    }
    seen.expired += 6;
    assert_eq!(card.refusals(), seen);
    // The last buffer is there for the next one.
    let frames = card.fragments((20, PORT), &sent, MOST);
    card.arrive(&frames);
    assert_eq!(card.completion(), Card::received(8, 3000, true));
    assert!(card.memory(4096 * 8, 3000) == sent);
    card.follow();
}

/// Fragments of another port's datagram, and those of one that begins in the middle, are the
/// kernel's: all of them.
#[test]
fn a_datagram_of_the_kernels_comes_whole_to_the_host() {
    let mut card = card();
    card.post(0, 8192, 1);
    let sent = bytes(1, 4000);
    let other = card.fragments((1, PORT + 1), &sent, MOST);
    let mut late = card.fragments((2, PORT), &sent, MOST);
    late.rotate_left(1);
    let ours = card.fragments((3, PORT), &sent, MOST);
    let mut all = Vec::new();
    for number in 0..3 {
        all.extend([&other, &late, &ours].map(|frames| frames[number].clone()));
    }
    card.arrive(&all);
    assert_eq!(card.completion(), Card::received(1, 4000, true));
    assert!(card.memory(0, 4000) == sent);
    let host: Vec<_> = (0..3)
        .flat_map(|number| [other[number].clone(), late[number].clone()])
        .collect();
    assert_eq!(card.stage.receive(6), host);
    assert_eq!(card.refusals(), Refusals::default());
}

/// A closed endpoint's memory is not touched any more, though a datagram for it had begun.
#[test]
fn closing_gives_up_what_has_begun() {
    let mut card = card();
    let sent = bytes(1, 3000);
    card.post(0, 4096, 1);
    let frames = card.fragments((1, PORT), &sent, MOST);
    card.stage.engine.send(&frames[0]);
    card.stage.engine.pass(Duration::from_micros(100));
    let config = *card.endpoint.config();
    let mut lent = host_driver::nic::EndpointCard(&mut card.stage.nic);
    let old = std::mem::replace(
        &mut card.endpoint,
        card.eudp
            .open(&mut lent, eudp::EndpointConfig { port: 1, ..config })
            .expect("another endpoint"),
    );
    card.eudp.close(&mut lent, old).expect("it closes");
    card.memory.write_bytes(0, &[0; 4096]).expect("it fits");
    card.arrive(&frames[1..]);
    assert!(card.rests());
    assert!(card.memory(0, 4096).iter().all(|byte| *byte == 0));
    assert_eq!(card.refusals(), Refusals::default());
}
