//! Tests clients that violate the protocol, against a running QEMU.
//!
//! After each of them the monitor answers, a good client works within a second, and QEMU uses no
//! more memory, descriptors, threads and mappings than before. Where the hostile client stays
//! connected, the good client gets the card all the same.

use crate::assembler::{Program, T0, T1, ZERO};
use crate::raw::{INVAL, MAP, Raw, command, framed};
use crate::victim::Victim;
use rustix::fs::{MemfdFlags, SealFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};
use tigon2_chip::Cpu;
use tigon2_chip::registers::Register;
use vfio_user_nic::Errno;
use vfio_user_nic::message::{Command, DmaAccess, DmaMap, HEADER_BYTES, RegionAccess, flags};
use zerocopy::IntoBytes;

/// State word of reference 6.1: start; bytes keep their order.
const START: u32 = 4;
/// Repetitions after which QEMU must use what it used before.
const ROUNDS: usize = 5;

/// A small client without manners, as far as it is still there afterwards.
type Act = fn(&Path) -> Vec<Raw>;

/// Lets a hostile client act again and again, and looks at QEMU each time.
fn suffers(name: &str, act: Act) {
    let mut victim = Victim::new();
    let mut before = None;
    for round in 0..=ROUNDS {
        let when = format!("{name}, round {round}");
        let stays = act(&victim.card.socket());
        victim.monitor_answers(&when);
        victim.good_client_works(&when);
        victim.monitor_answers(&when);
        drop(stays);
        victim.good_client_works(&when);
        match &before {
            // What the first round brings may stay: buffers, caches of the allocator.
            None => before = Some(victim.settled_vitals()),
            Some(before) => victim.is_flat(before, &when),
        }
    }
}

/// Posts a write of a register.
fn poke(raw: &mut Raw, register: Register, value: u32) {
    let access = RegionAccess {
        offset: register.offset().into(),
        region: 0,
        count: 4,
    };
    let payload = [access.as_bytes(), &value.to_le_bytes()].concat();
    raw.send(&framed(
        1,
        Command::RegionWrite as u16,
        flags::NO_REPLY,
        &payload,
    ));
}

/// Reads a register, and so waits until everything before it is done.
fn peek(raw: &mut Raw, register: Register) -> u32 {
    let access = RegionAccess {
        offset: register.offset().into(),
        region: 0,
        count: 4,
    };
    raw.send(&command(Command::RegionRead, &access));
    let (header, payload) = raw.reply().expect("it answers");
    assert_eq!(header.command, Command::RegionRead as u16);
    let word = payload[size_of::<RegionAccess>()..].try_into();
    u32::from_le_bytes(word.expect("a word"))
}

/// Starts DMA from the client's memory to the card.
fn start_read(raw: &mut Raw, bytes: u32) {
    poke(raw, Register::DmaReadHostHigh, 0);
    poke(raw, Register::DmaReadHostLow, MAP.address as u32);
    poke(raw, Register::DmaReadLocal, 0x2_0000);
    poke(raw, Register::DmaReadLength, bytes);
    poke(raw, Register::DmaReadState, START);
}

/// Starts DMA from the card to the client's memory.
fn start_write(raw: &mut Raw, bytes: u32) {
    poke(raw, Register::DmaWriteHostHigh, 0);
    poke(raw, Register::DmaWriteHostLow, MAP.address as u32);
    poke(raw, Register::DmaWriteLocal, 0x2_0000);
    poke(raw, Register::DmaWriteLength, bytes);
    poke(raw, Register::DmaWriteState, START);
}

/// A client with one page to be reached by messages.
fn by_messages(socket: &Path) -> Raw {
    let mut raw = Raw::negotiated(socket);
    raw.send(&command(Command::DmaMap, &MAP));
    assert_eq!(raw.errno(), Some(0));
    raw
}

/// A client whose memory shrinks when the card is about to use it. The card's DMA fails.
fn shrinks(socket: &Path) -> Vec<Raw> {
    let mut raw = Raw::negotiated(socket);
    let memory = memfd_create("shrinks", MemfdFlags::CLOEXEC).expect("a memfd");
    let memory = File::from(memory);
    memory.set_len(MAP.size).expect("a size");
    raw.send_with(&command(Command::DmaMap, &MAP), &[memory.as_fd()]);
    assert_eq!(raw.errno(), Some(0));
    memory.set_len(0).expect("it shrinks");
    start_read(&mut raw, 256);
    start_write(&mut raw, 256);
    let failed = |raw: &mut Raw, register| peek(raw, register) >> 24 != 0;
    let start = Instant::now();
    while !failed(&mut raw, Register::DmaReadState) || !failed(&mut raw, Register::DmaWriteState) {
        assert!(start.elapsed() < Duration::from_secs(1), "no error");
    }
    Vec::new()
}

#[test]
fn memory_that_shrinks_under_dma_is_an_error_of_the_dma() {
    suffers("a file that shrinks", shrinks);
}

/// A client that says that it takes nothing, or next to nothing, in one transfer.
fn takes_nothing(socket: &Path) -> Vec<Raw> {
    for bytes in [0, 1, 4095] {
        let mut raw = Raw::connect(socket);
        let text = format!("{{\"capabilities\":{{\"max_data_xfer_size\":{bytes}}}}}\0");
        let payload = [b"\0\0\x01\0", text.as_bytes()].concat();
        raw.send(&command(Command::Version, payload.as_slice()));
        assert_eq!(raw.errno(), Some(INVAL), "{bytes} bytes are too few");
        assert!(raw.reply().is_none(), "it hangs up");
    }
    Vec::new()
}

#[test]
fn who_takes_next_to_nothing_in_a_transfer_is_refused() {
    suffers("transfers of nothing", takes_nothing);
}

/// A client that answers DMA byte by byte, one a second.
fn drips(socket: &Path) -> Vec<Raw> {
    let mut raw = by_messages(socket);
    start_read(&mut raw, 1514);
    let (header, _) = raw.reply().expect("the card asks");
    let access = DmaAccess {
        address: MAP.address,
        count: 1514,
    };
    let answer = [access.as_bytes(), &[0; 1514]].concat();
    let answer = framed(header.id, header.command, flags::REPLY, &answer);
    let mut other = raw.stream.try_clone().expect("a descriptor");
    std::thread::spawn(move || {
        for byte in answer {
            if other.write_all(&[byte]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    vec![raw]
}

#[test]
fn an_answer_in_drops_holds_up_nobody() {
    suffers("an answer in drops", drips);
}

/// A client that never answers DMA, in both directions.
fn never_answers(socket: &Path) -> Vec<Raw> {
    let mut raw = by_messages(socket);
    start_read(&mut raw, 1514);
    start_write(&mut raw, 1514);
    raw.reply().expect("the card asks");
    vec![raw]
}

#[test]
fn dma_that_is_never_answered_holds_up_nobody() {
    suffers("no answer", never_answers);
}

/// SIGTERM is obeyed while the card waits for a client.
#[test]
fn qemu_ends_when_it_is_told_whatever_its_client_does() {
    let holds: [(&str, Act); 4] = [
        ("no answer", never_answers),
        ("drops", drips),
        ("half a header", half_a_header),
        ("does not read", does_not_read),
    ];
    for (name, act) in holds {
        let mut victim = Victim::new();
        let _stays = act(&victim.card.socket());
        let pid = Pid::from_child(&victim.card.qemu);
        let start = Instant::now();
        kill_process(pid, Signal::TERM).expect("QEMU runs");
        victim.card.qemu.wait().expect("it ends");
        let took = start.elapsed();
        assert!(took < Duration::from_secs(1), "{name}: it took {took:?}");
    }
}

/// A client that maps page after page, as many as a process can have.
fn maps_without_end(socket: &Path) -> Vec<Raw> {
    let memory = memfd_create("maps", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let memory = File::from(memory.expect("a memfd"));
    memory.set_len(2 * MAP.size).expect("a size");
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK).expect("a seal");
    let mut raw = Raw::negotiated(socket);
    let mut mapped = 0_u64;
    let refused = loop {
        let map = DmaMap {
            address: mapped * 2 * MAP.size,
            // Neighbours that are not neighbours in the file stay apart.
            offset: mapped % 2 * MAP.size,
            ..MAP
        };
        raw.send_with(&command(Command::DmaMap, &map), &[memory.as_fd()]);
        match raw.errno() {
            Some(0) => mapped += 1,
            other => break other,
        }
        assert!(mapped < 65_000, "the system's limit is near");
    };
    let enough = Errno::NOSPC.raw_os_error().unsigned_abs();
    assert_eq!(refused, Some(enough), "after {mapped} maps");
    assert!(mapped >= 1024, "a guest needs some: {mapped}");
    Vec::new()
}

#[test]
fn maps_come_to_an_end_before_the_systems_do() {
    suffers("maps without end", maps_without_end);
}

/// A client that claims the address space of the process.
fn maps_everything(socket: &Path) -> Vec<Raw> {
    let memory = memfd_create("vast", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let memory = File::from(memory.expect("a memfd"));
    let size = 1 << 42;
    memory.set_len(size).expect("a size");
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK).expect("a seal");
    let mut raw = Raw::negotiated(socket);
    for n in 0..32 {
        let map = DmaMap {
            address: n << 42,
            size,
            ..MAP
        };
        raw.send_with(&command(Command::DmaMap, &map), &[memory.as_fd()]);
        assert_ne!(raw.errno(), Some(0), "4 TB are too much");
    }
    Vec::new()
}

#[test]
fn the_address_space_is_not_the_clients() {
    suffers("vast maps", maps_everything);
}

/// Clients that connect and say nothing.
fn says_nothing(socket: &Path) -> Vec<Raw> {
    (0..4).map(|_| Raw::connect(socket)).collect()
}

#[test]
fn silent_connections_keep_nobody_out() {
    suffers("silence", says_nothing);
}

#[test]
fn many_silent_connections_keep_nobody_out() {
    suffers("much silence", |socket| {
        (0..200).map(|_| Raw::connect(socket)).collect()
    });
}

/// Clients that agree on a version and then say nothing.
fn only_negotiates(socket: &Path) -> Vec<Raw> {
    (0..4).map(|_| Raw::negotiated(socket)).collect()
}

#[test]
fn who_only_negotiates_does_not_hold_the_card() {
    suffers("no command", only_negotiates);
}

/// A client that holds the card and stops in the middle of a header.
fn half_a_header(socket: &Path) -> Vec<Raw> {
    let mut raw = by_messages(socket);
    raw.send(&command(Command::DeviceReset, &())[..HEADER_BYTES / 2]);
    vec![raw]
}

#[test]
fn half_a_header_keeps_nobody_out() {
    suffers("half a header", half_a_header);
}

/// The same before and after VERSION, by those that do not hold the card.
fn half_a_first_message(socket: &Path) -> Vec<Raw> {
    let mut first = Raw::connect(socket);
    first.send(&command(Command::DeviceReset, &())[..3]);
    let mut second = Raw::negotiated(socket);
    second.send(&command(Command::DeviceReset, &())[..3]);
    vec![first, second]
}

#[test]
fn half_a_first_message_keeps_nobody_out() {
    suffers("half a first message", half_a_first_message);
}

/// A client that asks and does not read the answers.
fn does_not_read(socket: &Path) -> Vec<Raw> {
    let mut raw = by_messages(socket);
    let access = RegionAccess {
        offset: 0,
        region: 0,
        count: 0x4000,
    };
    let read = command(Command::RegionRead, &access);
    raw.stream.set_nonblocking(true).expect("it can be set");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(200) {
        if raw.stream.write_all(&read).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    vec![raw]
}

#[test]
fn who_does_not_read_keeps_nobody_out() {
    suffers("no reading", does_not_read);
}

/// A driver that sleeps owes nothing: it keeps the card, whoever else comes.
#[test]
fn a_driver_that_sleeps_keeps_the_card() {
    let mut victim = Victim::new();
    let mut driver = Raw::negotiated(&victim.card.socket());
    poke(&mut driver, Register::MiscHostControl, 0x2200_0022);
    poke(&mut driver, Register::WindowBase, 0x800);
    assert_eq!(peek(&mut driver, Register::WindowBase), 0x800);
    for _ in 0..3 {
        let busy = vfio_user_nic::Client::connect(victim.card.socket(), Duration::from_secs(1));
        let error = busy.expect_err("the card is taken");
        assert!(matches!(error, vfio_user_nic::ClientError::Busy), "{error}");
    }
    let _silent = says_nothing(&victim.card.socket());
    victim.monitor_answers("a driver sleeps");
    assert_eq!(
        peek(&mut driver, Register::WindowBase),
        0x800,
        "it is the driver's"
    );
    drop(driver);
    victim.good_client_works("after the driver");
}

/// What can be said without end is said a few times and then counted.
#[test]
fn faults_and_disconnects_do_not_fill_the_log() {
    let mut victim = Victim::writing();
    victim.card.connect();
    let mut stop = Program::at(0x8000);
    stop.stop();
    for (n, word) in (0..).zip(&stop.words) {
        victim.card.store(stop.base + 4 * n, *word);
    }
    // CPU B starts CPU A, which stops at once, again and again.
    let mut again = Program::at(0x4000);
    again.li(T0, stop.base).write(T0, Register::CpuAPc);
    let start = again.here();
    again.write(ZERO, Register::CpuAState).nop().nop();
    again.li(T1, stop.base).write(T1, Register::CpuAPc);
    again.beq(ZERO, ZERO, start);
    victim.card.run_on(Cpu::B, &again);
    std::thread::sleep(Duration::from_secs(2));
    victim.card.leave();
    for _ in 0..100 {
        let mut raw = by_messages(&victim.card.socket());
        raw.send(&[0xff; HEADER_BYTES]);
        while raw.reply().is_some() {}
    }
    victim.good_client_works("after the flood");
    let pid = Pid::from_child(&victim.card.qemu);
    kill_process(pid, Signal::TERM).expect("QEMU runs");
    victim.card.qemu.wait().expect("it ends");
    let said = victim.said();
    let lines = |part: &str| said.lines().filter(|line| line.contains(part)).count();
    assert!(lines("CPU A stopped at") >= 1, "{said}");
    assert!(lines("cut off") >= 1, "{said}");
    assert!(said.lines().count() < 60, "{} lines", said.lines().count());
    assert!(lines("left out") >= 2, "both are counted: {said}");
}
