//! Tests `cargo xtask qemu-run --pcap IN --pcap-out OUT`: a capture of real traffic goes in, and
//! the same bytes in the same order come out of the wire.

use host_driver::capture::{FrameReader, FrameWriter};
use host_driver::tap::Tap;
use integration_tests::frames;
use integration_tests::xtask_command::{complaint, xtask};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use testbed::net::iperf::{self, Direction, Protocol};
use testbed::net::namespace::{self, Namespace};
use testbed::net::ping;
use testbed::process::{self, Process};
use tigon_bench::copy_loop;

const HOST: &str = "10.78.0.1";
const PEER: &str = "10.78.0.2";

/// A DNS query for the address of example.org, as bash's printf writes it.
const DNS_QUERY: &str =
    r"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01";

/// Captures ARP, ICMP, IP fragments, DNS and TCP between two Linux hosts.
fn capture(into: &Path) {
    let host = Namespace::create("capture").unwrap();
    let peer = Namespace::create("captured").unwrap();
    let pid = std::process::id();
    let tap = |name: String, last: u8, namespace: &Namespace, address: &str| {
        let tap = Tap::create(&name, [2, 0x54, 0x47, 0, 1, last], 1500, false).unwrap();
        namespace.adopt(&name, &format!("{address}/24")).unwrap();
        tap
    };
    let left_name = format!("tcl{pid}");
    let left = tap(left_name.clone(), 1, &host, HOST);
    let right = tap(format!("tcr{pid}"), 2, &peer, PEER);
    let mut wire = copy_loop::start(left, right);
    let mut tcpdump = Process::spawn(
        host.command("tcpdump")
            .args(["-i", &left_name, "-w", &into.display().to_string()])
            .args(["--immediate-mode", "-U", "-Z", "root"])
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
    .unwrap();
    while !into.exists() {
        assert!(tcpdump.finished().unwrap().is_none(), "tcpdump ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    ping::run(&host, PEER, 56, 5).unwrap();
    ping::run(&host, PEER, 4000, 5).unwrap();
    let query = format!("printf '{DNS_QUERY}' > /dev/udp/{PEER}/53");
    process::output(
        host.command("bash").args(["-c", &query]),
        Duration::from_secs(5),
    )
    .unwrap();
    iperf::run(&host, &peer, PEER, Protocol::Tcp, Direction::Out, 1).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    tcpdump.stop();
    wire.join().unwrap();
}

/// The frames of a capture, of which the MAC pads those that are too short.
fn frames_of(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = FrameReader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push(frame.bytes.to_vec());
    }
    frames
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.len() < frames::SHORTEST {
        frame.resize(frames::SHORTEST, 0);
    }
    frame
}

fn replay(input: &Path, output: &Path) -> std::process::Output {
    let words = ["qemu-run", "--pcap", input.to_str().unwrap()];
    xtask(&[&words[..], &["--pcap-out", output.to_str().unwrap()]].concat())
        .output()
        .unwrap()
}

#[test]
fn real_traffic_comes_out_as_it_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (
        folder.path().join("in.pcap"),
        folder.path().join("out.pcap"),
    );
    if !namespace::for_test() {
        return;
    }
    capture(&input);
    let sent = frames_of(&input);
    let ether_type = |frame: &[u8], kind: [u8; 2]| frame[12..14] == kind;
    let protocol = |number| move |f: &&Vec<u8>| ether_type(f, [8, 0]) && f[23] == number;
    assert!(sent.iter().any(|f| ether_type(f, [8, 6])), "ARP");
    assert!(sent.iter().any(|f| protocol(1)(&f)), "ICMP");
    assert!(sent.iter().filter(protocol(6)).count() > 500, "TCP");
    assert!(
        sent.iter()
            .any(|f| protocol(17)(&f) && f[36..38] == [0, 53]),
        "DNS"
    );
    let fragment = |f: &&Vec<u8>| ether_type(f, [8, 0]) && f[20] & 0x3F != 0;
    assert!(sent.iter().any(|f| fragment(&f)), "fragments");

    let run = replay(&input, &output);
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let received = frames_of(&output);
    assert_eq!(received.len(), sent.len());
    for (number, (came, went)) in received.into_iter().zip(sent).enumerate() {
        assert_eq!(came, padded(went), "frame {number}");
    }
}

#[test]
fn a_capture_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.pcap");
    std::fs::write(&input, b"not a capture at all").unwrap();
    let said = complaint(&replay(&input, &folder.path().join("out.pcap")));
    assert!(said.contains("in.pcap"), "{said}");
}

#[test]
fn a_frame_that_cannot_be_sent_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.pcap");
    let mut writer = FrameWriter::create(&input).unwrap();
    let good = frames::numbered(frames::PEER, [2, 0, 0, 0, 0, 9], 1);
    writer.write(Duration::ZERO, &good).unwrap();
    writer.write(Duration::ZERO, &vec![0x55; 4000]).unwrap();
    writer.finish().unwrap();
    let said = complaint(&replay(&input, &folder.path().join("out.pcap")));
    assert!(said.contains("frame 2 of the capture"), "{said}");
}
