//! Tests whole messages with wrong contents: each gets the matching errno, and the session
//! continues.

mod common;

use common::raw::{INVAL, MAP, OPNOTSUPP, Raw, command, framed, version};
use common::*;
use vfio_user_nic::Errno;
use vfio_user_nic::message::{
    Command, DmaAccess, DmaMap, DmaUnmap, IrqInfo, IrqSet, MultiWrite, RegionAccess, RegionInfo,
    flags, irq_set_flags, region,
};
use zerocopy::IntoBytes;

const NOSYS: u32 = Errno::NOSYS.raw_os_error() as u32;

/// Commands that are wrong in themselves: an errno, and the session goes on.
#[test]
fn wrong_commands_get_an_errno() {
    let access = |offset, region, count| RegionAccess {
        offset,
        region,
        count,
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
            command(Command::DmaMap, &DmaMap { argsz: 0, ..MAP }),
            INVAL,
        ),
        (
            "map, flags",
            command(Command::DmaMap, &DmaMap { flags: 0xff, ..MAP }),
            INVAL,
        ),
        (
            "map, no access",
            command(Command::DmaMap, &DmaMap { flags: 0, ..MAP }),
            INVAL,
        ),
        (
            "map of nothing",
            command(Command::DmaMap, &DmaMap { size: 0, ..MAP }),
            INVAL,
        ),
        (
            "map, overflow",
            command(
                Command::DmaMap,
                &DmaMap {
                    size: u64::MAX,
                    ..MAP
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
    assert_eq!(
        bench.client().device_info().unwrap().num_regions,
        region::COUNT
    );
}
