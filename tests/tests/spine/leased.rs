//! Tests a host whose windows its cards have leased to each other, while packets go between them.

use crate::card::kit;
use host_interface::spine::peer::PeerWord;
use host_interface::spine::{DomainCount, HandlerCount};
use spine_linker::routes::replace;
use std::collections::BTreeSet;
use std::io::IoSlice;
use std::path::Path;
use tigon_bench::spine::card::SpineCard;
use tigon_bench::spine::peers::{self, Pair, Stream};
use tigon_bench::spine::router;
use tigon2_model::is_flow_control;
use tigon2_sim::timing::Parameters;

/// Two cards, packets for the first one, and frames of the second one's host.
struct Traffic {
    pair: Pair,
    station: [u8; 6],
    stream: Stream,
    bytes: usize,
    /// When no more packets come, in nanoseconds.
    end: u64,
    /// Numbers of packets that left the second card, and that the first one's host has.
    left: BTreeSet<u16>,
    host: BTreeSet<u16>,
    /// Frames of the second card's host: queued, and left.
    own: [u32; 2],
}

impl Traffic {
    fn start(bytes: usize, rate: f64, nanoseconds: u64) -> Traffic {
        let pair = Pair::start(kit(), 100, &Parameters::default());
        let pair = pair.unwrap_or_else(|error| panic!("{error:#}"));
        let end = pair.cards[0].machine.lock().now() + nanoseconds;
        Traffic {
            station: pair.cards[0].nic.station(),
            stream: pair.stream(bytes, rate, nanoseconds),
            pair,
            bytes,
            end,
            left: BTreeSet::new(),
            host: BTreeSet::new(),
            own: [0; 2],
        }
    }

    /// A frame of the second card's host.
    fn own_frame(&self, number: u32) -> Vec<u8> {
        let mut frame = vec![0xFF; 12];
        while frame.len() < self.bytes {
            frame.extend(number.to_be_bytes());
        }
        frame.truncate(self.bytes);
        frame
    }

    /// The second card's host sends so many frames.
    fn send(&mut self, count: u32) {
        for _ in 0..count {
            let frame = self.own_frame(self.own[0]);
            let nic = &mut self.pair.cards[1].nic;
            let queued = nic.queue(&[IoSlice::new(&frame)]).expect("a frame");
            self.own[0] += u32::from(queued);
        }
        let nic = &mut self.pair.cards[1].nic;
        nic.submit().expect("the card is there");
    }

    /// Lets time pass; takes what has left and what the first host has received.
    fn pass(&mut self, nanoseconds: u64) {
        let start = self.pair.feed(&mut self.stream);
        while self.pair.feed(&mut self.stream) < start + nanoseconds {
            self.pair.fabric.card(0).pass(10_000);
            self.collect();
        }
    }

    fn collect(&mut self) {
        for card in &mut self.pair.cards {
            card.nic.service().expect("the card is there");
        }
        let received = self.pair.cards[0].nic.receive_batch(256);
        for frame in received.expect("the card is there") {
            let number = u16::from_be_bytes([frame[18], frame[19]]);
            let sent = router::packet(self.station, self.bytes, number);
            assert!(frame == sent, "packet {number} to the host");
            assert!(self.host.insert(number), "packet {number} twice");
        }
        while let Some(frame) = self.pair.cards[1].machine.lock().take_frame() {
            let frame = frame.bytes;
            if is_flow_control(&frame) {
                continue;
            }
            if frame[..6] == [0xFF; 6] {
                assert!(
                    frame == self.own_frame(self.own[1]),
                    "frame {}",
                    self.own[1]
                );
                self.own[1] += 1;
                continue;
            }
            let number = u16::from_be_bytes([frame[18], frame[19]]);
            let sent = router::packet(self.station, self.bytes, number);
            assert!(
                frame.len() == self.bytes && frame[26..] == sent[26..],
                "{number}"
            );
            assert!(self.left.insert(number), "packet {number} twice");
        }
    }

    /// Whatever came has left, has gone to the host, was dropped for want of a room, or was written
    /// to one that was void by then.
    fn settle(&mut self) {
        let now = self.pair.feed(&mut self.stream);
        self.pass(self.end.saturating_sub(now) + 5_000_000);
        assert_eq!(self.own[0], self.own[1], "frames of the second host");
        assert!(self.left.is_disjoint(&self.host));
        let dropped = self.pair.cards[0]
            .counts(self.pair.domain)
            .of(DomainCount::Dropped);
        let sent = self.pair.word(0, PeerWord::Sent);
        let void = sent - self.pair.word(1, PeerWord::Taken);
        let all = self.left.len() + self.host.len() + (dropped + void) as usize;
        assert_eq!(all, self.stream.arrivals.len(), "{dropped}, {void}");
    }
}

/// Meanwhile the host of both cards reads the log, counts and the trace, loads an extension on each,
/// has it run, unloads it, and replaces the table of the router: no packet is lost or written over.
#[test]
fn the_host_does_all_it_does_while_packets_go_between_its_cards() {
    let mut traffic = Traffic::start(1514, 30e3, 25_000_000);
    let container = kit().container(Path::new("tests/extensions/summing"));
    let container = container.unwrap_or_else(|error| panic!("{error:#}"));
    let policy = kit().policy(10, 0).expect("a policy");
    for round in 0..6 {
        traffic.pass(500_000);
        let table = peers::routing_table(100 + round).expect("a table");
        let domain = traffic.pair.domain;
        let SpineCard { loader, window, .. } = &mut traffic.pair.cards[0];
        replace(loader, window, domain, &table).expect("another table");
        for number in 0..2 {
            let card = &mut traffic.pair.cards[number];
            let (domain, _) = card.load(kit(), &container, &policy).expect("it is loaded");
            let sent = card.loader.send(&mut card.window, domain, 0, &[1, 2, 3]);
            sent.expect("it runs");
            traffic.pass(100_000);
            let card = &mut traffic.pair.cards[number];
            assert_eq!(card.counts(domain).of(HandlerCount::Runs), 1, "one run");
            let counted = card.loader.counts(&mut card.window, domain);
            assert_eq!(counted.expect("an answer").of(HandlerCount::Runs), 1);
            card.unload(domain).expect("it is unloaded");
            traffic.pass(100_000);
            let nic = &mut traffic.pair.cards[number].nic;
            let (frames, _) = nic.drain_log().expect("the log");
            assert_eq!(frames.is_empty(), round != 0, "what it said at start, once");
            let statistics = nic.glance().expect("counts");
            assert!(statistics.handlers.total() > 0, "{statistics:?}");
            nic.trace().expect("the trace");
        }
    }
    traffic.settle();
    // No rooms are told of while the second card's CPU A moves code into its pad, and out of it.
    assert!(traffic.host.len() < 100, "{:?}", traffic.host);
}

/// The way between the cards is closed and opened again while packets come, and while the second
/// card's host sends: each packet leaves once or goes to the first card's host, and no frame is
/// written over.
#[test]
fn peers_are_closed_and_opened_again_while_packets_come() {
    for (bytes, rate) in [(60, 60e3), (1514, 60e3)] {
        let mut traffic = Traffic::start(bytes, rate, 80_000_000);
        for round in 0..24 {
            traffic.send(round % 3);
            traffic.pass(130_000 + 17_000 * u64::from(round % 7));
            let before = traffic.left.len();
            assert!(round == 0 || before > 0, "packets go from card to card");
            traffic.pair.close().expect("it is closed");
            if round % 2 == 0 {
                traffic.pass(90_000);
            }
            traffic.pair.open().expect("it is opened");
        }
        let before = traffic.left.len();
        traffic.pass(400_000);
        assert!(traffic.left.len() > before, "after the last opening, too");
        traffic.settle();
        assert!(!traffic.host.is_empty(), "while it was closed");
    }
}

/// The second card's host sends at odd times, while more packets come than go through: rooms become
/// void all the time, and no frame is written over.
#[test]
fn no_frame_of_the_other_cards_host_is_written_over() {
    for bytes in [60, 1514] {
        let mut traffic = Traffic::start(bytes, 100e3, 8_000_000);
        let mut odd = 1u64;
        for _ in 0..100 {
            odd = odd.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            traffic.send((odd >> 62) as u32);
            traffic.pass((odd >> 33) % 130_000);
        }
        traffic.settle();
        assert!(traffic.own[0] > 80 && traffic.left.len() > 100);
        assert!(traffic.pair.word(1, PeerWord::Void) > 300);
    }
}
