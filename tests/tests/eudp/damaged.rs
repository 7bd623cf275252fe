//! Datagrams of which the wire changes bytes while they are written to a process's memory.

use crate::arriving::{pass_until, send, there};
use crate::card::{Card, PORT, built, bytes};
use eudp::{Checksum, CutThrough, Endpoint, Refusals};
use host_driver::nic::EndpointCard;
use tigon_bench::eudp::damage;
use tigon2_model::faults::Fault;

/// The wire changes bytes. Of a frame whose headers are wrong nothing is written early, of another one
/// all, the wrong bytes with it. Neither is completed, nothing is counted for the endpoint, and the next
/// datagram has the buffer.
#[test]
fn a_frame_with_changed_bytes_completes_nothing() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
    let (bad, good) = (bytes(1, 8000), bytes(2, 8000));
    for (cookie, (word, early)) in (0..).zip([
        ("damaged:destination", 0..8),
        ("damaged:ip-length", 0..8),
        ("damaged:ip-destination", 0..8),
        ("damaged:udp-port", 0..8),
        ("damaged:udp-length", 0..8),
        // Bytes 10 and 3000 of the data.
        ("damaged:52", 10..11),
        ("damaged:3042", 3000..3001),
        // From the UDP checksum to the data, and over the end of what is written at a time.
        ("damaged:40x8", 0..8),
        ("damaged:2046x8", 2004..2005),
        // What is written behind the frame's end is never written.
        ("damaged:8041", 4000..8000),
    ]) {
        for unsummed in [false, true] {
            card.memory.write_bytes(0, &[0xEE; 8000]).expect("it fits");
            card.post(0, 16384, cookie);
            let inbound = |card: &Card, data: &[u8]| {
                if unsummed {
                    card.inbound_unsummed(PORT, data)
                } else {
                    card.inbound(PORT, data)
                }
            };
            let fault: Fault = format!("receive {word}").parse().expect("a fault");
            card.stage.engine.machine().lock().inject(fault);
            let frame = inbound(&card, &bad);
            let end = send(&mut card, &frame);
            pass_until(&mut card, end - 500);
            let right = there(&card, 0, &bad);
            assert!(early.contains(&right), "{word}: {right} right bytes");
            assert!(card.rests(), "{word}");
            let frame = inbound(&card, &good);
            send(&mut card, &frame);
            let expected = Card::received(cookie, 8000, !unsummed);
            assert_eq!(card.completion(), expected, "{word}");
            assert!(card.memory(0, 8000) == good, "{word}");
        }
    }
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// The wire changes the port to that of another endpoint, whose buffer is written while the frame comes
/// in. That endpoint gets nothing; its buffer is there for a datagram of its own.
#[test]
fn a_changed_port_completes_nothing_of_another_endpoint() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
    let port = PORT ^ 0xFF;
    let mut other = card.other(port);
    let lent = &mut EndpointCard(&mut card.stage.nic);
    let region = card.eudp.register(lent, &mut other, &card.memory);
    let piece = region.expect("a region").segment(32768, 16384);
    other.post(lent, &[piece], 77).expect("it is posted");
    card.post(0, 16384, 1);
    let (bad, good) = (bytes(1, 8000), bytes(2, 8000));
    let fault: Fault = "receive damaged:udp-port".parse().expect("a fault");
    card.stage.engine.machine().lock().inject(fault);
    let frame = card.inbound_unsummed(PORT, &bad);
    let end = send(&mut card, &frame);
    pass_until(&mut card, end - 500);
    assert!(there(&card, 32768, &bad) > 4000, "it was written early");
    assert!(card.rests());
    let poll = |other: &mut Endpoint<_>, card: &mut Card| {
        let polled = other.poll(&mut EndpointCard(&mut card.stage.nic));
        polled.expect("the card is there")
    };
    assert_eq!(poll(&mut other, &mut card), None);
    for (port, data) in [(port, &good), (PORT, &bad)] {
        let frame = card.inbound_unsummed(port, data);
        send(&mut card, &frame);
    }
    assert_eq!(card.completion(), Card::received(1, 8000, false));
    assert!(card.memory(0, 8000) == bad);
    let completed = poll(&mut other, &mut card);
    assert_eq!(completed, Some(Card::received(77, 8000, false)));
    assert!(card.memory(32768, 8000) == good);
    assert_eq!(card.refusals(), Refusals::default());
    card.follow();
}

/// The slice of `cargo xtask soak --eudp` that the tests have.
#[test]
fn damaged_frames_complete_nothing_on_buses_that_stall() {
    let image = std::fs::read(built()).expect("the firmware");
    let report = damage::run(&image, 300, 1, |_| ()).unwrap_or_else(|error| panic!("{error:#}"));
    println!("{report:?}");
    assert!(report.damaged >= 300 && report.good > 50, "{report:?}");
    assert!(report.wrong_sums > 10 && report.early > 20, "{report:?}");
    assert!(report.changed.iter().all(|all| *all > 15), "{report:?}");
}
