//! Copies of the server as processes, on one port, with one cache.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dusi::{Event, EventQueue, Sizes, Status, Ual};
use eta::Engine;
use eta::memory_wire::{MemoryWire, pair};
use host_driver::stack::Identity;
use rustix::process::{Pid, Signal};
use smoltcp::wire::Ipv4Cidr;

const LIMIT: Duration = Duration::from_secs(20);
const COPIES: usize = 3;

fn engine(wire: MemoryWire, last: u8, listen: &Path, stop: &Arc<AtomicBool>) {
    let identity = Identity {
        station: [2, 0, 0, 0, 0, last],
        address: Ipv4Cidr::new(Ipv4Addr::new(10, 77, 0, last), 24),
    };
    let mut engine = Engine::new(wire, identity).expect("descriptors");
    engine.listen(listen).expect("a socket");
    let stop = stop.clone();
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let turned = engine.turn(Duration::from_millis(5));
            turned.expect("a wire that holds");
        }
    });
}

fn userver(root: &Path, options: &[&str]) -> Child {
    let program = std::env::var_os("CARGO_BIN_EXE_userver").expect("cargo test");
    let mut server = Command::new(program);
    server.arg("--root").arg(root).args(["--copies", "3"]);
    let started = server.args(options).stderr(Stdio::piped()).spawn();
    started.expect("a process")
}

/// Ends a server in order; what it and its copies have said.
fn end(server: Child) -> String {
    let process = Pid::from_raw(server.id().cast_signed()).expect("a process");
    rustix::process::kill_process(process, Signal::TERM).expect("it runs");
    let said = server.wait_with_output().map(|output| {
        assert!(output.status.success(), "{}", output.status);
        String::from_utf8_lossy(&output.stderr).into_owned()
    });
    said.expect("it ends")
}

/// The event of a tag.
fn event(ual: &mut Ual, queue: EventQueue, tag: u64) -> Event {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < LIMIT, "no event {tag}");
        let events = ual.wait_all(queue, Duration::from_millis(50));
        for event in events.expect("an engine that holds") {
            if event.tag == tag {
                return event;
            }
        }
    }
}

/// Requests of all copies together, and of how many of them each.
fn requests(said: &str) -> Vec<u64> {
    let counts = said.lines().filter_map(|line| {
        let (before, _) = line.split_once(" requests,")?;
        before.rsplit(' ').next()?.parse().ok()
    });
    counts.collect()
}

#[test]
fn copies_share_a_port_and_a_cache_through_an_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("root")).expect("a folder");
    let page = "x".repeat(5003);
    std::fs::write(path("root").join("page"), &page).expect("a file");
    let (near, far) = pair().expect("descriptors");
    let stop = Arc::new(AtomicBool::new(false));
    engine(near, 1, &path("near.sock"), &stop);
    engine(far, 2, &path("far.sock"), &stop);
    let near = path("near.sock");
    let listen = ["--ppe", near.to_str().expect("a path")];
    let server = userver(&path("root"), &listen);
    let mut ual = Ual::connect(&path("far.sock"), Sizes::default()).expect("attached");
    let queue = ual.create_event_queue().expect("a queue");
    let text = b"GET /page HTTP/1.0\r\n\r\n";
    let request = ual.register(text.len()).expect("memory");
    ual.write(&request, text).expect("in it");
    let room = ual.register(8192).expect("memory");
    let start = Instant::now();
    let mut replies = 0;
    while replies < 30 {
        assert!(start.elapsed() < LIMIT, "{replies} replies");
        let socket = ual.socket((queue, 1)).expect("a handle");
        let to = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 80);
        ual.connect_to(socket, to, (queue, 2)).expect("room");
        if event(&mut ual, queue, 2).status == Status::Ok {
            let sent = ual.transmit(socket, &request, text.len(), (queue, 3));
            sent.expect("room");
            let wanted = ual.receive_whole(socket, &room, (0, 8192), (queue, 4));
            wanted.expect("room");
            let got = event(&mut ual, queue, 4);
            assert_eq!(got.status, Status::Ok, "after {replies} replies");
            let mut reply = vec![0; got.length];
            ual.read(&room, &mut reply).expect("in it");
            let reply = String::from_utf8_lossy(&reply);
            assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
            assert!(reply.ends_with(&page));
            replies += 1;
        }
        ual.close(socket, (queue, 5)).expect("room");
        event(&mut ual, queue, 5);
    }
    let said = end(server);
    let counts = requests(&said);
    assert_eq!(counts.len(), COPIES, "{said}");
    assert_eq!(counts.iter().sum::<u64>(), 30, "{said}");
    // Accepts go in turn to those who have one posted.
    assert!(counts.iter().all(|count| *count > 0), "{said}");
    stop.store(true, Ordering::Relaxed);
}

/// A port of this machine that nobody listens at.
fn free_port() -> u16 {
    let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    free.local_addr().expect("an address").port()
}

#[test]
fn copies_share_a_port_through_the_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("page"), "kernel").expect("a file");
    let port = free_port();
    let options = ["--kernel", "127.0.0.1", "--port", &port.to_string()];
    let server = userver(folder.path(), &options);
    let start = Instant::now();
    let mut replies = 0;
    while replies < 10 {
        assert!(start.elapsed() < LIMIT, "{replies} replies");
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let request = b"GET /page HTTP/1.0\r\n\r\n";
        stream.write_all(request).expect("an open connection");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("an end");
        assert!(reply.ends_with("kernel"), "{reply}");
        replies += 1;
    }
    let said = end(server);
    assert_eq!(requests(&said).iter().sum::<u64>(), 10, "{said}");
    assert_eq!(requests(&said).len(), COPIES, "{said}");
}

/// One copy listens; the others have perhaps not yet got to their first line.
#[test]
fn copies_that_have_just_started_end_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..10 {
        let port = free_port().to_string();
        let mut server = userver(folder.path(), &["--kernel", "127.0.0.1", "--port", &port]);
        let mut said = BufReader::new(server.stderr.take().expect("piped"));
        let mut first = String::new();
        said.read_line(&mut first).expect("a line");
        assert!(first.contains("listening"), "{first}");
        end(server);
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("an end");
        assert_eq!(requests(&rest).len(), COPIES, "round {round}: {rest}");
    }
}
