//! Tests failures: a clear reason, and a way to recover.

use host_driver::nic::NicStatistics;
use host_driver::{Config, Nic, NicError, Transport};
use host_interface::bar;
use host_interface::extension::{BadConfig, FatalCode};
use integration_tests::spy::{END, SEND_RING, Shared, Spy};
use integration_tests::stage::in_time;
use integration_tests::{Engine, Sim, Stage, frames, stage, stories, stories_beyond};
use std::collections::BTreeSet;
use std::io::IoSlice;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use testbed::firmware::choice::{self, Variant};
use tigon2_chip::Cpu;
use tigon2_chip::bits::CpuState;
use tigon2_chip::registers::Register;

stories!(
    bad_firmware_is_refused_before_the_card_is_touched,
    a_producer_outside_of_the_ring_is_reported,
    an_unknown_command_is_reported,
    a_descriptor_without_length_is_dropped_and_counted,
    a_descriptor_to_nowhere_costs_its_frame_alone,
    a_firmware_that_stops_says_why,
    a_halted_cpu_is_noticed_and_recovered_from,
    what_explains_a_stall_reaches_the_driver,
);

stories_beyond!(
    a_producer_outside_of_the_ring_is_reported,
    an_unknown_command_is_reported,
    a_descriptor_without_length_is_dropped_and_counted,
    a_descriptor_to_nowhere_costs_its_frame_alone,
);

const LINK: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);

/// A card that is up, with a view into the memory that it shares with the driver.
fn open_with_view<E: Engine>() -> (E, Nic<Spy<E::Transport>>, Shared) {
    let (engine, transport) = E::start();
    let (spy, shared) = Spy::on(transport);
    let mut nic = Nic::probe(spy, Config::default()).expect("a card");
    nic.load(&E::firmware()).expect("our firmware");
    nic.open().expect("a loaded card");
    nic.wait_link(LINK).expect("the cable is in");
    (engine, nic, shared)
}

/// Puts a BD of the story's own into the empty ring and rings the doorbell.
fn send_raw<T: Transport>(nic: &mut Nic<T>, shared: &Shared, words: [u32; 4]) {
    shared.write_send_bd(nic.transport(), 0, words);
    let transport = nic.transport();
    transport
        .write(bar::MAILBOX_SEND_PRODUCER, 1)
        .and_then(|()| transport.flush())
        .expect("the card is there");
}

/// Both directions carry a frame.
fn carries_frames<E: Engine, T: Transport>(engine: &mut E, nic: &mut Nic<T>) {
    let out = frames::numbered(frames::PEER, nic.station(), 1);
    assert!(nic.queue(&[IoSlice::new(&out)]).expect("a good frame"));
    nic.submit().expect("the card is there");
    assert_eq!(engine.receive(), Some(out));
    let into = frames::numbered(nic.station(), frames::PEER, 2);
    engine.send(&into);
    let end = Instant::now() + PATIENCE;
    loop {
        nic.wait(Duration::from_millis(20))
            .expect("the card is there");
        let frames = nic.receive_batch(64).expect("no nonsense");
        if !frames.is_empty() {
            assert_eq!(frames, [into]);
            return;
        }
        in_time(end, nic, "the frame did not arrive");
    }
}

/// Looks until the driver's counts are as wanted.
fn until<T: Transport>(nic: &mut Nic<T>, wanted: impl Fn(&NicStatistics) -> bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        nic.wait(Duration::from_millis(20))
            .expect("the card is there");
        nic.service().expect("the card is well");
        let statistics = nic.statistics().expect("the card is there");
        if wanted(&statistics) {
            return;
        }
        in_time(end, nic, &format!("not reported: {statistics:?}"));
    }
}

fn bad_firmware_is_refused_before_the_card_is_touched<E: Engine>() {
    let mut stage = Stage::<E>::probed(Config::default());
    let good = stage::firmware();
    let mut outside = good.clone();
    outside[8..12].copy_from_slice(&0x0010_0000u32.to_be_bytes());
    let mut nowhere = good.clone();
    nowhere[4..8].copy_from_slice(&0x0000_0010u32.to_be_bytes());
    let flipped = {
        let mut file = good.clone();
        let last = file.len() - 1;
        file[last] ^= 1;
        file
    };
    let cases: [(&str, &[u8]); 6] = [
        ("empty", &[]),
        ("less than a header", &good[..7]),
        ("cut in the middle", &good[..good.len() / 2]),
        ("cut by its last word", &good[..good.len() - 4]),
        ("load address outside of SRAM", &outside),
        ("start address below the image", &nowhere),
    ];
    for (what, file) in cases {
        let error = stage.nic.load(file).expect_err(what);
        assert!(matches!(error, NicError::Image(_)), "{what}: {error}");
        assert!(!error.to_string().contains('\n'), "{what}: one line");
    }
    assert!(stage.nic.load(&flipped).is_err(), "a damaged seal");
    stage.load_and_open();
    let Stage { nic, engine, .. } = &mut stage;
    carries_frames(engine, nic);
}

fn a_producer_outside_of_the_ring_is_reported<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let transport = stage.nic.transport();
    transport
        .write(bar::MAILBOX_SEND_PRODUCER, 0xFFFF)
        .and_then(|()| transport.flush())
        .expect("the card is there");
    until(&mut stage.nic, |s| s.firmware_errors >= 1);
    let Stage { nic, engine, .. } = &mut stage;
    carries_frames(engine, nic);
}

fn an_unknown_command_is_reported<E: Engine>() {
    let mut stage = Stage::<E>::open();
    // Command 0xEE does not exist. The driver has sent some; ours comes next.
    let transport = stage.nic.transport();
    let mailbox = bar::MAILBOX_COMMAND_PRODUCER;
    let producer = transport.read(mailbox).expect("the card is there") & 63;
    let slot = bar::COMMAND_RING + producer * 4;
    transport
        .write(slot, 0xEE << 24)
        .and_then(|()| transport.write(mailbox, (producer + 1) & 63))
        .and_then(|()| transport.flush())
        .expect("the card is there");
    let end = Instant::now() + PATIENCE;
    while stage.nic.firmware_errors() == 0 {
        stage.turn();
        in_time(end, &mut stage.nic, "the command was not reported");
    }
    let Stage { nic, engine, .. } = &mut stage;
    carries_frames(engine, nic);
}

fn a_descriptor_without_length_is_dropped_and_counted<E: Engine>() {
    let (mut engine, mut nic, shared) = open_with_view::<E>();
    send_raw(&mut nic, &shared, [1, 0, END, 0]);
    until(&mut nic, |s| s.firmware_drops.get("BadSendBd") == Some(1));
    // The other direction never noticed.
    let frame = frames::numbered(nic.station(), frames::PEER, 5);
    engine.send(&frame);
    let end = Instant::now() + PATIENCE;
    let mut received = Vec::new();
    while received.is_empty() {
        nic.wait(Duration::from_millis(20))
            .expect("the card is there");
        received = nic.receive_batch(64).expect("no nonsense");
        in_time(end, &mut nic, "the frame did not arrive");
    }
    assert_eq!(received, [frame]);
}

fn a_descriptor_to_nowhere_costs_its_frame_alone<E: Engine>() {
    let (mut engine, mut nic, shared) = open_with_view::<E>();
    // No memory of the host's is there.
    send_raw(&mut nic, &shared, [0xDEAD, 0x1000, 100 << 16 | END, 0]);
    until(&mut nic, |s| s.firmware_drops.get("SendFault") == Some(1));
    nic.check_fatal().expect("the card goes on");
    nic.recover().expect("a reset mends the driver's ring");
    nic.wait_link(LINK).expect("the cable is in");
    carries_frames(&mut engine, &mut nic);
}

/// Where an engine is a thread of a busy computer, CPU B may get its turn late. CPU A waits
/// for it: here it stands still for a tenth of a second as soon as it runs.
#[test]
fn a_cpu_b_that_comes_late_is_waited_for() {
    let (mut engine, transport) = Sim::start();
    let machine = engine.machine().clone();
    let (spy, shared) = Spy::on(transport);
    let mut nic = Nic::probe(spy, Config::default()).expect("a card");
    let (late, was_late) = mpsc::channel();
    shared.before_wait(move || {
        let mut machine = machine.lock();
        let state = Register::cpu_state(Cpu::B).offset();
        let turn = machine.clock().cycle_at(1_000);
        let runs = (0..10_000).any(|_| {
            machine.run(turn);
            !CpuState::from_bits(machine.bar_read(state)).halt()
        });
        if runs {
            machine.bar_write(state, CpuState::new().with_halt(true).into_bits());
            machine.run(100_000 * turn);
            machine.bar_write(state, 0);
        }
        late.send(runs).expect("the story waits for it");
    });
    nic.load(&stage::firmware()).expect("it waits for CPU B");
    let parallel = choice::chosen().0 == Variant::Parallel;
    assert_eq!(
        was_late.recv(),
        Ok(parallel),
        "only one firmware needs CPU B"
    );
    nic.open().expect("a loaded card");
    nic.wait_link(LINK).expect("the cable is in");
    carries_frames(&mut engine, &mut nic);
}

/// Firmware that cannot work with what it was given tells by an event and leaves a report in
/// front of it; the driver passes the report on.
fn a_firmware_that_stops_says_why<E: Engine>() {
    let (_engine, transport) = E::start();
    let (spy, shared) = Spy::on(transport);
    let mut nic = Nic::probe(spy, Config::default()).expect("a card");
    // A send ring of 3 entries.
    shared.before_start(|shared, info| shared.write(info + SEND_RING + 8, &[3 << 16]));
    let error = nic.load(&E::firmware()).expect_err("no such ring");
    let NicError::FirmwareFatal(report) = error else {
        panic!("without its report: {error}");
    };
    assert_eq!(report.code, FatalCode::Configuration.number());
    assert_eq!(
        report.argument,
        BadConfig::SendRingSize.number(),
        "{report}"
    );
}

fn a_halted_cpu_is_noticed_and_recovered_from<E: Engine>() {
    let mut stage = Stage::<E>::open_with(Config {
        watchdog: Duration::from_millis(200),
        ..Config::default()
    });
    let halt = CpuState::new().with_halt(true).into_bits();
    let state = Register::cpu_state(Cpu::A).offset();
    let transport = stage.nic.transport();
    transport.write(state, halt).expect("the card is there");
    let frame = stage.outbound(1);
    stage.transmit(&[&frame]);
    let end = Instant::now() + PATIENCE;
    let error = loop {
        stage
            .nic
            .wait(Duration::from_millis(20))
            .expect("the card is there");
        if let Err(error) = stage.nic.service() {
            break error;
        }
        in_time(end, &mut stage.nic, "the halt was not noticed");
    };
    assert!(matches!(error, NicError::Stuck { .. }), "{error}");
    assert!(error.is_recoverable());
    let text = error.to_string();
    assert!(text.contains("; emulator: "), "{text}");
    assert!(text.contains(" signals="), "{text}");
    stage.nic.recover().expect("a reset mends it");
    stage.nic.wait_link(LINK).expect("the cable is in");
    let Stage { nic, engine, .. } = &mut stage;
    carries_frames(engine, nic);
    assert_eq!(nic.counters().recoveries, 1);
}

/// What the engine counts of interrupts, frames and locks: the driver reads the same by its own
/// way to the card as others do past it.
fn what_explains_a_stall_reaches_the_driver<E: Engine>() {
    let mut stage = Stage::<E>::open();
    let frame = stage.inbound(1);
    stage.engine.send(&frame);
    assert_eq!(stage.receive(1), [frame]);
    let statistics = stage.nic.statistics().expect("the card answers");
    let past = stage.engine.counts();
    let names = past.split_whitespace().map(|count| {
        let (name, _) = count.split_once('=').expect("a count");
        name.to_owned()
    });
    let names: BTreeSet<String> = names.collect();
    let found: BTreeSet<String> = statistics.emulator.keys().cloned().collect();
    assert_eq!(found, names);
    for name in ["signals", "spurious", "waiting", "refused", "undefined"] {
        assert!(names.contains(name), "{name} in {past}");
    }
    assert!(statistics.emulator["signals"] > 0, "{statistics:?}");
    assert_eq!(statistics.emulator["refused"], 0, "{statistics:?}");
}
