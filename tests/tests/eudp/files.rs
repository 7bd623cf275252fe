//! Memory files of the process's own as regions: the card reads and writes them where they are.

use crate::card::{Card, PEER_PORT, PORT, bytes, data};
use eudp::{Access, Card as _, Checksum, Completion, CutThrough, Region, SendError, Status};
use host_driver::nic::EndpointCard;
use host_interface::eudp::{DescriptorWord, receive_slot};
use host_interface::extension::Extension;
use integration_tests::Engine;
use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const BYTES: usize = 1 << 16;

/// A sealed memory file.
fn memory_file(name: &str) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(name, flags).expect("memory");
    rustix::fs::ftruncate(&file, BYTES as u64).expect("room");
    let seals = SealFlags::SHRINK | SealFlags::GROW;
    rustix::fs::fcntl_add_seals(&file, seals).expect("a fresh file");
    File::from(file)
}

fn register(card: &mut Card, file: &File, access: Access) -> Region {
    let file = OwnedFd::from(file.try_clone().expect("a descriptor"));
    let mut lent = EndpointCard(&mut card.stage.nic);
    let endpoint = &mut card.endpoint;
    let region = card.eudp.register_file(&mut lent, endpoint, file, access);
    region.expect("a region")
}

/// Writes a datagram to the file and sends it from there.
fn send(card: &mut Card, (file, region): (&File, Region), sent: &[u8], cookie: u32) {
    file.write_all_at(sent, 100).expect("it fits");
    let to = (card.peer, PEER_PORT);
    let piece = region.segment(100, sent.len() as u32);
    card.with(|endpoint, card| endpoint.send(card, to, &[piece], cookie))
        .expect("it is posted");
    assert!(data(&card.wire().bytes) == sent);
    let status = Status::Done;
    assert_eq!(card.completion(), Completion::Sent { cookie, status });
}

/// In one frame and in fragments.
#[test]
fn a_file_is_sent_from_and_received_into() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::Full, 1500);
    let file = memory_file("both");
    let region = register(&mut card, &file, Access::ReadWrite);
    for (cookie, length) in (0..).zip([1, 1472, 30_001]) {
        if length <= 1472 {
            send(&mut card, (&file, region), &bytes(cookie, length), cookie);
        }
        let came = bytes(100 + cookie, length);
        let piece = region.segment(7, length as u32);
        card.with(|endpoint, card| endpoint.post(card, &[piece], cookie))
            .expect("it is posted");
        card.stage.engine.pass(Duration::from_micros(10));
        for frame in card.fragments((cookie as u16, PORT), &came, 1480) {
            card.stage.engine.send(&frame);
        }
        assert_eq!(card.completion(), Card::received(cookie, length, true));
        let mut there = vec![0; length];
        file.read_exact_at(&mut there, 7).expect("it is there");
        assert!(there == came, "{length} bytes");
    }
    card.follow();
}

/// The library lends nothing that the card may only read. Of a process that names it all the same, the
/// card cannot write it: no byte is changed.
#[test]
fn a_file_that_may_only_be_read_stays_as_it_is() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::Full, 1500);
    let file = memory_file("read");
    let region = register(&mut card, &file, Access::Read);
    let before = bytes(1, 1000);
    send(&mut card, (&file, region), &before, 1);

    let [piece, own] = [region, card.region].map(|region| region.segment(100, 1000));
    let refused = card.with(|endpoint, card| endpoint.post(card, &[piece], 2));
    let refused = refused.expect_err("the card may only read it");
    assert!(matches!(refused, SendError::ReadOnly), "{refused}");

    card.with(|endpoint, card| endpoint.lend(card, &[own], 3))
        .expect("it is lent");
    let mut block = [0];
    let mut lent = EndpointCard(&mut card.stage.nic);
    lent.read(Extension::Eudp.nic_address(), &mut block)
        .expect("the card is there");
    let slot = block[0] + receive_slot(card.endpoint.number(), 0);
    // Its number is 1: the card's own region was the first one.
    lent.write(slot + DescriptorWord::Data as u32, &[1 << 16 | 1000])
        .expect("the card is there");
    card.with(|endpoint, card| endpoint.submit(card))
        .expect("the card is there");
    card.stage.engine.pass(Duration::from_micros(10));
    let frame = card.inbound(PORT, &bytes(2, 1000));
    card.stage.engine.send(&frame);
    let completion = card.completion();
    assert!(
        matches!(
            completion,
            Completion::Received {
                cookie: 3,
                status: Status::Unwritable,
                ..
            }
        ),
        "{completion:?}"
    );
    let mut there = vec![0; 1000];
    file.read_exact_at(&mut there, 100).expect("it is there");
    assert!(there == before);
    assert_eq!(card.refusals().bad_region, 1);
    card.follow();
}

/// A file's mappings of this process, which are the card's, end with the endpoint.
#[test]
fn the_card_has_a_file_as_long_as_its_endpoint() {
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("text");
        maps.matches("memfd:closed").count()
    };
    let mut card = Card::timed(CutThrough::Off, Checksum::Full, 1500);
    let file = memory_file("closed");
    let region = register(&mut card, &file, Access::Read);
    send(&mut card, (&file, region), &bytes(1, 1000), 1);
    assert_eq!(mapped(), 1);
    let Card {
        stage: mut kept,
        mut eudp,
        endpoint,
        ..
    } = card;
    let closed = eudp.close(&mut EndpointCard(&mut kept.nic), endpoint);
    closed.expect("the firmware answers");
    assert_eq!(mapped(), 0);
}
