//! Tests who may hold the device for how long: dead clients block nobody, healthy ones stay
//! connected, and the device's lock is never held for long.

mod common;

use common::raw::{INVAL, MAP, Raw, command, framed};
use common::*;
use rustix::fd::AsFd;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use vfio_user_nic::message::{
    Command, DmaAccess, DmaMap, HEADER_BYTES, RegionAccess, flags, region,
};
use vfio_user_nic::{Client, ClientError, Disconnect, DmaError, DmaRange, Errno};
use zerocopy::IntoBytes;

/// How soon a good client is served, whoever else is there.
const SOON: Duration = Duration::from_secs(1);

/// A good client comes, works and goes.
fn works(bench: &Bench) {
    let start = Instant::now();
    let regions = bench.client().device_info().unwrap().num_regions;
    assert_eq!(regions, region::COUNT);
    let took = start.elapsed();
    assert!(took < SOON, "it took {took:?}");
}

/// A client that holds the device.
fn holder(bench: &Bench) -> Raw {
    let mut raw = Raw::negotiated(&bench.path);
    raw.send(&command(Command::DmaMap, &MAP));
    assert_eq!(raw.errno(), Some(0));
    raw
}

#[test]
fn silence_keeps_nobody_out() {
    let bench = Bench::new();
    let _silent: Vec<Raw> = (0..200).map(|_| Raw::connect(&bench.path)).collect();
    works(&bench);
    let _negotiated: Vec<Raw> = (0..20).map(|_| Raw::negotiated(&bench.path)).collect();
    works(&bench);
    let mut half = Raw::negotiated(&bench.path);
    half.send(&[7; 3]);
    works(&bench);
}

/// Silent clients are hung up on together, not one after the other.
#[test]
fn the_silent_are_hung_up_on_at_the_same_time() {
    let patience = Duration::from_millis(300);
    let bench = Bench::with(|config| config.handshake_timeout = patience);
    let mut all: Vec<Raw> = (0..10).map(|_| Raw::connect(&bench.path)).collect();
    all.extend((0..10).map(|_| Raw::negotiated(&bench.path)));
    let start = Instant::now();
    assert!(all.iter_mut().all(|raw| raw.reply().is_none()));
    assert!(start.elapsed() < 3 * patience, "{:?}", start.elapsed());
}

#[test]
fn a_driver_that_sleeps_keeps_the_device() {
    let bench = Bench::with(|config| {
        config.patience = Duration::from_millis(100);
        config.contested_patience = Duration::from_millis(50);
        config.handshake_timeout = Duration::from_millis(100);
    });
    let mut driver = bench.client();
    let memory = memory(MAP.size);
    let range = DmaRange::read_write(MAP.address, MAP.size);
    driver.dma_map(range, Some((memory.as_fd(), 0))).unwrap();
    let others = [
        Raw::connect(&bench.path),
        Raw::connect(&bench.path),
        Raw::connect(&bench.path),
    ];
    let refused = Client::connect(&bench.path, Duration::from_millis(500)).unwrap_err();
    assert!(matches!(refused, ClientError::Busy), "{refused}");
    bench.dma.write(MAP.address, &[1]).unwrap();
    assert_eq!(driver.device_info().unwrap().num_regions, region::COUNT);
    drop((others, driver));
    works(&bench);
}

/// Two that wait: the first gets the device, the second is told that it is taken.
#[test]
fn who_has_waited_longest_is_next() {
    let bench = Bench::new();
    let holder = holder(&bench);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let mut client = bench.client();
            client.device_info().unwrap();
            std::thread::sleep(Duration::from_millis(700));
        });
        std::thread::sleep(Duration::from_millis(50));
        let second = scope.spawn(|| Client::connect(&bench.path, Duration::from_millis(500)));
        std::thread::sleep(Duration::from_millis(50));
        drop(holder);
        let refused = second.join().unwrap().unwrap_err();
        assert!(matches!(refused, ClientError::Busy), "{refused}");
        first.join().unwrap();
    });
    works(&bench);
}

/// What a client that holds the device does, and what the device hears of its end when
/// another client wants it.
#[test]
fn who_owes_something_loses_the_device_to_a_newcomer() {
    type Act = fn(&Bench) -> Raw;
    let cases: [(&str, Act, Disconnect); 4] = [
        ("half a header", half_a_header, Disconnect::Incomplete),
        ("a header in drops", drips, Disconnect::Incomplete),
        ("no reading", does_not_read, Disconnect::Stuck),
        ("no answer", does_not_answer, Disconnect::Unanswered),
    ];
    for (name, act, why) in cases {
        let bench = Bench::new();
        let mut raw = act(&bench);
        works(&bench);
        bench.until(|device| device.disconnects.first() == Some(&why));
        raw.stream.set_nonblocking(false).unwrap();
        // Hung up on, with or without what was on its way.
        let _ = raw.stream.read_to_end(&mut Vec::new());
        assert_eq!(bench.device().connects, 2, "{name}");
    }
}

fn half_a_header(bench: &Bench) -> Raw {
    let mut raw = holder(bench);
    raw.send(&command(Command::DeviceReset, &())[..HEADER_BYTES / 2]);
    raw
}

fn drips(bench: &Bench) -> Raw {
    let raw = holder(bench);
    let mut stream = raw.stream.try_clone().unwrap();
    std::thread::spawn(move || {
        for byte in framed(1, 13, 0, &[0; 1000]) {
            if stream.write_all(&[byte]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    raw
}

fn does_not_read(bench: &Bench) -> Raw {
    let mut raw = holder(bench);
    let access = RegionAccess {
        offset: 0,
        region: 0,
        count: BAR_BYTES as u32,
    };
    let read = command(Command::RegionRead, &access);
    raw.stream.set_nonblocking(true).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(200) {
        let _ = raw.stream.write_all(&read);
    }
    raw
}

fn does_not_answer(bench: &Bench) -> Raw {
    let mut raw = holder(bench);
    let dma = bench.dma.clone();
    std::thread::spawn(move || dma.read(MAP.address, &mut [0; 64]));
    assert_eq!(raw.reply().unwrap().0.command, Command::DmaRead as u16);
    raw
}

/// Without a newcomer there is more patience, but not for ever.
#[test]
fn half_a_message_has_an_end_without_a_newcomer_too() {
    let patience = Duration::from_millis(300);
    let bench = Bench::with(|config| config.patience = patience);
    let start = Instant::now();
    let mut raw = half_a_header(&bench);
    assert!(raw.reply().is_none());
    assert!((patience..3 * patience).contains(&start.elapsed()));
}

/// One patience for an access, however many messages it takes; a client that answers
/// nothing is forgiven three times.
#[test]
fn an_access_waits_once_and_a_client_is_given_up() {
    let patience = Duration::from_millis(300);
    let bench = Bench::with(|config| config.patience = patience);
    let mut raw = holder(&bench);
    let start = Instant::now();
    let accesses: Vec<_> = (0..5)
        .map(|_| bench.dma.read(MAP.address, &mut [0; 0x1000]))
        .collect();
    assert!(start.elapsed() < 5 * patience, "{:?}", start.elapsed());
    assert_eq!(accesses[..2], [Err(DmaError::Timeout(MAP.address)); 2]);
    assert_eq!(accesses[2], Err(DmaError::Disconnected));
    bench.until(|device| device.disconnects == [Disconnect::Unanswered]);
    while raw.reply().is_some() {}
}

/// An access by many messages, each answered in time, all of them not.
#[test]
fn many_slow_answers_are_one_slow_access() {
    let patience = Duration::from_millis(500);
    let bench = Bench::with(|config| config.patience = patience);
    let mut raw = Raw::connect(&bench.path);
    let text = b"\0\0\x01\0{\"capabilities\":{\"max_data_xfer_size\":4096}}\0";
    raw.send(&command(Command::Version, text.as_slice()));
    raw.reply().unwrap();
    let map = DmaMap {
        size: 0x10_0000,
        ..MAP
    };
    raw.send(&command(Command::DmaMap, &map));
    assert_eq!(raw.errno(), Some(0));
    let end = raw.stream.try_clone().unwrap();
    let answers = std::thread::spawn(move || {
        let mut asked = 0;
        while let Some((header, payload)) = raw.reply() {
            asked += 1;
            std::thread::sleep(patience / 5);
            assert_eq!(&payload[8..], 4096u64.as_bytes());
            let answer = [payload, vec![0; 4096]].concat();
            raw.send(&framed(header.id, header.command, flags::REPLY, &answer));
        }
        asked
    });
    let start = Instant::now();
    let error = bench.dma.read(MAP.address, &mut vec![0; 0x10_0000]);
    let took = start.elapsed();
    end.shutdown(std::net::Shutdown::Both).unwrap();
    let asked = answers.join().unwrap();
    assert!(matches!(error, Err(DmaError::Timeout(_))), "{error:?}");
    assert!(took < 2 * patience, "{took:?}");
    assert!((1..10).contains(&asked), "{asked} messages");
}

#[test]
fn who_takes_next_to_nothing_in_a_transfer_is_refused() {
    let bench = Bench::new();
    for bytes in [0, 1, 4095] {
        let mut raw = Raw::connect(&bench.path);
        let text = format!("{{\"capabilities\":{{\"max_data_xfer_size\":{bytes}}}}}\0");
        let payload = [b"\0\0\x01\0", text.as_bytes()].concat();
        raw.send(&command(Command::Version, payload.as_slice()));
        assert_eq!(raw.errno(), Some(INVAL), "{bytes}");
        assert_eq!(raw.errno(), None, "it hangs up");
    }
    works(&bench);
}

/// The number of maps that is announced is the number of maps.
#[test]
fn maps_end_where_the_server_says() {
    let bench = Bench::new();
    let mut client = bench.client();
    let most = client.version().capabilities.max_dma_maps;
    assert!((1024..=8192).contains(&most), "{most}");
    let memory = memory(0x1000);
    let mut map = |n: u64| {
        let range = DmaRange::read_write(n << 13, 0x1000);
        client.dma_map(range, Some((memory.as_fd(), 0)))
    };
    for n in 0..most {
        map(n).unwrap();
    }
    let error = map(most).unwrap_err();
    let enough = Errno::NOSPC;
    assert!(
        matches!(error, ClientError::Refused { errno, .. } if errno == enough),
        "{error}"
    );
    std::thread::spawn(|| ()).join().unwrap();
}

/// A reset ends accesses that wait: nothing of them comes behind its reply.
#[test]
fn a_reset_takes_back_what_waits() {
    let bench = Bench::new();
    let mut raw = holder(&bench);
    let dma = bench.dma.clone();
    let access = std::thread::spawn(move || dma.write(MAP.address, &vec![0; 0x1000]));
    let (asked, _) = raw.reply().unwrap();
    assert_eq!(asked.command, Command::DmaWrite as u16);
    raw.send(&command(Command::DeviceReset, &()));
    assert_eq!(raw.errno(), Some(0));
    assert_eq!(
        access.join().unwrap(),
        Err(DmaError::Cancelled(MAP.address))
    );
    // Its answer comes too late, and harms nobody.
    let echo = DmaAccess {
        address: MAP.address,
        count: 0x1000,
    };
    raw.send(&framed(
        asked.id,
        asked.command,
        flags::REPLY,
        echo.as_bytes(),
    ));
    raw.send(&command(Command::DeviceReset, &()));
    assert_eq!(raw.errno(), Some(0));
}
