//! Sockets without the kernel on the real firmware: a page goes from userver through dusi, the
//! packet processing engine, the driver and the simulated card to a client at its wire.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use dusi::Ual;
use eta::memory_wire::pair;
use eta::{Engine as Ppe, EngineError};
use host_driver::nic::ChecksumOffload;
use host_driver::stack::card::CardWire;
use host_driver::stack::{Host, Identity, Wire};
use host_driver::status::{Request, ask};
use host_driver::{Config, Transport};
use integration_tests::engine::{Engine, Sim};
use integration_tests::stage::Stage;
use smoltcp::socket::tcp;
use smoltcp::wire::Ipv4Cidr;
use testbed::eta::{Build, Site};
use testbed::net::namespace;
use tigon2_chip::Cpu;
use tigon2_chip::bits::CpuState;
use tigon2_chip::registers::Register;
use tigon2_model::is_flow_control;
use userver::cache::Cache;
use userver::{Limits, Server, Settings};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The card's time that passes in each turn of the loop.
const STEP: Duration = Duration::from_micros(50);
/// Bytes of the shortest frame on the wire, without its checksum.
const SHORTEST: usize = 60;

#[test]
fn a_page_arrives_whole_over_the_simulated_card() {
    let counts = page(Config::default(), false, false);
    assert!(counts.sent > 20_001);
    assert_eq!(counts.in_place, 0);
}

/// Neither server nor engine moves a byte of it: the card reads it where the server has it, and
/// sums it.
#[test]
fn a_page_goes_out_without_a_copy() {
    let config = Config {
        send_checksums: ChecksumOffload::FULL,
        receive_checksums: ChecksumOffload::FULL,
        ..Config::default()
    };
    let counts = page(config, true, false);
    assert!(counts.in_place > 20_001);
    assert_eq!((counts.sent, counts.stack.filled), (0, 0));
    // What smoltcp moves for nothing.
    assert!(counts.stack.placeholders >= counts.in_place);
}

/// The card's firmware stops while a page is under way. The card is reset, and the connection lives
/// on: what was lost is sent again.
#[test]
fn connections_survive_firmware_that_stops() {
    for in_place in [false, true] {
        let checksums = if in_place {
            ChecksumOffload::FULL
        } else {
            ChecksumOffload::default()
        };
        let config = Config {
            send_checksums: checksums,
            receive_checksums: checksums,
            watchdog: Duration::from_millis(200),
            ..Config::default()
        };
        let counts = page(config, in_place, true);
        assert_eq!((counts.expelled, counts.ended), (0, 0));
    }
}

/// `ppe` on QEMU's card by vfio-user, `userver` on it, and curl at the other end of the card's wire.
#[test]
fn curl_gets_whole_pages_through_the_card_in_qemu() {
    if !namespace::for_test() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let large: Vec<u8> = (0..300_007u32).map(|byte| (byte * 7 % 251) as u8).collect();
    std::fs::write(folder.path().join("large"), &large).expect("a file");
    for number in 1..=20 {
        let page = "x".repeat(number);
        std::fs::write(folder.path().join(number.to_string()), page).expect("a file");
    }
    for (idle, options) in [("adaptive", &["--in-place"][..]), ("sleep", &[])] {
        let tools = integration_tests::engine::tools();
        let site = Site::start_on_card(&tools, Build::Test, idle, folder.path(), options);
        let mut site = site.expect("a card, an engine and a server");
        let fetch = |words: &[&str]| {
            let mut curl = site.namespace.command("curl");
            let retry = ["--retry", "20", "--retry-delay", "1", "--retry-connrefused"];
            curl.args(["--silent", "--show-error", "--max-time", "30"]);
            let got = curl.args(retry).args(words).output().expect("curl");
            let complaint = String::from_utf8_lossy(&got.stderr);
            assert!(got.status.success(), "{idle}: {complaint}");
            got.stdout
        };
        assert!(fetch(&["http://10.77.0.1/large"]) == large, "{idle}");
        // Twenty requests on one connection.
        let each = [
            "--write-out",
            "%{http_code} %{num_connects}\n",
            "--output",
            "/dev/null",
        ];
        let said = fetch(&[&each[..], &["http://10.77.0.1/[1-20]"]].concat());
        let said = String::from_utf8_lossy(&said);
        let count = |line: &str| said.lines().filter(|one| *one == line).count();
        assert_eq!((count("200 1"), count("200 0")), (1, 19), "{idle}: {said}");
        let answer = ask(&site.status(), &Request::Statistics).expect("an engine");
        let engine = &answer["statistics"]["engine"];
        let in_place = engine["in_place"].as_u64().expect("a count");
        let copied = engine["sent"].as_u64().expect("a count");
        if options.is_empty() {
            assert!(copied > 300_007 && in_place == 0, "{answer}");
        } else {
            assert!(in_place > 300_007 && copied == 0, "{answer}");
            assert_eq!(answer["statistics"]["stack"]["filled"], 0);
        }
        // The card's process is killed: the engine ends with one reason, and its server hears it.
        let start = Instant::now();
        let said = site.kill_card().expect("an engine and a server that end");
        assert!(start.elapsed() < Duration::from_secs(10), "{idle}: {said}");
        assert_eq!(
            said.lines()
                .filter(|line| line.starts_with("Error"))
                .count(),
            2,
            "{said}"
        );
        assert!(said.contains("the engine has ended"), "{said}");
    }
}

/// Fetches a page; the engine's counts then.
fn page(config: Config, in_place: bool, halt: bool) -> eta::Statistics {
    let folder = tempfile::tempdir().expect("a folder");
    let page: Vec<u8> = (0..20_001u32).map(|byte| (byte * 7 % 251) as u8).collect();
    std::fs::write(folder.path().join("page"), &page).expect("a file");

    let mut stage = Stage::<Sim>::open_with(config);
    let station = stage.nic.station();
    let address = Ipv4Cidr::new(ADDRESS, 24);
    let wire = CardWire::new(&mut stage.nic);
    let mut ppe = Ppe::new(wire, Identity { station, address }).expect("descriptors");
    let memory = ppe.attach().expect("memory");
    let ual = Ual::open(memory).expect("a memory file");
    let cache = Cache::create(1 << 20).expect("memory");
    let hour = Duration::from_secs(3600);
    let settings = Settings {
        in_place,
        // The card's time is not that of the clock.
        limits: Limits {
            idle: hour,
            patience: hour,
        },
        ..Settings::default()
    };
    let server = Server::new(ual, folder.path(), 80, cache, settings);
    let mut server = server.expect("a server");

    let (far, near) = pair().expect("descriptors");
    let station = [2, 0, 0, 0, 0, 2];
    let address = Ipv4Cidr::new(Ipv4Addr::new(10, 77, 0, 2), 24);
    let mut client = Host::new(near, Identity { station, address });
    let buffer = || tcp::SocketBuffer::new(vec![0; 65536]);
    let handle = client.sockets.add(tcp::Socket::new(buffer(), buffer()));

    let mut reply = Vec::new();
    let (mut connected, mut asked) = (false, false);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut ended = false;
    let (mut halted, mut recoveries) = (false, 0);
    while !ended || server.statistics().closed == 0 {
        assert!(
            Instant::now() < deadline,
            "no end after {} bytes",
            reply.len()
        );
        match ppe.turn(Duration::ZERO) {
            Ok(()) => {}
            Err(EngineError::Wire(error)) if halted => {
                recoveries += 1;
                let recovered = ppe.wire().recover(&error);
                assert!(recovered.expect("a reset mends it"), "{error}");
            }
            Err(error) => panic!("the card is there: {error}"),
        }
        if halt && !halted && reply.len() > 5000 {
            halted = true;
            let halt = CpuState::new().with_halt(true).into_bits();
            let state = Register::cpu_state(Cpu::A).offset();
            let transport = ppe.wire().nic().transport();
            transport.write(state, halt).expect("the card is there");
        }
        server.step().expect("an engine that holds");
        stage.engine.pass(STEP);
        while let Some(mut frame) = far.take() {
            frame.resize(frame.len().max(SHORTEST), 0);
            stage.engine.send(&frame);
        }
        while let Some(frame) = stage.engine.receive_now() {
            if !is_flow_control(&frame) {
                far.put(frame);
            }
        }
        client.turn().expect("a wire that holds");
        if !connected && server.listening().is_some() {
            let (interface, sockets) = client.parts();
            let socket = sockets.get_mut::<tcp::Socket<'_>>(handle);
            let opened = socket.connect(interface.context(), (ADDRESS, 80), 50_000);
            opened.expect("a fresh socket");
            connected = true;
        }
        let socket = client.sockets.get_mut::<tcp::Socket<'_>>(handle);
        if connected && !asked && socket.can_send() {
            let request = b"GET /page HTTP/1.0\r\n\r\n";
            assert_eq!(socket.send_slice(request), Ok(request.len()));
            asked = true;
        }
        while socket.can_recv() {
            let part = socket.recv(|bytes| (bytes.len(), bytes.to_vec()));
            reply.extend(part.expect("an open socket"));
        }
        ended = asked && !socket.may_recv();
    }
    let body = reply.windows(4).position(|four| four == b"\r\n\r\n");
    assert!(reply.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert!(
        reply[body.expect("a header") + 4..] == page,
        "the page differs from the file"
    );
    assert_eq!(ppe.statistics().expelled, 0);
    assert_eq!(halt, recoveries > 0, "{recoveries} resets");
    ppe.statistics()
}
