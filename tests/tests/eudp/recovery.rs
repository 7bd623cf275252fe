//! DMA channels that fail: both CPUs recover one after the other, and who waits has not the semaphore that
//! the other one may need; what is fetched again.

use crate::card::{Card, PORT, bytes, data};
use eudp::{Checksum, Completion, CutThrough, Status};
use host_interface::extension::Extension;
use integration_tests::{Engine, Sim};
use std::time::Duration;
use tigon_firmware::memory::layout;
use tigon_firmware::memory::shared::{RECOVERS_A, RECOVERS_B};
use tigon2_chip::Register;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;

/// Looks while a CPU waits.
const LOOKS: u32 = 200;

/// A datagram that cannot be read or written fails while the word at `other` says that the other CPU
/// recovers: its descriptor comes back with `status` when that word says no more so. Returns in how many
/// looks the word at `own` said that the one that waits wants to.
fn waits(fail: impl Fn(&mut Card), status: Status, [own, other]: [u32; 2]) -> u32 {
    let mut card = Card::timed(CutThrough::Off, Checksum::None, 1500);
    let machine = card.stage.engine.machine().clone();
    // This variant's tables lie higher.
    let counts = machine.lock().word(Extension::HandlerCounts.nic_address());
    let [own, other] = [own, other].map(|word| word + counts - layout::HANDLER_COUNTS);
    machine.lock().set_word(other, 1);
    machine.lock().unmap(&card.memory);
    fail(&mut card);
    // The bus takes a while to find out that there is no memory.
    card.stage.engine.pass(Duration::from_millis(2));
    assert!(card.rests(), "it waits");
    let mut wants = 0;
    for _ in 0..LOOKS {
        card.stage.engine.pass(Duration::from_nanos(290));
        let mut machine = machine.lock();
        for register in [Register::SemaphoreA, Register::SemaphoreB] {
            let owned = machine.bar_read(register.offset());
            assert_eq!(owned, 0, "{register:?} is free");
        }
        wants += machine.word(own);
    }
    machine.lock().set_word(other, 0);
    let (Completion::Sent { status: seen, .. } | Completion::Received { status: seen, .. }) =
        card.completion();
    assert_eq!(seen, status);
    assert_eq!(machine.lock().word(own), 0, "it has recovered");
    machine.lock().map(card.memory.clone());

    let sent = bytes(7, 1000);
    card.send(4096, &sent, 77);
    assert!(data(&card.wire().bytes) == sent);
    let done = Completion::Sent {
        cookie: 77,
        status: Status::Done,
    };
    assert_eq!(card.completion(), done);
    card.post(0, 2048, 78);
    let frame = card.inbound(PORT, &sent);
    card.stage.engine.send(&frame);
    assert_eq!(card.completion(), Card::received(78, 1000, true));
    assert!(card.memory(0, 1000) == sent);
    card.follow();
    wants
}

#[test]
fn cpu_b_waits_for_cpu_a_without_the_semaphore() {
    let fail = |card: &mut Card| card.send(0, &bytes(1, 1000), 5);
    let wants = waits(
        fail,
        Status::Unreadable,
        [RECOVERS_B.address(), RECOVERS_A.address()],
    );
    assert_eq!(wants, LOOKS);
}

/// It takes its word back meanwhile, so that CPU B may recover.
#[test]
fn cpu_a_waits_for_cpu_b_without_the_semaphore() {
    let fail = |card: &mut Card| {
        card.post(0, 2048, 6);
        let frame = card.inbound(PORT, &bytes(1, 1000));
        card.stage.engine.send(&frame);
    };
    let wants = waits(
        fail,
        Status::Unwritable,
        [RECOVERS_A.address(), RECOVERS_B.address()],
    );
    assert_eq!(wants, 0);
}

/// Memory is gone for a moment while a fragment leaves whose sum is a part of its datagram's. What is
/// fetched again is not in that sum: the datagram is given up, or its sum is right.
#[test]
fn what_is_fetched_again_leaves_with_no_wrong_sum() {
    let (mut unreadable, mut done) = (0, 0);
    for number in 0..60 {
        let sim = Sim::timed_on(Board::with_bus(32, 33), Parameters::default(), 1);
        let mut card = Card::on(sim, CutThrough::Lead(512), Checksum::Full, 9000);
        let sent = bytes(number, 20_000);
        let machine = card.stage.engine.machine().clone();
        card.send(0, &sent, number);
        let memory = card.memory.clone();
        card.stage
            .engine
            .pass(Duration::from_micros(10 * u64::from(number)));
        machine.lock().unmap(&memory);
        card.stage.engine.pass(Duration::from_micros(15));
        machine.lock().map(memory);
        let Completion::Sent { status, .. } = card.completion() else {
            panic!("another completion");
        };
        card.stage.engine.pass(Duration::from_micros(200));
        if status == Status::Done {
            let frames = std::iter::from_fn(|| machine.lock().take_frame());
            let last = frames.last().expect("a frame").bytes;
            // The sum is that of both directions.
            let here = card.fragments((0, PORT), &sent, 8976);
            assert_eq!(last[40..42], here[0][40..42], "{number}");
            done += 1;
        } else {
            assert_eq!(status, Status::Unreadable);
            unreadable += 1;
        }
        card.follow();
    }
    println!("{done} are sent, {unreadable} are unreadable");
    assert!(unreadable > 5 && done > 5);
}
