//! Messages from a handler of one card to a handler of the other one on the bus.

use crate::card::kit;
use crate::page;
use host_driver::dma::DmaMemory;

use host_interface::spine::peer::PeerWord;
use spine_linker::endpoint::{Endpoint, RingSizes};
use tigon_bench::spine::exchange::{self, Exchange, handler};
use tigon2_sim::timing::Parameters;

fn exchange() -> Exchange {
    let exchange = Exchange::start(kit(), &Parameters::default(), |_, _| Ok(()));
    exchange.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Enough for a message.
const SOON: u64 = 150_000;

/// Counters of the extension: messages kept, and those that it found no room for.
const KEPT: usize = 0;
const NO_ROOM: usize = 1;

/// Messages of all lengths go both ways, and come back, whole and in order; neither the host's CPU
/// nor its memory has anything to do with it.
#[test]
fn messages_go_from_card_to_card_without_the_host() {
    let exchange = exchange();
    let before = exchange.asked();
    for (turn, length) in [0u32, 1, 4, 17, 59, 60].into_iter().enumerate() {
        for card in 0..2 {
            let words: Vec<u32> = (0..length).map(|n| n << 16 | turn as u32).collect();
            exchange.send(card, handler::KEEPS, &words);
            exchange.pass(SOON);
            assert_eq!(exchange.kept(1 - card, length), words, "from card {card}");
            let words: Vec<u32> = words.iter().map(|word| !word).collect();
            exchange.send(card, handler::ANSWERS, &words);
            exchange.pass(SOON);
            assert_eq!(exchange.kept(card, length), words, "back to card {card}");
        }
    }
    assert_eq!(exchange.asked(), before, "the host's accesses and memory");
    for card in 0..2 {
        assert_eq!(exchange.counts(card).counters()[KEPT], 12);
        assert_eq!(exchange.counts(card).counters()[NO_ROOM], 0);
        let count = |word| exchange.word(card, word);
        assert_eq!(count(PeerWord::MessagesSent), 18);
        assert_eq!(count(PeerWord::MessagesAcknowledged), 18);
        assert_eq!(count(PeerWord::MessagesTaken), 18);
        assert_eq!(count(PeerWord::MessagesDropped), 0);
    }
}

/// A handler of one card has a message arrive at an application of the other one's host: 256 bytes
/// of that host's memory are written.
#[test]
fn a_message_comes_to_an_application_beside_the_other_card() {
    const SIZES: RingSizes = RingSizes { slots: 4, bulk: 0 };
    const APPLICATION: u32 = 3;
    let mut application: Option<Endpoint<DmaMemory>> = None;
    let exchange = Exchange::start(kit(), &Parameters::default(), |card, domain| {
        application = Some(card.open_endpoint(APPLICATION, SIZES, domain)?);
        Ok(())
    });
    let exchange = exchange.unwrap_or_else(|error| panic!("{error:#}"));
    let before = exchange.asked();
    // Endpoint n has the number n + 1.
    exchange.send(0, handler::TO_APPLICATION, &[APPLICATION + 1, 7, 8, 9]);
    exchange.pass(SOON);
    let mut application = application.expect("it is open");
    let message = application.take().expect("the ring").expect("a message");
    assert_eq!(message.arguments, [7, 8, 9]);
    assert_eq!(exchange.asked(), [before[0], before[1] + 256]);
}

/// What is for no handler, for one that the peer may not call, for no domain, or for one that is cut
/// off, is dropped and counted there, and its slot is free again.
#[test]
fn a_message_that_is_not_taken_is_counted_and_makes_room() {
    let exchange = exchange();
    for to in [
        u32::from(handler::NOBODY),
        0,
        u32::from(handler::NEVER_RETURNS),
        0xFF00,
        0x00FF,
    ] {
        exchange.send_to(0, to, &[1, 2]);
        exchange.pass(SOON);
    }
    assert_eq!(exchange.word(1, PeerWord::MessagesDropped), 5);
    assert_eq!(exchange.word(0, PeerWord::MessagesAcknowledged), 5);
    exchange.send(0, handler::KEEPS, &[77]);
    exchange.pass(SOON);
    assert_eq!(exchange.kept(1, 1), [77]);
}

/// What docs/spine.md says of time and rate. More is sent than the other card takes: nothing is
/// lost, and its frames' handlers go on.
#[test]
fn a_handler_that_sends_for_ever_waits_for_room() {
    let measured = exchange::measure(kit(), &Parameters::default());
    let measured = measured.unwrap_or_else(|error| panic!("{error:#}"));
    println!("{measured:?}");
    assert_eq!(measured.host, [0, 0]);
    for (row, value) in [
        ("handler to handler", measured.to_handler),
        ("handler to handler and back", measured.there_and_back),
        ("handler to handler, one way", measured.one_way),
    ] {
        let said = page::measured(row);
        assert!(
            (0.95..1.05).contains(&(value / said)),
            "{row}: {value}, {said}"
        );
    }
    let exchange = exchange();
    exchange.flood(1_000_000).expect("messages");
    let [sent, taken] = [(0, PeerWord::MessagesSent), (1, PeerWord::MessagesTaken)]
        .map(|(card, word)| exchange.word(card, word));
    assert!(taken <= sent && sent - taken <= 4, "{sent}, {taken}");
    assert_eq!(exchange.word(1, PeerWord::MessagesDropped), 0);
    exchange.send(1, handler::KEEPS, &[78]);
    exchange.pass(1_000_000);
    assert_eq!(exchange.kept(0, 1), [78], "the other way");
}
