//! Datagrams from a peer into a process's memory.

use crate::card::{Card, PORT, bytes};
use eudp::{Checksum, CutThrough, Refusals};
use integration_tests::{Engine, Sim};
use std::time::Duration;
use tigon2_sim::timing::Parameters;

fn card() -> Card {
    Card::timed(CutThrough::OfBus, Checksum::None, 1500)
}

#[test]
fn a_datagram_arrives_in_the_memory_that_was_lent_for_it() {
    let mut card = card();
    for (number, length) in (0..).zip([0, 1, 3, 64, 1000, 1471, 1472]) {
        let sent = bytes(number, length);
        card.post(8192, 2048, number);
        let frame = card.inbound(PORT, &sent);
        card.stage.engine.send(&frame);
        assert_eq!(card.completion(), Card::received(number, length, true));
        assert!(card.memory(8192, length) == sent, "{length} bytes");
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// More than there are slots in the card, one behind the other, without gaps on the wire.
#[test]
fn a_burst_fills_one_buffer_after_the_other() {
    let mut card = card();
    for number in 0..8 {
        card.post(number * 2048, 2048, number);
    }
    fill(&mut card, 8);
}

/// As many datagrams, one behind the other, each for a buffer of 2048 bytes behind the one before.
fn fill(card: &mut Card, count: u32) {
    for number in 0..count {
        let frame = card.inbound(PORT, &bytes(number, 1400));
        card.stage.engine.send(&frame);
    }
    for number in 0..count {
        assert_eq!(card.completion(), Card::received(number, 1400, true));
        let there = card.memory(number as usize * 2048, 1400);
        assert!(there == bytes(number, 1400), "datagram {number}");
    }
}

/// The card hears of all that was lent with the next doorbell, and not before.
#[test]
fn one_doorbell_tells_of_all_buffers_that_were_lent() {
    let mut card = card();
    for number in 0..3 {
        let piece = card.region.segment(number * 2048, 2048);
        card.with(|endpoint, lent| endpoint.lend(lent, &[piece], number))
            .expect("it is lent");
    }
    let early = card.inbound(PORT, &bytes(9, 1400));
    card.stage.engine.send(&early);
    assert!(card.rests());
    let seen = Refusals {
        no_buffer: 1,
        ..Refusals::default()
    };
    assert_eq!(card.refusals(), seen);
    card.with(|endpoint, lent| endpoint.submit(lent))
        .expect("the card is there");
    card.stage.engine.pass(Duration::from_micros(10));
    fill(&mut card, 3);
    card.follow();
}

/// CPU A has begun to look for frames when the process posts a buffer, and behind that a frame comes:
/// CPU A takes that before it sees to the mailbox. It is so slow that the frame is there in time.
#[test]
fn a_buffer_that_was_posted_before_the_frame_came_is_found() {
    let slow = Parameters {
        sp_ld: 20,
        sp_st: 20,
        ..Parameters::default()
    };
    let sim = Sim::timed_by(slow, 1);
    let mut card = Card::on(sim, CutThrough::Off, Checksum::None, 1500);
    let frame = card.inbound(PORT, &bytes(1, 18));
    for later in (0..30_000).step_by(250) {
        card.stage.engine.send(&frame);
        card.stage.engine.pass(Duration::from_nanos(later));
        card.post(0, 2048, 5);
        card.stage.engine.send(&frame);
        let expected = Card::received(5, 18, true);
        assert_eq!(card.completion(), expected, "{later} ns");
        assert!(card.rests());
    }
    // The other one of each pair.
    assert_eq!(card.refusals().no_buffer, 120);
    card.follow();
}

/// More are posted while CPU A has enough, and does not look: it finds them when few are left.
#[test]
fn buffers_that_are_posted_while_there_are_enough_are_found() {
    let mut card = card();
    let mut number = 0;
    for (posted, sent) in [(6, 3), (6, 8), (1, 2), (7, 2), (9, 14)] {
        for _ in 0..posted {
            card.post(0, 2048, number);
            number += 1;
        }
        assert!(card.rests());
        for _ in 0..sent {
            let frame = card.inbound(PORT, &bytes(1, 300));
            card.stage.engine.send(&frame);
            card.completion();
        }
    }
    assert_eq!(card.refusals(), Refusals::default());
    let frame = card.inbound(PORT, &bytes(1, 300));
    card.stage.engine.send(&frame);
    assert!(card.rests());
    assert_eq!(card.refusals().no_buffer, 1, "{number} were posted");
}

/// A wrong sum is never completed, and costs the process no buffer.
#[test]
fn a_damaged_datagram_is_dropped_and_its_buffer_stays() {
    let mut card = card();
    card.post(0, 2048, 7);
    let good = card.inbound(PORT, &bytes(1, 700));
    let mut bad = good.clone();
    bad[500] ^= 4;
    card.stage.engine.send(&bad);
    assert!(card.rests());
    let mut bad = good.clone();
    bad[22] ^= 1;
    card.stage.engine.send(&bad);
    assert!(card.rests());
    card.stage.engine.send(&good);
    assert_eq!(card.completion(), Card::received(7, 700, true));
    assert!(card.memory(0, 700) == bytes(1, 700));
    // Without a descriptor, and with one that is too short for it.
    card.stage.engine.send(&good);
    assert!(card.rests());
    card.post(0, 699, 8);
    card.stage.engine.send(&good);
    assert!(card.rests());
    let seen = Refusals {
        bad_header: 1,
        no_buffer: 1,
        bad_sum: 1,
        bad_region: 1,
        ..Refusals::default()
    };
    assert_eq!(card.refusals(), seen);
    card.follow();
}

/// What is no datagram for an endpoint is the kernel's, in its order.
#[test]
fn other_ports_and_other_protocols_go_to_the_host() {
    let mut card = card();
    card.post(0, 2048, 1);
    let other = card.inbound(PORT + 1, &bytes(2, 600));
    let plain = card.stage.inbound(3);
    let ours = card.inbound(PORT, &bytes(4, 600));
    let mut fragment = card.inbound(PORT, &bytes(5, 600));
    // More fragments follow.
    fragment[20] |= 0x20;
    for frame in [&other, &ours, &plain, &fragment] {
        card.stage.engine.send(frame);
    }
    assert_eq!(card.completion(), Card::received(1, 600, true));
    assert!(card.memory(0, 600) == bytes(4, 600));
    assert_eq!(card.stage.receive(3), [other, plain, fragment]);
}
