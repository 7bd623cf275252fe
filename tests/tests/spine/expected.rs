//! The message that CPU B expects next: the one behind the last that it has asked for.

use crate::card::Spine;
use crate::rings::{Messages, SIZES};
use host_interface::spine::rings::Dropped;
use host_interface::spine::{HandlerCount, peer};
use spine_linker::endpoint::RingSizes;
use spine_linker::load::{Card, handlers_of};

/// Handlers of the extension.
const ANSWERS: u8 = 0;
const CONSUMES: u8 = 7;

/// Sends a message and takes its answer.
fn ask(messages: &mut Messages, number: u32, argument: u32) {
    messages.send(number, ANSWERS, &[argument]);
    assert_eq!(messages.arguments(number), [argument], "of {number}");
    messages.ring(number);
}

/// All slots of the card and of the ring are used several times, and no message runs twice.
#[test]
fn one_at_a_time_runs_once() {
    let mut messages = Messages::on(Spine::timed("default"), &[10]);
    for argument in 0..70 {
        ask(&mut messages, 10, argument);
    }
    messages.run(5000);
    let counts = messages.counts(10);
    assert_eq!((counts.fetched, counts.delivered), (70, 70));
    let runs = messages.spine.count(messages.domain, HandlerCount::Runs);
    assert_eq!(runs, 70);
}

/// Another endpoint's message, alone or with the expected one, in the same mailbox, in the same word of
/// it, or in another one; and two where one is expected.
#[test]
fn others_come_beside_the_expected_one() {
    let mut messages = Messages::on(Spine::timed("default"), &[20, 21, 22, 40]);
    for round in 0..40 {
        for other in [21, 22, 40] {
            ask(&mut messages, 20, round);
            ask(&mut messages, other, round);
            ask(&mut messages, 20, round);
            let mut sent = vec![(20, 1), (other, 2)];
            if round & 1 != 0 {
                sent.insert(1, (20, 3));
            }
            for (number, argument) in &sent {
                messages.put(*number, ANSWERS, &[*argument]);
            }
            messages.ring(20);
            messages.run(u64::from(round * 13));
            messages.ring(other);
            for (number, argument) in sent {
                assert_eq!(messages.arguments(number), [argument], "{other}, {round}");
            }
            messages.ring(20);
            messages.ring(other);
        }
    }
    messages.run(5000);
    for number in [20, 21, 22, 40] {
        let counts = messages.counts(number);
        assert_eq!(counts.fetched, counts.delivered);
        assert_eq!(counts.dropped.iter().sum::<u32>(), 0);
    }
}

/// An application rings for each message, faster than they run: more of them wait than the card has room
/// for.
#[test]
fn many_are_rung_for_one_by_one() {
    const LONG: RingSizes = RingSizes { slots: 64, bulk: 0 };
    let mut messages = Messages::on(Spine::timed("default"), &[]);
    messages.add(10, LONG, handlers_of(messages.domain));
    for between in [150, 350, 560] {
        for argument in 0..60 {
            messages.send(10, ANSWERS, &[argument]);
            messages.run(between);
        }
        for argument in 0..60 {
            assert_eq!(messages.arguments(10), [argument], "{between}");
        }
        messages.ring(10);
        messages.run(5000);
    }
    assert_eq!(messages.counts(10).delivered, 180);
}

/// A doorbell that claims more than the ring has room for is no expected message.
#[test]
fn a_claim_beyond_the_ring_is_dropped() {
    let mut messages = Messages::on(Spine::timed("default"), &[10]);
    ask(&mut messages, 10, 1);
    messages.run(5000);
    messages.ring_with(10, 200);
    messages.run(5000);
    let counts = messages.counts(10);
    assert_eq!((counts.fetched, counts.delivered), (1, 1));
    assert_eq!(counts.dropped[Dropped::BeyondCredit as usize], 1);
}

/// CPU B sees the other card's bell and the endpoint's together.
#[test]
fn the_peers_bell_hides_no_endpoint() {
    let mut messages = Messages::on(Spine::timed("default"), &[10]);
    for argument in 0..20 {
        messages.put(10, ANSWERS, &[argument]);
        let card = &mut messages.spine.card;
        card.ring(peer::MAILBOX).expect("the card is there");
        messages.ring(10);
        assert_eq!(messages.arguments(10), [argument]);
        messages.ring(10);
        messages.run(u64::from(argument * 50));
    }
}

/// The next owner of the number rings for the message that was expected of the last one: with three
/// at once, where the last one has sent two.
#[test]
fn nothing_is_expected_of_the_next_owner() {
    let mut messages = Messages::on(Spine::timed("default"), &[10]);
    for round in 0..20 {
        ask(&mut messages, 10, 1);
        ask(&mut messages, 10, 2);
        // What would be fetched then.
        messages.put(10, ANSWERS, &[3]);
        messages.close(10);
        messages.add(10, SIZES, handlers_of(messages.domain));
        for argument in 4..7 {
            messages.put(10, ANSWERS, &[argument]);
        }
        messages.run(round * 20);
        messages.ring(10);
        for argument in 4..7 {
            assert_eq!(messages.arguments(10), [argument], "{round}");
        }
        messages.run(5000);
        assert_eq!(messages.counts(10).delivered, 3, "{round}");
        messages.close(10);
        messages.add(10, SIZES, handlers_of(messages.domain));
    }
}

/// Closed at whatever moment of its way, the expected message runs or does not, and is none of the next
/// owner's.
#[test]
fn an_expected_message_ends_with_its_endpoint() {
    let mut messages = Messages::on(Spine::timed("default"), &[10]);
    for delay in (0..1200).step_by(15) {
        ask(&mut messages, 10, 1);
        messages.put(10, CONSUMES, &[2]);
        messages.ring(10);
        messages.run(delay);
        let memory = messages.close(10);
        messages.add(10, SIZES, handlers_of(messages.domain));
        memory.clear(0, memory.len()).expect("memory");
        messages.run(5000);
        let counts = messages.counts(10);
        assert_eq!((counts.fetched, counts.delivered), (0, 0), "{delay}");
        ask(&mut messages, 10, 3);
        messages.close(10);
        messages.add(10, SIZES, handlers_of(messages.domain));
    }
}
