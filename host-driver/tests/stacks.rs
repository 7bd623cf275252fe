//! Tests the measuring protocol between two in-process stacks over unix datagrams.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use host_driver::peer::{DatagramWire, serve};
use host_driver::stack::ping::{Ping, ping};
use host_driver::stack::throughput::{DatagramRun, tcp_receive, tcp_send, udp_receive, udp_send};
use host_driver::stack::{Host, Identity, StackError};
use smoltcp::wire::Ipv4Cidr;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 84, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 84, 0, 2);

fn identity(address: Ipv4Addr) -> Identity {
    Identity {
        station: [2, 0, 0, 0, 0, address.octets()[3]],
        address: Ipv4Cidr::new(address, 24),
    }
}

/// The near host, with a serving host at the far end of its wire.
struct Pair {
    host: Host<DatagramWire>,
    stop: Arc<AtomicBool>,
    far: Option<JoinHandle<Result<(), StackError>>>,
    _folder: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        Self::with_far_host_after(Duration::ZERO)
    }

    /// The far host is on the wire at once, but looks at it only after a while.
    fn with_far_host_after(delay: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (near, far) = (folder.path().join("near"), folder.path().join("far"));
        let near_wire = DatagramWire::bind(&near, &far).expect("a socket");
        let far_wire = DatagramWire::bind(&far, &near).expect("a socket");
        let stop = Arc::new(AtomicBool::new(false));
        let far_stop = stop.clone();
        let far = std::thread::spawn(move || {
            std::thread::sleep(delay);
            serve(far_wire, identity(FAR), &far_stop)
        });
        Self {
            host: Host::new(near_wire, identity(NEAR)),
            stop,
            far: Some(far),
            _folder: folder,
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(far) = self.far.take() {
            let result = far.join().expect("the far host does not panic");
            result.expect("the far host's wire holds");
        }
    }
}

#[test]
fn every_echo_request_is_answered_with_its_own_contents() {
    let mut pair = Pair::new();
    let stop = AtomicBool::new(false);
    for payload in [0, 56, 1472] {
        let request = Ping {
            target: FAR,
            count: 50,
            payload,
            interval: Duration::ZERO,
            timeout: Duration::from_secs(2),
        };
        let report = ping(&mut pair.host, request, &stop).expect("a wire that holds");
        assert_eq!((report.sent, report.received, report.corrupt), (50, 50, 0));
        assert!(report.min_us > 0 && report.min_us <= report.p50_us);
        assert!(report.p50_us <= report.p99_us && report.p99_us <= report.max_us);
    }
}

/// On a busy machine a host may be stopped for longer than it would wait.
#[test]
fn an_answer_that_is_late_counts_with_its_latency() {
    let mut pair = Pair::with_far_host_after(Duration::from_millis(200));
    let request = Ping {
        target: FAR,
        count: 5,
        payload: 56,
        interval: Duration::from_millis(250),
        timeout: Duration::from_millis(50),
    };
    let report = ping(&mut pair.host, request, &AtomicBool::new(false));
    let report = report.expect("a wire that holds");
    assert_eq!((report.sent, report.received), (5, 5));
    assert!(report.max_us > 150_000, "{report:?}");
}

#[test]
fn nobody_answers_for_an_address_that_is_not_there() {
    let mut pair = Pair::new();
    let stop = AtomicBool::new(false);
    let request = Ping {
        target: Ipv4Addr::new(10, 84, 0, 99),
        count: 2,
        payload: 56,
        interval: Duration::from_millis(1),
        timeout: Duration::from_millis(50),
    };
    let report = ping(&mut pair.host, request, &stop).expect("a wire that holds");
    assert_eq!((report.sent, report.received), (2, 0));
}

#[test]
fn tcp_carries_the_same_bytes_both_ways() {
    let mut pair = Pair::new();
    let stop = AtomicBool::new(false);
    let time = Duration::from_millis(300);
    let sent = tcp_send(&mut pair.host, FAR, time, &stop).expect("a peer that answers");
    assert!(sent.bytes > 100_000, "{sent:?}");
    assert_eq!(sent.corrupt, 0);
    let received = tcp_receive(&mut pair.host, FAR, time, &stop).expect("a peer that answers");
    assert!(received.bytes > 100_000, "{received:?}");
    assert_eq!(received.corrupt, 0);
    // The peer can be used again at once.
    tcp_send(&mut pair.host, FAR, time, &stop).expect("a peer that still answers");
}

/// A sender that is busy for longer than a silence may last is not silent.
#[test]
fn a_long_transfer_is_no_silence() {
    let mut pair = Pair::new();
    let time = Duration::from_millis(5500);
    tcp_send(&mut pair.host, FAR, time, &AtomicBool::new(false)).expect("a peer that answers");
}

#[test]
fn udp_counts_what_arrives_both_ways() {
    let mut pair = Pair::new();
    let stop = AtomicBool::new(false);
    let run = DatagramRun {
        target: FAR,
        payload: 1000,
        count: 200,
        interval: Duration::from_micros(500),
    };
    let sent = udp_send(&mut pair.host, run, &stop).expect("a peer that reports");
    assert_eq!((sent.sent, sent.received, sent.corrupt), (200, 200, 0));
    let received = udp_receive(&mut pair.host, run, &stop).expect("a peer that sends");
    assert_eq!((received.received, received.corrupt), (200, 0));
    assert!(received.mbps > 1.0, "{received:?}");
}

#[test]
fn a_stopped_conversation_ends_at_once() {
    let mut pair = Pair::new();
    let stop = AtomicBool::new(true);
    let result = tcp_send(&mut pair.host, FAR, Duration::from_secs(60), &stop);
    assert!(matches!(result, Err(StackError::Stopped)));
}

#[test]
fn a_socket_that_an_earlier_run_left_is_replaced_and_a_file_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wire");
    let other = folder.path().join("other");
    let left = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket");
    drop(left);
    drop(DatagramWire::bind(&path, &other).expect("the old socket is replaced"));
    assert!(!path.exists(), "the socket goes away with its owner");
    std::fs::write(&path, b"precious").expect("a file");
    assert!(DatagramWire::bind(&path, &other).is_err());
    assert_eq!(std::fs::read(&path).expect("the file"), b"precious");
}
