//! Tests which frames reach the guest.

use integration_tests::frames;
use integration_tests::guest::Way;
use integration_tests::guest::stage::{GuestStage, PEER, STATION, wait_for};
use std::time::Duration;

/// A station that is not here.
const STRANGER: [u8; 6] = [0x02, 0x54, 0x47, 0xEE, 0, 1];
/// An address for the story to take on.
const OTHER: [u8; 6] = [0x02, 0x54, 0x47, 0xAB, 0xCD, 0xEF];
/// Frames of a trial.
const FRAMES: u64 = 40;
/// Trials before the peer counts as too noisy.
const TRIALS: u32 = 5;

fn octets(address: [u8; 6]) -> String {
    address.map(|octet| format!("{octet:02x}")).join(":")
}

/// How many of [`FRAMES`] frames to `destination` reach the guest's kernel. The peer's
/// Linux may say something of its own meanwhile; such a trial says nothing.
fn arrive(stage: &GuestStage, destination: [u8; 6]) -> u64 {
    let undisturbed = (0..TRIALS).find_map(|_| trial(stage, destination));
    undisturbed.expect("somebody else talks all the time")
}

fn trial(stage: &GuestStage, destination: [u8; 6]) -> Option<u64> {
    let quiet = Duration::from_millis(200);
    stage.cable.settle(quiet, Duration::from_secs(5));
    // The wire first: what passes between the two looks is one too many at the end.
    let sent = stage.cable.counts().to_card.frames;
    let before = stage.link_counts().rx_packets;
    let numbers = 0..FRAMES as u32;
    stage
        .cable
        .inject(numbers.map(|number| frames::numbered(destination, STRANGER, number)));
    let all = sent + FRAMES;
    wait_for(Duration::from_secs(5), "room on the card", || {
        stage.cable.injected() && stage.cable.counts().to_card.frames >= all
    });
    stage.cable.settle(quiet, Duration::from_secs(5));
    let reached = stage.link_counts().rx_packets - before;
    (stage.cable.counts().to_card.frames == all).then_some(reached)
}

/// A group of IPv4's is joined: the peer's pings to it are answered, and after it
/// was left they are not. The card is told by `acenic` to take all groups.
pub fn a_group_is_joined_and_left(stage: &mut GuestStage) {
    const GROUP: &str = "239.77.5.1";
    const STATION_OF_GROUP: [u8; 6] = [0x01, 0x00, 0x5E, 77, 5, 1];
    stage.sh("echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_broadcasts");
    let device = stage.peer.device();
    let ping = format!("ping -n -c 5 -i 0.05 -W 1 -I {device} {GROUP} || true");
    let replies = |stage: &GuestStage| {
        let said = stage
            .peer
            .sh(&ping)
            .unwrap_or_else(|error| panic!("{error:#}"));
        said.matches("bytes from 10.79.0.1").count()
    };
    for round in 0..3 {
        assert_eq!(replies(stage), 0, "round {round}: nobody has joined");
        stage.cable.record();
        stage.sh(&format!("ip address add {GROUP}/32 dev eth0 autojoin"));
        assert_eq!(replies(stage), 5, "round {round}: the guest has joined");
        let seen = stage.cable.recorded();
        let report = seen
            .iter()
            .find(|s| s.way == Way::FromCard && s.protocol() == Some(2));
        let report = report.unwrap_or_else(|| panic!("round {round}: no IGMP report"));
        assert!(report.is_group() && !report.is_broadcast());
        let to_group = |way| {
            let matching = |s: &&_| -> bool {
                let sight: &integration_tests::guest::Sight = s;
                sight.way == way && sight.destination() == STATION_OF_GROUP
            };
            seen.iter().filter(matching).count()
        };
        assert!(to_group(Way::ToCard) >= 5, "round {round}");
        stage.sh(&format!("ip address del {GROUP}/32 dev eth0"));
    }
    assert_eq!(replies(stage), 0, "the group was left");
    stage.carries_traffic();
}

/// Host/NIC software interface, commands 0A and 0E.
pub fn promiscuous_and_all_multicast(stage: &mut GuestStage) {
    for round in 0..3 {
        assert_eq!(arrive(stage, STATION), FRAMES, "round {round}: its own");
        assert_eq!(
            arrive(stage, [0xFF; 6]),
            FRAMES,
            "round {round}: everybody's"
        );
        assert_eq!(arrive(stage, STRANGER), 0, "round {round}: others'");
        stage.sh("ip link set eth0 promisc on");
        assert_eq!(
            arrive(stage, STRANGER),
            FRAMES,
            "round {round}: promiscuous"
        );
        stage.sh("ip link set eth0 promisc off");
        assert_eq!(arrive(stage, STRANGER), 0, "round {round}: no longer");
        stage.sh("ip link set eth0 allmulticast on");
        let group = [0x01, 0x00, 0x5E, 1, 2, round];
        assert_eq!(arrive(stage, group), FRAMES, "round {round}: all groups");
        assert_eq!(arrive(stage, STRANGER), 0, "round {round}: no stations");
        stage.sh("ip link set eth0 allmulticast off");
    }
    stage.carries_traffic();
}

/// Command 0C, which `acenic` gives while the device is down.
pub fn the_station_address_is_changed(stage: &mut GuestStage) {
    for address in [OTHER, STATION] {
        let change = format!(
            "ip link set eth0 down && ip link set eth0 address {} && ip link set eth0 up",
            octets(address)
        );
        stage.sh(&change);
        let flush = stage.peer.sh("ip neigh flush all");
        flush.unwrap_or_else(|error| panic!("{error:#}"));
        stage.cable.record();
        stage.carries_traffic();
        for sight in stage.cable.recorded() {
            if sight.way == Way::FromCard {
                assert_eq!(octets(sight.source()), octets(address));
            }
        }
        assert_eq!(arrive(stage, address), FRAMES, "its own");
        let former = if address == OTHER { STATION } else { OTHER };
        assert_eq!(arrive(stage, former), 0, "the former one");
    }
    let said = stage.sh(&format!("ping -q -c 1 -W 3 {PEER}"));
    assert!(said.contains("1 received"), "{said}");
}
