//! The server over the kernel's sockets: the same pages as through the engine.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use userver::epoll::KernelServer;
use userver::{Limits, Settings};

/// Sends requests and gives everything that comes until the server closes.
fn exchange(port: u16, requests: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a server");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a time");
    stream.write_all(requests).expect("an open connection");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).expect("an end");
    let _ = stream.shutdown(Shutdown::Both);
    reply
}

#[test]
fn pages_requests_in_a_row_and_refusals() {
    for sendfile in [false, true] {
        serves(sendfile);
    }
}

fn serves(sendfile: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    std::fs::create_dir(&root).expect("a folder");
    std::fs::write(root.join("index.html"), "<p>welcome</p>").expect("a file");
    let large: Vec<u8> = (0..5_000_003u32)
        .map(|byte| (byte * 7 % 251) as u8)
        .collect();
    std::fs::write(root.join("large"), &large).expect("a file");
    std::fs::write(folder.path().join("secret"), "secret").expect("a file");
    std::os::unix::fs::symlink("../secret", root.join("link")).expect("a link");
    let settings = Settings {
        limits: Limits {
            idle: Duration::from_secs(20),
            patience: Duration::from_millis(400),
        },
        ..Settings::default()
    };
    let at = (Ipv4Addr::LOCALHOST, 0).into();
    let server = KernelServer::new(&root, at, settings, sendfile);
    let mut server = server.expect("a server");
    let port = server.address().expect("it listens").port();
    let stop = Arc::new(AtomicBool::new(false));
    let ended = stop.clone();
    let thread = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            server
                .step(Duration::from_millis(5))
                .expect("a system that holds");
        }
        (server.statistics(), server.calls)
    });
    let reply = exchange(port, b"GET /large HTTP/1.0\r\n\r\n");
    assert!(reply.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert!(reply.ends_with(&large));
    let requests = b"HEAD /large HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n\
          GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let reply = exchange(port, requests);
    let text = String::from_utf8_lossy(&reply);
    assert!(text.contains("Content-Length: 5000003\r\n"), "{text}");
    assert!(
        text.contains("<p>welcome</p>HTTP/1.1 404 Not Found"),
        "{text}"
    );
    for path in ["/../secret", "/link", "//etc/passwd"] {
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        let reply = exchange(port, request.as_bytes());
        assert!(reply.starts_with(b"HTTP/1.1 404"), "{path}");
    }
    assert!(exchange(port, b"\x01\x02\r\n\r\n").starts_with(b"HTTP/1.1 400"));
    let request = b"GET /large HTTP/1.0\r\nRange: bytes=7-1000006\r\n\r\n";
    let reply = exchange(port, request);
    assert!(reply.starts_with(b"HTTP/1.1 206"));
    assert!(reply.ends_with(&large[7..1_000_007]));
    // A header that does not end.
    assert!(exchange(port, b"GET / HTTP/1.1\r\n").is_empty());
    stop.store(true, Ordering::Relaxed);
    let (done, calls) = thread.join().expect("no panic");
    assert_eq!((done.accepted, done.requests, done.closed), (8, 9, 8));
    assert_eq!(done.timed_out, 1);
    assert!(calls > done.requests, "{calls}");
}
