//! Tests clients that answer the server's DMA messages wrongly.

mod common;

use common::raw::{MAP, Raw, command, framed};
use common::*;
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::io::Write;
use std::time::Duration;
use vfio_user_nic::message::{Command, DmaAccess, RegionAccess, flags};
use vfio_user_nic::{Disconnect, DmaError};
use zerocopy::IntoBytes;

const ADDRESS: u64 = MAP.address;

/// A negotiated peer with one range to be reached by messages.
fn peer(bench: &Bench) -> Raw {
    let mut raw = Raw::negotiated(&bench.path);
    raw.send(&command(Command::DmaMap, &MAP));
    assert_eq!(raw.errno(), Some(0));
    raw
}

/// What the device hears when the peer answers its read of a word like this.
fn read_answered(
    bench: &Bench,
    raw: &mut Raw,
    answer: impl FnOnce(u16, DmaAccess) -> Vec<u8>,
) -> Result<[u8; 4], DmaError> {
    let dma = bench.dma.clone();
    let device = std::thread::spawn(move || {
        let mut word = [0; 4];
        dma.read(ADDRESS, &mut word).map(|()| word)
    });
    let (header, payload) = raw.reply().unwrap();
    assert_eq!(
        (header.command, header.flags),
        (Command::DmaRead as u16, flags::COMMAND)
    );
    let access = DmaAccess {
        address: ADDRESS,
        count: 4,
    };
    assert_eq!(payload, access.as_bytes());
    raw.send(&answer(header.id, access));
    device.join().unwrap()
}

/// A reply to DMA_READ with this range and this data.
fn reply(id: u16, access: DmaAccess, data: &[u8]) -> Vec<u8> {
    framed(id, 11, flags::REPLY, &[access.as_bytes(), data].concat())
}

#[test]
fn malformed_answers_are_errors_of_the_one_access() {
    type Answer = fn(u16, DmaAccess) -> Vec<u8>;
    let answers: [(&str, Answer); 7] = [
        ("a header alone", |id, _| framed(id, 11, flags::REPLY, &[])),
        ("no data", |id, access| reply(id, access, &[])),
        ("less data", |id, access| reply(id, access, &[0; 3])),
        ("more data", |id, access| reply(id, access, &[0; 5])),
        ("another address", |id, access| {
            reply(
                id,
                DmaAccess {
                    address: ADDRESS + 4,
                    ..access
                },
                &[0; 4],
            )
        }),
        ("another count", |id, access| {
            reply(id, DmaAccess { count: 8, ..access }, &[0; 4])
        }),
        ("another command", |id, _| {
            framed(id, 9, flags::REPLY, &[0; 20])
        }),
    ];
    let bench = Bench::new();
    let mut raw = peer(&bench);
    for (name, answer) in answers {
        let result = read_answered(&bench, &mut raw, answer);
        assert_eq!(result, Err(DmaError::Malformed(ADDRESS)), "{name}");
        // The next one is good.
        let result = read_answered(&bench, &mut raw, |id, access| reply(id, access, b"good"));
        assert_eq!(result, Ok(*b"good"), "after {name}");
    }
}

#[test]
fn an_error_without_an_errno_is_one() {
    let bench = Bench::new();
    let mut raw = peer(&bench);
    let result = read_answered(&bench, &mut raw, |id, _| {
        framed(id, 11, flags::REPLY | flags::ERROR, &[])
    });
    assert_eq!(
        result,
        Err(DmaError::Refused {
            address: ADDRESS,
            errno: Errno::IO
        })
    );
}

#[test]
fn answers_under_another_id_are_nobodys() {
    let bench = Bench::with(|config| config.patience = Duration::from_millis(50));
    let mut raw = peer(&bench);
    let result = read_answered(&bench, &mut raw, |id, access| {
        reply(id ^ 1, access, b"evil")
    });
    assert_eq!(result, Err(DmaError::Timeout(ADDRESS)));
}

/// Lets a peer send while a vCPU waits for its answer: the vCPU has the device's lock, so no command
/// can be done. The server must hang up.
fn flooded(send: impl FnOnce(&mut Raw)) {
    let bench = Bench::new();
    let mut raw = peer(&bench);
    let (device, dma) = (bench.device.clone(), bench.dma.clone());
    let vcpu = std::thread::spawn(move || {
        let _big_lock = device.lock().unwrap();
        dma.read(ADDRESS, &mut [0; 4])
    });
    assert_eq!(raw.reply().unwrap().0.command, Command::DmaRead as u16);
    send(&mut raw);
    assert_eq!(vcpu.join().unwrap(), Err(DmaError::Disconnected));
    bench.until(|d| d.disconnects == [Disconnect::Backlog]);
    bench.client().device_info().unwrap();
}

/// Commands in front of an answer that never comes do not fill the memory.
#[test]
fn a_flood_in_front_of_an_answer_ends_the_session() {
    flooded(|raw| {
        let access = RegionAccess {
            offset: 0,
            region: 0,
            count: 1 << 20,
        };
        let mut payload = access.as_bytes().to_vec();
        payload.resize(payload.len() + (1 << 20), 0);
        let write = framed(1, Command::RegionWrite as u16, flags::NO_REPLY, &payload);
        let sent = (0..100)
            .take_while(|_| raw.stream.write_all(&write).is_ok())
            .count();
        assert!(sent < 100, "the server took it all");
    });
}

/// The same with descriptors, of which a process has far fewer than bytes.
#[test]
fn a_flood_of_descriptors_ends_the_session_too() {
    flooded(|raw| {
        let memory = memory(0x1000);
        let map = command(Command::DmaMap, &MAP);
        let mut most = 0;
        for _ in 0..1000 {
            if !raw.try_send_with(&map, &[memory.as_fd(); 8]) {
                break;
            }
            most = most.max(open_descriptors());
        }
        assert!(most < 500, "{most} descriptors");
    });
}
