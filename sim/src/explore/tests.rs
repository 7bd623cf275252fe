//! Tests that the explorer finds races: two CPUs that read-modify-write one word.
//!
//! Hardware reference, section 4: there is no atomic instruction, only one semaphore.

use super::Disturbance;
use crate::asm::*;
use crate::machine::Machine;
use tigon2_chip::{Cpu, Register};
use tigon2_model::{Board, CpuFault};

const CODE: [u32; 2] = [0x4000, 0x6000];
const WORD: u32 = 0x300;
const TURNS: i32 = 40;
/// Instructions of a turn without its wait.
const WAIT: usize = 12;

/// Adds 1 to the word at `word` 40 times. A turn waits, adds and waits; CPU B waits longer
/// first, so that without a disturbance the two never meet.
fn adds(cpu: Cpu, word: u32, locked: bool) -> Vec<u32> {
    let before = if cpu == Cpu::A { 2 } else { WAIT - 2 };
    let semaphore = Register::semaphore(cpu).offset() as i32;
    let mut program = vec![lui(T1, 0xC000), addiu(V1, ZERO, TURNS)];
    let turn = program.len();
    program.extend(vec![NOP; before]);
    if locked {
        // Ours if it reads back as taken by us (bit 0).
        let take = program.len();
        program.extend([
            addiu(V0, ZERO, 1),
            sw(V0, semaphore, T1),
            lw(V0, semaphore, T1),
            immediate(0x0C, V0, V0, 1),
        ]);
        program.extend([beq(V0, ZERO, distance(program.len(), take)), NOP]);
    }
    program.extend([
        lw(T0, word as i32, ZERO),
        addiu(T0, T0, 1),
        sw(T0, word as i32, ZERO),
    ]);
    if locked {
        program.push(sw(ZERO, semaphore, T1));
    }
    program.extend(vec![NOP; WAIT - before]);
    program.push(addiu(V1, V1, -1));
    program.extend([bne(V1, ZERO, distance(program.len(), turn)), NOP, BREAK]);
    program
}

/// Words from the delay slot of a branch at `from` to `to`.
fn distance(from: usize, to: usize) -> i32 {
    to as i32 - from as i32 - 1
}

/// What stands in the words after both CPUs are done.
fn run(programs: [Vec<u32>; 2], seed: Option<u64>) -> [u32; 2] {
    let mut machine = Machine::new(Board::default());
    machine.disturb(seed.map(Disturbance::new));
    for (cpu, program) in Cpu::ALL.into_iter().zip(&programs) {
        machine.load_image(CODE[cpu.index()], &bytes(program));
        machine.bar_write(Register::cpu_state(cpu).offset(), 0x1_0000);
        machine.bar_write(Register::cpu_pc(cpu).offset(), CODE[cpu.index()]);
    }
    for cpu in Cpu::ALL {
        machine.bar_write(Register::cpu_state(cpu).offset(), 0);
    }
    machine.run(3_000_000);
    for cpu in Cpu::ALL {
        let (fault, _) = machine.fault(cpu).expect("it has come to its end");
        assert_eq!(fault, CpuFault::Break);
    }
    [machine.word(WORD), machine.word(WORD + 4)]
}

fn both(word_of_b: u32, locked: bool) -> [Vec<u32>; 2] {
    [adds(Cpu::A, WORD, locked), adds(Cpu::B, word_of_b, locked)]
}

/// Under its own clock the broken program looks right: the two always meet in the same way.
/// Most schedules lose one of its additions.
#[test]
fn a_race_that_one_schedule_hides_is_found_by_others() {
    let all = 2 * TURNS as u32;
    assert_eq!(run(both(WORD, false), None)[0], all);
    let found = (0..60)
        .filter(|seed| run(both(WORD, false), Some(*seed))[0] < all)
        .count();
    assert!(found > 30, "{found} of 60 schedules");
}

/// The explorer reports no false races: a word for each CPU, or the semaphore round the
/// addition, is right under all schedules.
#[test]
fn what_is_right_stays_right_under_all_schedules() {
    let each = TURNS as u32;
    for seed in 0..60 {
        let apart = run(both(WORD + 4, false), Some(seed));
        assert_eq!(apart, [each, each], "seed {seed}");
        let locked = run(both(WORD, true), Some(seed));
        assert_eq!(locked[0], 2 * each, "seed {seed}");
    }
}

/// The same seed gives the same run.
#[test]
fn a_schedule_can_be_replayed() {
    for seed in [1, 9, 33] {
        let runs = [0, 1].map(|_| run(both(WORD, false), Some(seed)));
        assert_eq!(runs[0], runs[1], "seed {seed}");
    }
}
