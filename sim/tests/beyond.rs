//! Tests boards beyond the chip: more CPUs, a faster wire.

use tigon2_chip::{Cpu, Register, beyond};
use tigon2_model::{Board, CpuFault};
use tigon2_sim::Machine;
use tigon2_sim::asm::{addiu, bne, bytes, lui, lw, ori, sw};
use tigon2_sim::timing::Parameters;

const FOUR: &str = include_str!("../../boards/tigon2/beyond-4.toml");
const SIX: &str = include_str!("../../boards/tigon2/beyond-6.toml");
/// `break`.
const BREAK: u32 = 0x0D;

/// Counts to 100 in a word of SRAM, then stops.
fn counts(word: u32) -> Vec<u8> {
    bytes(&[
        lui(8, word >> 16),
        ori(8, 8, word & 0xFFFF),
        addiu(9, 0, 100),
        lw(10, 0, 8),
        0,
        addiu(10, 10, 1),
        sw(10, 0, 8),
        bne(10, 9, -5),
        0,
        BREAK,
    ])
}

/// Every CPU of a board of six runs beside the others, whether time is modelled or not; one
/// of four has no CPU E, and the chip's own board none behind CPU B.
#[test]
fn each_cpu_runs_where_the_board_has_it() {
    let six = Board::from_toml(SIX).expect("a board");
    let parameters = Parameters::from_toml(SIX, "default").expect("a profile");
    for mut machine in [
        Machine::new(six.clone()),
        Machine::timed(six.clone(), parameters, 1),
    ] {
        for cpu in Cpu::EVERY {
            let index = cpu.index() as u32;
            let at = 0x4000 + 0x100 * index;
            machine.load_image(at, &counts(0x2_0000 + 4 * index));
            machine.bar_write(beyond::pc(cpu), at);
        }
        for cpu in Cpu::EVERY {
            machine.bar_write(beyond::state(cpu), 0);
        }
        assert_eq!(machine.bar_read(beyond::COUNT), 6);
        machine.run(20_000);
        for cpu in Cpu::EVERY {
            assert_eq!(
                machine.word(0x2_0000 + 4 * cpu.index() as u32),
                100,
                "{cpu}"
            );
            let fault = machine.fault(cpu).map(|(fault, _)| fault);
            assert_eq!(fault, Some(CpuFault::Break), "{cpu}");
        }
        assert_eq!(machine.card().undefined().count(), 0);
    }
    for (board, there) in [
        (Board::from_toml(FOUR).expect("a board"), 4),
        (Board::default(), 2),
    ] {
        let mut machine = Machine::new(board);
        assert_eq!(machine.cpus().all().len(), there);
        machine.load_image(0x4000, &counts(0x2_0000));
        machine.bar_write(beyond::pc(Cpu::E), 0x4000);
        machine.bar_write(beyond::state(Cpu::E), 0);
        machine.run(20_000);
        assert_eq!(machine.word(0x2_0000), 0);
        assert_ne!(machine.card().undefined().count(), 0);
    }
}

/// An event of a further CPU is a bit that another one stores, as between CPU A and CPU B.
#[test]
fn a_cpu_rings_another_one() {
    let mut machine = Machine::new(Board::from_toml(SIX).expect("a board"));
    machine.bar_write(beyond::event(Cpu::F), 0x80);
    assert_eq!(machine.bar_read(beyond::event(Cpu::F)) & 0x80, 0x80);
    for other in [
        Register::EventA.offset(),
        Register::EventB.offset(),
        beyond::event(Cpu::E),
    ] {
        assert_eq!(machine.bar_read(other) & 0x80, 0);
    }
}

/// The two files are one board with another number of CPUs.
#[test]
fn four_and_six_differ_in_nothing_else() {
    let different = FOUR
        .lines()
        .zip(SIX.lines())
        .filter(|(four, six)| four != six);
    let different: Vec<_> = different.map(|(_, six)| six).collect();
    assert_eq!(different.len(), 3, "{different:?}");
    assert!(different.iter().all(|line| line.contains('6')));
    assert_eq!(FOUR.lines().count(), SIX.lines().count());
}

/// The same frame takes a tenth of the time.
#[test]
fn the_wire_is_ten_times_as_fast() {
    let time = |board: Board| {
        let mut machine = Machine::new(board);
        let first = machine.send_frame(0, vec![0; 996]);
        machine.send_frame(0, vec![0; 996]) - first
    };
    let chip = time(Board::default());
    assert_eq!(chip, 1020 * 8);
    // In whole nanoseconds, and never faster.
    let beyond = time(Board::from_toml(SIX).expect("a board"));
    assert!((chip / 10..=chip / 10 + 2).contains(&beyond), "{beyond}");
}
