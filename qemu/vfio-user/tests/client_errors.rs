//! Tests the client's errors when the server is missing, invalid or gone.

mod common;

use common::raw::framed;
use common::*;
use rustix::fd::AsFd;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vfio_user_nic::message::{HEADER_BYTES, flags, irq, region};
use vfio_user_nic::{Client, ClientError, Errno, Server, ServerConfig};

const PATIENCE: Duration = Duration::from_millis(300);

/// A listener that does as it is told with its first client.
fn listen(
    act: impl FnOnce(UnixStream) + Send + 'static,
) -> (tempfile::TempDir, std::path::PathBuf, JoinHandle<()>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || act(listener.accept().unwrap().0));
    (folder, path, thread)
}

/// Reads one message and gives its id.
fn take(stream: &mut UnixStream) -> u16 {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).unwrap();
    let size = u32::from_ne_bytes(header[4..8].try_into().unwrap()) as usize;
    let mut payload = vec![0; size - HEADER_BYTES];
    stream.read_exact(&mut payload).unwrap();
    u16::from_ne_bytes([header[0], header[1]])
}

/// Answers VERSION with this payload.
fn answer_version(stream: &mut UnixStream, payload: &[u8]) {
    let id = take(stream);
    stream
        .write_all(&framed(id, 1, flags::REPLY, payload))
        .unwrap();
}

fn connect_to(act: impl FnOnce(UnixStream) + Send + 'static) -> ClientError {
    let (_folder, path, thread) = listen(act);
    let error = Client::connect(&path, PATIENCE).expect_err("no server");
    drop(path);
    thread.join().unwrap();
    error
}

#[test]
fn nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for path in [
        file,
        folder.path().join("nothing"),
        folder.path().join("x".repeat(200)),
    ] {
        let error = Client::connect(&path, PATIENCE).unwrap_err();
        assert!(matches!(error, ClientError::Connect { .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()));
    }
}

#[test]
fn somebody_else_listens() {
    type Act = fn(UnixStream);
    let others: [(&str, Act); 4] = [
        ("hangs up", drop),
        ("sends text", |mut s| {
            s.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n").unwrap()
        }),
        ("answers without numbers", |mut s| {
            answer_version(&mut s, b"\0")
        }),
        ("answers without JSON", |mut s| {
            answer_version(&mut s, b"\0\0\0\0hello\0")
        }),
    ];
    for (name, act) in others {
        let error = connect_to(act);
        assert!(
            matches!(error, ClientError::NotVfioUser(_)),
            "{name}: {error}"
        );
    }
}

#[test]
fn nobody_answers() {
    let start = Instant::now();
    let error = connect_to(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
    });
    assert!(matches!(error, ClientError::Busy), "{error}");
    assert!(start.elapsed() >= PATIENCE);
}

#[test]
fn another_version_or_a_refusal_is_named() {
    let error = connect_to(|mut s| answer_version(&mut s, b"\x01\0\0\0"));
    assert!(
        matches!(error, ClientError::VersionMismatch { major: 1, minor: 0 }),
        "{error}"
    );
    let error = connect_to(|mut stream| {
        let id = take(&mut stream);
        let mut reply = framed(id, 1, flags::REPLY | flags::ERROR, &[]);
        reply[12..16].copy_from_slice(&95u32.to_ne_bytes());
        stream.write_all(&reply).unwrap();
    });
    assert_eq!(refused_with(&error), Some(Errno::OPNOTSUPP), "{error}");
}

#[test]
fn a_second_client_waits_until_the_first_is_gone() {
    let bench = Bench::new();
    let mut first = bench.client();
    first.device_info().unwrap();
    let error = Client::connect(&bench.path, PATIENCE).unwrap_err();
    assert!(matches!(error, ClientError::Busy), "{error}");
    drop(first);
    bench.client().device_info().unwrap();
}

#[test]
fn a_late_answer_does_not_answer_the_next_question() {
    let (_folder, path, thread) = listen(|mut stream| {
        answer_version(&mut stream, b"\0\0\0\0");
        let read = |id, byte: u8| {
            let mut payload = vec![0; 16];
            payload[12] = 4;
            payload.extend_from_slice(&[byte; 4]);
            framed(id, 9, flags::REPLY, &payload)
        };
        let late = take(&mut stream);
        let next = take(&mut stream);
        stream.write_all(&read(late, 1)).unwrap();
        stream.write_all(&read(next, 2)).unwrap();
        // One with another length, one to another command.
        let id = take(&mut stream);
        stream
            .write_all(&framed(id, 9, flags::REPLY, &[0; 18]))
            .unwrap();
        let id = take(&mut stream);
        stream
            .write_all(&framed(id, 10, flags::REPLY, &[0; 20]))
            .unwrap();
        let _ = take(&mut stream);
        stream.write_all(&[0xff; 64]).unwrap();
    });
    let mut client = Client::connect(&path, LONG).unwrap();
    client.set_timeout(PATIENCE);
    let mut word = [0; 4];
    let mut read = || {
        client
            .region_read(region::BAR0, 0, &mut word)
            .map(|()| word)
    };
    assert!(matches!(read(), Err(ClientError::Timeout(_))));
    assert!(matches!(read(), Ok([2, 2, 2, 2])));
    assert!(matches!(read(), Err(ClientError::Malformed(_))));
    assert!(matches!(read(), Err(ClientError::Malformed(_))));
    assert!(matches!(read(), Err(ClientError::Garbage)));
    thread.join().unwrap();
}

#[test]
fn posts_to_a_server_that_does_not_read_end_in_time() {
    let (done, is_done) = std::sync::mpsc::channel();
    let (_folder, path, thread) = listen(move |mut stream| {
        answer_version(&mut stream, b"\0\0\0\0");
        // Leaves the rest in the socket until the client has given up.
        is_done.recv().unwrap();
    });
    let mut client = Client::connect(&path, LONG).unwrap();
    client.set_timeout(PATIENCE);
    let start = Instant::now();
    let error = loop {
        if let Err(error) = client.region_post(region::BAR0, 0, &[0; 1024]) {
            break error;
        }
    };
    assert!(matches!(error, ClientError::Timeout(_)), "{error}");
    assert!(start.elapsed() < LONG);
    // A message may be cut in two: nothing more can be said.
    assert!(matches!(client.reset(), Err(ClientError::Disconnected)));
    done.send(()).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_server_that_goes_away_is_noticed() {
    let mut bench = Bench::new();
    let mut client = bench.client();
    client.region_post(region::BAR0, 0, &[0; 4]).unwrap();
    drop(bench.thread.take());
    for _ in 0..2 {
        let error = client.mask_irq(irq::INTX).unwrap_err();
        assert!(matches!(error, ClientError::Disconnected), "{error}");
    }
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let bench = Bench::new();
    let config = || ServerConfig::new(vfio_user_nic::DeviceLayout::pci(0x1000));
    let error = Server::bind(&bench.path, config()).unwrap_err();
    assert!(error.to_string().contains("card.sock"), "{error}");
    bench.client().device_info().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stale = folder.path().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    Server::bind(&stale, config()).unwrap();
    let file = folder.path().join("precious");
    std::fs::write(&file, "text").unwrap();
    Server::bind(&file, config()).unwrap_err();
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
}

#[test]
fn the_clients_socket_tells_when_the_server_is_gone() {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut bench = Bench::new();
    let client = bench.client();
    drop(bench.thread.take());
    let mut fds = [PollFd::from_borrowed_fd(client.as_fd(), PollFlags::IN)];
    let second = rustix::event::Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    assert_eq!(poll(&mut fds, Some(&second)).unwrap(), 1);
}
