//! Tests cards back to back: one Linux sends, another receives.

use integration_tests::guest::neighbours::{GuestAndDriver, Routed, TwoGuests};
use integration_tests::guest::peer::answered;
use integration_tests::guest::stage::{ping_from, sh, wait_for};
use serde_json::Value;
use std::time::Duration;
use testbed::guest::{Guest, Output};
use testbed::net::iperf::{self, Direction, Protocol};

/// Pings of these sizes, all answered.
fn pings(from: &Guest, to: &str, sizes: &[u32]) {
    for size in sizes {
        ping_from(from, to, *size, 20);
    }
}

/// Runs a command in a guest that must succeed.
fn run(guest: &Guest, command: &str, limit: Duration) -> Output {
    let output = guest.run(command, limit);
    let output = output.unwrap_or_else(|error| panic!("{command}: {error:#}"));
    assert_eq!(
        output.status, 0,
        "{command}: {}{}",
        output.stdout, output.stderr
    );
    output
}

/// Starts a server in a guest and waits until it listens at a TCP port.
fn listen(guest: &Guest, command: &str, port: u16) -> testbed::guest::Job {
    let server = guest
        .spawn(command)
        .unwrap_or_else(|e| panic!("{command}: {e:#}"));
    wait_for(Duration::from_secs(20), command, || {
        sh(
            guest,
            "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true",
        )
        .lines()
        .any(|line| line.contains(&format!(":{port:04X} ")) && line.contains(" 0A "))
    });
    server
}

/// TCP and UDP by iperf3 from one guest to another and back.
fn streams_and_datagrams(client: &Guest, server: &Guest, address: &str, seconds: u32) {
    let limit = Duration::from_secs(u64::from(seconds) + 60);
    for direction in [Direction::Out, Direction::In] {
        for protocol in [Protocol::Tcp, Protocol::Udp(4)] {
            // Each has a server of its own: one that has just ended a run may refuse the next.
            let job = listen(server, "iperf3 --server --one-off", 5201);
            let words = iperf::client_words(address, protocol, direction, seconds);
            let output = run(client, &format!("iperf3 {}", words.join(" ")), limit);
            let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
            let result = iperf::parse(&report, protocol);
            let result = result.unwrap_or_else(|| panic!("no sums: {report}"));
            assert!(result.mbps > 1.0, "{protocol:?} {direction:?}: {result:?}");
            assert_eq!(result.lost, 0, "{protocol:?} {direction:?}: {result:?}");
            job.wait(limit).unwrap_or_else(|error| panic!("{error:#}"));
        }
    }
}

pub fn two_guests_talk(stage: &mut TwoGuests) {
    let (left, right) = (&stage.left.guest, &stage.right.guest);
    pings(left, TwoGuests::RIGHT, &[0, 56, 1472, 5000]);
    pings(right, TwoGuests::LEFT, &[1, 18, 1471, 5000]);
    streams_and_datagrams(left, right, TwoGuests::RIGHT, 2);
    // The same with jumbo frames.
    for guest in [left, right] {
        sh(guest, "ip link set eth0 mtu 9000");
    }
    pings(left, TwoGuests::RIGHT, &[8972, 1473]);
    streams_and_datagrams(left, right, TwoGuests::RIGHT, 1);
    for guest in [left, right] {
        sh(guest, "ip link set eth0 mtu 1500");
    }
    pings(left, TwoGuests::RIGHT, &[1472]);
}

/// What one guest counts as sent, the other counts as received, and nobody lost
/// anything on the way.
pub fn two_guests_count_the_same(stage: &mut TwoGuests) {
    let machines = [&stage.left.guest, &stage.right.guest];
    let counts =
        || {
            std::thread::sleep(Duration::from_millis(500));
            machines.map(|guest| {
            let text = sh(
                guest,
                "cd /sys/class/net/eth0/statistics && cat tx_packets rx_packets rx_missed_errors",
            );
            let numbers = text.split_whitespace().map(|n| n.parse().expect("a number"));
            numbers.collect::<Vec<u64>>()
        })
        };
    let before = counts();
    pings(machines[0], TwoGuests::RIGHT, &[56, 1472]);
    streams_and_datagrams(machines[0], machines[1], TwoGuests::RIGHT, 1);
    let after = counts();
    let grown = |machine: usize, what: usize| after[machine][what] - before[machine][what];
    assert!(grown(0, 0) > 100);
    assert_eq!(grown(0, 0), grown(1, 1), "left to right");
    assert_eq!(grown(1, 0), grown(0, 1), "right to left");
    assert_eq!((grown(0, 2), grown(1, 2)), (0, 0), "missed");
}

/// Every byte of what goes both ways at once is checked.
pub fn a_short_soak_with_checked_payloads(stage: &mut TwoGuests) {
    let (left, right) = (&stage.left.guest, &stage.right.guest);
    let limit = Duration::from_secs(120);
    for (protocol, size, port) in [("udp", 1400, 7000), ("tcp", 8000, 7001)] {
        let pace = "--seconds 8 --rate 2 --no-loss";
        let listen =
            format!("paycheck both --listen --{protocol} 0.0.0.0:{port} --size {size} {pace}");
        let listener = right
            .spawn(&listen)
            .unwrap_or_else(|error| panic!("{error:#}"));
        std::thread::sleep(Duration::from_secs(1));
        let address = format!("{}:{port}", TwoGuests::RIGHT);
        let connect = format!("paycheck both --{protocol} {address} --size {size} {pace}");
        let one = run(left, &connect, limit);
        let other = listener
            .wait(limit)
            .unwrap_or_else(|error| panic!("{error:#}"));
        for output in [one, other] {
            let report: Value = serde_json::from_str(output.stdout.trim()).expect("JSON");
            assert_eq!(output.status, 0, "{protocol} {size}: {report}");
            assert!(report["received"].as_u64() > Some(100), "{report}");
            for damage in ["lost", "corrupt", "reordered"] {
                assert_eq!(report[damage], 0, "{protocol} {size}: {report}");
            }
        }
    }
}

/// Frames that came to a guest and went no further for want of room: in its rings,
/// before its kernel, at a socket.
fn without_room(guest: &Guest) -> u64 {
    let missed = sh(
        guest,
        "sleep 2; cat /sys/class/net/eth0/statistics/rx_missed_errors",
    );
    let missed: u64 = missed.parse().expect("a number");
    let udp = sh(guest, "grep ^Udp: /proc/net/snmp");
    let mut lines = udp.lines().map(str::split_whitespace);
    let (names, numbers) = (lines.next().expect("names"), lines.next().expect("counts"));
    let at_socket: u64 = names
        .zip(numbers)
        .filter(|(name, _)| *name == "RcvbufErrors")
        .map(|(_, number)| number.parse::<u64>().expect("a number"))
        .sum();
    // One line a CPU, in base 16; the second word counts what did not fit.
    let backlog = sh(guest, "cat /proc/net/softnet_stat");
    let backlog = backlog
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .map(|word| u64::from_str_radix(word, 16).expect("a number"));
    missed + at_socket + backlog.sum::<u64>()
}

/// Short datagrams as fast as both kernels send them: none is changed, and one that
/// is lost is counted where there was no room for it.
pub fn a_flood_of_short_datagrams(stage: &mut TwoGuests) {
    let guests = [&stage.left.guest, &stage.right.guest];
    let limit = Duration::from_secs(120);
    let flood = "--size 29 --seconds 5";
    let before = guests.map(without_room);
    let listener = guests[1]
        .spawn(&format!(
            "paycheck both --listen --udp 0.0.0.0:7002 {flood}"
        ))
        .unwrap_or_else(|error| panic!("{error:#}"));
    std::thread::sleep(Duration::from_secs(1));
    let connect = format!("paycheck both --udp {}:7002 {flood}", TwoGuests::RIGHT);
    let one = run(guests[0], &connect, limit);
    let other = listener
        .wait(limit)
        .unwrap_or_else(|error| panic!("{error:#}"));
    for ((output, guest), before) in [one, other].iter().zip(guests).zip(before) {
        let report: Value = serde_json::from_str(output.stdout.trim()).expect("JSON");
        assert_eq!(output.status, 0, "{report}");
        // What this guest received; the rest is the other's.
        let received = &report["in"];
        assert!(received["received"].as_u64() > Some(1000), "{report}");
        assert_eq!(received["corrupt"], 0, "{report}");
        assert_eq!(received["reordered"], 0, "{report}");
        let dropped = without_room(guest) - before;
        let lost = received["lost"].as_u64().expect("a number");
        assert!(lost <= dropped, "{dropped} found no room: {report}");
    }
}

pub fn a_guest_talks_with_our_driver(stage: &mut GuestAndDriver) {
    let guest = &stage.guest.guest;
    for size in [0, 56, 1472, 5000] {
        pings(guest, GuestAndDriver::HOST, &[size]);
        answered(&stage.host, GuestAndDriver::GUEST, size, 20);
    }
    let limit = Duration::from_secs(60);
    for direction in [Direction::Out, Direction::In] {
        for protocol in [Protocol::Tcp, Protocol::Udp(4)] {
            let words = iperf::client_words(GuestAndDriver::HOST, protocol, direction, 2);
            let command = format!("iperf3 {}", words.join(" "));
            let result = iperf::against(&stage.host, GuestAndDriver::HOST, protocol, || {
                let output = guest.run(&command, limit)?;
                Ok((output.stdout, output.stderr))
            });
            let result = result.unwrap_or_else(|error| panic!("{error:#}"));
            assert!(result.mbps > 1.0, "{protocol:?} {direction:?}: {result:?}");
            assert_eq!(result.lost, 0, "{protocol:?} {direction:?}: {result:?}");
        }
    }
}

pub fn a_guest_routes_between_two(stage: &mut Routed) {
    let (left, right) = (&stage.left.guest, &stage.right.guest);
    pings(left, Routed::RIGHT, &[0, 56, 1472, 5000]);
    pings(right, Routed::LEFT, &[56, 1472]);
    // It went through both of its cards.
    let hops = sh(
        left,
        &format!("ping -n -c 1 -W 3 -t 1 {} || true", Routed::RIGHT),
    );
    assert!(hops.contains("10.82.1.254"), "{hops}");
    streams_and_datagrams(left, right, Routed::RIGHT, 2);
}
