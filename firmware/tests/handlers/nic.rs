//! Tests ordinary traffic and settings with the driver itself on the native handlers.

use crate::machine::{MAC, NativeCard, PEER, frame};
use host_driver::nic::{
    ChecksumOffload, MulticastForm, Received, SendOptions, SendRingPlace, SendRingSize,
};
use host_driver::{Config, Nic};
use host_interface::bd::destination as kind;
use host_interface::image::{INTERFACE_VERSION, Image};
use std::io::IoSlice;
use std::time::Duration;
use tigon2_model::{Board, Reception};

/// As long as a driver waits for what must come, on the card's clock.
const SOON: Duration = Duration::from_millis(5);

/// The driver with an open card whose link is up.
pub fn open(config: Config) -> Nic<NativeCard> {
    let card = NativeCard::new(Board::default());
    card.bench().card.set_mac_address(MAC);
    let mut nic = Nic::probe(card, config).expect("a card");
    // The handlers are in this process; the file only has to be one.
    let code = [0; 16];
    let image = Image::new(INTERFACE_VERSION, 0x4000, 0x4000, &code).expect("an image");
    let file = [image.header().as_slice(), image.code()].concat();
    nic.load(&file).expect("firmware that starts");
    nic.open().expect("firmware that takes commands");
    nic.wait_link(Duration::from_secs(5)).expect("a link");
    nic
}

/// Queues a frame in pieces; waits for room if the ring is full.
fn queue(nic: &mut Nic<NativeCard>, pieces: &[&[u8]], options: SendOptions) {
    let pieces: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    while !nic.queue_as(&pieces, options).expect("a good frame") {
        nic.submit().expect("a card");
        nic.wait(SOON).expect("a card");
        nic.service().expect("good indices");
    }
}

/// Submits what is queued and waits until it has left.
fn flush(nic: &mut Nic<NativeCard>) {
    nic.submit().expect("a card");
    nic.drain(SOON).expect("all sent");
}

/// A frame from the wire.
fn arrive(nic: &mut Nic<NativeCard>, frame: &[u8]) -> Reception {
    let card = nic.transport();
    let reception = card.bench().receive(frame);
    card.settle();
    reception
}

/// What the driver receives within some time, with the card's report of each frame.
fn described(nic: &mut Nic<NativeCard>) -> Vec<Received> {
    let mut frames = Vec::new();
    while nic.wait(SOON).expect("a card") {
        nic.service().expect("good indices");
        let more = nic.receive_described(u32::MAX);
        frames.extend(more.expect("good return BDs"));
    }
    frames
}

/// The same without the reports.
fn received(nic: &mut Nic<NativeCard>) -> Vec<Vec<u8>> {
    let frames = described(nic).into_iter();
    frames.map(|frame| frame.bytes).collect()
}

/// What the card says of the destination of a frame for an address, if the frame reaches the host.
fn destination(nic: &mut Nic<NativeCard>, address: [u8; 6]) -> Option<u8> {
    let sent = frame(address, PEER, 60, 1);
    let taken = arrive(nic, &sent) == Reception::Accepted;
    let described = described(nic);
    assert!(described.len() <= usize::from(taken));
    let frame = described.first()?;
    assert_eq!(frame.bytes, sent);
    Some(frame.flags.destination())
}

/// Whether a frame for an address reaches the host.
pub fn takes(nic: &mut Nic<NativeCard>, address: [u8; 6]) -> bool {
    destination(nic, address).is_some()
}

/// Reference 6.4: any alignment and length of fragments; 12, 13: each size of ring, in the host's
/// memory or in the card's, goes round.
#[test]
fn frames_go_out_byte_for_byte_in_any_pieces_and_ring() {
    let rings = [
        (SendRingSize::Entries128, SendRingPlace::Host),
        (SendRingSize::Entries256, SendRingPlace::Host),
        (SendRingSize::Entries512, SendRingPlace::Host),
        (SendRingSize::Entries128, SendRingPlace::Card),
        (SendRingSize::Entries512, SendRingPlace::Card),
    ];
    for (send_ring, send_ring_place) in rings {
        let mut nic = open(Config {
            send_ring,
            send_ring_place,
            ..Config::default()
        });
        let mut all = Vec::new();
        for seed in 0..send_ring.entries() * 3 {
            let sent = frame(PEER, MAC, 60 + (seed as usize * 37) % 1450, seed);
            let (first, rest) = sent.split_at(1 + seed as usize % 50);
            queue(&mut nic, &[first, rest], SendOptions::default());
            all.push(sent);
            if seed % 11 == 10 {
                nic.submit().expect("a card");
            }
        }
        flush(&mut nic);
        assert_eq!(nic.send_outstanding(), 0);
        let wire = &nic.transport().wire;
        assert_eq!(wire.len(), all.len());
        assert!(
            *wire == all,
            "order and bytes, {send_ring:?} {send_ring_place:?}"
        );
    }
}

/// Reference 14: the rings go round, with every frame different.
#[test]
fn frames_come_in_byte_for_byte() {
    let mut nic = open(Config::default());
    let (mut all, mut got) = (Vec::new(), Vec::new());
    for seed in 0..3 * 512 {
        let sent = frame(MAC, PEER, 60 + (seed as usize * 41) % 1450, seed);
        assert_eq!(arrive(&mut nic, &sent), Reception::Accepted, "{seed}");
        all.push(sent);
        if seed % 13 == 12 {
            got.extend(received(&mut nic));
        }
    }
    got.extend(received(&mut nic));
    assert_eq!(got.len(), all.len());
    assert!(got == all, "order and bytes");
    let drops = nic.firmware_drops().expect("counts");
    assert_eq!(drops.total(), 0, "{drops:?}");
}

/// Jumbo frames both ways, and the mini ring.
#[test]
fn every_ring_is_used() {
    let mut nic = open(Config {
        mtu: 9000,
        mini: Some(200),
        ..Config::default()
    });
    let mut sent = Vec::new();
    for (seed, length) in (0..).zip([60, 200, 201, 1514, 1519, 5000, 9014]) {
        let out = frame(PEER, MAC, length, seed);
        queue(&mut nic, &[&out], SendOptions::default());
        flush(&mut nic);
        sent.push(out);
        let into = frame(MAC, PEER, length, seed + 100);
        arrive(&mut nic, &into);
        assert_eq!(received(&mut nic), [into], "{length}");
    }
    assert!(nic.transport().wire == sent);
}

/// Reference 10.3, 10.4: what the filter lets in, exactly.
#[test]
fn the_filter_follows_the_driver() {
    let group = [0x01, 0x00, 0x5E, 0x00, 0x00, 0x05];
    let stranger = [0x00, 0x60, 0xCF, 0x99, 0x99, 0x99];
    for multicast in [MulticastForm::Extended, MulticastForm::Gencom] {
        let mut nic = open(Config {
            multicast,
            ..Config::default()
        });
        let broadcast = destination(&mut nic, [0xFF; 6]);
        assert_eq!(broadcast, Some(kind::BROADCAST));
        assert_eq!(destination(&mut nic, MAC), Some(kind::UNICAST));
        assert!(!takes(&mut nic, group) && !takes(&mut nic, stranger));
        nic.add_multicast(group).expect("a group");
        assert_eq!(destination(&mut nic, group), Some(kind::MULTICAST));
        assert!(!takes(&mut nic, stranger));
        nic.delete_multicast(group).expect("a group");
        assert!(!takes(&mut nic, group));
        nic.set_all_multicast(true).expect("a card");
        assert!(takes(&mut nic, group) && !takes(&mut nic, stranger));
        nic.set_all_multicast(false).expect("a card");
        nic.set_promiscuous(true).expect("a card");
        assert!(takes(&mut nic, stranger));
        nic.set_promiscuous(false).expect("a card");
        assert!(!takes(&mut nic, group) && !takes(&mut nic, stranger));
        nic.set_station(stranger).expect("a station address");
        assert!(takes(&mut nic, stranger) && !takes(&mut nic, MAC));
    }
}

/// The counts of handlers, and the statistics of the card.
#[test]
fn the_driver_reads_what_was_counted() {
    let mut nic = open(Config::default());
    queue(
        &mut nic,
        &[&frame(PEER, MAC, 100, 1)],
        SendOptions::default(),
    );
    flush(&mut nic);
    arrive(&mut nic, &frame(MAC, PEER, 300, 1));
    assert_eq!(received(&mut nic).len(), 1);
    nic.update_statistics().expect("a card");
    let block = nic.card_statistics().expect("a block");
    assert_eq!((block.out_octets.get(), block.in_octets.get()), (100, 300));
    nic.transport().pass(11_000);
    let counts = nic.handler_counts().expect("counts");
    for name in ["SendDataReady", "ReceiveComplete", "Mailbox", "Timer"] {
        assert!(counts.get(name).expect("a handler") > 0, "{name}");
    }
    assert_eq!(counts.get("DmaReadAttention"), Some(0));
    nic.clear_statistics().expect("a card");
    nic.update_statistics().expect("a card");
    assert_eq!(nic.card_statistics().expect("a block").out_octets.get(), 0);
}

/// A firmware that stops says why, and the same card works again after recovery.
#[test]
fn the_driver_recovers_from_a_fatal_error() {
    use host_driver::nic::NicError;
    use host_interface::extension::FatalCode;
    let mut nic = open(Config::default());
    let card = nic.transport();
    tigon_firmware::sides::fatal::report(card.a(), FatalCode::Mac, 0x1234);
    match nic.check_fatal() {
        Err(NicError::FirmwareFatal(report)) => {
            assert_eq!(
                (report.code, report.argument),
                (FatalCode::Mac as u32, 0x1234)
            );
        }
        other => panic!("{other:?}"),
    }
    nic.recover().expect("a card that starts again");
    nic.wait_link(Duration::from_secs(5)).expect("a link");
    let out = frame(PEER, MAC, 500, 3);
    queue(&mut nic, &[&out], SendOptions::default());
    flush(&mut nic);
    assert_eq!(nic.transport().wire.last(), Some(&out));
    assert!(takes(&mut nic, MAC));
}

/// Linux' offloads: tags are inserted and stripped, sums are right on the wire and in the report.
#[test]
fn tags_and_checksums_are_the_cards() {
    let mut nic = open(Config {
        vlan: true,
        receive_checksums: ChecksumOffload::FULL,
        ..Config::default()
    });
    let out = frame(PEER, MAC, 200, 5);
    let options = SendOptions {
        vlan: Some(0x2005),
        ..SendOptions::default()
    };
    queue(&mut nic, &[&out], options);
    flush(&mut nic);
    let tagged = [&out[..12], &[0x81, 0x00, 0x20, 0x05], &out[12..]].concat();
    assert_eq!(nic.transport().wire, [tagged]);

    let mut tagged = frame(MAC, PEER, 200, 6);
    tagged[12..16].copy_from_slice(&[0x81, 0x00, 0x30, 0x07]);
    arrive(&mut nic, &tagged);
    let described = described(&mut nic);
    let stripped = [&tagged[..12], &tagged[16..]].concat();
    assert_eq!(described.len(), 1);
    assert_eq!(
        (&described[0].bytes, described[0].vlan),
        (&stripped, Some(0x3007))
    );
}
