//! Fragments that come one behind the other, and are in the write channel's queue together.

use crate::burst::{ETHERNET, changed};
use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, Completion, CutThrough, Refusals, Segment, Status};
use integration_tests::Engine;
use std::time::Duration;

/// Bytes of the IP payload in a frame of an MTU of 1500.
const MOST: usize = 1480;
/// Bytes of a buffer.
const BUFFER: u32 = 8192;

fn card() -> Card {
    Card::timed(CutThrough::OfBus, Checksum::None, 1500)
}

/// A card on a bus that stalls before each write, so that its queue fills.
fn slow_card() -> Card {
    Card::stalling(600)
}

/// A fragment with other words in its IP header, whose sum is made again, and with other data.
fn forged(frame: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[ETHERNET + 20..]
        .iter_mut()
        .for_each(|byte| *byte ^= 0xFF);
    changed(&frame, change)
}

/// Two datagrams in fragments and whole ones with and without a sum, of which one is wrong, by turns
/// and in the same queue: each is completed in the order of its end, and is whole.
#[test]
fn fragments_and_whole_datagrams_share_the_queue() {
    for mut card in [card(), slow_card()] {
        for cookie in 0..6 {
            card.post(cookie * BUFFER, BUFFER, cookie);
        }
        card.stage.engine.pass(Duration::from_micros(20));
        let sent = [bytes(1, 4000), bytes(2, 3001)];
        let first = card.fragments((1, PORT), &sent[0], MOST);
        let second = card.fragments((2, PORT), &sent[1], MOST);
        let mut wrong = card.inbound(PORT, &bytes(9, 60));
        wrong[60] ^= 1;
        let whole = [
            card.inbound(PORT, &bytes(3, 100)),
            card.inbound_unsummed(PORT, &bytes(4, 1400)),
            card.inbound(PORT, &bytes(5, 200)),
        ];
        for frame in [
            &first[0], &second[0], &whole[0], &first[1], &wrong, &whole[1], &second[1], &first[2],
            &second[2], &whole[2],
        ] {
            card.stage.engine.send(frame);
        }
        // The wrong one's buffer is posted again.
        for (number, length, is_summed) in [
            (3, 100, true),
            (4, 1400, false),
            (1, 4000, true),
            (2, 3001, true),
            (5, 200, true),
        ] {
            let completion = card.completion();
            let Completion::Received { cookie, .. } = completion else {
                panic!("{completion:?}");
            };
            assert_eq!(completion, Card::received(cookie, length, is_summed));
            let there = card.memory((cookie * BUFFER) as usize, length);
            assert!(there == bytes(number, length), "datagram {number}");
        }
        assert_eq!(card.refusals().bad_sum, 1);
        card.follow();
    }
}

/// A frame in the place of the next fragment that is not quite it: nothing of it is written, and
/// the datagram becomes whole.
#[test]
fn a_frame_that_is_not_the_next_fragment_is_found_out() {
    type Change = fn(&mut [u8]);
    let changes: [(&str, Change); 11] = [
        ("another version", |header| header[0] = 0x46),
        ("longer than its frame", |header| header[2] += 1),
        ("another identification", |header| header[5] ^= 1),
        ("another protocol", |header| header[9] = 6),
        ("another source, above", |header| header[12] ^= 1),
        ("another source, below", |header| header[15] ^= 1),
        ("another destination, above", |header| header[16] ^= 1),
        ("another destination, below", |header| header[19] ^= 1),
        ("addresses of the same sum", |header| {
            header[15] += 1;
            header[19] -= 1;
        }),
        ("an identification and a source of the same sum", |header| {
            header[5] += 1;
            header[15] -= 1;
        }),
        ("an odd length", |header| header[3] -= 1),
    ];
    let mut card = card();
    for (number, (what, change)) in (0..).zip(changes) {
        let sent = bytes(number, 5000);
        card.post(0, BUFFER, number);
        let mut frames = card.fragments((number as u16 * 2, PORT), &sent, MOST);
        let wrong = forged(&frames[2], change);
        frames.insert(2, wrong);
        card.arrive(&frames);
        assert_eq!(
            card.completion(),
            Card::received(number, 5000, true),
            "{what}"
        );
        assert!(card.memory(0, 5000) == sent, "{what}");
    }
    // The sum of its header is wrong.
    let sent = bytes(77, 5000);
    card.post(0, BUFFER, 77);
    let mut frames = card.fragments((77, PORT), &sent, MOST);
    let mut wrong = forged(&frames[2], |_| ());
    wrong[ETHERNET + 11] ^= 1;
    frames.insert(2, wrong);
    card.arrive(&frames);
    assert_eq!(card.completion(), Card::received(77, 5000, true));
    assert!(card.memory(0, 5000) == sent);
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// What ends elsewhere than its datagram gives that up, whether it is the next one or not, and is not
/// written behind its memory.
#[test]
fn the_next_fragment_must_end_where_the_datagram_does() {
    let mut card = card();
    card.memory
        .write_bytes(0, &[0; BUFFER as usize])
        .expect("it fits");
    let bytes_in_all = 2 * MOST + 1400;
    for (number, (length, more)) in [
        (16, false),
        (1408, true),
        (1409, false),
        (1400, false),
        (1416, true),
    ]
    .into_iter()
    .enumerate()
    {
        let number = number as u32;
        let sent = bytes(number, bytes_in_all);
        card.post(0, bytes_in_all as u32, number);
        let frames = card.fragments((number as u16, PORT), &sent, MOST);
        let last = card.fragment(number as u16, 2 * MOST, &vec![7; length], more);
        card.arrive(&[frames[0].clone(), frames[1].clone(), last]);
        assert_eq!(
            card.ended(),
            (number, Status::Incomplete, 0),
            "{length} bytes"
        );
    }
    assert!(card.rests());
    let behind = card.memory(bytes_in_all, BUFFER as usize - bytes_in_all);
    assert!(behind.iter().all(|byte| *byte == 0));
    let seen = card.refusals();
    // Where it ends one may say that more follows, but then its sum is wrong.
    assert_eq!((seen.bad_header, seen.bad_sum), (4, 1));
    card.follow();
}

/// The UDP header comes last, as another card with `Full` sends it. A fragment that comes twice and
/// one of another datagram are in between.
#[test]
fn the_header_may_come_last() {
    let mut card = Card::connected(1500);
    for number in 0..8 {
        let sent = bytes(number, 7900);
        card.post(0, 7900, number);
        let mut frames = card.fragments((number as u16, PORT), &sent, 400);
        frames.rotate_left(1);
        let again = frames[4].clone();
        frames.insert(5 + number as usize, again);
        card.arrive(&frames);
        assert_eq!(card.completion(), Card::received(number, 7900, true));
        assert!(card.memory(0, 7900) == sent, "{number}");
    }
    assert_eq!(card.refusals().duplicate, 8);
    card.follow();
}

/// No length is known as long as the header has not come: the memory is the limit.
#[test]
fn what_comes_before_the_header_is_not_written_behind_the_memory() {
    let mut card = Card::connected(1500);
    for (number, room) in [(0, 3000), (1, 3599), (2, 3600), (3, 3184)] {
        card.memory
            .write_bytes(0, &[0; BUFFER as usize])
            .expect("it fits");
        card.post(0, room, number);
        let frames = card.fragments((number as u16, PORT), &bytes(number, 7900), 400);
        // All that lies in the memory, and the one behind it.
        let most = (room as usize + 8) / 400;
        card.arrive(&frames[1..=most]);
        assert_eq!(card.ended(), (number, Status::Incomplete, 0), "{room}");
        assert!(card.rests());
        let behind = card.memory(room as usize, (BUFFER - room) as usize);
        assert!(behind.iter().all(|byte| *byte == 0), "{room}");
    }
    assert_eq!(card.refusals().bad_region, 4);
    card.follow();
}

/// Another type of service, and a lifetime of its own, are no reason to lose a fragment.
#[test]
fn fragments_may_differ_in_what_does_not_count() {
    let mut card = card();
    card.post(0, BUFFER, 1);
    let sent = bytes(1, 5000);
    let mut frames = card.fragments((1, PORT), &sent, MOST);
    for (frame, at) in frames[1..].iter_mut().zip([1, 8, 1]) {
        *frame = changed(frame, |packet| packet[at] ^= 4);
    }
    card.arrive(&frames);
    assert_eq!(card.completion(), Card::received(1, 5000, true));
    assert!(card.memory(0, 5000) == sent);
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// The next fragment comes when its datagram has been given up: the process has its memory back,
/// and nothing is written there.
#[test]
fn the_next_fragment_of_what_was_given_up_is_dropped() {
    let mut card = card();
    card.post(0, BUFFER, 1);
    let frames = card.fragments((1, PORT), &bytes(1, 5000), MOST);
    card.arrive(&frames[..2]);
    card.stage.engine.pass(Duration::from_micros(200_500));
    assert_eq!(card.ended(), (1, Status::Incomplete, 0));
    card.memory
        .write_bytes(0, &[0; BUFFER as usize])
        .expect("it fits");
    card.arrive(&frames[2..]);
    assert!(card.rests());
    assert!(
        card.memory(0, BUFFER as usize)
            .iter()
            .all(|byte| *byte == 0)
    );
    card.follow();
}

/// Lends a buffer of these pieces.
fn lend(card: &mut Card, pieces: &[Segment], cookie: u32) {
    card.with(|endpoint, lent| endpoint.post(lent, pieces, cookie))
        .expect("it is posted");
}

/// More than the receive buffer has room for, in pieces of memory that lie apart.
#[test]
fn long_datagrams_go_into_pieces_that_lie_apart() {
    let mut card = card();
    let places = [(0x2_0000, 21_000), (0, 40_000), (0x3_0000, 4507)];
    for number in 0..10 {
        let pieces = places.map(|(at, length)| card.region.segment(at, length));
        lend(&mut card, &pieces, number);
        let sent = bytes(number, 65_507);
        let frames = card.fragments((number as u16, PORT), &sent, MOST);
        card.arrive(&frames);
        assert_eq!(card.completion(), Card::received(number, 65_507, true));
        let there = places.map(|(at, length)| card.memory(at as usize, length as usize));
        assert!(there.concat() == sent, "datagram {number}");
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// A first fragment with the UDP header alone has nothing to write, and waits for what has.
#[test]
fn a_header_alone_waits_for_its_turn() {
    for mut card in [card(), slow_card()] {
        for cookie in 0..2 {
            card.post(cookie * BUFFER, BUFFER, cookie);
        }
        card.stage.engine.pass(Duration::from_micros(20));
        let sent = [bytes(1, 1400), bytes(2, 2000)];
        let frames = card.fragments((7, PORT), &sent[1], 2008);
        let payload = &frames[0][ETHERNET + 20..];
        let whole = card.inbound(PORT, &sent[0]);
        let parts = [
            card.fragment(7, 0, &payload[..8], true),
            card.fragment(7, 8, &payload[8..1208], true),
            card.fragment(7, 1208, &payload[1208..], false),
        ];
        card.stage.engine.send(&whole);
        card.arrive(&parts);
        assert_eq!(card.completion(), Card::received(0, 1400, true));
        assert_eq!(card.completion(), Card::received(1, 2000, true));
        for (at, sent) in [0, BUFFER as usize].into_iter().zip(&sent) {
            assert!(card.memory(at, sent.len()) == *sent, "{at}");
        }
        card.follow();
    }
}

/// The first piece of memory is gone, and the fragments behind it are in the queue by then: the
/// datagram is given up once, though it has no sum that could be wrong.
#[test]
fn a_datagram_is_given_up_once() {
    let mut card = slow_card();
    for cookie in 0..4 {
        card.post(cookie * BUFFER, BUFFER, cookie);
    }
    let gone = card.gone(BUFFER).0.segment(0, 400);
    let there = card.region.segment(4 * BUFFER, 4000);
    lend(&mut card, &[gone, there], 4);
    card.post(5 * BUFFER, BUFFER, 5);
    card.stage.engine.pass(Duration::from_micros(20));
    // These fill the queue.
    for number in 0..4 {
        let frame = card.inbound(PORT, &bytes(number, 1400));
        card.stage.engine.send(&frame);
    }
    for number in [4, 5] {
        let mut frames = card.fragments((number, PORT), &bytes(u32::from(number), 1592), 400);
        // No checksum.
        frames[0][ETHERNET + 26..ETHERNET + 28].fill(0);
        card.arrive(&frames);
    }
    for number in 0..4 {
        assert_eq!(card.completion(), Card::received(number, 1400, true));
    }
    assert_eq!(card.ended(), (4, Status::Incomplete, 0));
    assert_eq!(card.completion(), Card::received(5, 1592, false));
    assert!(card.rests());
    assert_eq!(card.refusals().bad_region, 1);
    card.follow();
}

/// All rows have datagrams, and one of them is given up while its fragments are in the queue: a new
/// datagram does not get its row before they are written.
#[test]
fn a_row_is_not_used_again_while_its_fragments_are_written() {
    let mut card = slow_card();
    for cookie in 0..7 {
        card.post(cookie * BUFFER, BUFFER, cookie);
    }
    let gone = card.gone(BUFFER).0.segment(0, 900);
    let there = card.region.segment(8 * BUFFER, BUFFER);
    lend(&mut card, &[gone, there], 7);
    card.post(9 * BUFFER, BUFFER, 8);
    card.stage.engine.pass(Duration::from_micros(20));
    for number in 0..7 {
        let frames = card.fragments((number, PORT), &bytes(1, 3000), MOST);
        card.stage.engine.send(&frames[0]);
    }
    card.stage.engine.pass(Duration::from_micros(500));
    let lost = card.fragments((7, PORT), &bytes(7, 4000), 1000);
    card.arrive(&lost[..4]);
    // One of these comes when the first write has failed and the others have not ended.
    for number in 8..40 {
        let frames = card.fragments((number, PORT), &bytes(8, 100), 64);
        card.arrive(&frames);
    }
    assert_eq!(card.ended(), (7, Status::Incomplete, 0));
    assert_eq!(card.completion(), Card::received(8, 100, true));
    assert!(card.memory(9 * BUFFER as usize, 100) == bytes(8, 100));
    assert_eq!(card.refusals().bad_sum, 0);
    card.follow();
}

/// A datagram's memory is gone, so it is given up while its other fragments are in the queue. The
/// datagrams in front of it and behind it are whole, though its row is used again.
#[test]
fn memory_that_is_gone_costs_only_its_datagram() {
    for mut card in [card(), slow_card()] {
        let (region, _) = card.gone(BUFFER);
        for cookie in 0..12 {
            let piece = if cookie == 4 {
                region.segment(0, BUFFER)
            } else {
                card.region.segment(cookie * BUFFER, BUFFER)
            };
            card.with(|endpoint, lent| endpoint.lend(lent, &[piece], cookie))
                .expect("it is lent");
        }
        card.with(|endpoint, lent| endpoint.submit(lent))
            .expect("the card is there");
        card.stage.engine.pass(Duration::from_micros(20));
        let sent: Vec<_> = (0..12)
            .map(|number| bytes(number, 2500 + number as usize))
            .collect();
        for (number, data) in (0..).zip(&sent) {
            let frames = card.fragments((number, PORT), data, 840);
            card.arrive(&frames);
        }
        for number in 0..12 {
            if number == 4 {
                assert_eq!(card.ended(), (4, Status::Incomplete, 0));
                continue;
            }
            let length = sent[number as usize].len();
            assert_eq!(card.completion(), Card::received(number, length, true));
            let there = card.memory((number * BUFFER) as usize, length);
            assert!(there == sent[number as usize], "datagram {number}");
        }
        assert_eq!(card.refusals().bad_region, 1);
        card.follow();
    }
}
