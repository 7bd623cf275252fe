//! Tests cables: the one that the stories observe, one that is pulled out, and one between two
//! cards.

use host_driver::nic::Link;
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Config, Nic};
use integration_tests::engine::tools;
use integration_tests::guest::{Cable, Peer, Sight, Way};
use integration_tests::stage::in_time;
use integration_tests::{Engine, Qemu, frames, stage};
use std::io::IoSlice;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions, Wire};
use testbed::net::namespace;

const LIMIT: Duration = Duration::from_secs(5);

/// A cable whose card is a socket of the story's.
fn cable(role: &str, number: u8) -> (tempfile::TempDir, UnixDatagram, Cable, Peer) {
    let folder = tempfile::tempdir().unwrap();
    let (card, ours) = (folder.path().join("card"), folder.path().join("ours"));
    let socket = UnixDatagram::bind(&card).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let (peer, tap) = Peer::start(role, number, "10.76.0.2/24").unwrap();
    let cable = Cable::join(&ours, &card, tap).unwrap();
    socket.connect(&ours).unwrap();
    (folder, socket, cable, peer)
}

/// The card's side of an echo: the request's stations and addresses swapped.
fn answer(request: &[u8]) -> Vec<u8> {
    let mut reply = request.to_vec();
    let header = if request[12..14] == [0x81, 0] { 18 } else { 14 };
    reply[0..6].copy_from_slice(&request[6..12]);
    reply[6..12].copy_from_slice(&request[0..6]);
    reply[header + 12..header + 16].copy_from_slice(&request[header + 16..header + 20]);
    reply[header + 16..header + 20].copy_from_slice(&request[header + 12..header + 16]);
    // Echo request 8 becomes echo reply 0: the checksum grows by 0x0800.
    reply[header + 20] = 0;
    let sum = u16::from_be_bytes([reply[header + 22], reply[header + 23]]);
    let (sum, carry) = sum.overflowing_add(0x0800);
    let sum = (sum + u16::from(carry)).to_be_bytes();
    reply[header + 22..header + 24].copy_from_slice(&sum);
    reply
}

/// Stories ask at the same time, in threads of one program.
#[test]
fn many_may_ask_at_once_for_the_privilege() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(namespace::for_test);
        }
    });
}

/// The longest frame there is: MTU 9000 and a VLAN tag.
#[test]
fn a_tagged_jumbo_frame_passes_the_cable_both_ways() {
    if !namespace::for_test() {
        return;
    }
    let (_folder, card, cable, peer) = cable("jumbo", 1);
    cable.join_vlan(5, peer.vlan(5, "10.76.5.2/24", 9000).unwrap());
    let neighbour = "ip neigh add 10.76.5.1 lladdr 02:54:47:00:00:09 dev";
    peer.sh(&format!("{neighbour} {}", peer.vlan_device(5)))
        .unwrap();
    cable.record();
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; 0x4000];
        let length = card.recv(&mut buffer).expect("a frame in time");
        let request = buffer[..length].to_vec();
        card.send(&answer(&request)).expect("room");
        request
    });
    let ping = peer
        .sh("ping -n -c 1 -W 5 -s 8972 -M do 10.76.5.1")
        .unwrap();
    assert!(ping.contains("1 received"), "{ping}");
    let request = echo.join().unwrap();
    assert_eq!(request.len(), 9000 + 14 + 4);
    let reply = answer(&request);
    let seen = |way, frame| Sight { way, frame };
    assert_eq!(
        cable.recorded(),
        [seen(Way::ToCard, request), seen(Way::FromCard, reply)]
    );
    let counts = cable.counts();
    for count in [counts.to_card, counts.from_card] {
        assert_eq!((count.frames, count.bytes, count.tagged), (1, 9018, 1));
        assert_eq!((count.jumbo, count.unicast), (1, 1));
    }
}

#[test]
fn a_cut_cable_carries_nothing_and_counts_it() {
    if !namespace::for_test() {
        return;
    }
    let (_folder, card, cable, peer) = cable("cut", 2);
    let neighbour = "ip neigh add 10.76.0.1 lladdr 02:54:47:00:00:09 dev";
    peer.sh(&format!("{neighbour} {}", peer.device())).unwrap();
    cable.cut();
    let lost = peer.ping("10.76.0.1", 56, 3).unwrap();
    assert_eq!((lost.sent, lost.received), (3, 0));
    assert_eq!(cable.counts().cut, 3);
    assert_eq!(cable.counts().to_card.frames, 0);
    cable.mend();
    peer.ping("10.76.0.1", 56, 1).unwrap();
    let mut buffer = [0; 2000];
    assert_eq!(card.recv(&mut buffer).unwrap(), 98);
}

#[test]
fn a_stalled_cable_loses_nothing() {
    if !namespace::for_test() {
        return;
    }
    let (_folder, card, cable, _peer) = cable("stall", 3);
    cable.stall(Duration::from_millis(300));
    let start = Instant::now();
    let frame = frames::numbered(frames::PEER, [2, 0, 0, 0, 0, 1], 7);
    // More than the socket's queue takes: the sender waits as a card does.
    for _ in 0..200 {
        card.send(&frame).expect("room in time");
    }
    assert!(start.elapsed() > Duration::from_millis(250), "no stall");
    cable.inject(vec![frame.clone(); 200]);
    let mut buffer = [0; 2000];
    for _ in 0..200 {
        assert_eq!(card.recv(&mut buffer).unwrap(), frame.len());
    }
    assert!(cable.settle(Duration::from_millis(50), LIMIT));
    let counts = cable.counts();
    assert_eq!((counts.from_card.frames, counts.to_card.frames), (200, 200));
    assert_eq!(counts.refused, 0);
}

/// Until the driver has heard of it.
fn await_link(nic: &mut Nic<VfioUser>, wanted: Link) {
    let end = Instant::now() + LIMIT;
    while nic.link() != wanted {
        in_time(end, nic, &format!("the link stays {:?}", nic.link()));
        nic.wait(Duration::from_millis(20))
            .expect("the card is there");
        nic.acknowledge().expect("the card is there");
        nic.service().expect("the card is well");
    }
}

/// Reference 11: the firmware notices a lost signal and reports it by event 06.
#[test]
fn a_cable_that_is_pulled_out_and_put_in_is_reported() {
    let (mut engine, transport) = Qemu::with(&CardOptions {
        monitor: true,
        ..CardOptions::default()
    });
    let mut nic = up(transport);
    for number in 0..3 {
        engine.card.unplug().expect("the cable is in");
        await_link(&mut nic, Link::Down);
        engine.card.plug().expect("the cable is out");
        await_link(&mut nic, Link::Gigabit);
        let frame = frames::numbered(frames::PEER, nic.station(), number);
        assert!(nic.queue(&[IoSlice::new(&frame)]).expect("a good frame"));
        nic.submit().expect("the card is there");
        assert_eq!(engine.receive(), Some(frame));
    }
}

#[test]
fn without_a_monitor_there_is_nobody_to_pull_the_cable() {
    let (engine, _transport) = Qemu::with(&CardOptions::default());
    let error = engine.card.unplug().unwrap_err().to_string();
    assert!(error.starts_with("no monitor at "), "{error}");
}

fn up(transport: VfioUser) -> Nic<VfioUser> {
    let mut nic = Nic::probe(transport, Config::default()).expect("a card");
    nic.load(&stage::firmware()).expect("our firmware");
    nic.open().expect("a loaded card");
    nic.wait_link(LIMIT).expect("the cable is in");
    nic
}

#[test]
fn two_cards_back_to_back_carry_each_others_frames() {
    let folder = tempfile::tempdir().unwrap();
    let cable = folder.path().join("cable");
    let start = |wire, number| {
        let options = CardOptions {
            wire,
            station: Some([0x02, 0x54, 0x47, 0, 0, number]),
            ..CardOptions::default()
        };
        Card::start(&tools(), &options).unwrap_or_else(|error| panic!("{error:#}"))
    };
    let left_card = start(Wire::Listen(cable.clone()), 0x11);
    let right_card = start(Wire::Connect(cable), 0x12);
    let mut left = up(VfioUser::connect(&left_card.socket()).unwrap());
    let mut right = up(VfioUser::connect(&right_card.socket()).unwrap());
    assert_ne!(left.station(), right.station());
    for number in 0..100 {
        let (from, to) = match number % 2 {
            0 => (&mut left, &mut right),
            _ => (&mut right, &mut left),
        };
        let frame = frames::numbered(to.station(), from.station(), number);
        assert!(from.queue(&[IoSlice::new(&frame)]).expect("a good frame"));
        from.submit().expect("the card is there");
        assert_eq!(next(to), frame, "frame {number}");
        from.service().expect("the card is well");
    }
}

fn next(nic: &mut Nic<VfioUser>) -> Vec<u8> {
    let end = Instant::now() + LIMIT;
    loop {
        let frames = nic.receive_batch(64).expect("no nonsense");
        if let Some(frame) = frames.into_iter().next() {
            return frame;
        }
        in_time(end, nic, "the frame did not arrive");
        nic.wait(Duration::from_millis(20))
            .expect("the card is there");
        nic.acknowledge().expect("the card is there");
        nic.service().expect("the card is well");
    }
}
