//! Buses that stall, memory that is none, processes that write nonsense.

use crate::card::{Card, Overseen, PEER_AT, PEER_PORT, PORT, bytes, data};
use etherparse::SlicedPacket;
use etherparse::defrag::IpDefragPool;
use eudp::{
    Card as _, Checksum, Completion, CutThrough, EndpointConfig, Received, SendError, Status,
};
use host_driver::nic::EndpointCard;
use host_interface::eudp::{DescriptorWord, posted, receive_slot, send_slot, to_word};
use host_interface::extension::Extension;
use integration_tests::{Engine, Sim};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;

/// On a bus that stalls, frames are cut off on the wire and sent again: what ends with a good CRC
/// is what the process has sent, once, in its order.
#[test]
fn frames_that_the_wire_overtakes_are_sent_again_whole() {
    let mut aborted = 0;
    for (seed, stall) in (1..).zip([150, 300, 1000, 3000]) {
        let parameters = Parameters {
            pci_rd: stall,
            jit: 1.0,
            ..Parameters::default()
        };
        let sim = Sim::timed_by(parameters, seed);
        let mut card = Card::on(sim, CutThrough::Lead(512), Checksum::None, 9000);
        for number in 0..50 {
            let sent = bytes(number, if number % 2 == 0 { 4200 } else { 8972 });
            card.send(4096, &sent, number);
            assert!(data(&card.wire().bytes) == sent, "{stall} clocks, {number}");
            let done = Completion::Sent {
                cookie: number,
                status: Status::Done,
            };
            assert_eq!(card.completion(), done);
        }
        card.follow();
        aborted += card.cuts()[1];
    }
    assert!(aborted > 50, "the wire overtakes some: {aborted}");
}

/// A region whose memory is gone costs its owner the datagram, and nobody else anything.
#[test]
fn memory_that_cannot_be_read_is_said_to_the_process() {
    for (cut, checksum, length, us) in [
        (CutThrough::Off, Checksum::None, 1472, 500),
        (CutThrough::OfBus, Checksum::None, 1472, 500),
        // The memory is there again while transfers of the datagram's still wait.
        (CutThrough::OfBus, Checksum::Leading, 30_001, 450),
        (CutThrough::OfBus, Checksum::Leading, 30_001, 475),
        (CutThrough::OfBus, Checksum::Leading, 30_001, 500),
        (CutThrough::OfBus, Checksum::Leading, 30_001, 1000),
    ] {
        let mut card = Card::timed(cut, checksum, 1500);
        let kept = card.stage.engine.machine().clone();
        kept.lock().unmap_all();
        card.send(4096, &bytes(1, length), 1);
        card.stage.engine.pass(Duration::from_micros(us));
        kept.lock().map(card.memory.clone());
        // Its completion queue was gone, too: what the card says of it, NIC memory has.
        let block = word(&mut card, Extension::Eudp.nic_address());
        let status = block + send_slot(0, 0) + DescriptorWord::Status as u32;
        let status = word(&mut card, status);
        assert_eq!(status, Status::Unreadable as u32, "{us} us");
        card.send(4096, &bytes(2, 1472), 2);
        assert!(data(&card.wire().bytes) == bytes(2, 1472));
        card.follow();
    }
}

/// The data of the datagrams that frames bring whole, in the order in which they get whole.
fn whole(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut pool = IpDefragPool::<(), ()>::new();
    let mut one = |frame: &Vec<u8>| {
        let packet = SlicedPacket::from_ethernet(frame).expect("a packet");
        if !packet.is_ip_payload_fragmented() {
            return Some(data(frame));
        }
        let whole = pool.process_sliced_packet(&packet, (), ());
        Some(whole.expect("fragments that fit")?.payload[8..].to_vec())
    };
    frames.iter().filter_map(&mut one).collect()
}

/// On a bus that is slower than the wire whole datagrams are fetched in front of their turn, too.
fn slow() -> Board {
    Board::with_bus(32, 33)
}

/// Memory is gone for some time, while frames are fetched in front of their turn: what cannot be read
/// is said to the process, and all else arrives once and in order.
#[test]
fn datagrams_whose_memory_goes_are_the_only_ones_that_fail() {
    const LENGTHS: [usize; 9] = [4000, 4000, 1472, 9000, 18, 4000, 400, 1473, 4000];
    const WHOLE: [usize; 9] = [1472, 1472, 1400, 800, 18, 1472, 400, 1472, 1472];
    for (board, lengths, step) in [(Board::default(), LENGTHS, 8), (slow(), WHOLE, 12)] {
        for checksum in [Checksum::None, Checksum::Full, Checksum::Leading] {
            let mut unreadable = 0;
            for us in (5..205).step_by(step) {
                let sim = Sim::timed_on(board.clone(), Parameters::default(), 1);
                let mut card = Card::on(sim, CutThrough::OfBus, checksum, 1500);
                unreadable += without_memory(&mut card, &lengths, us);
            }
            let all = lengths.len() * 200_usize.div_ceil(step);
            println!("{checksum:?}: {unreadable} of {all} are unreadable");
            assert!(unreadable > 20);
        }
    }
}

/// Posts datagrams of these lengths, and takes their memory away after `us` microseconds, for 400.
/// Returns how many were not sent.
fn without_memory(card: &mut Card, lengths: &[usize], us: u64) -> u32 {
    let checksum = card.endpoint.config().checksum;
    let kept = card.stage.engine.machine().clone();
    for (number, length) in (0..).zip(lengths) {
        card.send(number as usize * 9000, &bytes(number, *length), number);
    }
    let whole_memory = card.memory.clone();
    card.stage.engine.pass(Duration::from_micros(us));
    kept.lock().unmap(&whole_memory);
    card.stage.engine.pass(Duration::from_micros(400));
    kept.lock().map(whole_memory);
    let mut expected = Vec::new();
    let mut unreadable = 0;
    for (number, length) in (0..).zip(lengths) {
        let Completion::Sent { cookie, status } = card.completion() else {
            panic!("{us} us: another completion");
        };
        assert_eq!(cookie, number, "{us} us");
        if status == Status::Done {
            expected.push(bytes(number, *length));
        } else {
            assert_eq!(status, Status::Unreadable, "{us} us: {number}");
            unreadable += 1;
        }
    }
    card.stage.engine.pass(Duration::from_micros(200));
    let frames: Vec<_> = std::iter::from_fn(|| kept.lock().take_frame()).collect();
    let frames: Vec<_> = frames.into_iter().map(|frame| frame.bytes).collect();
    assert!(whole(&frames) == expected, "{us} us, {checksum:?}");
    card.follow();
    unreadable
}

/// A frame is asked for while the one in front of it is fetched, and cannot be read: that frame leaves,
/// and what comes behind does, too.
#[test]
fn a_frame_leaves_in_front_of_one_whose_memory_is_gone() {
    for (board, length) in [(Board::default(), 4000), (slow(), 4000), (slow(), 1472)] {
        for checksum in [Checksum::None, Checksum::Full] {
            let timed = Sim::timed_on(board.clone(), Parameters::default(), 1);
            for powered in [timed, Sim::of(board.clone())] {
                let mut card = Card::on(powered, CutThrough::Off, checksum, 1500);
                around_gone_memory(&mut card, length);
            }
        }
    }
}

/// Posts five datagrams, of which each second one has `length` bytes of memory that is gone.
fn around_gone_memory(card: &mut Card, length: u32) {
    let kept = card.stage.engine.machine().clone();
    let mut lent = EndpointCard(&mut card.stage.nic);
    let gone = lent.allocate(8192).expect("memory");
    let region = card.eudp.register(&mut lent, &mut card.endpoint, &gone);
    let gone_at = region.expect("a region").segment(0, length);
    kept.lock().unmap(&gone);
    let to = (card.peer, PEER_PORT);
    let mut pieces = vec![gone_at; 5];
    for number in [0, 2, 4] {
        let sent = bytes(number, 1400);
        let at = number as usize * 2048;
        card.memory.write_bytes(at, &sent).expect("it fits");
        pieces[number as usize] = card.region.segment(at as u32, 1400);
    }
    card.with(|endpoint, lent| {
        for (number, piece) in (0..).zip(pieces) {
            endpoint.queue(lent, to, &[piece], number)?;
        }
        endpoint.submit(lent).map_err(SendError::Card)
    })
    .expect("they are posted");
    for cookie in 0..5 {
        let status = if cookie % 2 == 0 {
            assert!(data(&card.wire().bytes) == bytes(cookie, 1400), "{cookie}");
            Status::Done
        } else {
            Status::Unreadable
        };
        assert_eq!(card.completion(), Completion::Sent { cookie, status });
    }
    assert_eq!(card.stage.engine.receive_now(), None);
    card.follow();
}

/// A frame whose memory goes while it leaves is given up. What comes in its place is another
/// endpoint's datagram in fragments: it is whole.
#[test]
fn a_frame_that_is_given_up_is_forgotten() {
    let mut given_up = 0;
    for us in 20..60 {
        let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 9000);
        let config = EndpointConfig {
            port: PORT + 1,
            mtu: 1500,
            checksum: Checksum::Full,
            ..*card.endpoint.config()
        };
        let mut lent = EndpointCard(&mut card.stage.nic);
        let mut other = card.eudp.open(&mut lent, config).expect("an endpoint");
        let memory = lent.allocate(8192).expect("memory");
        let region = card.eudp.register(&mut lent, &mut other, &memory);
        let region = region.expect("a region");
        let peer = card.eudp.address(&mut lent, &mut other, &PEER_AT);
        let to = (peer.expect("room"), PEER_PORT);

        let kept = card.stage.engine.machine().clone();
        let whole = card.memory.clone();
        card.send(4096, &bytes(1, 8972), 1);
        card.stage.engine.pass(Duration::from_micros(us));
        kept.lock().unmap(&whole);
        card.stage.engine.pass(Duration::from_micros(500));
        let Completion::Sent { status, .. } = card.completion() else {
            panic!("{us} us: another completion");
        };
        given_up += u32::from(status == Status::Unreadable && card.cuts()[0] == 1);
        while card.stage.engine.receive_now().is_some() {}

        let sent = bytes(2, 5000);
        memory.write_bytes(0, &sent).expect("it fits");
        let pieces = [region.segment(0, 5000)];
        let posted = other.send(&mut EndpointCard(&mut card.stage.nic), to, &pieces, 2);
        posted.expect("it is posted");
        card.stage.engine.pass(Duration::from_micros(500));
        let completion = other.poll(&mut EndpointCard(&mut card.stage.nic));
        let done = Completion::Sent {
            cookie: 2,
            status: Status::Done,
        };
        assert_eq!(
            completion.expect("the card is there"),
            Some(done),
            "{us} us"
        );
        let lengths = [0; 4].map(|_| card.wire().bytes.len());
        assert_eq!(lengths.iter().sum::<usize>(), 4 * 34 + 8 + 5000);
        card.follow();
    }
    assert!(given_up > 0, "some are given up while they leave");
}

/// A word of NIC memory.
pub fn word(card: &mut Card, address: u32) -> u32 {
    let mut word = [0];
    let read = EndpointCard(&mut card.stage.nic).read(address, &mut word);
    read.expect("the card is there");
    word[0]
}

/// A process writes its descriptors itself: nonsense comes back to it, and nothing leaves.
#[test]
fn descriptors_of_nonsense_are_refused() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::Full, 1500);
    let block = word(&mut card, Extension::Eudp.nic_address());
    let shapes = [
        // A handle and a region that are nobody's, too many pieces, a piece behind the region's
        // end, lengths that do not fit, data in the descriptor that is none.
        [to_word(1, 7, 0), 100, 100, 0],
        [to_word(1, 0, 0), 100, 63 << 16 | 100, 0],
        [to_word(1, 0, 0), 100, 0xFFFF << 16 | 100, 0],
        [to_word(9, 0, 0), 100, 100, 0],
        [to_word(0xFF, 0, 0), 100, 100, 0],
        [to_word(1, 0, 0), 100, 100, 1 << 18],
        [to_word(1, 0, 0), 100, 100, u32::MAX - 50],
        [to_word(1, 0, 0), 101, 100, 0],
        [to_word(1, 0, 0), 0, 0, 0],
        [to_word(1, 0, 0), 65_508, 65_508, 0],
        [0, 65, 0, 0],
        [to_word(0, 0xFF, 0), 0, 0, 0],
    ];
    let known = shapes.iter().chain(&shapes);
    for (number, [to, length, piece, offset]) in (0..).zip(known) {
        if number == shapes.len() as u32 {
            // The same once the card has the rows of a good one in its pad.
            card.send(0, &bytes(3, 1000), 98);
            assert!(data(&card.wire().bytes) == bytes(3, 1000));
            card.completion();
        }
        let number = number + u32::from(number >= shapes.len() as u32);
        // The library writes a good one, which is overwritten before the card has seen it.
        let peer = (card.peer, PEER_PORT);
        let slot = block + send_slot(0, number);
        card.with(|endpoint, lent| {
            lent.write(
                slot,
                &[number, *to, *length, posted(number), *piece, *offset],
            )?;
            let posted = endpoint.send_inline(&mut Overseen(lent, by_others), peer, &[], number);
            posted.map_err(|error| panic!("{error}"))
        })
        .unwrap_or_else(|error: host_driver::NicError| panic!("{error}"));
        let refused = Completion::Sent {
            cookie: number,
            status: Status::BadDescriptor,
        };
        assert_eq!(card.completion(), refused, "{to:x} {length:x}");
        assert_eq!(card.stage.engine.receive_now(), None);
    }
    // And it goes on.
    card.send(0, &bytes(3, 1000), 99);
    assert!(data(&card.wire().bytes) == bytes(3, 1000));
    card.follow();
}

/// A process's useless receive descriptors are answered while the write ring is as good as full:
/// the card waits until all their completions and all pieces of the good one have room.
#[test]
fn useless_descriptors_never_overrun_the_write_ring() {
    let parameters = Parameters {
        pci_wr: 2000,
        ..Parameters::default()
    };
    let sim = Sim::timed_by(parameters, 1);
    let mut card = Card::on(sim, CutThrough::Off, Checksum::None, 1500);
    let block = word(&mut card, Extension::Eudp.nic_address());
    for number in 0..7 {
        let slot = block + receive_slot(0, number);
        let piece = card.region.segment(0, 64);
        card.with(|endpoint, lent| {
            // Behind the region's end.
            lent.write(
                slot,
                &[
                    number,
                    to_word(1, 0, 0),
                    0,
                    posted(number),
                    64,
                    u32::MAX - 50,
                ],
            )?;
            let posted = endpoint.post(&mut Overseen(lent, by_others), &[piece], number);
            posted.map_err(|error| panic!("{error}"))
        })
        .unwrap_or_else(|error: host_driver::NicError| panic!("{error}"));
    }
    let pieces = [0, 1, 2, 3, 4, 5, 6, 7].map(|n| card.region.segment(n * 50, 50));
    card.with(|endpoint, lent| endpoint.post(lent, &pieces, 7))
        .expect("it is posted");
    card.stage.engine.pass(Duration::from_micros(50));
    let sent = bytes(8, 400);
    let ours = card.inbound(PORT, &sent);
    // The first ones fill the ring.
    let hosts: Vec<_> = (0..160).map(|n| card.stage.inbound(n)).collect();
    for frame in hosts[..120].iter().chain([&ours]).chain(&hosts[120..]) {
        card.stage.engine.send(frame);
    }
    for cookie in 0..7 {
        let datagram = Received {
            bytes: 0,
            from: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
            summed: false,
        };
        let refused = Completion::Received {
            cookie,
            status: Status::BadDescriptor,
            datagram,
        };
        assert_eq!(card.completion(), refused);
    }
    assert_eq!(card.completion(), Card::received(7, 400, true));
    assert!(card.memory(0, 400) == sent);
    assert_eq!(card.stage.receive(160), hosts);
    card.follow();
}

/// Somebody else writes the descriptors.
pub fn by_others(_: u32, _: &[u32]) -> bool {
    false
}

/// An endpoint opens while a frame of another one is in work.
#[test]
fn an_endpoint_opens_beside_one_that_sends() {
    let mut card = Card::timed(CutThrough::Off, Checksum::None, 9000);
    for number in 0..8 {
        card.send(number as usize * 9000, &bytes(number, 8972), number);
    }
    card.other(PORT + 1);
    for number in 0..8 {
        assert!(data(&card.wire().bytes) == bytes(number, 8972), "{number}");
    }
    card.follow();
}

/// When an endpoint is closed its memory is the process's again, and its port the host's.
#[test]
fn a_closed_endpoint_is_gone() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 1500);
    card.post(0, 2048, 1);
    let frame = card.inbound(PORT, &bytes(1, 500));
    let Card {
        mut stage,
        mut eudp,
        endpoint,
        memory,
        ..
    } = card;
    let closed = eudp.close(&mut EndpointCard(&mut stage.nic), endpoint);
    closed.unwrap_or_else(|error| panic!("{error}"));
    stage.engine.send(&frame);
    assert_eq!(stage.receive(1), [frame]);
    let mut there = [1; 500];
    memory.read_bytes(0, &mut there).expect("it fits");
    assert_eq!(there, [0; 500]);
}

/// The host's own frames and an endpoint's leave beside each other.
#[test]
fn the_host_sends_beside_an_endpoint() {
    let mut card = Card::timed(CutThrough::OfBus, Checksum::None, 1500);
    let (mut plain, mut ours) = (0, 0);
    for number in 0..60 {
        card.send(number as usize * 2048, &bytes(number, 1200), number);
        let frame = card.stage.outbound(number);
        card.stage.transmit(&[&frame]);
        card.with(|endpoint, card| while let Ok(Some(_)) = endpoint.poll(card) {});
    }
    let end = card.now() + 10_000_000_000;
    while plain + ours < 120 {
        // The library moves what waits into the card when it is polled.
        card.with(|endpoint, card| while let Ok(Some(_)) = endpoint.poll(card) {});
        card.stage.turn();
        assert!(card.now() < end, "{plain} and {ours} have left");
        let Some(frame) = card.stage.wire_now() else {
            continue;
        };
        if frame[12..14] == [8, 0] {
            assert!(data(&frame) == bytes(ours, 1200), "datagram {ours}");
            ours += 1;
        } else {
            assert!(frame == card.stage.outbound(plain), "frame {plain}");
            plain += 1;
        }
    }
    assert_eq!((plain, ours), (60, 60));
    card.follow();
}
