//! Tests peers that violate the protocol: each gets an errno or is disconnected, and the next
//! client finds the server in order.

mod common;

use common::raw::{INVAL, MAP, OPNOTSUPP, Raw, command, framed, version};
use common::*;
use rustix::fd::AsFd;
use std::io::Write;
use std::time::Duration;
use vfio_user_nic::message::{
    Command, HEADER_BYTES, Header, IrqSet, RegionAccess, flags, irq_set_flags, region,
};
use vfio_user_nic::{Disconnect, Errno};
use zerocopy::IntoBytes;

fn works(bench: &Bench) {
    assert_eq!(
        bench.client().device_info().unwrap().num_regions,
        region::COUNT
    );
}

fn header(size: u32) -> Vec<u8> {
    let command = Command::DeviceGetInfo as u16;
    Header {
        id: 9,
        command,
        size,
        ..Header::default()
    }
    .as_bytes()
    .to_vec()
}

/// Messages that a client sends first, with the errno of the reply, if there is one.
/// After each the server hangs up.
#[test]
fn a_failed_negotiation_ends_the_session() {
    let text = |text: &str| {
        let mut payload = vec![0, 0, 1, 0];
        payload.extend_from_slice(text.as_bytes());
        command(Command::Version, payload.as_slice())
    };
    let cases: Vec<(&str, Vec<u8>, Option<u32>)> = vec![
        (
            "no numbers",
            command(Command::Version, b"".as_slice()),
            Some(INVAL),
        ),
        (
            "half a number",
            command(Command::Version, b"\0\0\0".as_slice()),
            Some(INVAL),
        ),
        (
            "major 1",
            command(Command::Version, b"\x01\0\0\0".as_slice()),
            Some(OPNOTSUPP),
        ),
        ("no NUL", text("{}"), Some(INVAL)),
        ("not JSON", text("hello\0"), Some(INVAL)),
        ("half of JSON", text("{\"capabilities\":{\0"), Some(INVAL)),
        ("a list", text("[]\0"), Some(INVAL)),
        (
            "capabilities a number",
            text("{\"capabilities\":1}\0"),
            Some(INVAL),
        ),
        (
            "a negative number",
            text("{\"capabilities\":{\"max_msg_fds\":-1}}\0"),
            Some(INVAL),
        ),
        (
            "a word for a flag",
            text("{\"capabilities\":{\"write_multiple\":1}}\0"),
            Some(INVAL),
        ),
        (
            "deep JSON",
            text(&format!("{}\0", "[".repeat(100_000))),
            Some(INVAL),
        ),
        (
            "not UTF-8",
            command(Command::Version, b"\0\0\0\0\xff\xfe\0".as_slice()),
            Some(INVAL),
        ),
        ("another command", framed(1, 4, 0, &[0; 16]), Some(INVAL)),
        (
            "a command that is none",
            framed(1, 0x4141, 0, &[]),
            Some(INVAL),
        ),
        ("posted nonsense", framed(1, 1, flags::NO_REPLY, b"x"), None),
        ("size 0", header(0), Some(INVAL)),
        ("size 15", header(15), Some(INVAL)),
        ("4 GiB", header(u32::MAX), Some(INVAL)),
        ("more than a message", header((1 << 20) + 4097), Some(INVAL)),
        (
            "text",
            b"GET / HTTP/1.1\r\nHost: card\r\n\r\n".to_vec(),
            Some(INVAL),
        ),
    ];
    let bench = Bench::new();
    for (name, bytes, errno) in cases {
        let mut raw = Raw::connect(&bench.path);
        raw.send(&bytes);
        // The bytes of "text" read as a header may say that it is a posted one.
        if let Some(got) = raw.errno() {
            assert_eq!(Some(got), errno, "{name}");
            assert_eq!(raw.errno(), None, "{name}: hangs up");
        } else {
            assert!(errno.is_none() || name == "text", "{name}: no reply");
        }
        works(&bench);
    }
    // None of them was a client.
    bench.until(|d| d.disconnects.len() as u32 == d.connects);
    assert!(
        bench
            .device()
            .disconnects
            .iter()
            .all(|why| *why == Disconnect::Closed)
    );
}

#[test]
fn replies_that_nobody_waits_for_are_ignored() {
    let bench = Bench::new();
    let mut raw = Raw::negotiated(&bench.path);
    for id in 0..100 {
        raw.send(&framed(id, 11, flags::REPLY, &[0; 64]));
        raw.send(&framed(id, 12, flags::REPLY | flags::ERROR, &[]));
    }
    raw.send(&command(Command::DeviceReset, &()));
    assert_eq!(raw.errno(), Some(0));
}

#[test]
fn wrong_descriptors_are_refused() {
    let bench = Bench::new();
    let mut raw = Raw::negotiated(&bench.path);
    let (memory, event) = (memory(0x1000), event());
    let map = command(Command::DmaMap, &MAP);
    let toobig = Some(Errno::TOOBIG.raw_os_error() as u32);
    raw.send_with(&command(Command::DeviceReset, &()), &[event.as_fd()]);
    assert_eq!(raw.errno(), Some(INVAL), "a descriptor for nothing");
    raw.send_with(&map, &[memory.as_fd(), memory.as_fd()]);
    assert_eq!(raw.errno(), Some(INVAL), "two files for one map");
    raw.send_with(&map, &[event.as_fd()]);
    assert_eq!(raw.errno(), Some(INVAL), "an eventfd for a file");
    raw.send_with(&map, &vec![memory.as_fd(); 60]);
    assert_eq!(raw.errno(), toobig, "more than anybody may send");
    let flags = irq_set_flags::DATA_EVENTFD | irq_set_flags::ACTION_TRIGGER;
    let set = IrqSet {
        argsz: 20,
        flags,
        index: 0,
        start: 0,
        count: 1,
    };
    raw.send_with(
        &command(Command::DeviceSetIrqs, &set),
        &[event.as_fd(), event.as_fd()],
    );
    assert_eq!(raw.errno(), Some(INVAL), "two eventfds for one interrupt");
    // A file that may only be read, for a map that is to be written.
    let path = bench.path.with_extension("file");
    std::fs::write(&path, [0; 0x1000]).unwrap();
    let read_only = std::fs::File::open(&path).unwrap();
    raw.send_with(&map, &[read_only.as_fd()]);
    assert_eq!(
        raw.errno(),
        Some(Errno::ACCESS.raw_os_error() as u32),
        "a read-only file"
    );
    // After all of them, the right one.
    raw.send_with(&map, &[memory.as_fd()]);
    assert_eq!(raw.errno(), Some(0));
    assert_eq!(bench.dma.len(), 1);
}

/// Descriptors that come with the first half of a message belong to it.
#[test]
fn a_message_may_come_in_pieces() {
    let bench = Bench::new();
    let mut raw = Raw::connect(&bench.path);
    let mut send = |bytes: &[u8]| {
        for byte in bytes {
            raw.send(&[*byte]);
        }
    };
    send(&version());
    send(&command(Command::DeviceReset, &()));
    assert_eq!((raw.errno(), raw.errno()), (Some(0), Some(0)));
    let memory = memory(0x1000);
    let map = command(Command::DmaMap, &MAP);
    // A whole message without descriptors is still in the socket in front of it.
    raw.send(&command(Command::DeviceReset, &()));
    raw.send_with(&map[..20], &[memory.as_fd()]);
    raw.send(&map[20..]);
    assert_eq!((raw.errno(), raw.errno()), (Some(0), Some(0)));
    bench.dma.write(0x1000, &5u32.to_ne_bytes()).unwrap();
    assert_eq!(word_at(&memory, 0), 5);
}

#[test]
fn a_client_that_breaks_off_in_a_message_is_forgotten() {
    let bench = Bench::new();
    let map = command(Command::DmaMap, &MAP);
    for end in [1, HEADER_BYTES - 1, HEADER_BYTES, map.len() - 1] {
        let mut raw = Raw::negotiated(&bench.path);
        raw.send(&map[..end]);
        drop(raw);
        works(&bench);
    }
    assert!(bench.dma.is_empty());
}

#[test]
fn a_silent_client_does_not_keep_the_others_out() {
    let bench = Bench::with(|c| c.handshake_timeout = Duration::from_millis(300));
    let mut silent = Raw::connect(&bench.path);
    works(&bench);
    assert_eq!(silent.errno(), None);
}

#[test]
fn a_client_that_does_not_read_is_hung_up_on() {
    let bench = Bench::with(|c| c.patience = Duration::from_millis(50));
    let mut raw = Raw::negotiated(&bench.path);
    let read = RegionAccess {
        offset: 0,
        region: 0,
        count: BAR_BYTES as u32,
    };
    let read = command(Command::RegionRead, &read);
    for _ in 0..2000 {
        if raw.stream.write_all(&read).is_err() {
            break;
        }
    }
    works(&bench);
    bench.until(|d| d.disconnects.first() == Some(&Disconnect::Stuck));
}
