//! Tests how the card processes received frames: rings, VLAN tags, checksums; and the cost.

use host_driver::checksum::{self, check};
use host_driver::nic::{ChecksumOffload, JumboRing, Received, Ring};
use host_driver::{Config, Nic};
use integration_tests::{Engine, Stage, frames, stage, stories, stories_beyond};
use std::time::Duration;
use tigon2_chip::Cpu;
use tigon2_model::Board;
use tigon2_sim::SimTransport;

stories!(
    every_ring_has_tags_and_sums,
    an_extended_jumbo_ring_has_tags_and_sums,
    a_damaged_datagram_is_seen_by_its_sum,
);

stories_beyond!(
    every_ring_has_tags_and_sums,
    an_extended_jumbo_ring_has_tags_and_sums,
    a_damaged_datagram_is_seen_by_its_sum,
);

/// Lengths of payloads: those of all rings, even and odd, one below and above each border.
const PAYLOADS: [usize; 14] = [
    0, 1, 17, 18, 19, 57, 58, 59, 1000, 1471, 1472, 1477, 4001, 8972,
];

/// A UDP datagram with its checksums, perhaps tagged.
fn datagram(station: [u8; 6], payload: usize, tag: Option<u16>) -> Vec<u8> {
    let mut frame = [station, frames::PEER].concat();
    if let Some(tag) = tag {
        frame.extend([0x81, 0x00]);
        frame.extend(tag.to_be_bytes());
    }
    frame.extend([0x08, 0x00]);
    let start = frame.len();
    let total = (28 + payload) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 84, 0, 1, 10, 84, 0, 2]);
    let header = !checksum::sum(&frame[start..]);
    frame[start + 10..start + 12].copy_from_slice(&header.to_be_bytes());
    frame.extend([0x30, 0x39, 0x00, 0x07]);
    frame.extend((8 + payload as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload).map(|n| (n * 131 + payload) as u8));
    let pseudo = [0, 17, 0, 0, 10, 84, 0, 1, 10, 84, 0, 2];
    let length = checksum::add(8 + payload as u16, checksum::sum(&pseudo));
    let sum = !checksum::add(checksum::sum(&frame[start + 20..]), length);
    frame[start + 26..start + 28].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Receives one frame with all that the card says of it.
fn take<E: Engine>(stage: &mut Stage<E>) -> Received {
    for _ in 0..500 {
        let mut received = stage.nic.receive_described(1).expect("a good return BD");
        if let Some(received) = received.pop() {
            return received;
        }
        stage.turn();
    }
    panic!("no frame arrived");
}

fn tags_and_sums<E: Engine>(jumbo: JumboRing, offload: ChecksumOffload) {
    let mut stage = Stage::<E>::open_with(Config {
        mtu: 9000,
        jumbo,
        mini: Some(100),
        receive_checksums: offload,
        vlan: true,
        ..Config::default()
    });
    for (number, payload) in PAYLOADS.into_iter().enumerate() {
        for tag in [None, Some(number as u16 + 5)] {
            let sent = datagram(stage.nic.station(), payload, tag);
            stage.engine.send(&sent);
            let received = take(&mut stage);
            let bare = datagram(stage.nic.station(), payload, None);
            assert_eq!(received.vlan, tag);
            assert_eq!(received.bytes[..bare.len()], bare, "{payload} bytes");
            let ring = match sent.len().max(60) {
                ..=100 => Ring::Mini,
                // A tag that is taken off needs no room.
                _ if bare.len() <= 1518 => Ring::Standard,
                _ => Ring::Jumbo,
            };
            assert_eq!(received.ring, ring, "{payload} bytes");
            let verdict = check(&received.bytes, received.checksums, offload);
            assert_eq!(verdict.transport, Some(true), "{payload} bytes");
            assert_eq!(verdict.ip, offload.ip.then_some(true));
        }
    }
}

/// Reference 14, second section 19: as Linux sets the card up.
fn every_ring_has_tags_and_sums<E: Engine>() {
    tags_and_sums::<E>(JumboRing::Normal, ChecksumOffload::LINUX);
}

/// The other convention, with the pseudo-header and the IP header's sum.
fn an_extended_jumbo_ring_has_tags_and_sums<E: Engine>() {
    tags_and_sums::<E>(JumboRing::Extended, ChecksumOffload::FULL);
}

fn a_damaged_datagram_is_seen_by_its_sum<E: Engine>() {
    for offload in [ChecksumOffload::LINUX, ChecksumOffload::FULL] {
        let mut stage = Stage::<E>::open_with(Config {
            receive_checksums: offload,
            ..Config::default()
        });
        let good = datagram(stage.nic.station(), 500, None);
        for place in [60, 300, 541] {
            let mut bad = good.clone();
            bad[place] ^= 0x40;
            stage.engine.send(&bad);
            let received = take(&mut stage);
            assert_eq!(received.bytes, bad);
            let verdict = check(&received.bytes, received.checksums, offload);
            assert_eq!(verdict.transport, Some(false), "byte {place}");
        }
    }
}

/// Instructions of CPU A for each of many frames of a length, the driver's part of the
/// mailboxes and interrupts included, without the idle turns.
fn instructions_a_frame(config: Config, payload: usize) -> u64 {
    const FRAMES: usize = 10_000;
    const BATCH: usize = 50;
    /// How long each measurement takes.
    const NANOSECONDS: u64 = 3_000_000_000;
    /// Instructions of an idle turn of the dispatch loop.
    const IDLE: u64 = 10;
    let transport = SimTransport::power_on(Board::default());
    let machine = transport.machine();
    let mut nic = Nic::probe(transport, config).expect("a card");
    nic.load(&stage::firmware()).expect("a firmware");
    nic.open().expect("an open card");
    nic.wait_link(Duration::from_secs(5)).expect("a link");
    let idle = |nic: &mut Nic<SimTransport>| {
        let word = host_interface::extension::Extension::IdleA.bar_offset();
        u64::from(host_driver::Transport::read(nic.transport(), word).expect("a word"))
    };
    let retired = || machine.lock().cpus().core(Cpu::A).retired();
    let mut measure = |frames: usize| {
        let end = machine.lock().now() + NANOSECONDS;
        let began = (retired(), idle(&mut nic));
        let frame = datagram(nic.station(), payload, None);
        for _ in 0..frames / BATCH {
            for _ in 0..BATCH {
                machine.lock().send_frame(0, frame.clone());
            }
            let mut arrived = 0;
            while arrived < BATCH {
                if nic.wait(Duration::from_millis(1)).expect("a card") {
                    nic.acknowledge().expect("a card");
                }
                arrived += nic.receive_batch(64).expect("frames").len();
                nic.service().expect("a card");
            }
        }
        assert!(machine.lock().now() < end, "the time was too short");
        while machine.lock().now() < end {
            nic.wait(Duration::from_millis(1)).expect("a card");
        }
        retired() - began.0 - IDLE * (idle(&mut nic) - began.1)
    };
    let rest = measure(0);
    let work = measure(FRAMES);
    (work - rest) / FRAMES as u64
}

/// Reference 16: a frame alone costs vendor firmware 675 to 704 instructions, 764 to 779
/// with Linux' checksums, each with an index update, interrupt and mailbox of its own. Here
/// some frames share these; the jumbo frames come too slowly for that.
#[test]
fn a_frame_costs_less_than_with_vendor_firmware() {
    let plain = Config::default();
    let linux = Config {
        mtu: 9000,
        jumbo: JumboRing::Normal,
        mini: Some(100),
        receive_checksums: ChecksumOffload::LINUX,
        vlan: true,
        ..plain
    };
    for (name, config, payload, limit) in [
        ("plain", plain, 1000, 400),
        ("plain, short", plain, 18, 400),
        ("Linux' settings", linux, 1000, 600),
        ("Linux' settings, mini ring", linux, 18, 650),
        ("Linux' settings, jumbo ring", linux, 8972, 1120),
    ] {
        let instructions = instructions_a_frame(config, payload);
        println!("{name}: {instructions}");
        assert!(instructions < limit, "{name}: {instructions}");
    }
}
