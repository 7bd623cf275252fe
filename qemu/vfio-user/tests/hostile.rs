//! Peers that do not keep to the protocol: each gets an errno or is hung up on,
//! and the next client finds the server in order.

mod common;

use common::raw::{Raw, command, framed, version};
use common::*;
use rustix::fd::AsFd;
use std::io::Write;
use std::time::Duration;
use vfio_user_nic::message::{
    Command, DmaAccess, DmaMap, DmaUnmap, HEADER_BYTES, Header, IrqInfo, IrqSet, MultiWrite,
    RegionAccess, RegionInfo, flags, irq_set_flags, region,
};
use vfio_user_nic::{Disconnect, Errno};
use zerocopy::IntoBytes;

const INVAL: u32 = Errno::INVAL.raw_os_error() as u32;
const NOSYS: u32 = Errno::NOSYS.raw_os_error() as u32;
const OPNOTSUPP: u32 = Errno::OPNOTSUPP.raw_os_error() as u32;

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

/// Commands that are wrong in themselves: an errno, and the session goes on.
#[test]
fn wrong_commands_get_an_errno() {
    let access = |offset, region, count| RegionAccess {
        offset,
        region,
        count,
    };
    let map = DmaMap {
        argsz: 32,
        flags: 3,
        offset: 0,
        address: 0x1000,
        size: 0x1000,
    };
    let unmap = DmaUnmap {
        argsz: 24,
        flags: 0,
        address: 0x1000,
        size: 0x1000,
    };
    let set = |flags, index, start, count| IrqSet {
        argsz: 20,
        flags,
        index,
        start,
        count,
    };
    use irq_set_flags::{
        ACTION_MASK, ACTION_TRIGGER, ACTION_UNMASK, DATA_BOOL, DATA_EVENTFD, DATA_NONE,
    };
    let read = |payload| command(Command::RegionRead, payload);
    let irqs = |payload: &IrqSet| command(Command::DeviceSetIrqs, payload);
    let write = |access: RegionAccess, data: &[u8]| {
        let mut payload = access.as_bytes().to_vec();
        payload.extend_from_slice(data);
        command(Command::RegionWrite, payload.as_slice())
    };
    let multi = |count: u64, writes: &[MultiWrite]| {
        let mut payload = count.as_bytes().to_vec();
        payload.extend_from_slice(writes.as_bytes());
        command(Command::RegionWriteMulti, payload.as_slice())
    };
    let one = MultiWrite {
        offset: 0,
        region: 0,
        count: 4,
        data: [0; 8],
    };
    let cases: Vec<(&str, Vec<u8>, u32)> = vec![
        ("VERSION again", version(), INVAL),
        ("command 0", framed(1, 0, 0, &[]), NOSYS),
        ("command 14", framed(1, 14, 0, &[0; 8]), NOSYS),
        ("command 65535", framed(1, 0xffff, 0, &[0; 100]), NOSYS),
        ("a type that is none", framed(1, 4, 7, &[0; 16]), INVAL),
        (
            "DMA_READ from the client",
            command(Command::DmaRead, &DmaAccess::default()),
            INVAL,
        ),
        (
            "DMA_WRITE from the client",
            command(Command::DmaWrite, &DmaAccess::default()),
            INVAL,
        ),
        (
            "I/O descriptors",
            command(Command::DeviceGetRegionIoFds, &[0u8; 16]),
            OPNOTSUPP,
        ),
        ("info, short", framed(1, 4, 0, &[0; 15]), INVAL),
        ("info, long", framed(1, 4, 0, &[0; 17]), INVAL),
        ("info, argsz 0", framed(1, 4, 0, &[0; 16]), INVAL),
        ("region info, empty", framed(1, 5, 0, &[]), INVAL),
        (
            "region info, argsz",
            command(
                Command::DeviceGetRegionInfo,
                &RegionInfo {
                    argsz: 31,
                    ..Default::default()
                },
            ),
            INVAL,
        ),
        (
            "region info, index",
            command(
                Command::DeviceGetRegionInfo,
                &RegionInfo {
                    argsz: 32,
                    index: u32::MAX,
                    ..Default::default()
                },
            ),
            INVAL,
        ),
        (
            "irq info, index",
            command(
                Command::DeviceGetIrqInfo,
                &IrqInfo {
                    argsz: 16,
                    index: 5,
                    ..Default::default()
                },
            ),
            INVAL,
        ),
        ("read, half a payload", framed(1, 9, 0, &[0; 8]), INVAL),
        ("read with data", framed(1, 9, 0, &[0; 20]), INVAL),
        ("read outside", read(&access(BAR_BYTES, 0, 4)), INVAL),
        (
            "read, offset overflows",
            read(&access(u64::MAX, 0, u32::MAX)),
            INVAL,
        ),
        ("read of 4 GiB", read(&access(0, 0, u32::MAX)), INVAL),
        (
            "read of a region that is none",
            read(&access(0, 99, 4)),
            INVAL,
        ),
        ("read of an empty region", read(&access(0, 1, 4)), INVAL),
        ("write without data", write(access(0, 0, 4), &[]), INVAL),
        (
            "write with more data",
            write(access(0, 0, 4), &[0; 8]),
            INVAL,
        ),
        (
            "write outside",
            write(access(BAR_BYTES - 2, 0, 4), &[0; 4]),
            INVAL,
        ),
        ("multi without a count", framed(1, 15, 0, &[1, 0]), INVAL),
        ("multi, count too high", multi(2, &[one]), INVAL),
        (
            "multi, count overflows",
            multi(u64::MAX / 24 + 1, &[one]),
            INVAL,
        ),
        (
            "multi of 9 bytes",
            multi(1, &[MultiWrite { count: 9, ..one }]),
            INVAL,
        ),
        (
            "multi outside",
            multi(
                1,
                &[MultiWrite {
                    offset: BAR_BYTES,
                    ..one
                }],
            ),
            INVAL,
        ),
        ("map, short", framed(1, 2, 0, &[0; 31]), INVAL),
        (
            "map, argsz",
            command(Command::DmaMap, &DmaMap { argsz: 0, ..map }),
            INVAL,
        ),
        (
            "map, flags",
            command(Command::DmaMap, &DmaMap { flags: 0xff, ..map }),
            INVAL,
        ),
        (
            "map, no access",
            command(Command::DmaMap, &DmaMap { flags: 0, ..map }),
            INVAL,
        ),
        (
            "map of nothing",
            command(Command::DmaMap, &DmaMap { size: 0, ..map }),
            INVAL,
        ),
        (
            "map, overflow",
            command(
                Command::DmaMap,
                &DmaMap {
                    size: u64::MAX,
                    ..map
                },
            ),
            INVAL,
        ),
        (
            "unmap of nothing",
            command(Command::DmaUnmap, &unmap),
            Errno::NOENT.raw_os_error() as u32,
        ),
        (
            "unmap, argsz",
            command(Command::DmaUnmap, &DmaUnmap { argsz: 8, ..unmap }),
            INVAL,
        ),
        (
            "unmap, bitmap",
            command(Command::DmaUnmap, &DmaUnmap { flags: 1, ..unmap }),
            OPNOTSUPP,
        ),
        (
            "unmap, flags",
            command(Command::DmaUnmap, &DmaUnmap { flags: 4, ..unmap }),
            INVAL,
        ),
        (
            "unmap all and one",
            command(Command::DmaUnmap, &DmaUnmap { flags: 2, ..unmap }),
            INVAL,
        ),
        ("irqs, short", framed(1, 8, 0, &[0; 19]), INVAL),
        ("irqs, no flags", irqs(&set(0, 0, 0, 1)), INVAL),
        ("irqs, all flags", irqs(&set(u32::MAX, 0, 0, 1)), INVAL),
        (
            "irqs, two actions",
            irqs(&set(DATA_NONE | ACTION_MASK | ACTION_UNMASK, 0, 0, 1)),
            INVAL,
        ),
        (
            "irqs, two kinds",
            irqs(&set(DATA_NONE | DATA_BOOL | ACTION_MASK, 0, 0, 1)),
            INVAL,
        ),
        (
            "irqs, range",
            irqs(&set(DATA_NONE | ACTION_MASK, 0, 0, 2)),
            INVAL,
        ),
        (
            "irqs, overflow",
            irqs(&set(DATA_NONE | ACTION_MASK, 0, u32::MAX, u32::MAX)),
            INVAL,
        ),
        (
            "irqs, nothing",
            irqs(&set(DATA_NONE | ACTION_MASK, 0, 0, 0)),
            INVAL,
        ),
        (
            "irqs, no data",
            irqs(&set(DATA_BOOL | ACTION_MASK, 0, 0, 1)),
            INVAL,
        ),
        (
            "irqs, index",
            irqs(&set(DATA_NONE | ACTION_TRIGGER, 5, 0, 0)),
            INVAL,
        ),
        (
            "irqs, mask by eventfd",
            irqs(&set(DATA_EVENTFD | ACTION_MASK, 0, 0, 1)),
            OPNOTSUPP,
        ),
        ("reset with a payload", framed(1, 13, 0, &[0]), INVAL),
    ];
    let bench = Bench::new();
    let mut raw = Raw::negotiated(&bench.path);
    for (name, bytes, errno) in cases {
        // Posted, it has no reply at all: the next reply is that of the second.
        let mut posted = bytes.clone();
        posted[8] |= flags::NO_REPLY as u8;
        raw.send(&posted);
        raw.send(&bytes);
        assert_eq!(raw.errno(), Some(errno), "{name}");
        let info = [16u32, 0, 0, 0];
        raw.send(&command(Command::DeviceGetInfo, info.as_slice()));
        let (header, payload) = raw.reply().unwrap();
        assert_eq!(
            (header.command, header.error, payload.len()),
            (4, 0, 16),
            "after {name}"
        );
    }
    drop(raw);
    works(&bench);
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
    let map = DmaMap {
        argsz: 32,
        flags: 3,
        offset: 0,
        address: 0x1000,
        size: 0x1000,
    };
    let map = command(Command::DmaMap, &map);
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
    let map = DmaMap {
        argsz: 32,
        flags: 3,
        offset: 0,
        address: 0x1000,
        size: 0x1000,
    };
    let map = command(Command::DmaMap, &map);
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
    let map = DmaMap {
        argsz: 32,
        flags: 3,
        offset: 0,
        address: 0x1000,
        size: 0x1000,
    };
    let map = command(Command::DmaMap, &map);
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
    let bench = Bench::with(|c| c.handshake_timeout = Duration::from_millis(50));
    let mut silent = Raw::connect(&bench.path);
    works(&bench);
    assert_eq!(silent.errno(), None);
}

#[test]
fn a_client_that_does_not_read_is_hung_up_on() {
    let bench = Bench::with(|c| c.send_timeout = Duration::from_millis(50));
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
