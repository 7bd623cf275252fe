//! Pages served by userver through dusi, the engine and a memory wire to a smoltcp client.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dusi::Ual;
use eta::Engine;
use eta::memory_wire::{MemoryWire, pair};
use host_driver::stack::{Host, Identity};
use smoltcp::socket::tcp;
use smoltcp::wire::Ipv4Cidr;
use userver::cache::Cache;
use userver::{DynamicPage, Limits, Server, Settings, Statistics, Status};

fn identity(last: u8) -> Identity {
    Identity {
        station: [2, 0, 0, 0, 0, last],
        address: Ipv4Cidr::new(Ipv4Addr::new(10, 77, 0, last), 24),
    }
}

struct Site {
    client: Host<MemoryWire>,
    stop: Arc<AtomicBool>,
    served: Arc<AtomicBool>,
    engine: Option<JoinHandle<eta::Statistics>>,
    server: Option<JoinHandle<Statistics>>,
    folder: tempfile::TempDir,
    port: u16,
}

impl Site {
    fn new() -> Self {
        Self::with(1 << 22, Settings::default())
    }

    fn with(cache: u64, settings: Settings) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        std::fs::create_dir(&root).expect("a folder");
        std::fs::write(root.join("index.html"), "<p>welcome</p>").expect("a file");
        std::fs::write(root.join("large"), large()).expect("a file");
        std::fs::write(folder.path().join("secret"), "secret").expect("a file");
        let (near, far) = pair().expect("descriptors");
        let mut engine = Engine::new(near, identity(1)).expect("descriptors");
        let memory = engine.attach().expect("memory");
        let stop = Arc::new(AtomicBool::new(false));
        let engine_stop = stop.clone();
        let engine = std::thread::spawn(move || {
            while !engine_stop.load(Ordering::Relaxed) {
                engine
                    .turn(Duration::from_micros(100))
                    .expect("a wire that holds");
            }
            engine.statistics()
        });
        let served = Arc::new(AtomicBool::new(false));
        let server_stop = served.clone();
        let (listening, started) = std::sync::mpsc::channel();
        let server = std::thread::spawn(move || {
            let ual = Ual::open(memory).expect("a memory file");
            let cache = Cache::create(cache).expect("memory");
            let server = Server::new(ual, &root, 80, cache, settings);
            let mut server = server.expect("a server");
            let start = Instant::now();
            while server.listening().is_none() {
                assert!(start.elapsed() < Duration::from_secs(20), "no listener");
                server.step().expect("an engine that holds");
            }
            assert_eq!(server.listening(), Some(Status::Ok));
            listening.send(()).expect("the test waits");
            while !server_stop.load(Ordering::Relaxed) {
                if !server.step().expect("an engine that holds") {
                    let nap = Duration::from_millis(5);
                    server.wait(nap).expect("an engine that holds");
                }
            }
            server.statistics()
        });
        started.recv().expect("the server listens");
        Self {
            client: Host::new(far, identity(2)),
            stop,
            served,
            engine: Some(engine),
            server: Some(server),
            folder,
            port: 50000,
        }
    }

    /// Sends a request and gives everything that came until the server closed.
    fn exchange(&mut self, request: &[u8]) -> Vec<u8> {
        let buffer = || tcp::SocketBuffer::new(vec![0; 65536]);
        let handle = self
            .client
            .sockets
            .add(tcp::Socket::new(buffer(), buffer()));
        self.port += 1;
        let (interface, sockets) = self.client.parts();
        let socket = sockets.get_mut::<tcp::Socket>(handle);
        let server = (Ipv4Addr::new(10, 77, 0, 1), 80);
        socket
            .connect(interface.context(), server, self.port)
            .expect("a fresh socket");
        let (mut sent, mut reply) = (0, Vec::new());
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            assert!(
                Instant::now() < deadline,
                "no end after {} bytes",
                reply.len()
            );
            self.client.turn().expect("a wire that holds");
            let socket = self.client.sockets.get_mut::<tcp::Socket>(handle);
            if socket.can_send() && sent < request.len() {
                sent += socket.send_slice(&request[sent..]).expect("an open socket");
            }
            while socket.can_recv() {
                let part = socket.recv(|bytes| (bytes.len(), bytes.to_vec()));
                reply.extend(part.expect("an open socket"));
            }
            if sent == request.len() && !socket.may_recv() && socket.state() != tcp::State::SynSent
            {
                break;
            }
            self.client
                .wait(Duration::from_millis(1))
                .expect("a wire that holds");
        }
        self.client.sockets.get_mut::<tcp::Socket>(handle).close();
        self.client.turn().expect("a wire that holds");
        reply
    }

    fn end(mut self) -> (eta::Statistics, Statistics) {
        // The last closes are under way.
        std::thread::sleep(Duration::from_millis(50));
        self.served.store(true, Ordering::Relaxed);
        let server = self.server.take().expect("runs").join();
        self.stop.store(true, Ordering::Relaxed);
        let engine = self.engine.take().expect("runs").join();
        (engine.expect("no panic"), server.expect("no panic"))
    }
}

fn large() -> Vec<u8> {
    (0..1_000_003u32)
        .map(|byte| (byte * 7 % 251) as u8)
        .collect()
}

fn parts(reply: &[u8]) -> (String, &[u8]) {
    let end = reply
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a header");
    (
        String::from_utf8_lossy(&reply[..end]).into_owned(),
        &reply[end + 4..],
    )
}

#[test]
fn pages_arrive_whole_over_the_memory_wire() {
    let mut site = Site::new();
    let reply = site.exchange(b"GET / HTTP/1.0\r\n\r\n");
    let (header, body) = parts(&reply);
    assert!(header.starts_with("HTTP/1.1 200 OK"), "{header}");
    assert_eq!(body, b"<p>welcome</p>");
    let reply = site.exchange(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let (header, body) = parts(&reply);
    assert!(header.contains("Content-Length: 1000003"), "{header}");
    assert!(body == large(), "{} bytes differ from the file", body.len());
    let (engine, server) = site.end();
    assert_eq!(server.accepted, 2);
    assert_eq!(server.requests, 2);
    assert_eq!(engine.expelled, 0);
    assert!(engine.sent > 1_000_017, "{engine:?}");
}

#[test]
fn requests_in_one_segment_are_answered_in_order() {
    let mut site = Site::new();
    let reply = site.exchange(
        b"HEAD /large HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n\
          GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    let text = String::from_utf8_lossy(&reply);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("HTTP"))
        .collect();
    // The page has no line's end, so the third reply follows it on the same line.
    assert_eq!(lines, ["HTTP/1.1 200 OK", "HTTP/1.1 200 OK"]);
    assert!(
        text.contains("<p>welcome</p>HTTP/1.1 404 Not Found"),
        "{text}"
    );
    assert_eq!(site.end().1.requests, 3);
}

#[test]
fn no_path_leaves_the_root_and_nonsense_is_refused() {
    let mut site = Site::new();
    let root = site.folder.path().join("root");
    std::os::unix::fs::symlink("../secret", root.join("link")).expect("a link");
    let cases: [(&[u8], &str); 5] = [
        (b"GET /../secret HTTP/1.0\r\n\r\n", "404"),
        (b"GET /link HTTP/1.0\r\n\r\n", "404"),
        (b"GET //etc/passwd HTTP/1.0\r\n\r\n", "404"),
        (b"POST / HTTP/1.0\r\n\r\n", "501"),
        (b"\x01\x02\r\n\r\n", "400"),
    ];
    for (request, status) in cases {
        let reply = site.exchange(request);
        let (header, body) = parts(&reply);
        assert!(
            header.starts_with(&format!("HTTP/1.1 {status}")),
            "{header}"
        );
        assert!(body.is_empty());
    }
    site.end();
}

#[test]
fn ranges_and_conditions_over_the_memory_wire() {
    for in_place in [false, true] {
        let settings = Settings {
            in_place,
            ..Settings::default()
        };
        let mut site = Site::with(1 << 22, settings);
        let whole = large();
        // Parts from any byte on.
        for (range, first, bytes) in [
            ("0-0", 0, 1),
            ("3-70002", 3, 70_000),
            ("-13", 999_990, 13),
            ("1000001-", 1_000_001, 2),
        ] {
            let request = format!("GET /large HTTP/1.0\r\nRange: bytes={range}\r\n\r\n");
            let reply = site.exchange(request.as_bytes());
            let (header, body) = parts(&reply);
            assert!(header.starts_with("HTTP/1.1 206"), "{header}");
            let named = format!("Content-Range: bytes {first}-{}/1000003", first + bytes - 1);
            assert!(header.contains(&named), "{header}");
            assert!(body == &whole[first..first + bytes], "{range}");
        }
        let reply = site.exchange(b"GET /large HTTP/1.0\r\nRange: bytes=1000003-\r\n\r\n");
        let (header, body) = parts(&reply);
        assert!(header.starts_with("HTTP/1.1 416") && body.is_empty());
        // What the client has is not sent again.
        let (header, _) = parts(&reply);
        let tag = header.lines().find_map(|line| line.strip_prefix("ETag: "));
        let tag = tag.expect("a tag");
        let request = format!("GET /large HTTP/1.0\r\nIf-None-Match: {tag}\r\n\r\n");
        let reply = site.exchange(request.as_bytes());
        let (header, body) = parts(&reply);
        assert!(header.starts_with("HTTP/1.1 304") && body.is_empty());
        site.end();
    }
}

#[test]
fn a_file_that_the_cache_has_no_room_for_is_sent_and_a_page_is_made() {
    let settings = Settings {
        dynamic: Some("/now=50".parse::<DynamicPage>().expect("a page")),
        ..Settings::default()
    };
    // The smallest cache: its table, and 4 KB.
    let mut site = Site::with(0, settings);
    for _ in 0..2 {
        let reply = site.exchange(b"GET /large HTTP/1.0\r\n\r\n");
        let (header, body) = parts(&reply);
        assert!(header.starts_with("HTTP/1.1 200"), "{header}");
        assert!(body == large());
        let reply = site.exchange(b"GET / HTTP/1.0\r\n\r\n");
        assert!(reply.ends_with(b"<p>welcome</p>"));
    }
    let reply = site.exchange(b"GET /now HTTP/1.0\r\n\r\n");
    let (header, body) = parts(&reply);
    assert!(
        header.contains("no-store") && body.ends_with(b"\n"),
        "{header}"
    );
    let reply = site.exchange(b"HEAD /now HTTP/1.0\r\n\r\n");
    assert!(parts(&reply).1.is_empty());
    let (_, server) = site.end();
    // The small file once, the large one each time.
    assert_eq!(server.loads, 3);
}

#[test]
fn slow_clients_are_let_go() {
    let settings = Settings {
        limits: Limits {
            idle: Duration::from_millis(300),
            patience: Duration::from_millis(150),
        },
        ..Settings::default()
    };
    let mut site = Site::with(1 << 22, settings);
    let start = Instant::now();
    // A header that does not end.
    let reply = site.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n");
    assert!(reply.is_empty());
    assert!(start.elapsed() >= Duration::from_millis(150));
    // A connection on which nothing comes any more.
    let start = Instant::now();
    let reply = site.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(reply.ends_with(b"<p>welcome</p>"));
    assert!(start.elapsed() >= Duration::from_millis(300));
    let (_, server) = site.end();
    assert_eq!((server.timed_out, server.accepted), (2, 2));
}
