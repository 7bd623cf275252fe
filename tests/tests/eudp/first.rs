//! The first fragments of datagrams: whose they are, and which row each gets.

use crate::burst::{ETHERNET, changed};
use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, CutThrough, Refusals, Status};
use integration_tests::Engine;
use smoltcp::wire::Ipv4Packet;
use std::time::Duration;

/// Bytes of the IP payload in a frame of an MTU of 1500.
const MOST: usize = 1480;
/// Bytes of a buffer.
const BUFFER: u32 = 4096;

fn card() -> Card {
    Card::timed(CutThrough::OfBus, Checksum::None, 1500)
}

/// The same frame from another source. Its datagram has no checksum.
fn from_another(frame: &[u8]) -> Vec<u8> {
    changed(frame, |bytes| {
        let mut packet = Ipv4Packet::new_unchecked(&mut *bytes);
        if packet.frag_offset() == 0 {
            packet.payload_mut()[6..8].fill(0);
        }
        bytes[15] ^= 0x40;
    })
}

/// One datagram waits for its rest while others take all rows in turn, again and again: none of them
/// takes its row.
#[test]
fn a_row_whose_datagram_comes_is_passed_over() {
    let mut card = card();
    let sent = bytes(100, 3500);
    card.post(0, BUFFER, 100);
    let waiting = card.fragments((100, PORT), &sent, MOST);
    card.arrive(&waiting[..1]);
    for number in 0..20 {
        let data = bytes(number, 2000);
        card.post(BUFFER, BUFFER, number);
        let frames = card.fragments((number as u16, PORT), &data, MOST);
        card.arrive(&frames);
        assert_eq!(card.completion(), Card::received(number, 2000, true));
        assert!(card.memory(BUFFER as usize, 2000) == data, "{number}");
    }
    card.arrive(&waiting[1..]);
    assert_eq!(card.completion(), Card::received(100, 3500, true));
    assert!(card.memory(0, 3500) == sent);
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// Two sources use the same identification, at the same time and one after the other.
#[test]
fn sources_may_use_the_same_identification() {
    let mut card = card();
    let sent = [bytes(1, 3000), bytes(2, 3400)];
    for together in [true, false] {
        card.post(0, BUFFER, 1);
        card.post(BUFFER, BUFFER, 2);
        card.stage.engine.pass(Duration::from_micros(20));
        let identification = u16::from(together);
        let first = card.fragments((identification, PORT), &sent[0], MOST);
        let other = card.fragments((identification, PORT), &sent[1], MOST);
        let other: Vec<_> = other.iter().map(|frame| from_another(frame)).collect();
        if together {
            for frame in first.iter().zip(&other).flat_map(|(a, b)| [a, b]) {
                card.stage.engine.send(frame);
            }
        } else {
            card.arrive(&first);
            card.arrive(&other);
        }
        assert_eq!(card.ended(), (1, Status::Done, 3000));
        assert_eq!(card.ended(), (2, Status::Done, 3400));
        for (at, sent) in [0, BUFFER as usize].into_iter().zip(&sent) {
            assert!(card.memory(at, sent.len()) == *sent, "{at} {together}");
        }
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// The first fragments of the last datagrams, which are complete, come once more: none takes a buffer.
#[test]
fn late_copies_of_first_fragments_are_dropped() {
    let mut card = card();
    let mut late = Vec::new();
    for number in 0..20 {
        let sent = bytes(u32::from(number), 3000);
        card.post(0, BUFFER, u32::from(number));
        let frames = card.fragments((number, PORT), &sent, MOST);
        card.arrive(&frames);
        let received = Card::received(u32::from(number), 3000, true);
        assert_eq!(card.completion(), received);
        late.insert(0, frames[0].clone());
        late.truncate(5);
        card.arrive(&late);
        assert!(card.memory(0, 3000) == sent, "{number}");
    }
    assert!(card.rests());
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// A first fragment that is wrong takes no buffer: the next datagram has it.
#[test]
fn a_wrong_first_fragment_takes_no_buffer() {
    type Change = fn(&mut [u8]);
    let changes: [(&str, Change); 6] = [
        ("another version", |packet| packet[0] = 0x46),
        ("longer than its frame", |packet| packet[2] += 1),
        ("another protocol", |packet| packet[9] = 6),
        ("an odd length", |packet| packet[3] -= 1),
        ("another address", |packet| packet[19] ^= 1),
        ("another port", |packet| packet[23] ^= 1),
    ];
    let mut card = card();
    for (number, (what, change)) in (0..).zip(changes) {
        let sent = bytes(number, 3000);
        card.post(0, BUFFER, number);
        let frames = card.fragments((number as u16 * 2, PORT), &sent, MOST);
        card.arrive(&[changed(&frames[0], change)]);
        let frames = card.fragments((number as u16 * 2 + 1, PORT), &sent, MOST);
        card.arrive(&frames);
        assert_eq!(
            card.completion(),
            Card::received(number, 3000, true),
            "{what}"
        );
        assert!(card.memory(0, 3000) == sent, "{what}");
    }
    // The sum of its IP header is wrong.
    let sent = bytes(99, 3000);
    card.post(0, BUFFER, 99);
    let mut wrong = card.fragments((98, PORT), &sent, MOST);
    wrong[0][ETHERNET + 11] ^= 1;
    card.arrive(&wrong[..1]);
    let frames = card.fragments((99, PORT), &sent, MOST);
    card.arrive(&frames);
    assert_eq!(card.completion(), Card::received(99, 3000, true));
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// The UDP header says that there is less than its own fragment has: the datagram is given up, and
/// nothing is written behind its memory.
#[test]
fn a_length_that_is_too_short_gives_the_datagram_up() {
    let mut card = card();
    card.post(0, 992, 1);
    card.memory.write_bytes(0, &[0; 4096]).expect("it fits");
    let mut frames = card.fragments((1, PORT), &bytes(1, 3000), MOST);
    frames[0][ETHERNET + 24..ETHERNET + 26].copy_from_slice(&1000_u16.to_be_bytes());
    card.arrive(&frames);
    let (cookie, status, _) = card.ended();
    assert_eq!((cookie, status), (1, Status::Incomplete));
    assert!(card.rests());
    assert!(card.memory(992, 3000).iter().all(|byte| *byte == 0));
    assert_eq!(card.refusals().bad_header, 1);
    card.follow();
}

/// Most rows wait for their rest, and one was given up whose fragments are still being written: it is
/// not used for the next datagram, which is dropped and counted.
#[test]
fn a_row_that_was_given_up_is_not_next_while_it_is_written() {
    let mut card = Card::stalling(600);
    let buffers: Vec<_> = (0..7).chain([8, 9]).collect();
    for cookie in &buffers[..7] {
        card.post(cookie * BUFFER, BUFFER, *cookie);
    }
    let gone = card.gone(BUFFER).0.segment(0, 900);
    let there = card.region.segment(7 * BUFFER, BUFFER);
    card.with(|endpoint, lent| endpoint.post(lent, &[gone, there], 7))
        .expect("it is posted");
    for cookie in &buffers[7..] {
        card.post(cookie * BUFFER, BUFFER, *cookie);
    }
    card.stage.engine.pass(Duration::from_micros(20));
    // Six that wait, and one that is complete.
    for number in 0..7 {
        let frames = card.fragments((number, PORT), &bytes(1, 2000), MOST);
        let most = if number == 6 { 2 } else { 1 };
        card.arrive(&frames[..most]);
        card.stage.engine.pass(Duration::from_micros(100));
    }
    assert_eq!(card.completion(), Card::received(6, 2000, true));
    let lost = card.fragments((7, PORT), &bytes(7, 4000), 1000);
    card.arrive(&lost[..4]);
    // The first of these gets the other row, and there is none for the second one.
    let frames = card.fragments((8, PORT), &bytes(8, 100), 64);
    card.arrive(&frames);
    let refused = card.fragments((9, PORT), &bytes(9, 100), 64);
    card.arrive(&refused[..1]);
    let (cookie, status, _) = card.ended();
    assert_eq!((cookie, status), (7, Status::Incomplete));
    let mut next = |number: u16, cookie: u32| {
        assert_eq!(card.completion(), Card::received(cookie, 100, true));
        let there = card.memory((cookie * BUFFER) as usize, 100);
        assert!(there == bytes(u32::from(number), 100), "{number}");
        let frames = card.fragments((10, PORT), &bytes(10, 100), 64);
        card.arrive(&frames);
    };
    next(8, 8);
    next(10, 9);
    let seen = Refusals {
        bad_region: 1,
        no_context: 1,
        ..Refusals::default()
    };
    assert_eq!(card.refusals(), seen);
    card.follow();
}
