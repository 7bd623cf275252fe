//! Tests live frames for readers of a driver: a fast reader gets all of them, and a slow reader
//! does no harm.

mod support;

use std::io::{BufReader, IoSlice, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use host_driver::capture::FrameReader;
use host_driver::live::{Direction, FrameStream, MOST_FRAMES, MOST_READERS, Readers, Record};
use host_driver::status::StatusServer;
use host_driver::{Config, Nic};
use support::{ScriptedCard, frame, open_card};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

fn reader(readers: &mut Readers, wanted: Option<Direction>) -> FrameStream {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    readers.add(ours, wanted).expect("room");
    FrameStream::new(BufReader::new(theirs)).expect("a stream")
}

fn next(stream: &mut FrameStream) -> Record {
    let record = stream.next(PATIENCE).expect("a record");
    record.expect("in time")
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn who_keeps_up_gets_every_frame_of_the_direction_and_a_last_word() {
    let mut readers = Readers::default();
    let mut both = reader(&mut readers, None);
    let mut incoming = reader(&mut readers, Some(Direction::In));
    let frames: Vec<Vec<u8>> = (0..300).map(|seed| frame(seed, 60 + seed)).collect();
    for (index, sent) in frames.iter().enumerate() {
        let way = if index % 3 == 0 {
            Direction::In
        } else {
            Direction::Out
        };
        readers.offer(way, || Some(sent.clone()));
    }
    incoming.finish().expect("it is there");
    both.finish().expect("it is there");
    for (index, sent) in frames.iter().enumerate() {
        let Record::Frame { bytes, .. } = next(&mut both) else {
            panic!("{index} is missing");
        };
        assert_eq!(&bytes, sent, "{index}");
        if index % 3 == 0 {
            let record = next(&mut incoming);
            let is_the_same = matches!(record, Record::Frame { direction: Direction::In, bytes, .. }
                if &bytes == sent);
            assert!(is_the_same, "{index}");
        }
    }
    let end = |frames| Record::End { frames, dropped: 0 };
    assert_eq!(next(&mut both), end(300));
    assert_eq!(next(&mut incoming), end(100));
    until("their places are free", || {
        readers.remove_ended();
        readers.count() == 0
    });
}

/// Nobody who does not read costs the driver more than the copy of a frame, however long
/// that lasts; what was lost is told to the frame.
#[test]
fn a_reader_that_does_not_read_slows_nobody() {
    const FRAMES: u64 = 100_000;
    let mut readers = Readers::default();
    let mut slow = reader(&mut readers, None);
    let bytes = frame(1, 1514);
    let mut longest = Duration::ZERO;
    for _ in 0..FRAMES {
        let start = Instant::now();
        readers.offer(Direction::Out, || Some(bytes.clone()));
        longest = longest.max(start.elapsed());
    }
    // A wait for the reader would have no end.
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    slow.finish().expect("it is there");
    let mut seen = 0;
    loop {
        match next(&mut slow) {
            Record::Frame { bytes: came, .. } => {
                assert_eq!(came, bytes);
                seen += 1;
            }
            Record::End { frames, dropped } => {
                assert_eq!(frames, seen);
                assert_eq!(seen + dropped, FRAMES, "each is there or counted");
                assert!(dropped > 0 && seen >= 1000, "{seen} {dropped}");
                // The queue is full, and what the socket holds besides.
                assert!(seen < 3 * MOST_FRAMES as u64, "{seen}");
                break;
            }
        }
    }
}

/// A driver that ends is not kept by somebody who reads nothing.
#[test]
fn a_driver_ends_when_it_wants_to() {
    let mut readers = Readers::default();
    let _silent = reader(&mut readers, None);
    let mut good = reader(&mut readers, None);
    let bytes = frame(1, 1514);
    for _ in 0..2000 {
        readers.offer(Direction::In, || Some(bytes.clone()));
    }
    let attentive = std::thread::spawn(move || {
        loop {
            if let Record::End { frames, dropped } = next(&mut good) {
                return (frames, dropped);
            }
        }
    });
    let start = Instant::now();
    drop(readers);
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(attentive.join().expect("no panic"), (2000, 0));
}

#[test]
fn places_are_few_and_come_back() {
    let mut readers = Readers::default();
    let streams: Vec<FrameStream> = (0..MOST_READERS)
        .map(|_| reader(&mut readers, None))
        .collect();
    let (one_more, _other) = UnixStream::pair().expect("sockets");
    let refused = readers.add(one_more, None).expect_err("no room");
    assert!(refused.to_string().contains("4 captures"), "{refused}");
    drop(streams);
    until("places of readers that left", || readers.has_room().is_ok());

    // Somebody who talks where nothing is asked is no reader.
    let (ours, mut talker) = UnixStream::pair().expect("sockets");
    readers.add(ours, None).expect("room");
    talker.write_all(b"GET / HTTP/1.1\r\n").expect("room");
    until("the talker's place", || {
        readers.remove_ended();
        readers.count() == 0
    });
}

/// Starts `tigonctl --attach` beside a driver, sends and receives until it ends, and gives
/// what went over the card while it was there.
fn beside(words: &[&str], to: Stdio) -> (Output, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = StatusServer::bind(&folder.path().join("status")).expect("a socket");
    let mut nic = open_card(Config::default());
    let child = Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
        .arg("--attach")
        .arg(server.path())
        .args(words)
        .stdout(to)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut passed = Vec::new();
    let output = drive(&server, &mut nic, child, &mut passed);
    (output, passed)
}

fn drive(
    server: &StatusServer,
    nic: &mut Nic<ScriptedCard>,
    mut child: Child,
    passed: &mut Vec<Vec<u8>>,
) -> Output {
    let end = Instant::now() + PATIENCE;
    while child.try_wait().expect("it runs").is_none() {
        assert!(Instant::now() < end, "it does not end");
        server.serve(nic);
        if nic.readers().count() > 0 && passed.len() < 40 {
            let (out, came) = (frame(passed.len(), 200), frame(passed.len() + 1, 900));
            assert!(nic.queue(&[IoSlice::new(&out)]).expect("the card"), "room");
            nic.submit().expect("the card");
            assert!(nic.transport().deliver(&came), "room");
            nic.receive(64, |_| Ok(())).expect("the card");
            nic.service().expect("the card");
            passed.extend([out, came]);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().expect("it has ended")
}

fn frames_of(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = FrameReader::open(path).expect("a capture");
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().expect("a frame") {
        frames.push(frame.bytes);
    }
    frames
}

/// `capture FILE`, `capture -w FILE` and `capture - > FILE` give the same, both ways.
#[test]
fn a_driven_card_is_captured_into_a_file_and_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.pcap");
    let name = path.display().to_string();
    for words in [&["capture", &name][..], &["capture", "-w", &name]] {
        let words = [&["--json"], words, &["--count", "12"]].concat();
        let (output, passed) = beside(&words, Stdio::piped());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(frames_of(&path), passed[..12], "{words:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
        assert_eq!(report["frames"], 12);
        assert_eq!(report["dropped"], 0);
        std::fs::remove_file(&path).expect("it is there");
    }
    let pipe = std::fs::File::create(&path).expect("a file");
    let words = ["capture", "-", "--count", "12", "--direction", "in"];
    let (output, passed) = beside(&words, pipe.into());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("12 frames, 10800 bytes"), "{said}");
    let came: Vec<Vec<u8>> = passed.iter().skip(1).step_by(2).cloned().collect();
    assert_eq!(frames_of(&path), came[..12]);
}

/// As `tigonctl capture - | tcpdump -c 1 -r -` has it: the end of the pipe is an end.
#[test]
fn a_pipe_that_its_reader_closes_is_an_end() {
    let (ours, theirs) = std::io::pipe().expect("a pipe");
    let closer = std::thread::spawn(move || {
        use std::io::Read;
        let mut header = [0; 24 + 16];
        let mut ours = ours;
        ours.read_exact(&mut header).expect("a capture");
    });
    let (output, _) = beside(&["capture", "-w", "-"], theirs.into());
    closer.join().expect("a whole header, and a frame's");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(" frames, "), "{said}");
}

#[test]
fn where_a_capture_goes_is_said_once() {
    for words in [
        &["capture"][..],
        &["capture", "a", "-w", "b"],
        &["capture", "a", "--direction", "sideways"],
    ] {
        let output = Command::new(std::env::var_os("CARGO_BIN_EXE_tigonctl").expect("cargo test"))
            .args(words)
            .output()
            .expect("the command runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
}
