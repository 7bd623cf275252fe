//! Compares the guest's counters with those of the wire.

use integration_tests::frames;
use integration_tests::guest::stage::{GUEST, GuestStage, PEER, wait_for};
use std::time::Duration;
use testbed::net::iperf::{Direction, Protocol};

/// The story's own frames come from here.
const SOMEBODY: [u8; 6] = [0x02, 0x54, 0x47, 0xEE, 0, 3];
/// Every host is in this group, 224.0.0.1.
const ALL_HOSTS: [u8; 6] = [0x01, 0x00, 0x5E, 0x00, 0x00, 0x01];

/// Frame for frame and byte for byte, after pings, streams and broadcasts.
pub fn the_guest_counts_what_the_wire_saw(stage: &mut GuestStage) {
    let quiet = Duration::from_millis(300);
    let limit = Duration::from_secs(10);
    // A peer that knows the guest may ask it, without a broadcast, whether it is still there. The
    // guest would learn the peer's address from that question, and not ask for it.
    let forget = format!("ip neigh flush dev {}", stage.peer.device());
    stage.peer.sh(&forget).unwrap_or_else(|e| panic!("{e:#}"));
    assert!(stage.cable.settle(quiet, limit), "the wire is never quiet");
    stage.cable.reset();
    let before = stage.link_counts();

    // The guest looks for the peer anew, with a broadcast; those to the guest, and
    // those to a group, are the story's own.
    stage.sh("ip neigh flush dev eth0");
    let from_somebody = |to, count| (0..count).map(move |n| frames::numbered(to, SOMEBODY, n));
    stage.cable.inject(from_somebody([0xFF; 6], 30));
    stage.cable.inject(from_somebody(ALL_HOSTS, 20));
    for payload in [0, 18, 56, 777, 1472, 5000] {
        stage.ping_both_ways(GUEST, PEER, payload, 20);
    }
    for direction in [Direction::Out, Direction::In] {
        stage.iperf(PEER, Protocol::Tcp, direction, 1);
        stage.iperf(PEER, Protocol::Udp(5), direction, 1);
    }

    assert!(stage.cable.settle(quiet, limit), "the wire is never quiet");
    // What the card has received lately is with the host after its ticks.
    std::thread::sleep(quiet);
    let (after, wire) = (stage.link_counts(), stage.cable.counts());
    assert!(
        wire.from_card.broadcast >= 1 && wire.to_card.broadcast >= 30,
        "{wire:?}"
    );
    assert_eq!(wire.to_card.multicast, 20, "{wire:?}");
    // The card's own counts reach the host every two seconds.
    wait_for(Duration::from_secs(6), "count of frames to a group", || {
        stage.link_counts().multicast - before.multicast == wire.to_card.multicast
    });
    assert!(
        wire.from_card.frames > 1000 && wire.to_card.frames > 1000,
        "{wire:?}"
    );
    assert_eq!((wire.cut, wire.refused), (0, 0));
    assert_eq!(
        after.tx_packets - before.tx_packets,
        wire.from_card.frames,
        "{wire:?}"
    );
    assert_eq!(
        after.tx_bytes - before.tx_bytes,
        wire.from_card.unpadded,
        "{wire:?}"
    );
    assert_eq!(
        after.rx_packets - before.rx_packets,
        wire.to_card.frames,
        "{wire:?}"
    );
    assert_eq!(
        after.rx_bytes - before.rx_bytes,
        wire.to_card.bytes,
        "{wire:?}"
    );
    assert_eq!(after.rx_missed_errors, before.rx_missed_errors);
}
