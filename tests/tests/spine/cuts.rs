//! A run is cut off at every instruction of its own, one after the other.
//!
//! The test does what CPU B does: it halts CPU A where it stands, in the extension's text or in an
//! import, and sets its program counter to the way out. So each cut is where it is meant to be.
//! After thousands of them whatever a cut would leak has run out: there are 512 buffers, 128 return
//! slots, 8 slots in the pool.

use crate::answers::{is_answer, ping};
use crate::card::{self, Spine};
use host_interface::spine::HandlerCount;
use integration_tests::Engine;
use spine_linker::load::Guard;
use std::time::Duration;
use tigon_bench::spine::card::Text;
use tigon_firmware::memory::shared::SPINE_RUNNING;
use tigon2_chip::Cpu;
use tigon2_chip::bits::CpuState;
use tigon2_sim::Machine;

/// BAR offsets of CPU A's state and program counter.
const STATE: u32 = 0x140;
const PC: u32 = 0x144;
/// Cycles within which a frame has reached its handler, and a run is over.
const PATIENCE: u32 = 200_000;

/// Lengths of frames that all cuts are tried with.
const ROUNDS: u8 = 66;

/// Where the extensions' text is, and the way out of it.
pub struct Places {
    text: Text,
    imports: [std::ops::Range<u32>; 3],
    abort: u32,
}

impl Places {
    pub fn of(spine: &mut Spine) -> Places {
        let imports = [
            ["_imports_start", "_imports_end"],
            ["_cold_imports_start", "_cold_imports_end"],
            ["_pad_imports_start", "_scratch_a_system_end"],
        ];
        Places {
            text: Text::of(&spine.stage.engine.machine().lock()),
            imports: imports.map(|[start, end]| card::symbol(start)..card::symbol(end)),
            abort: card::symbol("spine_abort"),
        }
    }
}

fn pc(machine: &Machine) -> u32 {
    machine.cpus().core(Cpu::A).pc()
}

/// Lets CPU A go on by one instruction.
fn step(machine: &mut Machine) {
    let before = pc(machine);
    for _ in 0..1000 {
        machine.run(1);
        if pc(machine) != before {
            return;
        }
    }
    panic!("CPU A stands at {before:#x}");
}

/// Cuts the next run off behind `instructions` of it; `false` if it is over before that.
pub fn cut(machine: &mut Machine, places: &Places, instructions: u32) -> bool {
    for _ in 0..PATIENCE {
        if places.text.contains(pc(machine)) {
            break;
        }
        machine.run(1);
    }
    assert!(places.text.contains(pc(machine)), "no run");
    for _ in 0..instructions {
        step(machine);
        if machine.word(SPINE_RUNNING.address()) == 0 {
            return false;
        }
    }
    let at = pc(machine);
    let in_import = places.imports.iter().any(|text| text.contains(&at));
    if places.text.contains(at) || in_import {
        let state = machine.bar_read(STATE);
        let halt = CpuState::new().with_halt(true).into_bits();
        machine.bar_write(STATE, state | halt);
        machine.bar_write(PC, places.abort);
        machine.bar_write(STATE, state);
    }
    true
}

/// The frame that the host got, or the one that came out of the wire. Whatever would come
/// besides is not what the next run's question makes, and is found there.
pub fn what_came(spine: &mut Spine) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
    for _ in 0..100 {
        spine.stage.engine.pass(Duration::from_micros(50));
        let nic = &mut spine.stage.nic;
        nic.service().expect("the card is there");
        let received = nic.receive_batch(8).expect("the card is there");
        let sent = spine.stage.wire_now();
        if !received.is_empty() || sent.is_some() {
            return (received, sent);
        }
    }
    (Vec::new(), None)
}

/// Cuts runs off at every instruction, for frames that `frame` makes; returns how many.
fn cut_everywhere(
    spine: &mut Spine,
    places: &Places,
    domain: u32,
    frame: impl Fn(&Spine, u32) -> Vec<u8>,
) -> u32 {
    let mut answers = spine.counters(domain)[0];
    let mut instructions = 0;
    loop {
        let question = frame(spine, instructions);
        spine.stage.engine.send(&question);
        let machine = spine.stage.engine.machine().clone();
        let was_cut = cut(&mut machine.lock(), places, instructions);
        let (received, sent) = what_came(spine);
        let counted = spine.counters(domain)[0];
        match (&received[..], sent) {
            // Cut off, or not wanted: the host's, and nothing was done.
            ([frame], None) => {
                assert_eq!(*frame, question);
                assert_eq!(counted, answers, "{instructions}");
            }
            // Too late to be cut off.
            ([], Some(answer)) => {
                is_answer(&answer, &question);
                answers += 1;
                assert_eq!(counted, answers, "{instructions}");
            }
            (received, sent) => panic!("{instructions}: {received:x?}, {sent:x?}"),
        }
        if !was_cut {
            return instructions;
        }
        instructions += 1;
    }
}

#[test]
fn a_run_that_is_cut_off_anywhere_has_done_nothing() {
    let mut spine = Spine::open();
    let domain = spine.load_patiently(&card::ours("echo"));
    spine.guards(&[Guard::any(domain, 0)]);
    let places = Places::of(&mut spine);
    let mut cuts = 0;
    for round in 0..ROUNDS {
        cuts += cut_everywhere(&mut spine, &places, domain, |spine, number| {
            ping(spine, number as u16, &vec![round; 7 * round as usize])
        });
        cuts += cut_everywhere(&mut spine, &places, domain, |spine, number| {
            spine.stage.inbound(number)
        });
    }
    println!("{cuts} cuts");
    assert!(cuts > 20_000, "{cuts}");
    let overruns = spine.count(domain, HandlerCount::Overruns);
    assert!(
        overruns > cuts / 10 * 9 && overruns <= cuts,
        "{overruns} of {cuts}"
    );
    // And all is as it was.
    for number in 0..40 {
        let question = ping(&spine, number, b"after it");
        spine.stage.engine.send(&question);
        is_answer(&spine.stage.wire(), &question);
    }
}
