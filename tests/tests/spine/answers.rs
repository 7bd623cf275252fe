//! The card answers by itself: an extension sees a frame, and another goes out.

use crate::card::{self, Spine};
use etherparse::PacketBuilder;
use host_interface::spine::{DomainCount, HandlerCount};
use integration_tests::{Engine, frames};
use spine_linker::load::{Guard, LoadError, Loader};

const HOST: [u8; 4] = [10, 0, 0, 1];
const PEER: [u8; 4] = [10, 0, 0, 2];

pub fn ping(spine: &Spine, number: u16, data: &[u8]) -> Vec<u8> {
    let packet = PacketBuilder::ethernet2(frames::PEER, spine.stage.nic.station())
        .ipv4(PEER, HOST, 64)
        .icmpv4_echo_request(0x5449, number);
    let mut frame = Vec::new();
    packet.write(&mut frame, data).expect("a frame");
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The answer to a ping, by another's code.
pub fn is_answer(answer: &[u8], question: &[u8]) {
    use etherparse::{Icmpv4Type, SlicedPacket, TransportSlice};
    let sliced = |frame| SlicedPacket::from_ethernet(frame).expect("a packet");
    let (asked, answered) = (sliced(question), sliced(answer));
    assert_eq!(answer[..6], question[6..12]);
    assert_eq!(answer[6..12], question[..6]);
    let Some(TransportSlice::Icmpv4(icmp)) = answered.transport else {
        panic!("no ICMP: {answer:x?}");
    };
    let Some(TransportSlice::Icmpv4(request)) = asked.transport else {
        panic!("no ICMP");
    };
    let (Icmpv4Type::EchoReply(reply), Icmpv4Type::EchoRequest(request_header)) =
        (icmp.icmp_type(), request.icmp_type())
    else {
        panic!("no echo: {answer:x?}");
    };
    assert_eq!(reply, request_header);
    assert_eq!(icmp.payload(), request.payload());
    let header = icmp.header();
    let sum = header.icmp_type.calc_checksum(icmp.payload());
    assert_eq!(header.checksum, sum, "ICMP's sum");
    let ip = etherparse::Ipv4HeaderSlice::from_slice(&answer[14..]).expect("a header");
    assert_eq!((ip.source(), ip.destination()), (HOST, PEER));
    assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
}

#[test]
fn the_card_answers_pings_and_the_host_sees_none() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::ours("echo"));
    spine.guards(&[Guard::ip_protocol(domain, 0, 1)]);
    for number in 0..40 {
        let data: Vec<u8> = (0..number * 35).map(|n| (n ^ number) as u8).collect();
        let question = ping(&spine, number, &data);
        spine.stage.engine.send(&question);
        let answer = spine.stage.wire();
        is_answer(&answer, &question);
    }
    assert_eq!(spine.counters(domain)[0], 40);
    let counts = spine.counts(domain);
    assert_eq!(counts.of(HandlerCount::Runs), 40);
    assert_eq!(counts.of(DomainCount::Consumed), 40);
    assert_eq!(counts.of(DomainCount::Transmitted), 40);
    assert_eq!(counts.of(HandlerCount::Overruns), 0);
    assert_eq!(counts.of(HandlerCount::Panics), 0);
    assert_eq!(spine.stage.receive_until_quiet(), Vec::<Vec<u8>>::new());
}

#[test]
fn frames_that_no_guard_wants_pass_as_ever() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::ours("echo"));
    spine.guards(&[Guard::ip_protocol(domain, 0, 1)]);
    let mut sent = Vec::new();
    for number in 0..60 {
        let frame = spine.stage.inbound(number);
        spine.stage.engine.send(&frame);
        sent.push(frame);
        let question = ping(&spine, number as u16, &[7; 100]);
        spine.stage.engine.send(&question);
        let out = spine.stage.outbound(number);
        spine.stage.transmit(&[&out]);
        // One of the host's and one of the card's, in either order.
        let both = [spine.stage.wire(), spine.stage.wire()];
        assert!(both.contains(&out), "{number}");
        let answer = both.iter().find(|frame| **frame != out).expect("another");
        is_answer(answer, &question);
    }
    let mut received = spine.stage.receive(60);
    received.extend(spine.stage.receive_until_quiet());
    assert_eq!(received, sent);
}

/// A frame that is none of the handler's, though the guard wants it, is the host's; it is judged
/// once.
#[test]
fn what_a_handler_leaves_goes_to_the_host() {
    let mut spine = Spine::open();
    let domain = spine.load(&card::ours("echo"));
    spine.guards(&[Guard::any(domain, 0)]);
    let sent: Vec<_> = (0..30).map(|number| spine.stage.inbound(number)).collect();
    for frame in &sent {
        spine.stage.engine.send(frame);
    }
    assert_eq!(spine.stage.receive(30), sent);
    assert_eq!(spine.count(domain, HandlerCount::Runs), 30);
    assert_eq!(spine.count(domain, DomainCount::Consumed), 0);
}

#[test]
fn what_is_unloaded_answers_no_more() {
    let mut spine = Spine::open();
    let free = spine.loader.free();
    for round in 0..5 {
        let domain = spine.load(&card::ours("echo"));
        assert!(spine.loader.free() < free);
        spine.guards(&[Guard::ip_protocol(domain, 0, 1)]);
        let question = ping(&spine, round, b"loaded");
        spine.stage.engine.send(&question);
        is_answer(&spine.stage.wire(), &question);
        let unloaded = spine.loader.unload(&mut spine.card, domain);
        unloaded.expect("it was loaded");
        spine.stage.engine.send(&question);
        assert_eq!(spine.stage.receive(1), [question]);
        assert_eq!(spine.stage.wire_now(), None);
        assert_eq!(spine.loader.free(), free);
    }
}

#[test]
fn other_firmware_loads_nothing() {
    let stage = card::stage(testbed::firmware::Variant::Parallel);
    let mut card = card::Window::new(stage.engine.machine().clone());
    let error = Loader::find(&mut card).expect_err("parallel");
    assert!(matches!(error, LoadError::NoSpine), "{error}");
}
