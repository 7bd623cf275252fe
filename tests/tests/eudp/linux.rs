//! An endpoint of `tigonctl`'s, and a Linux host with ordinary sockets at the other end of the wire.
//!
//! ```text
//!   namespace of tigonctl                    QEMU             namespace of the peer
//!   endpoint, 10.84.0.1 on TAP ===== card, firmware, MAC ==== TAP 10.84.0.2, port 7 and 8
//! ```

use etherparse::{IpFragOffset, IpNumber, Ipv4Header, UdpHeader};
use host_driver::tap::Tap;
use integration_tests::engine::tools;
use integration_tests::guest::Cable;
use integration_tests::tigonctl::{objects, program};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions, Wire};
use testbed::net::namespace::{self, Namespace};

const PEER: Ipv4Addr = Ipv4Addr::new(10, 84, 0, 2);
/// Sends datagrams back.
const ECHO: u16 = 7;
/// The same in fragments of its own making, the last one first.
const BACKWARDS: u16 = 8;
/// Takes datagrams.
const DISCARD: u16 = 9;
/// Bytes of IP payload in each of those.
const MOST: usize = 1200;

/// The peer: its namespace, and its servers.
struct Peer {
    namespace: Arc<Namespace>,
    stop: Arc<AtomicBool>,
    servers: Vec<JoinHandle<()>>,
}

impl Peer {
    fn start(role: &str) -> Peer {
        let namespace = Namespace::create(role).unwrap_or_else(|error| panic!("{error:#}"));
        Peer {
            namespace: Arc::new(namespace),
            stop: Arc::default(),
            servers: Vec::new(),
        }
    }

    fn serve(&mut self, port: u16, answer: fn(&UdpSocket, &[u8], SocketAddrV4)) {
        let (namespace, stop) = (self.namespace.clone(), self.stop.clone());
        self.servers.push(std::thread::spawn(move || {
            namespace.enter().expect("the namespace is there");
            let socket = UdpSocket::bind((PEER, port)).expect("a port");
            let limit = Some(Duration::from_millis(50));
            socket.set_read_timeout(limit).expect("a limit");
            let mut bytes = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((length, SocketAddr::V4(from))) = socket.recv_from(&mut bytes) {
                    answer(&socket, &bytes[..length], from);
                }
            }
        }));
    }

    /// A count of the kernel's in `/proc/net/snmp`.
    fn count(&self, protocol: &str, name: &str) -> u64 {
        let mut command = self.namespace.command("cat");
        let output = command.arg("/proc/net/snmp").output().expect("cat runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let mut rows = text.lines().filter(|line| line.starts_with(protocol));
        let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
        let mut both = names.split(' ').zip(values.split(' '));
        let (_, value) = both.find(|(known, _)| *known == name).expect("a count");
        value.parse().expect("a number")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for server in self.servers.drain(..) {
            // It has said why it ended.
            let _ = server.join();
        }
    }
}

fn discard(_: &UdpSocket, _: &[u8], _: SocketAddrV4) {}

fn echo(socket: &UdpSocket, data: &[u8], to: SocketAddrV4) {
    socket.send_to(data, to).expect("it is sent");
}

/// Fragments by a raw socket: the kernel sends packets as they are.
fn backwards(_: &UdpSocket, data: &[u8], to: SocketAddrV4) {
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW));
    let raw = raw.expect("a raw socket");
    let mut ip = Ipv4Header::new(0, 64, IpNumber::UDP, PEER.octets(), to.ip().octets());
    let header = ip.as_mut().expect("a header");
    let udp = UdpHeader::with_ipv4_checksum(BACKWARDS, to.port(), header, data);
    let payload = [&udp.expect("it fits").to_bytes()[..], data].concat();
    header.identification = payload.len() as u16;
    header.dont_fragment = false;
    let parts: Vec<_> = payload.chunks(MOST).enumerate().collect();
    for (number, part) in parts.iter().rev() {
        header.set_payload_len(part.len()).expect("it fits");
        header.more_fragments = number + 1 < parts.len();
        let units = number * MOST / 8;
        header.fragment_offset = IpFragOffset::try_new(units as u16).expect("an offset");
        let packet = [&header.to_bytes()[..], part].concat();
        sendto(&raw, &packet, SendFlags::empty(), &to).expect("it is sent");
    }
}

/// The lines that a verb of `tigonctl eudp` prints on a card of its own.
fn run(host: &Namespace, card: &Card, tap: &str, (verb, words): (&str, &[&str])) -> Vec<Value> {
    let image = super::card::built();
    let output = host
        .command(&program().display().to_string())
        .args(["--json", "--socket"])
        .arg(card.socket())
        .args(["eudp", verb, &PEER.to_string(), "--tap", tap])
        .arg("--firmware")
        .arg(&image)
        .args(words)
        .stdin(Stdio::null())
        .output();
    objects(&output.expect("it runs"))
}

/// A host with a card, and its peer, on a wire with packets of `mtu` bytes.
struct Both {
    host: Namespace,
    peer: Peer,
    card: Card,
    tap: String,
    /// The VLAN, and the cable that has it.
    vlan: Option<(&'static str, Cable)>,
}

impl Both {
    fn start(role: &str, mtu: &str) -> Both {
        let wire = format!("tgf{role}{}", std::process::id());
        let options = CardOptions {
            wire: Wire::Tap(wire.clone()),
            ..CardOptions::default()
        };
        let both = Both::with(role, &options);
        both.adopt(&wire);
        let mut command = both.peer.namespace.command("ip");
        let set = command.args(["link", "set", &wire, "mtu", mtu]).status();
        assert!(set.expect("ip runs").success());
        both.serving()
    }

    /// The same in a VLAN: the cable has the tags, as the kernel may have no devices for them.
    fn in_vlan(role: &str, vlan: &'static str) -> Both {
        let both = Both::with(role, &CardOptions::default());
        let device = |number| {
            let name = format!("tgf{role}{number}x{}", std::process::id());
            Tap::create(&name, [2, 0x54, 0x47, 0x46, 0, number], 1500, false).expect("a device")
        };
        let (untagged, tagged) = (device(0), device(1));
        both.adopt(tagged.name());
        let (local, remote) = (both.card.wire_peer(), both.card.wire_card());
        let cable = Cable::join(&local, &remote, untagged).expect("a cable");
        cable.join_vlan(vlan.parse().expect("a number"), tagged);
        Both {
            vlan: Some((vlan, cable)),
            ..both
        }
        .serving()
    }

    fn with(role: &str, options: &CardOptions) -> Both {
        let host = Namespace::create(&format!("endpoint{role}"));
        let card = Card::start(&tools(), options);
        Both {
            host: host.unwrap_or_else(|error| panic!("{error:#}")),
            peer: Peer::start(&format!("sockets{role}")),
            card: card.unwrap_or_else(|error| panic!("{error:#}")),
            tap: format!("tge{role}{}", std::process::id()),
            vlan: None,
        }
    }

    /// The peer has its address on a device.
    fn adopt(&self, device: &str) {
        let adopted = self.peer.namespace.adopt(device, &format!("{PEER}/24"));
        adopted.unwrap_or_else(|error| panic!("{error:#}"));
    }

    fn serving(mut self) -> Both {
        self.peer.serve(ECHO, echo);
        self.peer.serve(BACKWARDS, backwards);
        self.peer.serve(DISCARD, discard);
        self
    }

    fn ping(&self, words: &[&str]) -> Vec<Value> {
        run(&self.host, &self.card, &self.tap, ("ping", words))
    }

    /// Datagrams of these sizes there and back, with each kind of checksum: all by the endpoint.
    fn compare(&self, sizes: &[&str], mtu: &str) {
        for checksum in ["full", "leading", "none"] {
            let mut words = vec!["--checksum", checksum, "--count", "3", "--mtu", mtu];
            words.extend(self.vlan.iter().flat_map(|(vlan, _)| ["--vlan", *vlan]));
            words.extend(sizes.iter().flat_map(|size| ["--size", size]));
            let lines = self.ping(&words);
            let answers: Vec<_> = lines.iter().filter(|line| line["kind"] == "ping").collect();
            assert_eq!(answers.len(), sizes.len(), "{lines:?}");
            for (line, size) in answers.iter().zip(sizes) {
                assert_eq!(line["bytes"].to_string(), *size);
                assert_eq!(
                    (&line["answers"], &line["by"]),
                    (&3.into(), &"endpoint".into())
                );
            }
            refused_nothing(&lines);
        }
    }

    /// The peer's kernel has found no fault with what came.
    fn is_content(&self) {
        for (protocol, name) in [
            ("Udp:", "InCsumErrors"),
            ("Udp:", "InErrors"),
            ("Ip:", "ReasmFails"),
        ] {
            assert_eq!(self.peer.count(protocol, name), 0, "{protocol} {name}");
        }
    }
}

/// Datagrams of all lengths there and back, with each checksum and without: what the peer's kernel
/// sends comes in by the endpoint, in fragments, too. What begins with another fragment comes by the
/// kernel.
#[test]
fn a_linux_peer_answers_datagrams_of_all_lengths() {
    if !namespace::for_test() {
        return;
    }
    let both = Both::start("a", "1500");
    both.compare(
        &["1", "64", "1472", "1473", "2953", "9000", "30001", "65507"],
        "1500",
    );
    let port = BACKWARDS.to_string();
    let words = [
        "--port", &port, "--size", "3001", "--size", "900", "--count", "3",
    ];
    let lines = both.ping(&words);
    let by: Vec<_> = lines
        .iter()
        .filter_map(|line| line["by"].as_str())
        .collect();
    assert_eq!(by, ["kernel", "endpoint"], "{lines:?}");
    refused_nothing(&lines);
    both.is_content();
    // Each datagram of more than a frame went there in fragments.
    assert!(both.peer.count("Ip:", "ReasmOKs") >= 3 * 5 * 3 + 3);
}

/// The same with packets of 9000 bytes.
#[test]
fn a_linux_peer_answers_datagrams_in_jumbo_frames() {
    if !namespace::for_test() {
        return;
    }
    let both = Both::start("j", "9000");
    both.compare(&["1", "1473", "8972", "8973", "30001", "65507"], "9000");
    both.is_content();
    assert!(both.peer.count("Ip:", "ReasmOKs") >= 3 * 3 * 3);
}

/// The same in a VLAN.
#[test]
fn a_linux_peer_answers_datagrams_in_a_vlan() {
    if !namespace::for_test() {
        return;
    }
    let both = Both::in_vlan("v", "5");
    both.compare(&["1", "64", "1472", "1473", "9000", "65507"], "1500");
    both.is_content();
    assert!(both.peer.count("Ip:", "ReasmOKs") >= 3 * 3 * 3);
}

/// Datagrams as fast as the card takes them: what is counted has reached the peer's kernel, and the
/// rate is that of these datagrams.
#[test]
fn throughput_is_what_the_peer_gets() {
    if !namespace::for_test() {
        return;
    }
    let both = Both::start("t", "1500");
    let port = DISCARD.to_string();
    let words = ["--port", &port, "--size", "1000", "--seconds", "0.3"];
    let lines = run(&both.host, &both.card, &both.tap, ("throughput", &words));
    let of_kind = |kind| lines.iter().find(|line| line["kind"] == kind);
    let line = of_kind("throughput").unwrap_or_else(|| panic!("{lines:?}"));
    let of = |name: &str| line[name].as_f64().expect("a number");
    let (datagrams, seconds) = (of("datagrams"), of("seconds"));
    assert_eq!(line["bytes"], 1000);
    assert!((0.3..10.0).contains(&seconds), "{line}");
    assert!(datagrams > 8.0, "more than there are places: {line}");
    let rate = datagrams * 8000e-6 / seconds;
    assert!((of("megabits") - rate).abs() < 1e-6 * rate, "{line}");
    refused_nothing(&lines);
    // A server that has no turn for a while takes them later, and loses some at its socket.
    let count = |name| both.peer.count("Udp:", name);
    let came = || (count("InDatagrams") + count("RcvbufErrors")) as f64;
    let end = Instant::now() + Duration::from_secs(10);
    while came() < datagrams && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(came() >= datagrams, "{} came of {line}", came());
    assert_eq!(count("InCsumErrors"), 0);
}

fn refused_nothing(lines: &[Value]) {
    let ours = lines.iter().find(|line| line["kind"] == "eudp");
    let ours = ours.unwrap_or_else(|| panic!("{lines:?}"));
    let counts = ours.as_object().expect("an object").iter();
    let refused: Vec<_> = counts
        .filter(|(_, count)| count.as_u64().is_some_and(|n| n != 0))
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
}
