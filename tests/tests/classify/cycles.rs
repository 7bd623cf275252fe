//! Measures the cost of classification on CPU A, frame by frame: the program of
//! `firmware/classify/cycles` in the simulator's cycle model.
//!
//! Code and indirection table are in the scratch pad, frames and rows in SRAM, and nothing else
//! uses SRAM. Each figure is the difference to the classifier `single`, which reads nothing.

use classify_cycles::layout::{FRAMES, FRAMES_MAX, ROWS, SLOT, VERDICTS, Word};
use flow_classify::key::Period;
use flow_classify::toeplitz::{Bytes, INPUT_BYTES, Nibbles, build};
use flow_classify::{ClassifierKind, HashType, HashTypes, IndirectionTable, Key};
use tigon2_chip::Register;
use tigon2_chip::bits::CpuState;
use tigon2_model::Board;
use tigon2_sim::Machine;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::knet::random::RandomFrames;
use tigon2_sim::workload::knet::reference::{Expected, Reference};

const QUEUES: u32 = 4;
const COUNT: u32 = 64;

/// What is measured.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    kind: ClassifierKind,
    key: Key,
    piece_bits: u32,
    cached: bool,
}

const SINGLE: Case = Case {
    name: "single",
    kind: ClassifierKind::Single,
    key: Key::PUBLISHED,
    piece_bits: 8,
    cached: false,
};

/// The cycles of one frame, over all rounds; checks each verdict against the reference.
fn cycles(code: &[u8], case: Case, types: HashTypes, frames: &[Vec<u8>]) -> f64 {
    let [few, many] = [1, 17].map(|rounds| run(code, case, types, frames, rounds));
    (many - few) as f64 / (16 * frames.len()) as f64
}

fn run(code: &[u8], case: Case, types: HashTypes, frames: &[Vec<u8>], rounds: u32) -> u64 {
    assert!(frames.len() <= FRAMES_MAX as usize);
    let mut machine = Machine::timed(Board::default(), Parameters::default(), 1);
    machine.set_boot_code(code).expect("it fits");
    let period = match case.key.period() {
        Period::Halfword => 2,
        Period::Word => 4,
        Period::None => 0,
    };
    for (word, value) in [
        (Word::Classifier, case.kind as u32),
        (Word::Queues, QUEUES),
        (Word::HashTypes, types.into_bits()),
        (Word::Period, period),
        (Word::PieceBits, case.piece_bits),
        (Word::Frames, frames.len() as u32),
        (Word::Length, frames[0].len() as u32),
        (Word::Rounds, rounds),
        (Word::Cached, u32::from(case.cached)),
    ] {
        machine.set_word(word as u32, value);
    }
    for (at, frame) in (FRAMES..).step_by(SLOT as usize).zip(frames) {
        let mut frame = frame.clone();
        frame.resize(frame.len().next_multiple_of(4), 0);
        for (at, bytes) in (at..).step_by(4).zip(frame.as_chunks().0) {
            machine.set_word(at, u32::from_be_bytes(*bytes));
        }
    }
    let mut store = |offset, value| machine.set_word(ROWS + offset, value);
    match case.piece_bits {
        4 => build::<Nibbles>(&case.key, INPUT_BYTES, &mut store),
        _ => build::<Bytes>(&case.key, INPUT_BYTES, &mut store),
    }
    machine.reset();
    let begin = machine.cycle();
    let mut halted = false;
    while !halted {
        machine.run(32);
        assert!(machine.cycle() - begin < 10_000_000, "it runs on and on");
        let state = machine.bar_read(Register::CpuAState.offset());
        halted = CpuState::from_bits(state).halt();
    }
    check(&machine, case, types, frames);
    machine.cycle() - begin
}

fn check(machine: &Machine, case: Case, types: HashTypes, frames: &[Vec<u8>]) {
    let reference = Reference {
        kind: case.kind,
        queues: QUEUES,
        types,
        key: case.key.0,
        table: *IndirectionTable::equal(QUEUES as u8).entries(),
    };
    let mut turn = 0;
    for (at, frame) in (VERDICTS..).step_by(8).zip(frames) {
        let answer = reference.classify(frame, &mut turn);
        let [first, hash] = [at, at + 4].map(|at| machine.word(at));
        let found = Expected {
            queue: first & 0xFF,
            hash_type: HashType::from_number(first >> 8).expect("a type"),
            hash,
        };
        assert_eq!(found, answer, "{}", case.name);
    }
}

/// The table, and its ceilings: what the code of today takes and a tenth more, for another
/// compiler. Classic receive takes 170 cycles a frame of 18 bytes; of its rate 70 % are 243
/// cycles, 60 % are 283, and handing a frame to its queue has to fit beside.
#[test]
fn classification_keeps_its_budget_of_cycles() {
    let (_, code) =
        testbed::firmware::boot::pad_program("classify-cycles", "classify-cycles", true)
            .unwrap_or_else(|error| panic!("{error:#}"));
    let words = Key({
        let mut key = Key::SYMMETRIC.0;
        key.iter_mut().step_by(4).for_each(|byte| *byte = 0x35);
        key
    });
    let toeplitz = |name, key, piece_bits| Case {
        name,
        kind: ClassifierKind::Toeplitz,
        key,
        piece_bits,
        cached: false,
    };
    let cases = [
        (
            Case {
                name: "source-address",
                kind: ClassifierKind::SourceAddress,
                ..SINGLE
            },
            [47, 47, 47, 187, 48, 48],
        ),
        (
            Case {
                name: "round-robin",
                kind: ClassifierKind::RoundRobin,
                ..SINGLE
            },
            [57, 57, 57, 195, 59, 59],
        ),
        (
            toeplitz("toeplitz, period 2", Key::SYMMETRIC, 8),
            [123, 123, 124, 375, 287, 301],
        ),
        (
            toeplitz("toeplitz, period 4", words, 8),
            [139, 139, 139, 391, 303, 317],
        ),
        (
            toeplitz("toeplitz, rows of bytes", Key::PUBLISHED, 8),
            [165, 207, 207, 455, 548, 593],
        ),
        (
            toeplitz("toeplitz, rows of nibbles", Key::PUBLISHED, 4),
            [251, 328, 328, 595, 847, 944],
        ),
        (
            Case {
                cached: true,
                ..toeplitz("toeplitz, cached flows", Key::PUBLISHED, 8)
            },
            [139, 146, 154, 455, 348, 355],
        ),
    ];
    let udp = [0x08, 0, 0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0];
    let tcp = [0x08, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
    let tagged = [&[0x81, 0, 0, 1], &tcp[..]].concat();
    let new_udp = [0x86, 0xDD, 0x60, 0, 0, 0, 0, 8, 17, 64];
    let new_tcp = [0x86, 0xDD, 0x60, 0, 0, 0, 0, 20, 6, 64];
    let old = |headers: &[u8], behind: usize| of(headers, 8, behind);
    let new = |headers: &[u8], behind: usize| of(headers, 32, behind);
    let traffic = [
        ("IPv4 UDP, 2-tuple", HashTypes::USUAL, old(&udp, 8)),
        ("IPv4 UDP, 4-tuple", HashTypes::ALL, old(&udp, 8)),
        ("IPv4 TCP, 4-tuple", HashTypes::USUAL, old(&tcp, 20)),
        ("the same, tagged", HashTypes::USUAL, old(&tagged, 20)),
        ("IPv6 UDP, 2-tuple", HashTypes::USUAL, new(&new_udp, 8)),
        ("IPv6 TCP, 4-tuple", HashTypes::USUAL, new(&new_tcp, 20)),
    ];
    println!("{} bytes of code", code.len());
    print!("{:26}", "cycles above single");
    for (name, ..) in &traffic {
        print!(" | {name:>17}");
    }
    println!();
    let mut above = Vec::new();
    for (case, ceilings) in cases {
        print!("{:26}", case.name);
        for ((name, types, frames), ceiling) in traffic.iter().zip(ceilings) {
            let single = cycles(&code, SINGLE, *types, frames);
            let cycles = cycles(&code, case, *types, frames) - single;
            print!(" | {cycles:17.1}");
            if cycles > f64::from(ceiling) {
                above.push(format!(
                    "{}, {name}: {cycles:.1} above {ceiling}",
                    case.name
                ));
            }
        }
        println!();
    }
    assert!(above.is_empty(), "{above:#?}");
}

/// Flows: addresses of so many bytes, and what is behind them.
fn of(headers: &[u8], addresses: usize, behind: usize) -> Vec<Vec<u8>> {
    let mut random = RandomFrames::new(7);
    let frame = |_| {
        [
            &random.bytes(12),
            headers,
            &random.bytes(addresses + behind),
        ]
        .concat()
    };
    (0..COUNT).map(frame).collect()
}
