//! Runs both sides over the loopback interface, and over a relay that damages messages.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

use paycheck::report::Report;
use paycheck::{Plan, message, tcp, udp};

fn quick(address: SocketAddr, listen: bool, send: bool) -> Plan {
    Plan {
        duration: Duration::from_secs(20),
        count: Some(2000),
        rate: Some(200.0),
        patience: Duration::from_secs(10),
        idle: Duration::from_secs(2),
        ..Plan::new(address, listen, send)
    }
}

/// A free port on the loopback interface: any.
fn any() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn over_udp(listener_sends: bool, connector_sends: bool) -> (Report, Report) {
    let socket = UdpSocket::bind(any()).expect("a port");
    let address = socket.local_addr().expect("bound");
    let listener =
        thread::spawn(move || udp::serve(&quick(address, true, listener_sends), &socket));
    let connector = udp::run(&quick(address, false, connector_sends)).expect("the other side");
    let listener = listener.join().expect("no panic").expect("the other side");
    (listener, connector)
}

fn over_tcp(listener_sends: bool, connector_sends: bool) -> (Report, Report) {
    let socket = TcpListener::bind(any()).expect("a port");
    let address = socket.local_addr().expect("bound");
    let listener =
        thread::spawn(move || tcp::serve(&quick(address, true, listener_sends), &socket));
    let connector = tcp::run(&quick(address, false, connector_sends)).expect("the other side");
    let listener = listener.join().expect("no panic").expect("the other side");
    (listener, connector)
}

#[test]
fn tcp_carries_every_message_one_way() {
    let (listener, connector) = over_tcp(false, true);
    for report in [&listener, &connector] {
        assert!(report.complete);
        let flow = report.total;
        assert_eq!((flow.sent, flow.received, flow.lost), (2000, 2000, 0));
        assert_eq!((flow.corrupt, flow.duplicated, flow.reordered), (0, 0, 0));
        assert_eq!(flow.bytes, 2000 * 1400);
    }
    assert!(listener.out.is_none() && connector.into.is_none());
}

#[test]
fn tcp_carries_every_message_both_ways_at_once() {
    let (listener, connector) = over_tcp(true, true);
    assert_eq!(listener.out, connector.into);
    assert_eq!(listener.into, connector.out);
    assert_eq!(connector.total.received, 4000);
}

#[test]
fn both_sides_of_udp_print_the_same_figures() {
    for (listener_sends, connector_sends) in [(false, true), (true, false), (true, true)] {
        let (listener, connector) = over_udp(listener_sends, connector_sends);
        assert!(listener.complete && connector.complete);
        assert_eq!(listener.total, connector.total);
        let sent = 2000 * (u64::from(listener_sends) + u64::from(connector_sends));
        let flow = listener.total;
        assert_eq!(flow.sent, sent);
        assert_eq!(flow.received + flow.lost, sent);
        assert!(flow.received > 0);
        assert_eq!((flow.corrupt, flow.duplicated), (0, 0));
    }
}

/// A relay between both sides that flips a bit in each tenth payload, doubles each
/// eleventh and drops each thirteenth.
#[test]
fn what_a_bad_wire_does_is_distinguished() {
    let socket = UdpSocket::bind(any()).expect("a port");
    let address = socket.local_addr().expect("bound");
    let relay = UdpSocket::bind(any()).expect("a port");
    let entrance = relay.local_addr().expect("bound");
    relay
        .set_read_timeout(Some(Duration::from_secs(3)))
        .expect("a time");
    let wire = thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        let mut connector = None;
        while let Ok((bytes, from)) = relay.recv_from(&mut buffer) {
            let frame = &mut buffer[..bytes];
            if from == address {
                relay.send_to(frame, connector.expect("it came first")).ok();
                continue;
            }
            connector = Some(from);
            let data = message::Header::parse(frame).filter(|h| h.kind == message::Kind::Data);
            let number = data.map_or(1, |header| header.number + 1);
            match number {
                n if n % 10 == 0 => frame[bytes - 1] ^= 1,
                n if n % 11 == 0 => {
                    relay.send_to(frame, address).ok();
                }
                n if n % 13 == 0 => continue,
                _ => {}
            }
            relay.send_to(frame, address).ok();
        }
    });
    let plan = Plan {
        count: Some(1000),
        rate: Some(20.0),
        ..quick(address, true, false)
    };
    let listener = {
        let plan = plan.clone();
        thread::spawn(move || udp::serve(&plan, &socket))
    };
    let connector = Plan {
        address: entrance,
        listen: false,
        send: true,
        ..plan
    };
    let report = udp::run(&connector).expect("the other side");
    let listener = listener.join().expect("no panic").expect("the other side");
    wire.join().expect("no panic");
    assert_eq!(report.total, listener.total);
    let flow = report.total;
    let numbers = 1..=1000u64;
    let corrupt = numbers.clone().filter(|n| n % 10 == 0).count() as u64;
    let doubled = numbers
        .clone()
        .filter(|n| n % 10 != 0 && n % 11 == 0)
        .count() as u64;
    let dropped = numbers
        .filter(|n| n % 10 != 0 && n % 11 != 0 && n % 13 == 0)
        .count() as u64;
    assert_eq!(flow.corrupt, corrupt);
    assert_eq!(flow.duplicated, doubled);
    assert_eq!(flow.lost, corrupt + dropped);
}

#[test]
fn the_command_prints_json_and_refuses_nonsense() {
    let paycheck = || Command::new(std::env::var_os("CARGO_BIN_EXE_paycheck").expect("cargo test"));
    for wrong in [
        vec!["send"],
        vec!["send", "--udp", "127.0.0.1:1", "--size", "3"],
        vec!["send", "--udp", "127.0.0.1:1", "--size", "70000"],
        vec!["send", "--udp", "127.0.0.1:1", "--rate", "0"],
        vec!["send", "--tcp", "127.0.0.1:1", "--seconds=-1"],
        vec!["send", "--tcp", "127.0.0.1:1", "--patience", "0.2"],
        vec!["receive", "--tcp", "127.0.0.1:0", "--patience", "0.2"],
    ] {
        let output = paycheck().args(&wrong).output().expect("it starts");
        assert!(!output.status.success(), "{wrong:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.trim().lines().count(), 1, "{wrong:?}: {said}");
    }
    // Ask the system for a port that is free now.
    let port = UdpSocket::bind(any()).and_then(|socket| socket.local_addr());
    let address = port.expect("a port").to_string();
    let receiver = paycheck()
        .args(["receive", "--udp", &address, "--patience", "20"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let sender = paycheck()
        .args(["send", "--udp", &address, "--count", "100", "--rate", "10"])
        .output()
        .expect("it starts");
    let receiver = receiver.wait_with_output().expect("it ends");
    assert!(sender.status.success() && receiver.status.success());
    for output in [sender.stdout, receiver.stdout] {
        let report: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
        assert_eq!(report["sent"], 100);
        assert_eq!(report["corrupt"], 0);
        assert_eq!(report["complete"], true);
    }
}
