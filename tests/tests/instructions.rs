//! Tests that the CPUs of QEMU's machine and of the simulator are the same.
//!
//! Hardware reference, section 3: every instruction that an image may contain, with edge-case and
//! random operands; every forbidden encoding; delay slots; halts. The programs of each test run in
//! one boot of each engine.

use integration_tests::engine::tools;
use integration_tests::programs::cases::{self, Batch, INSTRUCTIONS};
use integration_tests::programs::random::{self, RandomProgram};
use integration_tests::programs::{Bare, DATA, ORIGIN, Program, RESULTS};
use integration_tests::{Engine, Qemu, Sim};
use std::collections::BTreeSet;
use testbed::firmware::isa;
use tigon2_chip::instruction::{Class, FUNCTION_PRI, classify};
use tigon2_sim::asm::*;

/// Reference 3.1: the results of each case, register by register.
#[test]
fn every_instruction_does_the_same_on_both_engines() {
    let (mut qemu, mut sim) = (Bare::<Qemu>::start(), Bare::<Sim>::start());
    for (seed, (name, shape)) in (1..).zip(INSTRUCTIONS) {
        let batch = Batch::new(*shape, seed);
        let count = cases::WORDS * batch.cases.len();
        let ours = sim.results(&batch.program, count);
        let theirs = qemu.results(&batch.program, count);
        let reported = ours.iter().filter(|word| **word != 0).count();
        assert!(
            reported >= ours.len() / 2 || count == cases::WORDS,
            "{name}: {reported} of {count}"
        );
        let results = ours.chunks(cases::WORDS).zip(theirs.chunks(cases::WORDS));
        for (case, (ours, theirs)) in batch.cases.iter().zip(results) {
            let operands = &case.operands;
            assert_eq!(ours, theirs, "{name} {:08x}: {operands}", case.word);
        }
    }
}

/// The table misses nothing: not what the firmware's ELF contains, not what the image
/// check would let pass; and each case is the instruction that it says.
#[test]
fn the_tested_instructions_are_those_that_an_image_may_contain() {
    let tested: BTreeSet<&str> = INSTRUCTIONS.iter().map(|(name, _)| *name).collect();
    for (name, shape) in INSTRUCTIONS {
        for case in &Batch::new(*shape, 1).cases {
            assert_eq!(classify(case.word).name(), *name, "{:08x}", case.word);
        }
    }
    let elf = std::fs::read(tools().firmware.elf).expect("the firmware is built");
    let emitted = isa::mnemonics(&elf).expect("an ELF");
    assert!(emitted.values().sum::<usize>() > 1000, "{emitted:?}");
    let untested: Vec<_> = emitted
        .keys()
        .filter(|name| !tested.contains(*name))
        .collect();
    assert!(untested.is_empty(), "emitted and not tested: {untested:?}");

    let possible = encodings().filter_map(|word| match classify(word) {
        Class::Proven(name) | Class::Allowed(name) => Some(name),
        Class::Forbidden(..) => None,
    });
    assert_eq!(possible.collect::<BTreeSet<_>>(), tested);
}

/// Reference 3.1: whole programs at random. What one instruction leaves the next one takes,
/// behind branches taken and not taken, likely and not.
#[test]
fn random_programs_do_the_same_on_both_engines() {
    let (mut qemu, mut sim) = (Bare::<Qemu>::start(), Bare::<Sim>::start());
    for seed in 1..=100 {
        let program = RandomProgram::new(seed).program;
        let ours = sim.results(&program, random::WORDS);
        let theirs = qemu.results(&program, random::WORDS);
        assert_eq!(ours, theirs, "seed {seed}");
    }
}

/// One word for each opcode, function and kind of branch, with fields used and blank.
fn encodings() -> impl Iterator<Item = u32> {
    let fields = [
        0,
        A0 << 21,
        A1 << 16,
        A0 << 21 | A1 << 16,
        V0 << 11,
        3 << 6,
        A0 << 21 | V0 << 11,
        A0 << 21 | A1 << 16 | V0 << 11,
        A1 << 16 | V0 << 11 | 3 << 6,
        A0 << 21 | A1 << 16 | V0 << 11 | 3 << 6,
    ];
    let special = (0..64).flat_map(move |function| fields.map(|fields| fields | function));
    let opcodes = (2..64u32).flat_map(move |opcode| {
        let fields = fields.into_iter().take(4);
        fields.map(move |fields| opcode << 26 | fields)
    });
    let register_immediate = (0..32u32).map(|kind| 1 << 26 | A0 << 21 | kind << 16);
    special.chain(opcodes).chain(register_immediate)
}

/// Both engines execute, and refuse, the same encodings: each is run, and the CPU halts
/// at the same address.
#[test]
fn every_encoding_is_executed_or_refused_by_both_engines() {
    const LANDING: u32 = 0x2000;
    let (mut qemu, mut sim) = (Bare::<Qemu>::start(), Bare::<Sim>::start());
    // Each between its operands and a halt. Jumps land on halts as well.
    let mut program = Program::default();
    let mut starts = Vec::new();
    for word in encodings() {
        starts.push((word, program.here()));
        program.constant(A0, LANDING).small(A1, 0x20);
        program.add(&[word, NOP, BREAK, BREAK, BREAK]);
    }
    for (address, words) in [
        (0, vec![BREAK]),
        (LANDING, vec![BREAK; 0x200]),
        (ORIGIN, program.words),
    ] {
        qemu.write(address, &words);
        sim.write(address, &words);
    }
    let mut wrong = Vec::new();
    for (word, start) in starts {
        let at = start + 12;
        let (theirs, ours) = (qemu.run(start), sim.run(start));
        let class = classify(word);
        let refused = matches!(class, Class::Forbidden(..)) || class.name() == "break";
        if theirs != ours || (ours == at) != refused {
            wrong.push(format!(
                "{word:08x} {class:?} at {at:#x}: QEMU halts at {theirs:#x}, the simulator at {ours:#x}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A program that halts in the middle.
struct Halt {
    what: &'static str,
    words: Vec<u32>,
    /// Which of the words, counted from 0, it halts at.
    at: usize,
}

fn halt(what: &'static str, words: &[u32], at: usize) -> Halt {
    let words = words.to_vec();
    Halt { what, words, at }
}

/// What MIPS would take as an exception, or leaves undefined, halts at its own address and
/// changes nothing: unaligned accesses, overflow, reserved instructions, fetches from where
/// nothing is, also in delay slots.
fn halts() -> Vec<Halt> {
    let add = special(0x20, V0, A0, A0, 0);
    let jump_back = j(ORIGIN);
    let always = beq(ZERO, ZERO, 3);
    let never = beq(A0, A1, 3);
    let always_likely = immediate(0x14, ZERO, ZERO, 3);
    let never_likely = immediate(0x14, A0, A1, 3);
    let bad = lw(V0, 2, A1);
    vec![
        halt("break", &[BREAK], 0),
        halt("lw at +2", &[lw(V0, 2, A1)], 0),
        halt("lw at -1", &[lw(V0, -1, A1)], 0),
        halt("lh at +1", &[immediate(0x21, V0, A1, 1)], 0),
        halt("lhu at +3", &[immediate(0x25, V0, A1, 3)], 0),
        halt("sw at +2", &[sw(A0, 2, A1)], 0),
        halt("sh at +1", &[immediate(0x29, A0, A1, 1)], 0),
        halt(
            "an unaligned register",
            &[lui(T1, 0xC000), lw(V0, 0x62, T1)],
            1,
        ),
        halt("an overflow", &[add], 0),
        halt(
            "an addition that would not overflow",
            &[special(0x20, V0, A1, A1, 0)],
            0,
        ),
        halt(
            "an overflow of an immediate",
            &[immediate(0x08, V0, A0, 0x7FFF)],
            0,
        ),
        halt(
            "an overflow of a difference",
            &[special(0x22, V0, A0, ZERO, 0)],
            0,
        ),
        halt("a trap that is not due", &[special(0x34, 0, A0, A1, 0)], 0),
        halt("syscall", &[0x0C], 0),
        halt("sync", &[0x0F], 0),
        halt(
            "pri with a shift amount",
            &[special(FUNCTION_PRI, V0, A0, A1, 1)],
            0,
        ),
        halt(
            "a bad slot of a taken branch",
            &[always, bad, NOP, NOP, NOP],
            1,
        ),
        halt(
            "a bad slot of a branch not taken",
            &[never, bad, NOP, NOP],
            1,
        ),
        halt(
            "a bad slot of a likely branch",
            &[always_likely, bad, NOP, NOP],
            1,
        ),
        halt("an annulled slot", &[never_likely, bad, NOP, BREAK], 3),
        halt("break in a slot", &[jump_back, BREAK], 1),
        halt(
            "a jump in the slot of a jump",
            &[jump_back, jump_back, NOP],
            1,
        ),
        halt("jr in a slot", &[always, jr(A1), NOP], 1),
        halt("joff in a slot", &[always, joff(A1, ZERO), NOP], 1),
        halt("a branch in a slot", &[always, always, NOP, NOP, NOP], 1),
        halt(
            "a branch behind one not taken",
            &[never, always, NOP, NOP, NOP],
            1,
        ),
        halt(
            "a likely branch in a slot",
            &[always, never_likely, NOP, NOP],
            1,
        ),
        halt(
            "a jump in an annulled slot",
            &[never_likely, jump_back, BREAK],
            2,
        ),
    ]
}

fn faults_halt_where_they_stand<E: Engine>(bare: &mut Bare<E>) {
    for Halt { what, words, at } in halts() {
        let mut program = Program::default();
        program.constant(A0, 0x8000_0000).constant(A1, DATA);
        program.constant(V0, 0x1234_5678).constant(RA, RESULTS);
        let start = program.here();
        program.add(&words);
        // Where the host looks at what has become of register and memory.
        program.add(&[BREAK; 4]);
        let look = program.here();
        program.add(&[sw(V0, 0, RA), lw(V1, 0, A1), sw(V1, 4, RA), BREAK]);
        bare.write(DATA, &[0x5555_AAAA]);
        bare.write(ORIGIN, &program.words);
        assert_eq!(bare.run(ORIGIN), start + 4 * at as u32, "{what}");
        assert_eq!(bare.run(look), look + 12, "{what}");
        let left = bare.read(RESULTS, 2);
        assert_eq!(left, [0x1234_5678, 0x5555_AAAA], "{what}");
    }
}

/// Reference 3.1 (I): faults halt.
#[test]
fn faults_halt_where_they_stand_in_qemu() {
    faults_halt_where_they_stand(&mut Bare::<Qemu>::start());
}

/// Reference 3.1 (I): faults halt.
#[test]
fn faults_halt_where_they_stand_in_the_simulator() {
    faults_halt_where_they_stand(&mut Bare::<Sim>::start());
}

fn jumps_to_nowhere_halt_there<E: Engine>(bare: &mut Bare<E>) {
    for target in [
        0x5002,
        0x5001,
        0x00C0_4000,
        0x00D0_0000,
        0x4000_0000,
        0xC000_0000,
        0xC000_0060,
        0xFFFF_FFFC,
    ] {
        let mut program = Program::default();
        program.constant(A0, target).add(&[jr(A0), NOP, BREAK]);
        bare.write(ORIGIN, &program.words);
        assert_eq!(bare.run(ORIGIN), target);
    }
}

#[test]
fn jumps_to_nowhere_halt_there_in_qemu() {
    jumps_to_nowhere_halt_there(&mut Bare::<Qemu>::start());
}

#[test]
fn jumps_to_nowhere_halt_there_in_the_simulator() {
    jumps_to_nowhere_halt_there(&mut Bare::<Sim>::start());
}

/// A CPU that was halted in a delay slot and goes on there has not lost its jump; one that
/// is started somewhere else begins anew (reference 3.4, C: an empty pipeline).
fn a_halted_slot_keeps_its_jump<E: Engine>(bare: &mut Bare<E>) {
    let mut program = Program::default();
    program.constant(RA, RESULTS).small(V0, 0);
    let slot = program.here() + 4;
    program.add(&[beq(ZERO, ZERO, 3), BREAK]);
    program.add(&[ori(V0, V0, 1), ori(V0, V0, 2), sw(V0, 0, RA), BREAK]);
    for (resume, result) in [(slot, 0), (slot + 4, 3)] {
        bare.write(RESULTS, &[0xFFFF]);
        bare.write(ORIGIN, &program.words);
        assert_eq!(bare.run(ORIGIN), slot);
        let mut mended = program.clone();
        mended.words[(slot - ORIGIN) as usize / 4] = NOP;
        bare.write(ORIGIN, &mended.words);
        assert_eq!(bare.run(resume), program.here() - 4);
        assert_eq!(bare.read(RESULTS, 1), [result]);
    }
}

#[test]
fn a_halted_slot_keeps_its_jump_in_qemu() {
    a_halted_slot_keeps_its_jump(&mut Bare::<Qemu>::start());
}

#[test]
fn a_halted_slot_keeps_its_jump_in_the_simulator() {
    a_halted_slot_keeps_its_jump(&mut Bare::<Sim>::start());
}
