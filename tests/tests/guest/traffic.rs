//! Tests pings, streams and datagrams, short and long, tagged and untagged.

use integration_tests::guest::stage::{GUEST, GuestStage, PEER};
use integration_tests::guest::{Way, repetitions};
use std::time::Duration;
use testbed::net::iperf::{Direction, Protocol, Throughput};

/// Every size of an ICMP payload that fits a frame, both ways, and floods of some.
pub fn ping_of_every_size(stage: &mut GuestStage) {
    let script = |address: &str| {
        format!(
            "for size in $(seq 0 1472); do \
               out=$(ping -n -c 1 -W 5 -s $size {address}) || {{ echo $size: $out; exit 1; }}; \
               case $out in *wrong*) echo $size: $out; exit 2;; esac; \
             done"
        )
    };
    let limit = Duration::from_secs(240);
    let out = stage.guest.run(&script(PEER), limit);
    let out = out.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(
        out.status, 0,
        "from the guest: {}{}",
        out.stdout, out.stderr
    );
    let into = stage.peer.sh_within(&script(GUEST), limit);
    into.unwrap_or_else(|error| panic!("from the peer: {error:#}"));
    for size in [0, 1, 56, 1471, 1472] {
        stage.cable.record();
        let flood = format!("ping -n -q -f -c 1000 -W 5 -s {size} {GUEST}");
        let said = stage.peer.sh(&flood);
        said.unwrap_or_else(|error| panic!("{error:#}"));
        let quiet = Duration::from_millis(200);
        assert!(stage.cable.settle(quiet, Duration::from_secs(10)));
        // Counted on the wire: ping itself leaves before a late reply.
        let seen = stage.cable.recorded();
        let count = |kind| seen.iter().filter(|s| s.icmp() == Some(kind)).count();
        assert_eq!((count(8), count(0)), (1000, 1000), "{size} bytes");
    }
}

/// Counters of damage in `/proc/net/snmp`.
const DAMAGE: &str = "awk '/^(Ip|Icmp|Tcp|Udp):/ { \
    if (!($1 in head)) { head[$1] = $0; next } \
    n = split(head[$1], name, \" \"); \
    for (i = 2; i <= n; i++) \
      if (name[i] ~ /InCsumErrors|InErrs|InHdrErrors/) print $1 name[i], $i }' /proc/net/snmp";

/// Nothing that either kernel received was damaged, in what is counted from the
/// boot of the guest and the making of the peer.
fn nothing_is_damaged(stage: &GuestStage) {
    let peer = stage
        .peer
        .sh(DAMAGE)
        .unwrap_or_else(|error| panic!("{error:#}"));
    for (who, said) in [("guest", stage.sh(DAMAGE)), ("peer", peer)] {
        assert!(said.contains("Tcp:InCsumErrors 0"), "{who}: {said}");
        for line in said.lines() {
            assert!(line.ends_with(" 0"), "{who} received damage: {line}");
        }
    }
}

/// Datagrams that a kernel dropped and counted: either one since a socket was full, the guest's
/// since its backlog was, the peer's since its device's queue was. On a busy computer a guest stands
/// for a second now and then, and what waited meanwhile comes to it at once.
fn dropped_by_kernels(stage: &GuestStage) -> u64 {
    const SOCKETS: &str = "awk '/^Udp:/ { \
        if (!n) n = split($0, name, \" \"); \
        else for (i = 2; i <= n; i++) if (name[i] == \"RcvbufErrors\") print $i }' /proc/net/snmp";
    let guest = stage.sh(&format!(
        "{SOCKETS}; for word in $(awk '{{ print $2 }}' /proc/net/softnet_stat); do \
           echo $((0x$word)); done"
    ));
    let queue = format!(
        "/sys/class/net/{}/statistics/tx_dropped",
        stage.peer.device()
    );
    let peer = stage.peer.sh(&format!("{SOCKETS}; cat {queue}"));
    let peer = peer.unwrap_or_else(|error| panic!("{error:#}"));
    let numbers = guest.lines().chain(peer.lines());
    numbers
        .map(|line| line.parse::<u64>().expect("a number"))
        .sum()
}

/// Datagrams at a rate that all can keep: the card loses none.
fn datagrams(stage: &GuestStage, peer: &str, direction: Direction, seconds: u32) -> Throughput {
    let before = dropped_by_kernels(stage);
    let udp = stage.iperf(peer, Protocol::Udp(5), direction, seconds);
    assert!(udp.datagrams > 200, "UDP {direction:?}: {udp:?}");
    if udp.lost > 0 {
        let counted = dropped_by_kernels(stage) - before;
        assert!(
            udp.lost <= counted,
            "UDP {direction:?}: {udp:?}, {counted} counted"
        );
    }
    udp
}

/// Streams and datagrams both ways between these addresses.
fn streams_and_datagrams(stage: &GuestStage, peer: &str, seconds: u32) {
    for direction in [Direction::Out, Direction::In] {
        let tcp = stage.iperf(peer, Protocol::Tcp, direction, seconds);
        assert!(tcp.mbps > 5.0, "TCP {direction:?}: {tcp:?}");
        datagrams(stage, peer, direction, seconds);
    }
    nothing_is_damaged(stage);
}

/// Reference 6.5, 13, 14: `acenic` always lets the card make the sums of what it
/// sends, and believes those of what it receives.
pub fn tcp_and_udp_with_checksums_by_the_card(stage: &mut GuestStage) {
    let features = stage.sh("ethtool -k eth0");
    assert!(features.contains("tx-checksum-ipv4: on"), "{features}");
    streams_and_datagrams(stage, PEER, 2);
}

/// The same few datagrams a second come in each time, however often a run is begun anew.
pub fn datagrams_come_in_run_after_run(stage: &mut GuestStage) {
    let runs = repetitions(5);
    let (mut fewest, mut lost) = (u64::MAX, 0);
    for _ in 0..runs {
        let udp = datagrams(stage, PEER, Direction::In, 1);
        fewest = fewest.min(udp.datagrams);
        lost += udp.lost;
    }
    println!(
        "datagrams into the guest: {runs} runs of at least {fewest}, {lost} lost by the kernels, \
         none by the card"
    );
    nothing_is_damaged(stage);
}

/// What of the offloads the driver lets be switched: segmentation, gathering and
/// aggregation by the kernel. Sums by the card are fixed in it; on a VLAN device
/// the kernel makes them itself, see there.
pub fn offloads_are_switched_off_and_on(stage: &mut GuestStage) {
    let features = stage.sh("ethtool -k eth0");
    let line = |name: &str| {
        let found = features.lines().find(|line| line.trim().starts_with(name));
        found.unwrap_or_else(|| panic!("{name} in {features}"))
    };
    for fixed in ["tx-checksum-ipv4:", "tx-vlan-offload:", "rx-vlan-offload:"] {
        assert!(line(fixed).ends_with("on [fixed]"), "{}", line(fixed));
    }
    // Asked to, it says that nothing changes, and nothing does.
    let asked = stage
        .guest
        .run("ethtool -K eth0 tx off", Duration::from_secs(10));
    asked.unwrap_or_else(|error| panic!("{error:#}"));
    let after = stage.sh("ethtool -k eth0");
    assert!(after.contains("tx-checksum-ipv4: on"), "{after}");
    for state in ["off", "on"] {
        stage.sh(&format!("ethtool -K eth0 gso {state} gro {state}"));
        let features = stage.sh("ethtool -k eth0");
        let gso = format!("generic-segmentation-offload: {state}");
        assert!(features.contains(&gso), "{features}");
        streams_and_datagrams(stage, PEER, 1);
    }
}

/// MTU 9000 at both ends and back, and once more with the driver loaded anew.
///
/// Anew, since `acenic` counts the jumbo buffers it has posted and begins that count
/// only when it finds the card. Those it frees when the ring is reset stay counted, so
/// after a second rise it believes in twice its 48, posts no more when these are used
/// up, and what comes waits for ever (docs/compatibility.md).
pub fn jumbo_frames_and_back(stage: &mut GuestStage) {
    let mtu = |stage: &GuestStage, mtu: u32| {
        stage.sh(&format!("ip link set eth0 mtu {mtu}"));
        let set = stage.peer.mtu(mtu);
        set.unwrap_or_else(|error| panic!("{error:#}"));
    };
    for round in 0..2 {
        mtu(stage, 9000);
        stage.cable.reset();
        for payload in [8972, 8971, 1473, 4000, 2000] {
            stage.ping_both_ways(GUEST, PEER, payload, 5);
        }
        // Request and reply of five pings of five sizes, from both sides. While ping waits
        // for its fifth reply it sends a request each 2 ms, and leaves before they are
        // answered.
        let quiet = Duration::from_millis(200);
        assert!(stage.cable.settle(quiet, Duration::from_secs(10)));
        let counts = stage.cable.counts();
        let jumbo = (counts.from_card.jumbo, counts.to_card.jumbo);
        assert!(jumbo.0 >= 5 * 5 * 2, "round {round}: {counts:?}");
        assert_eq!(jumbo.0, jumbo.1, "round {round}: {counts:?}");
        streams_and_datagrams(stage, PEER, 1);
        mtu(stage, 1500);
        stage.cable.reset();
        stage.ping_both_ways(GUEST, PEER, 1472, 5);
        stage.ping_both_ways(GUEST, PEER, 4000, 5);
        streams_and_datagrams(stage, PEER, 1);
        let counts = stage.cable.counts();
        assert_eq!((counts.from_card.jumbo, counts.to_card.jumbo), (0, 0));
        let log = stage.fresh_log();
        assert_eq!(log.matches("Jumbo ring flushed").count(), round + 1);
        if round == 0 {
            load_anew(stage);
        }
    }
    stage.carries_traffic();
}

/// Unloads and loads the driver and waits until a ping comes back.
fn load_anew(stage: &GuestStage) {
    stage.sh(&format!(
        "modprobe -r acenic && modprobe acenic && \
         ip address add {GUEST}/24 dev eth0 && ip link set eth0 up && \
         n=0; until ping -q -c 1 -W 1 {PEER} > /dev/null; do \
           n=$((n + 1)); [ $n -lt 10 ] || exit 1; \
         done"
    ));
}

/// VLAN 5: the card puts the tag in and takes it out (Reference 10.4, 13, 14).
pub fn a_vlan_is_tagged_on_the_wire(stage: &mut GuestStage) {
    const GUEST_5: &str = "10.79.5.1";
    const PEER_5: &str = "10.79.5.2";
    stage.sh("modprobe 8021q && ip link add link eth0 name eth0.5 type vlan id 5");
    stage.sh(&format!(
        "ip address add {GUEST_5}/24 dev eth0.5 && ip link set eth0.5 up"
    ));
    let tap = stage.peer.vlan(5, &format!("{PEER_5}/24"), 1500);
    let tap = tap.unwrap_or_else(|error| panic!("{error:#}"));
    stage.cable.join_vlan(5, tap);
    let quiet = Duration::from_millis(100);
    stage.cable.settle(quiet, Duration::from_secs(5));
    stage.cable.reset();
    stage.cable.record();
    for payload in [0, 1, 56, 1000, 1471, 1472] {
        stage.ping_both_ways(GUEST_5, PEER_5, payload, 5);
    }
    let seen = stage.cable.recorded();
    assert!(seen.len() >= 6 * 5 * 4, "{} frames", seen.len());
    for sight in &seen {
        assert_eq!(
            sight.vlan(),
            Some(5),
            "{:?}: {:02x?}",
            sight.way,
            sight.frame
        );
    }
    let longest = |way| {
        seen.iter()
            .filter(|s| s.way == way)
            .map(|s| s.frame.len())
            .max()
    };
    assert_eq!(longest(Way::FromCard), Some(1518));
    assert_eq!(longest(Way::ToCard), Some(1518));
    // The sums of what a VLAN device sends are the kernel's own.
    streams_and_datagrams(stage, PEER_5, 1);
    // Beside it, frames without a tag are those of the device itself.
    stage.cable.record();
    stage.carries_traffic();
    assert!(
        stage
            .cable
            .recorded()
            .iter()
            .all(|sight| sight.vlan().is_none())
    );
    // A tag of another VLAN reaches nobody, and says so in no log.
    let tap = stage.peer.vlan(6, "10.79.6.2/24", 1500);
    stage
        .cable
        .join_vlan(6, tap.unwrap_or_else(|error| panic!("{error:#}")));
    let station = stage.sh("cat /sys/class/net/eth0/address");
    let device = stage.peer.vlan_device(6);
    let neighbour = format!("ip neigh add 10.79.6.1 lladdr {station} dev {device}");
    let added = stage.peer.sh(&neighbour);
    added.unwrap_or_else(|error| panic!("{error:#}"));
    stage.cable.reset();
    let lost = stage.peer.ping("10.79.6.1", 56, 3);
    assert_eq!(lost.unwrap_or_else(|e| panic!("{e:#}")).received, 0);
    assert_eq!(stage.cable.counts().to_card.tagged, 3);
    stage.sh("ip link delete eth0.5");
    stage.cable.leave_vlan(5);
    stage.cable.leave_vlan(6);
    stage.carries_traffic();
}
