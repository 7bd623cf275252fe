//! Tests how the card processes sent frames: checksums, VLAN tags; and a send ring in its own
//! memory.

use std::time::{Duration, Instant};

use host_driver::Config;
use host_driver::checksum::{add, prepare, sum};
use host_driver::nic::{ChecksumOffload, InPlace, SendOptions, SendRingPlace, SendRingSize};
use integration_tests::{Engine, Stage, stories, stories_beyond};
use rustix::fs::{MemfdFlags, SealFlags};

stories!(
    checksums_are_right_wherever_a_frame_is_cut,
    frames_keep_their_order_whether_summed_or_not,
    a_tag_is_inserted_behind_the_addresses,
    the_ring_in_the_cards_memory_wraps_three_times,
    parts_in_place_are_read_and_summed_where_they_are,
);

stories_beyond!(
    checksums_are_right_wherever_a_frame_is_cut,
    frames_keep_their_order_whether_summed_or_not,
    a_tag_is_inserted_behind_the_addresses,
    the_ring_in_the_cards_memory_wraps_three_times,
    parts_in_place_are_read_and_summed_where_they_are,
);

const TCP: u8 = 6;
const UDP: u8 = 17;

fn with(send_checksums: ChecksumOffload) -> Config {
    Config {
        send_checksums,
        vlan: true,
        ..Config::default()
    }
}

/// An IPv4 packet of a protocol, checksums and all, in the frame of that number.
fn packet<E: Engine>(stage: &Stage<E>, protocol: u8, number: u32) -> Vec<u8> {
    let mut frame = stage.outbound(number);
    let put = |frame: &mut [u8], at: usize, value: u16| {
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    };
    let total = (frame.len() - 14) as u16;
    put(&mut frame, 12, 0x0800);
    put(&mut frame, 14, 0x4500);
    put(&mut frame, 16, total);
    put(&mut frame, 20, 0x4000);
    frame[23] = protocol;
    put(&mut frame, 24, 0);
    let header = !sum(&frame[14..34]);
    put(&mut frame, 24, header);
    let field = if protocol == TCP { 50 } else { 40 };
    if protocol == UDP {
        put(&mut frame, 38, total - 20);
    }
    put(&mut frame, field, 0);
    let checksum = match !transport_sum(&frame) {
        0 if protocol == UDP => 0xFFFF,
        checksum => checksum,
    };
    put(&mut frame, field, checksum);
    frame
}

/// The sum of pseudo-header and transport of such a packet.
fn transport_sum(frame: &[u8]) -> u16 {
    let pseudo = add(sum(&frame[26..34]), u16::from(frame[23]));
    add(add(pseudo, (frame.len() - 34) as u16), sum(&frame[34..]))
}

/// Reference 6.5, 13: the sum of the DMA engine, patched into the frame.
fn checksums_are_right_wherever_a_frame_is_cut<E: Engine>() {
    for offload in [ChecksumOffload::LINUX, ChecksumOffload::FULL] {
        let mut stage = Stage::<E>::open_with(with(offload));
        for number in 0..60 {
            let protocol = if number % 2 == 0 { TCP } else { UDP };
            let wanted = packet(&stage, protocol, number);
            let mut given = wanted.clone();
            let options = prepare(&mut given, offload);
            assert!(options.transport_checksum && given != wanted);
            let (front, rest) = given.split_at(1 + number as usize);
            let (middle, end) = rest.split_at((rest.len() / 2) | 1);
            stage.transmit_as(&[front, middle, end], options);
            assert_eq!(stage.wire(), wanted, "frame {number}");
        }
        assert_eq!(stage.nic.drops().total(), 0);
    }
}

fn frames_keep_their_order_whether_summed_or_not<E: Engine>() {
    let mut stage = Stage::<E>::open_with(with(ChecksumOffload::FULL));
    let mut wanted = Vec::new();
    for number in 0..300 {
        let whole = packet(&stage, UDP, number);
        let mut given = whole.clone();
        let mut options = SendOptions::default();
        if number % 4 != 0 {
            options = prepare(&mut given, ChecksumOffload::FULL);
        }
        stage.transmit_as(&[&given], options);
        wanted.push(whole);
    }
    for (number, wanted) in wanted.iter().enumerate() {
        assert_eq!(stage.wire(), *wanted, "frame {number}");
    }
}

/// Reference 10.2: {0x8100, tag} behind the source address.
fn a_tag_is_inserted_behind_the_addresses<E: Engine>() {
    let mut stage = Stage::<E>::open_with(with(ChecksumOffload::LINUX));
    for number in 0..20 {
        let mut wanted = packet(&stage, TCP, number);
        let mut given = wanted.clone();
        let mut options = prepare(&mut given, ChecksumOffload::LINUX);
        options.vlan = Some(0x2005);
        stage.transmit_as(&[&given[..40], &given[40..]], options);
        wanted.splice(12..12, [0x81, 0x00, 0x20, 0x05]);
        assert_eq!(stage.wire(), wanted, "frame {number}");
    }
}

/// Reference 12, 13: the host writes the BDs through the window, nothing is fetched.
fn the_ring_in_the_cards_memory_wraps_three_times<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        send_ring_place: SendRingPlace::Card,
        send_ring: SendRingSize::Entries128,
        ..with(ChecksumOffload::LINUX)
    });
    let mut expected = 0;
    for number in 0..128 * 3 + 5 {
        let frame = stage.outbound(number);
        stage.transmit(&[&frame]);
        while let Some(left) = stage.wire_now() {
            assert_eq!(left, stage.outbound(expected), "frame {expected}");
            expected += 1;
        }
    }
    while expected < 128 * 3 + 5 {
        assert_eq!(stage.wire(), stage.outbound(expected), "frame {expected}");
        expected += 1;
    }
    assert_eq!(stage.wire_now(), None, "one frame too many");
}

/// A frame's header is the driver's, its payload stands in a memory file that the driver has not
/// made, in several parts at any offset.
fn parts_in_place_are_read_and_summed_where_they_are<E: Engine>() {
    const BYTES: usize = 64 * 1024;
    let offload = ChecksumOffload::LINUX;
    let mut stage = Stage::<E>::open_with(with(offload));
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("payload", flags).expect("memory");
    rustix::fs::ftruncate(&file, BYTES as u64).expect("room");
    let unsealed = stage.nic.map(file.try_clone().expect("a descriptor"));
    assert!(unsealed.is_err(), "a file that can shrink");
    let seals = SealFlags::SHRINK | SealFlags::GROW;
    rustix::fs::fcntl_add_seals(&file, seals).expect("a fresh file");
    let memory = stage.nic.map(file).expect("a sealed file");
    for number in 0..40 {
        let wanted = packet(&stage, TCP, number);
        let (header, payload) = wanted.split_at(54);
        // Apart from each other, the second first.
        let (front, end) = payload.split_at(1 + payload.len() / 3);
        let (low, high) = (1000 + number as usize, 40_001 + 8 * number as usize);
        memory.write_bytes(high, front).expect("in it");
        memory.write_bytes(low, end).expect("in it");
        let mut given = [header, &vec![0; payload.len()]].concat();
        let options = prepare(&mut given, offload);
        let part = |offset, bytes: &[u8]| InPlace {
            memory: &memory,
            offset,
            bytes: bytes.len(),
        };
        let parts = [part(high, front), part(low, end)];
        let queued = stage.nic.queue_in_place(&given[..54], &parts, options);
        assert!(queued.expect("a frame"), "room");
        stage.nic.submit().expect("the card is there");
        assert_eq!(stage.wire(), wanted, "frame {number}");
    }
    let outside = [InPlace {
        memory: &memory,
        offset: BYTES - 1,
        bytes: 2,
    }];
    let refused = stage
        .nic
        .queue_in_place(&[0; 54], &outside, SendOptions::default());
    assert!(refused.is_err(), "a part that is not in the memory");
    // The memory is whoever's it was again once the card has returned all.
    let mark = stage.nic.send_queued();
    assert_eq!(mark, 40 * 3);
    let end = Instant::now() + Duration::from_secs(10);
    while stage.nic.send_returned() < mark {
        assert!(Instant::now() < end, "BDs do not come back");
        stage.turn();
    }
    stage.nic.unmap(&memory).expect("the card lets go");
}
