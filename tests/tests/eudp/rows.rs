//! The rows of address handles and regions, of which CPU B keeps the last ones in its pad.

use crate::card::{Card, Overseen, PORT, bytes, data};
use eudp::{Checksum, Completion, CutThrough, Destination, Endpoint, Status};
use host_driver::DmaMemory;
use host_driver::nic::EndpointCard;
use host_interface::eudp::HandleWord;
use integration_tests::Engine;
use std::net::Ipv4Addr;
use std::time::Duration;

fn close(card: &mut Card, endpoint: Endpoint<DmaMemory>) {
    let mut lent = EndpointCard(&mut card.stage.nic);
    card.eudp.close(&mut lent, endpoint).expect("it answers");
}

fn sent(cookie: u32, status: Status) -> Completion {
    Completion::Sent { cookie, status }
}

/// An endpoint that gets the number of one that was closed, and its rows' numbers, has its own
/// address handle and memory.
#[test]
fn an_endpoint_does_not_inherit_rows() {
    let mut card = Card::timed(CutThrough::Off, Checksum::Full, 1500);
    card.send(0, &bytes(1, 1000), 1);
    assert!(data(&card.wire().bytes) == bytes(1, 1000));
    assert_eq!(card.completion(), sent(1, Status::Done));

    let other = card.other(PORT + 1);
    let first = std::mem::replace(&mut card.endpoint, other);
    let number = first.number();
    close(&mut card, first);
    let mut again = card.other(PORT + 2);
    assert_eq!(again.number(), number);
    let to = Destination {
        station: [2, 0, 0, 0, 0, 7],
        address: Ipv4Addr::new(10, 0, 0, 7),
        lifetime: 7,
        dont_fragment: false,
    };
    let mut lent = EndpointCard(&mut card.stage.nic);
    let memory = eudp::Card::allocate(&mut lent, 1 << 16).expect("memory");
    let region = card.eudp.register(&mut lent, &mut again, &memory);
    card.region = region.expect("a region");
    card.peer = card.eudp.address(&mut lent, &mut again, &to).expect("room");
    card.memory = memory;
    let _other = std::mem::replace(&mut card.endpoint, again);

    card.send(0, &bytes(2, 1000), 2);
    let frame = card.wire().bytes;
    assert_eq!(frame[..6], to.station);
    assert_eq!((frame[22], &frame[30..34]), (7, &to.address.octets()[..]));
    assert!(frame[42..1042] == bytes(2, 1000));
    assert_eq!(card.completion(), sent(2, Status::Done));
    card.follow();
}

/// A datagram in fragments keeps its headers while another endpoint is closed.
#[test]
fn another_endpoint_closes_between_two_fragments() {
    // All data is summed in front of the first frame. Behind it SDMA rests, so what waits is closed.
    let mut card = Card::timed(CutThrough::Off, Checksum::Leading, 1500);
    let other = card.other(PORT + 1);
    card.send(0, &bytes(1, 60_000), 1);
    card.stage.engine.pass(Duration::from_micros(50));
    close(&mut card, other);
    let first = card.wire().bytes;
    let mut frames = 1;
    loop {
        let frame = card.wire().bytes;
        // All but its length, its place and the sum.
        for part in [0..16, 18..20, 22..24, 26..34] {
            assert_eq!(frame[part.clone()], first[part], "frame {frames}");
        }
        frames += 1;
        if frame[20] & 0x20 == 0 {
            break;
        }
    }
    assert_eq!(frames, 41);
    assert_eq!(card.completion(), sent(1, Status::Done));
    card.follow();
}

/// A datagram that is posted without a link is refused, whether its rows are known or not, and the
/// next one leaves when there is one again.
#[test]
fn nothing_is_sent_without_a_link() {
    let mut card = Card::timed(CutThrough::Off, Checksum::None, 1500);
    for round in 0..2 {
        card.send(0, &bytes(round, 1000), 10 + round);
        assert!(data(&card.wire().bytes) == bytes(round, 1000));
        assert_eq!(card.completion(), sent(10 + round, Status::Done));

        card.stage.engine.plug(false);
        let changes = 2 * u64::from(round) + 2;
        let link = &mut card.stage.nic;
        let down = link.wait_link_changes(changes, Duration::from_secs(5));
        assert!(down.expect("the card is well"));
        for cookie in [20, 21, 22] {
            card.send(0, &bytes(3, 1000), cookie);
            assert_eq!(card.completion(), sent(cookie, Status::LinkDown));
        }
        card.stage.engine.plug(true);
        let up = card.stage.nic.wait_link(Duration::from_secs(5));
        up.expect("a link");
    }
    card.send(0, &bytes(4, 1000), 30);
    assert!(data(&card.wire().bytes) == bytes(4, 1000));
    assert_eq!(card.completion(), sent(30, Status::Done));
    card.follow();
}

/// A process can name a row at any time, and what the card has found there once it keeps: the word
/// with the owner is the last to be written.
#[test]
fn a_row_is_whole_before_it_has_an_owner() {
    let mut card = Card::timed(CutThrough::Off, Checksum::None, 1500);
    let owner = card.endpoint.number() + 1;
    let to = Destination {
        station: [2, 0, 0, 0, 0, 7],
        address: Ipv4Addr::new(10, 0, 0, 7),
        lifetime: 7,
        dont_fragment: false,
    };
    let mut lent = EndpointCard(&mut card.stage.nic);
    let mut written = Vec::new();
    let mut recorded = Overseen(&mut lent, |at, words: &[u32]| {
        written.push((at, words.to_vec()));
        true
    });
    let endpoint = &mut card.endpoint;
    let handle = card.eudp.address(&mut recorded, endpoint, &to);
    handle.expect("room");
    let region = card.eudp.register(&mut recorded, endpoint, &card.memory);
    region.expect("room");
    let [(row, words), last, (_, region)] = &written[..] else {
        panic!("{written:?}");
    };
    let at = HandleWord::Owner as usize;
    assert_eq!(words[at / 4], 0);
    assert_eq!(*last, (row + at as u32, vec![owner]));
    assert_eq!(region.last(), Some(&owner));
}
