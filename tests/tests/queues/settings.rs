//! Tests queues with every setting of frames and rings, and a card whose queues open again and
//! again while frames arrive.

use crate::host::Queues;
use host_driver::nic::{ChecksumOffload, QueueSettings, Received};
use host_driver::{Config, Nic};
use host_interface::queue::{ClassifierKind, HashTypes};
use integration_tests::frames::PEER;
use integration_tests::spy::Spy;
use integration_tests::{Engine, Sim};
use tigon2_sim::workload::knet::random::RandomFrames;

/// A TCP segment to the card, with a tag or without.
fn segment(station: [u8; 6], number: u32, payload: usize, tag: Option<u16>) -> Vec<u8> {
    let source = [10, 0, (number >> 8) as u8, number as u8];
    let builder = etherparse::PacketBuilder::ethernet2(PEER, station);
    let payload: Vec<u8> = (0..payload)
        .map(|at| (at as u32 * 13 + number) as u8)
        .collect();
    let mut frame = Vec::new();
    let builder = builder.ipv4(source, [10, 0, 0, 1], 64);
    let builder = builder.tcp(4000, 80, number, 4096);
    builder.write(&mut frame, &payload).expect("memory");
    if let Some(tag) = tag {
        let [high, low] = tag.to_be_bytes();
        frame.splice(12..12, [0x81, 0x00, high, low]);
    }
    if frame.len() < 60 {
        frame.resize(60, 0);
    }
    frame
}

/// What the host gets of a frame: without its tag if the card strips that.
fn expected(frame: &[u8], tag: Option<u16>, strips: bool) -> (Vec<u8>, Option<u16>) {
    let mut bytes = frame.to_vec();
    if tag.is_some() && strips {
        bytes.drain(12..16);
        return (bytes, tag);
    }
    (bytes, None)
}

/// The one's complement sum of bytes.
fn sum(bytes: &[u8]) -> u16 {
    let halves = bytes.chunks(2).map(|half| {
        let low = half.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([half[0], low]))
    });
    let mut sum: u32 = halves.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

fn check(came: &Received, frame: &[u8], tag: Option<u16>, config: &Config) {
    let (bytes, vlan) = expected(frame, tag, config.vlan);
    assert_eq!((&came.bytes, came.vlan), (&bytes, vlan));
    let by_card = came.checksums.ip.is_some();
    // A tag that stays hides the header.
    let seen = tag.is_none() || config.vlan;
    assert_eq!(by_card, config.receive_checksums.ip && seen);
    if let Some(ip) = came.checksums.ip {
        assert_eq!(ip, sum(&bytes[14..34]), "a header with its checksum");
    }
}

/// MTU, checksums, VLAN tags and the size of the rings, each with each other. More frames than a ring
/// has entries come, so each goes round.
#[test]
fn every_setting_with_every_other() {
    let sums = [ChecksumOffload::NONE, ChecksumOffload::FULL];
    for mtu in [1500, 9000] {
        for (receive_checksums, vlan) in
            sums.iter().flat_map(|sums| [(*sums, false), (*sums, true)])
        {
            let config = Config {
                mtu,
                receive_checksums,
                vlan,
                ..Config::default()
            };
            for entries in [64, 128, 256, 512] {
                let mut settings = QueueSettings::new(2);
                settings.entries = entries;
                let mut card = Queues::<Sim>::open_with(config, &settings);
                round_the_rings(&mut card, &config, entries);
            }
        }
    }
}

fn round_the_rings(card: &mut Queues<Sim>, config: &Config, entries: u32) {
    const BURST: u32 = 16;
    let longest = usize::from(config.mtu) - 40;
    let rounds = 2 * (entries + entries / 4) / BURST + 1;
    let mut went = [0; 2];
    for round in 0..rounds {
        let sent: Vec<_> = (0..BURST)
            .map(|at| {
                let number = round * BURST + at;
                let payload = [0, 11, 600, longest][at as usize % 4];
                let tag = (at % 3 == 1).then_some(0x2000 | number as u16 & 0xFFF);
                (segment(card.station, number, payload, tag), tag)
            })
            .collect();
        for (frame, _) in &sent {
            card.engine.send(frame);
        }
        let came = card.receive(sent.len());
        for (queue, frames) in came.iter().enumerate() {
            went[queue] += frames.len() as u32;
        }
        let mut came: Vec<_> = came.into_iter().flatten().collect();
        // Both queues together, in the order of their numbers.
        let number = |bytes: &[u8], tagged: bool| {
            let at = if tagged { 42 } else { 38 };
            u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
        };
        came.sort_by_key(|frame| number(&frame.bytes, frame.bytes[12..14] == [0x81, 0]));
        assert_eq!(came.len(), sent.len());
        for (came, (frame, tag)) in came.iter().zip(&sent) {
            check(came, frame, *tag, config);
        }
    }
    assert!(went.iter().all(|frames| *frames > entries / 4), "{went:?}");
    let counters = card.control.queue_counters().expect("the card is there");
    let dropped: u32 = counters.iter().map(|queue| queue.dropped()).sum();
    assert_eq!(dropped, 0);
}

/// Closes and opens the queues, or resets the card, while frames arrive; then each ring has all its
/// buffers.
fn open_again(times: u32) {
    const ENTRIES: u32 = 64;
    let (engine, transport) = Sim::start();
    let (spy, shared) = Spy::on(transport);
    let mut nic = Nic::probe(spy, Config::default()).expect("a card");
    nic.load(&Sim::firmware()).expect("good firmware");
    let mut settings = QueueSettings::new(4);
    settings.entries = ENTRIES;
    settings.classification.hash_types = HashTypes::ALL;
    let mut card = Queues::open_on(nic, engine, &settings);
    let mut random = RandomFrames::new(3);
    let mut allocations = 0;
    for time in 0..times {
        // Of these nobody takes one: they are on their way, in rings, or dropped when it closes.
        for _ in 0..1 + time % 70 {
            let frame = card.inbound(random.frame());
            card.engine.send(&frame);
        }
        if time % 3 == 0 {
            card.turn();
        }
        let (mut nic, engine) = card.join();
        if time % 8 == 7 {
            nic.recover().expect("the card is well");
        } else {
            nic.close().expect("a card in queue mode");
        }
        let kinds = [ClassifierKind::Toeplitz, ClassifierKind::SourceAddress];
        let settings = settings.with_classifier(kinds[time as usize % 2]);
        card = Queues::open_on(nic, engine, &settings);
        // What was still on the wire comes first.
        card.turn();
        drain(&mut card);
        let frames: Vec<_> = (0..20).map(|_| card.inbound(random.frame())).collect();
        for frame in &frames {
            card.engine.send(frame);
        }
        let came: usize = card.receive(frames.len()).iter().map(Vec::len).sum();
        assert_eq!(came, frames.len(), "time {time}");
        if time == 8 {
            allocations = shared.allocations();
        }
    }
    // A ring without a buffer would drop here.
    let single = settings.with_classifier(ClassifierKind::Single);
    card.control
        .set_classification(&single.classification)
        .expect("a classifier");
    for _ in 0..4 * ENTRIES / 16 {
        for _ in 0..16 {
            let frame = card.inbound(random.frame());
            card.engine.send(&frame);
        }
        assert_eq!(card.receive(16).iter().map(Vec::len).sum::<usize>(), 16);
    }
    assert_eq!(shared.allocations(), allocations, "memory is used again");
}

fn drain<T: host_driver::Transport>(card: &mut Queues<Sim, T>) {
    loop {
        let mut came = 0;
        for queue in &mut card.receive {
            came += queue.receive_described(64).expect("a queue").len();
            queue.rearm().expect("the card is there");
        }
        if came == 0 {
            return;
        }
        card.turn();
    }
}

#[test]
fn queues_open_again_while_frames_arrive() {
    open_again(24);
}

/// `cargo test --release -p integration-tests --test queues -- --ignored a_thousand_times`
#[test]
#[ignore = "takes minutes"]
fn queues_open_again_a_thousand_times() {
    open_again(1000);
}
