//! Message rings: applications, the driver's process, the wire, and handlers to themselves.

use crate::card::{self, Spine, kit};
use crate::page;
use host_driver::dma::DmaMemory;
use host_driver::transport::Transport;
use host_interface::spine::rings::{DRIVER, Dropped};
use spine_linker::endpoint::{Endpoint, HandlerOf, NotSent, Received, RingSizes, doorbell};
use spine_linker::load::{EndpointConfig, EndpointCounts, handlers_of};
use tigon_bench::functions::{self, Run};
use tigon_bench::spine::messages::{self, way};
use tigon2_chip::Cpu;
use tigon2_sim::timing::Parameters;

pub const SIZES: RingSizes = RingSizes {
    slots: 8,
    bulk: 4096,
};

/// A card, and endpoints on it.
pub struct Messages {
    pub spine: Spine,
    pub domain: u32,
    pub endpoints: Vec<(u32, Endpoint<DmaMemory>)>,
}

impl Messages {
    pub fn open(numbers: &[u32]) -> Messages {
        Messages::on(Spine::open(), numbers)
    }

    pub fn on(mut spine: Spine, numbers: &[u32]) -> Messages {
        let domain = spine.load(&card::of_tests("messages"));
        Messages::of_domain(spine, domain, numbers)
    }

    /// To handlers of a domain.
    pub fn of_domain(spine: Spine, domain: u32, numbers: &[u32]) -> Messages {
        let mut messages = Messages {
            spine,
            domain,
            endpoints: Vec::new(),
        };
        for number in numbers {
            messages.add(*number, SIZES, handlers_of(domain));
        }
        messages
    }

    pub fn add(&mut self, number: u32, sizes: RingSizes, handlers: u32) {
        let memory = self.spine.stage.nic.transport().allocate(sizes.bytes());
        let memory = memory.expect("memory");
        let config = EndpointConfig {
            address: memory.iova(),
            sizes,
            handlers,
            interrupts: false,
        };
        let Spine { loader, card, .. } = &mut self.spine;
        let opened = loader.open_endpoint(card, number, &config);
        opened.unwrap_or_else(|error| panic!("{error}"));
        self.endpoints.push((number, Endpoint::new(memory, sizes)));
    }

    /// Closes an endpoint; returns its memory.
    pub fn close(&mut self, number: u32) -> DmaMemory {
        let Spine { loader, card, .. } = &mut self.spine;
        loader.close_endpoint(card, number).expect("it is closed");
        let memory = self.of(number).memory().clone();
        self.endpoints.retain(|(open, _)| *open != number);
        memory
    }

    pub fn of(&mut self, number: u32) -> &mut Endpoint<DmaMemory> {
        let mut endpoints = self.endpoints.iter_mut();
        let found = endpoints.find(|(at, _)| *at == number);
        &mut found.expect("it is open").1
    }

    pub fn handler(&self, handler: u8) -> HandlerOf {
        HandlerOf {
            domain: self.domain,
            handler,
        }
    }

    /// Puts a message into the ring.
    pub fn put(&mut self, number: u32, handler: u8, arguments: &[u32]) {
        let to = self.handler(handler);
        let put = self.of(number).put(to, arguments);
        put.expect("there is room");
    }

    pub fn ring(&mut self, number: u32) {
        let halfword = doorbell(self.of(number).memory()).expect("memory");
        self.ring_with(number, halfword);
    }

    pub fn ring_with(&mut self, number: u32, halfword: u16) {
        let Spine { loader, card, .. } = &mut self.spine;
        let rung = loader.ring_endpoint(card, number, halfword);
        rung.expect("the card is there");
    }

    pub fn send(&mut self, number: u32, handler: u8, arguments: &[u32]) {
        self.put(number, handler, arguments);
        self.ring(number);
    }

    pub fn run(&mut self, cycles: u64) {
        self.spine.card.machine.lock().run(cycles);
    }

    /// The next message for an endpoint, as soon as it is there.
    pub fn next(&mut self, number: u32) -> Option<Received> {
        for _ in 0..200 {
            if let Some(received) = self.of(number).take().expect("memory") {
                return Some(received);
            }
            self.run(500);
        }
        None
    }

    pub fn arguments(&mut self, number: u32) -> Vec<u32> {
        self.next(number).expect("a message").arguments
    }

    pub fn counts(&mut self, number: u32) -> EndpointCounts {
        let Spine { loader, card, .. } = &mut self.spine;
        let counts = loader.endpoint_counts(card, number);
        counts.expect("the card is there")
    }
}

fn words(count: u32, seed: u32) -> Vec<u32> {
    (0..count)
        .map(|n| (n ^ seed).wrapping_mul(0x9E37_79B9))
        .collect()
}

#[test]
fn a_handler_answers_an_application_in_its_ring() {
    let mut messages = Messages::open(&[5]);
    for count in [0, 1, 17, 60, 3, 60, 60, 2, 9, 1] {
        messages.send(5, 0, &words(count, 7));
        let answer = messages.next(5).expect("an answer");
        assert_eq!(answer.from, messages.handler(0));
        assert_eq!(answer.arguments, words(count, 7));
        messages.ring(5);
    }
    // A run is counted when it is over, behind its answer.
    messages.run(5000);
    let counts = messages.counts(5);
    assert_eq!(
        (counts.fetched, counts.delivered, counts.sent),
        (10, 10, 10)
    );
    assert_eq!(counts.dropped, [0; Dropped::ALL.len()]);
}

/// Each comes alone, or some together, at all moments between two looks of CPU B's: CPU A looks for
/// the first one while it arrives.
#[test]
fn messages_run_whole_and_once_as_they_arrive() {
    let mut messages = Messages::on(Spine::timed("default"), &[10]);
    let mut sent = 0;
    for round in 0..200u32 {
        messages.run(u64::from(round * 37 % 1000));
        let count = 1 + round % 3;
        let values: Vec<_> = (0..count).map(|number| words(5 + number, round)).collect();
        for value in &values {
            messages.put(10, 0, value);
        }
        messages.ring(10);
        for value in &values {
            assert_eq!(&messages.arguments(10), value, "round {round}");
        }
        messages.ring(10);
        sent += count;
    }
    // The last answer leaves before its message is counted.
    messages.run(10_000);
    let counts = messages.counts(10);
    assert_eq!((counts.fetched, counts.delivered), (sent, sent));
    assert_eq!(counts.dropped.iter().sum::<u32>(), 0);
}

#[test]
fn all_endpoints_have_rings_of_their_own() {
    let numbers: Vec<u32> = (0..64).collect();
    let mut messages = Messages::open(&numbers);
    for round in 0..3 {
        for number in &numbers {
            messages.put(*number, 0, &words(3, number << 8 | round));
        }
        for number in &numbers {
            messages.ring(*number);
        }
        for number in &numbers {
            assert_eq!(messages.arguments(*number), words(3, number << 8 | round));
        }
    }
}

#[test]
fn what_no_handler_may_get_is_dropped_and_counted() {
    let mut messages = Messages::open(&[7]);
    messages.add(8, SIZES, 0);
    // For no application; not there; another domain's; not granted.
    messages.send(7, 6, &[1]);
    messages.send(7, 3, &[1]);
    messages.put(7, 0, &[2]);
    messages.ring(7);
    messages.send(8, 0, &[3]);
    assert_eq!(messages.arguments(7), [2]);
    messages.run(20_000);
    let mut dropped = [0; Dropped::ALL.len()];
    dropped[Dropped::NotAllowed as usize] = 2;
    let counts = messages.counts(7);
    assert_eq!((counts.fetched, counts.delivered), (3, 1));
    assert_eq!(counts.dropped, dropped);
    dropped[Dropped::NotAllowed as usize] = 1;
    assert_eq!(messages.counts(8).dropped, dropped);
    // A handler that nobody has installed, in a domain that is not loaded.
    messages.add(9, SIZES, handlers_of(3));
    let to = HandlerOf {
        domain: 3,
        handler: 1,
    };
    messages.of(9).put(to, &[]).expect("there is room");
    messages.ring(9);
    messages.run(20_000);
    let counts = messages.counts(9);
    assert_eq!(counts.dropped[Dropped::NoHandler as usize], 1);
}

#[test]
fn a_ring_is_judged_word_by_word() {
    let mut messages = Messages::open(&[3]);
    // A doorbell beyond the credit.
    messages.ring_with(3, 9);
    messages.run(20_000);
    let counts = messages.counts(3);
    assert_eq!(counts.dropped[Dropped::BeyondCredit as usize], 1);
    assert_eq!(counts.fetched, 0);
    // Messages that nobody has written: no serial, then more words and data than there are.
    messages.ring_with(3, 1);
    messages.run(20_000);
    assert_eq!(messages.counts(3).dropped[Dropped::Malformed as usize], 1);
    let memory = messages.of(3).memory().clone();
    for (slot, header) in [
        (1, [61 << 16, 0, 0, 2]),
        (2, [0, 4096 - 8, 16, 3]),
        (3, [0, 4, 8, 4]),
        (4, [0, u32::MAX - 7, 16, 5]),
        (5, [0, 0, 1537, 6]),
        (6, [0xFFFF_FFFF, 0, 0, 7]),
        (7, [0xFFFF, 0, 0, 9]),
    ] {
        memory
            .write_words(256 + 256 * slot + 240, &header)
            .expect("memory");
    }
    messages.ring_with(3, 8);
    messages.run(50_000);
    let counts = messages.counts(3);
    assert_eq!(counts.dropped[Dropped::Malformed as usize], 8);
    assert_eq!((counts.fetched, counts.delivered), (8, 0));
}

#[test]
fn an_endpoint_that_takes_nothing_gets_no_more_than_it_has_room_for() {
    let mut messages = Messages::open(&[1, 2]);
    for number in 0..12 {
        messages.send(1, 0, &[number]);
        messages.run(20_000);
    }
    assert_eq!(messages.spine.counters(messages.domain)[0], 4, "refused");
    assert_eq!(messages.counts(1).sent, 8);
    // The other one is served as ever.
    messages.send(2, 0, &[77]);
    assert_eq!(messages.arguments(2), [77]);
    for number in 0..8 {
        assert_eq!(messages.arguments(1), [number]);
    }
    messages.ring(1);
    messages.send(1, 0, &[99]);
    assert_eq!(messages.arguments(1), [99]);
    // Taken more than there was: no credit, and nothing is written.
    messages.ring_with(1, 0xFF00 | 13);
    messages.send(2, 0, &[78]);
    assert_eq!(messages.arguments(2), [78]);
}

#[test]
fn a_full_ring_says_so() {
    let mut messages = Messages::open(&[4]);
    let to = messages.handler(0);
    for number in 0..8 {
        messages.put(4, 0, &[number]);
    }
    assert!(matches!(messages.of(4).put(to, &[]), Err(NotSent::Full)));
    assert!(matches!(
        messages.of(4).put(to, &[0; 61]),
        Err(NotSent::TooLong)
    ));
    messages.ring(4);
    for number in 0..8 {
        assert_eq!(messages.arguments(4), [number]);
    }
    messages.of(4).put(to, &[]).expect("there is room again");
}

#[test]
fn long_work_is_a_sequence_of_runs() {
    let mut messages = Messages::open(&[0, 9]);
    messages.send(0, 1, &[100, DRIVER]);
    messages.send(9, 1, &[50]);
    // Others have their turn meanwhile.
    messages.send(9, 0, &[5]);
    assert_eq!(messages.arguments(9), [5]);
    assert_eq!(messages.arguments(9).len(), 1, "of 50 runs");
    assert_eq!(messages.arguments(0).len(), 1, "of 100 runs");
    let domain = messages.domain;
    let runs = messages
        .spine
        .count(domain, host_interface::spine::HandlerCount::Runs);
    assert_eq!(runs, 101 + 51 + 1);
    assert_eq!(messages.spine.counters(domain)[1], 0, "no post was refused");
}

#[test]
fn data_are_there_when_the_handler_runs() {
    let mut messages = Messages::open(&[6]);
    let to = messages.handler(4);
    for (offset, count) in [(0, 4), (8, 1536), (2048, 61), (4096 - 8, 8), (0, 1)] {
        let data: Vec<u8> = (0..count).map(|n| (n * 7 + offset) as u8).collect();
        let put = messages.of(6).put_bulk(to, &[1], offset, &data);
        put.expect("there is room");
        messages.ring(6);
        let words = data.chunks(4).step_by(16).map(|bytes| {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            u32::from_be_bytes(word)
        });
        let whole = count / 4 * 4 == count;
        let sum = words.fold(0, |sum: u32, word| sum.wrapping_add(word));
        let answer = messages.arguments(6);
        assert_eq!(answer[0], count);
        // Behind the last byte stands what stood there before.
        assert!(!whole || answer[1] == sum, "{count} bytes at {offset}");
    }
    assert!(matches!(
        messages.of(6).put_bulk(to, &[], 4096 - 8, &[0; 9]),
        Err(NotSent::TooLong)
    ));
    // Nothing of the pool is left behind.
    let ledger = messages.spine.loader.ledger(&mut messages.spine.card);
    assert_eq!(ledger.expect("the card is there").0, [0; 4]);
}

#[test]
fn a_run_that_is_cut_off_has_sent_nothing() {
    let mut messages = Messages::open(&[0, 2]);
    messages.send(2, 5, &[]);
    messages.run(200_000);
    let counts = messages.counts(2);
    assert_eq!(counts.dropped[Dropped::Cut as usize], 1);
    assert_eq!(messages.next(0), None);
    assert_eq!(messages.counts(0).sent, 0);
    messages.send(2, 0, &[4]);
    assert_eq!(messages.arguments(2), [4]);
}

#[test]
fn a_message_goes_over_the_wire_to_another_endpoint() {
    use integration_tests::Engine;
    let mut messages = Messages::open(&[2, 5]);
    let domain = messages.domain;
    messages
        .spine
        .guards(&[spine_linker::load::Guard::messages(domain)]);
    let station = messages.spine.stage.nic.station();
    let high = u32::from(u16::from_be_bytes([station[0], station[1]]));
    let low = u32::from_be_bytes([station[2], station[3], station[4], station[5]]);
    for count in [0, 1, 20, 55] {
        let mut arguments = vec![high, low, domain, 3, 6];
        arguments.extend(words(count, 9));
        messages.send(2, 2, &arguments);
        let frame = messages.spine.stage.wire();
        assert_eq!(frame[..6], station);
        assert_eq!(frame[6..12], station);
        assert_eq!(frame[12..16], [0x88, 0xB6, 0, count as u8 + 1]);
        assert_eq!(frame[16..20], [0, 0, domain as u8, 3]);
        assert!(frame.len() >= 60);
        // It is the only card here: what it has sent comes back to it.
        messages.spine.stage.engine.send(&frame);
        assert_eq!(messages.arguments(5), words(count, 9));
        messages.ring(5);
    }
    // Not for the wire; more words than there are; another domain.
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&station);
    frame[12..20].copy_from_slice(&[0x88, 0xB6, 0, 1, 0, 0, domain as u8, 0]);
    messages.spine.stage.engine.send(&frame);
    frame[14..16].copy_from_slice(&[0, 60]);
    frame[19] = 3;
    messages.spine.stage.engine.send(&frame);
    messages.run(50_000);
    let dropped = host_interface::spine::DomainCount::Dropped;
    assert_eq!(messages.spine.count(domain, dropped), 2);
    frame[18] = 2;
    messages.spine.stage.engine.send(&frame);
    assert_eq!(messages.spine.stage.receive(1), [frame], "the host's");
}

#[test]
fn posts_of_a_domain_that_is_gone_run_nothing() {
    let mut messages = Messages::open(&[1]);
    for _ in 0..4 {
        messages.send(1, 1, &[1_000_000]);
    }
    messages.run(5000);
    let Spine { loader, card, .. } = &mut messages.spine;
    loader.unload(card, messages.domain).expect("it is loaded");
    let again = messages.spine.load(&card::of_tests("messages"));
    assert_eq!(again, messages.domain, "it has the same number");
    messages.run(20_000);
    let runs = host_interface::spine::HandlerCount::Runs;
    assert_eq!(messages.spine.count(again, runs), 0);
}

/// `cargo xtask trace --messages`: a message's way there and back.
#[test]
fn a_messages_way_is_listed() {
    let way = way::record(kit()).unwrap_or_else(|error| panic!("{error:#}"));
    let [there, back] = way.times().expect("a handler runs");
    assert!(
        (6.0..20.0).contains(&there) && back < 30.0,
        "{there}, {back}"
    );
    // Each CPU is in one function or another all the time, and those of the way are among them.
    for cpu in [Cpu::A, Cpu::B] {
        let mut at = None;
        for run in way.runs.iter().filter(|run| run.of == (0, cpu)) {
            assert_eq!(run.time.start, at.unwrap_or(run.time.start), "{run:?}");
            at = Some(run.time.end);
        }
        assert_eq!(at, Some(way.end));
    }
    let begins = [
        (Cpu::B, "events::bell"),
        (Cpu::A, "Rings>::look_for_next"),
        (Cpu::A, functions::EXTENSION),
        (Cpu::A, "Outgoing>::commit"),
    ]
    .map(|(cpu, part)| {
        let is_of = |run: &&Run| run.of.1 == cpu && run.function.contains(part);
        let first = way.runs.iter().find(is_of);
        first.unwrap_or_else(|| panic!("{part}")).time.start
    });
    assert!(begins.is_sorted(), "{begins:?}");
}

/// Figures of docs/spine.md, in the card's time.
#[test]
fn messages_take_what_the_page_says() {
    let measured = messages::measure(kit(), &Parameters::default()).expect("they come through");
    println!("{measured:?}");
    let [of_four, of_eight] = measured.to_handler_in_turn;
    let most = page::measured("doorbell to handler, at most");
    assert!(measured.to_handler_at_most <= most, "{measured:?}");
    for (row, value) in [
        ("doorbell to handler", measured.to_handler),
        ("of four that take turns", of_four),
        ("of eight that take turns", of_eight),
        ("there and back", measured.there_and_back),
        ("one way, one endpoint", measured.one_way),
        ("one way, 64 endpoints", measured.one_way_of_all),
        ("answered", measured.answered),
    ] {
        let said = page::measured(row);
        let ratio = value / said;
        assert!((0.95..1.05).contains(&ratio), "{row}: {value}, {said}");
    }
}
