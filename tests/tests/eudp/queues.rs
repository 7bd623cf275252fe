//! Two-level queues: what the process pushes and what the card pulls.

use crate::card::{Card, PEER_AT, PEER_PORT, PORT, bytes, data};
use eudp::{
    Card as _, Checksum, Completion, CutThrough, EndpointConfig, Memory, PUSHED, SLOTS, Segment,
    Status,
};
use host_driver::nic::EndpointCard;
use host_interface::eudp::{DescriptorWord, send_slot};
use host_interface::extension::Extension;
use integration_tests::{Engine, Sim};
use std::time::Duration;
use tigon2_chip::bits::CpuState;
use tigon2_chip::{Cpu, Register};
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;

fn card() -> Card {
    Card::timed(CutThrough::OfBus, Checksum::None, 1500)
}

fn pulls(card: &mut Card) -> u32 {
    let mut lent = EndpointCard(&mut card.stage.nic);
    card.eudp.pulls(&mut lent).expect("the card is there")
}

/// Queues datagrams of 4 bytes with their numbers, rings once.
fn burst(card: &mut Card, numbers: std::ops::Range<u32>) {
    let peer = (card.peer, PEER_PORT);
    for number in numbers {
        let at = (number % 1024) * 64;
        let sent = number.to_be_bytes();
        card.memory
            .write_bytes(at as usize, &sent)
            .expect("it fits");
        let piece = card.region.segment(at, 4);
        card.with(|endpoint, lent| endpoint.queue(lent, peer, &[piece], number))
            .expect("it is posted");
    }
    card.with(|endpoint, lent| endpoint.submit(lent))
        .expect("the card is there");
}

/// Sees `numbers` leave and be completed, in their order.
fn leave(card: &mut Card, numbers: std::ops::Range<u32>) {
    for number in numbers {
        assert_eq!(data(&card.wire().bytes), number.to_be_bytes());
        let done = Completion::Sent {
            cookie: number,
            status: Status::Done,
        };
        assert_eq!(card.completion(), done);
        if number % 64 == 0 {
            // The card remembers so many transitions.
            card.follow();
        }
    }
}

/// CPU A is held up where it has written a completion: the process sees it, pushes a descriptor into
/// that slot, and leaves others to be pulled. They stay out of the slots behind it, from which
/// nothing was completed yet.
#[test]
fn nothing_is_pulled_into_a_slot_that_is_not_completed() {
    let config = EndpointConfig {
        checksum: Checksum::None,
        pushed: SLOTS,
        ..EndpointConfig::default()
    };
    let mut card = Card::with_config(Sim::of(Board::default()), CutThrough::Off, config);
    let machine = card.stage.engine.machine().clone();
    burst(&mut card, 0..SLOTS);
    let first = (0..100_000).find_map(|_| {
        machine.lock().run(1);
        card.with(|endpoint, lent| endpoint.poll(lent).ok().flatten())
    });
    let state = Register::cpu_state(Cpu::A).offset();
    let halt = CpuState::new().with_halt(true).into_bits();
    machine.lock().bar_write(state, halt);
    let sent = |cookie| Completion::Sent {
        cookie,
        status: Status::Done,
    };
    assert_eq!(first, Some(sent(0)));
    machine.lock().run(100_000);
    burst(&mut card, SLOTS..SLOTS + 6);
    machine.lock().run(100_000);
    machine.lock().bar_write(state, 0);
    for number in 1..SLOTS + 6 {
        assert_eq!(card.completion(), sent(number));
    }
    for number in 0..SLOTS + 6 {
        assert_eq!(data(&card.wire().bytes), number.to_be_bytes());
    }
    card.follow();
}

/// More at once than the slots, and than the queue in the process's memory has room for: the card
/// pulls eight at a time or more, and each leaves once.
#[test]
fn a_burst_is_pulled() {
    let mut card = card();
    burst(&mut card, 0..600);
    leave(&mut card, 0..600);
    assert_eq!(card.endpoint.sending(), 0);
    let pulls = pulls(&mut card);
    println!("{pulls} transfers for 592 descriptors");
    assert!((37..=80).contains(&pulls), "{pulls}");
    // Few at a time are pushed.
    burst(&mut card, 600..608);
    leave(&mut card, 600..608);
    assert_eq!(self::pulls(&mut card), pulls);
    card.follow();
}

/// Bursts of any length, at any time: pushed and pulled descriptors follow each other.
#[test]
fn pushed_and_pulled_descriptors_keep_their_order() {
    let mut card = card();
    let (mut posted, mut left) = (0, 0);
    for round in 0_u32..60 {
        let more = [1, 7, 8, 9, 3, 30, 2, 17][round as usize * 5 % 8];
        burst(&mut card, posted..posted + more);
        posted += more;
        let some = (posted - left).min(1 + round * 7 % 23);
        leave(&mut card, left..left + some);
        left += some;
    }
    leave(&mut card, left..posted);
    assert!(pulls(&mut card) > 10);
    card.follow();
}

/// Memory for more datagrams than there are slots: each is filled in its turn.
#[test]
fn buffers_are_pulled() {
    let mut card = card();
    for number in 0..100 {
        card.post(number * 2048, 2048, number);
    }
    let frames: Vec<_> = (0..100)
        .map(|number| card.inbound(PORT, &bytes(number, 200)))
        .collect();
    for frame in &frames {
        card.stage.engine.send(frame);
    }
    for number in 0..100 {
        assert_eq!(card.completion(), Card::received(number, 200, true));
        assert!(card.memory(number as usize * 2048, 200) == bytes(number, 200));
    }
    let pulls = pulls(&mut card);
    assert!((6..=15).contains(&pulls), "{pulls}");
    assert_eq!(card.refusals(), eudp::Refusals::default());
    card.follow();
}

/// A process whose queue is gone has its descriptors refused, and the card goes on.
#[test]
fn a_queue_that_cannot_be_read_is_refused() {
    let mut card = card();
    let machine = card.stage.engine.machine().clone();
    let peer = (card.peer, PEER_PORT);
    let piece: Segment = card.region.segment(0, 4);
    for number in 0..16 {
        card.with(|endpoint, lent| endpoint.queue(lent, peer, &[piece], number))
            .expect("it is posted");
    }
    machine.lock().unmap_all();
    machine.lock().map(card.memory.clone());
    card.with(|endpoint, lent| endpoint.submit(lent))
        .expect("the card is there");
    card.stage.engine.pass(Duration::from_millis(1));
    let mut left = 0;
    while card.stage.engine.receive_now().is_some() {
        left += 1;
    }
    assert_eq!(left, PUSHED, "those that were pushed");
    let mut lent = EndpointCard(&mut card.stage.nic);
    let mut word = |at| {
        let mut word = [0];
        lent.read(at, &mut word).expect("the card is there");
        word[0]
    };
    let block = word(Extension::Eudp.nic_address());
    for number in PUSHED..16 {
        let status = block + send_slot(0, number) + DescriptorWord::Status as u32;
        assert_eq!(word(status), Status::BadDescriptor as u32, "{number}");
    }
    card.follow();
}

/// Queues datagrams of 8972 bytes, rings once.
fn long(card: &mut Card, count: u32) {
    let peer = (card.peer, PEER_PORT);
    let piece = card.region.segment(0, 8972);
    card.with(|endpoint, lent| {
        for number in 0..count {
            let queued = endpoint.queue(lent, peer, &[piece], number);
            queued.expect("it is queued");
        }
        endpoint.submit(lent)
    })
    .expect("the card is there");
}

/// While few datagrams wait behind it, each is completed when it has been fetched.
#[test]
fn a_datagram_is_completed_at_once_if_few_wait() {
    let mut card = Card::timed(CutThrough::Off, Checksum::None, 9000);
    // The CPUs copy the code of endpoints into their pads.
    card.stage.engine.pass(Duration::from_millis(1));
    long(&mut card, 6);
    let begun = card.now();
    for number in 0..6 {
        let Completion::Sent { cookie, .. } = card.completion() else {
            panic!("another completion");
        };
        assert_eq!(cookie, number);
        let us = (card.now() - begun) / 1000;
        // The bus brings one in 42 us.
        assert!(us < 80 + 45 * u64::from(number), "{number}: {us} us");
    }
    card.follow();
}

/// The same of an endpoint beside one of whose datagrams many wait.
#[test]
fn a_datagram_is_completed_at_once_beside_a_stream() {
    for before in 0..4 {
        let mut card = Card::timed(CutThrough::Off, Checksum::None, 9000);
        let mut other = card.other(PORT + 1);
        let mut lent = EndpointCard(&mut card.stage.nic);
        let peer = card.eudp.address(&mut lent, &mut other, &PEER_AT);
        let to = (peer.expect("room"), PEER_PORT);
        let region = card.eudp.register(&mut lent, &mut other, &card.memory);
        let piece = region.expect("room").segment(0, 1000);
        card.stage.engine.pass(Duration::from_millis(1));
        long(&mut card, 24);
        let some = Duration::from_micros(100 + 45 * before);
        card.stage.engine.pass(some);
        let begun = card.now();
        let posted = other.send(&mut EndpointCard(&mut card.stage.nic), to, &[piece], 99);
        posted.expect("it is posted");
        let done = loop {
            let mut lent = EndpointCard(&mut card.stage.nic);
            if let Some(done) = other.poll(&mut lent).expect("the card is there") {
                break done;
            }
            card.stage.engine.pass(Duration::from_micros(1));
        };
        let us = (card.now() - begun) / 1000;
        let sent = Completion::Sent {
            cookie: 99,
            status: Status::Done,
        };
        assert_eq!(done, sent);
        // Behind two of the stream's, but not with three more.
        assert!(us < 140, "{us} us");
        card.follow();
    }
}

/// An endpoint that is closed with descriptors on their way: then the card leaves its memory alone.
#[test]
fn an_endpoint_closes_while_descriptors_are_on_their_way() {
    for delay in [0, 1, 2, 3, 5, 8, 13] {
        let mut card = card();
        burst(&mut card, 0..200);
        card.post(0, 1024, 1);
        card.stage.engine.pass(Duration::from_micros(delay));
        let config = *card.endpoint.config();
        let mut lent = EndpointCard(&mut card.stage.nic);
        let again = card
            .eudp
            .open(&mut lent, EndpointConfig { port: 1, ..config });
        let again = again.expect("another endpoint");
        let endpoint = std::mem::replace(&mut card.endpoint, again);
        card.eudp.close(&mut lent, endpoint).expect("it answers");
        card.stage.engine.machine().lock().unmap_all();
        card.stage.engine.pass(Duration::from_millis(1));
        let counts = card.stage.engine.counts();
        assert!(card.stage.nic.card_state().is_ok(), "{counts}");
        card.follow();
    }
}

/// An endpoint that is closed while the last of its datagrams, which is empty, is completed: the
/// card answers at whatever moment that is.
#[test]
fn an_endpoint_closes_while_its_datagrams_are_completed() {
    for delay in 0..100 {
        let parameters = Parameters {
            pci_wr: 2000,
            ..Parameters::default()
        };
        let sim = Sim::timed_by(parameters, 1);
        let mut card = Card::on(sim, CutThrough::OfBus, Checksum::None, 1500);
        let other = card.other(1);
        for number in 0..3 {
            card.post(number * 2048, 2048, number);
        }
        for (number, length) in (0..).zip([400, 1472, 0]) {
            let frame = card.inbound(PORT, &bytes(number, length));
            card.stage.engine.send(&frame);
        }
        card.stage.engine.pass(Duration::from_micros(2 * delay));
        let endpoint = std::mem::replace(&mut card.endpoint, other);
        let mut lent = EndpointCard(&mut card.stage.nic);
        let closed = card.eudp.close(&mut lent, endpoint);
        closed.unwrap_or_else(|error| panic!("after {} us: {error}", 2 * delay));
    }
}

/// Wrong lengths of queues are told before the card is asked.
#[test]
fn queues_have_a_power_of_two_descriptors() {
    let mut card = card();
    let config = *card.endpoint.config();
    let mut lent = EndpointCard(&mut card.stage.nic);
    for descriptors in [0, 4, 100, 1 << 15] {
        let config = EndpointConfig {
            port: 2,
            descriptors,
            ..config
        };
        let refused = card.eudp.open(&mut lent, config);
        assert!(matches!(refused, Err(eudp::EudpError::Descriptors(_))));
    }
    assert!(card.memory.bytes() > 0);
}
