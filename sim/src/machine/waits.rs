//! Tests that skipping the rounds of waiting CPUs changes nothing and costs nothing.

use super::Machine;
use super::tests::{A, B, REGISTERS, RESULT, get, put, started};
use crate::asm::*;
use tigon2_chip::{Cpu, Register};

/// Cycles of a microsecond tick: prescaler 85, so 86 core clocks (reference 7).
const TICK: u64 = 86;

/// Waits for event bit 28 and counts it, as firmware does: poll with PRI, JOFF into a
/// table, timer reference = counter + n ticks (reference 3.3, 5, 7).
///
/// `idle` is what entry 0 does before it jumps back: empty, or counting and the like.
pub(super) fn timer_program(cpu: Cpu, at: u32, ticks: i32, result: u32, idle: &[u32]) -> Vec<u32> {
    let table = at + 0x100;
    let reference = Register::timer_reference(cpu);
    let mut program = vec![
        REGISTERS,
        lui(A1, 0x1000),
        lui(A0, table >> 16),
        ori(A0, A0, table & 0xFFFF),
        get(V0, Register::Timer),
        addiu(V0, V0, ticks),
        put(V0, reference),
        // The dispatch loop.
        get(V0, Register::event(cpu)),
        pri(V0, V0, A1),
        joff(A0, V0),
        NOP,
    ];
    assert_eq!(program.len(), 11);
    let dispatch = at + 4 * 7;
    program.resize(0x80 / 4, BREAK);
    program.extend(idle);
    program.extend([j(dispatch), NOP]);
    program.resize(0x100 / 4, BREAK);
    // Entry 0: nothing pending.
    program.extend([j(at + 0x80), NOP]);
    program.resize((0x100 + 8 * 29) / 4, BREAK);
    // Entry 29: the timer.
    program.extend([
        get(V1, reference),
        addiu(V1, V1, ticks),
        put(V1, reference),
        lw(T0, result as i32, ZERO),
        addiu(T0, T0, 1),
        sw(T0, result as i32, ZERO),
        j(dispatch),
        NOP,
    ]);
    program
}

/// Two CPUs that wait for their timers; CPU A has started CPU B.
pub(super) fn timers(ticks_a: i32, ticks_b: i32, idle_a: &[u32], idle_b: &[u32]) -> Machine {
    let a = timer_program(Cpu::A, A, ticks_a, RESULT, idle_a);
    let b = timer_program(Cpu::B, B, ticks_b, RESULT + 4, idle_b);
    let mut machine = started(&a, &b);
    machine.bar_write(Register::CpuBPc.offset(), B);
    machine.bar_write(Register::CpuBState.offset(), 0);
    machine
}

/// Counts turns in a word of CPU-private or shared memory; `RA` holds its page.
pub(super) fn count_turns(word: i32) -> Vec<u32> {
    vec![lw(T0, word, RA), addiu(T0, T0, 3), sw(T0, word, RA)]
}

/// Ways to spend a turn of the dispatch loop in which nothing is pending.
pub(super) fn idle_ways() -> Vec<(&'static str, Vec<u32>)> {
    let branch_on_count = [
        count_turns(0x280),
        vec![immediate(0x0C, T0, T0, 0x3F), bne(T0, ZERO, 4), NOP],
        count_turns(0x284),
    ];
    vec![
        ("nothing", vec![]),
        ("a count in SRAM", count_turns(0x280)),
        (
            "a count in the scratch pad",
            [vec![lui(RA, 0x00C0)], count_turns(0x40)].concat(),
        ),
        (
            "two counts",
            [count_turns(0x280), count_turns(0x284)].concat(),
        ),
        ("a decision by the count", branch_on_count.concat()),
        ("a count in a register", vec![addiu(A0 + 3, A0 + 3, 1)]),
        (
            "a doubled count",
            vec![lw(T0, 0x280, RA), addu(T0, T0, T0), sw(T0, 0x280, RA)],
        ),
        ("a constant", vec![addiu(T0, ZERO, 5), sw(T0, 0x280, RA)]),
        (
            "a byte",
            vec![addiu(T0, ZERO, 5), immediate(0x28, T0, RA, 0x281)],
        ),
        (
            "the other's count",
            vec![lw(T0, 0x288, RA), sw(T0, 0x28C, RA)],
        ),
        (
            "the other's word",
            vec![lw(A0 + 3, 0x280, RA), addu(A0 + 3, A0 + 3, ZERO)],
        ),
        ("the time", vec![get(A0 + 3, Register::Timer)]),
        (
            "a copy of a count",
            [count_turns(0x280), vec![addu(A0 + 3, T0, ZERO)]].concat(),
        ),
    ]
}

/// What must be equal when two runs are the same.
pub(super) fn state(machine: &mut Machine) -> (u64, Vec<u32>, Vec<u64>, Vec<u32>) {
    let mut registers = Vec::new();
    let mut retired = Vec::new();
    for cpu in Cpu::ALL {
        let core = machine.cpus().core(cpu);
        registers.push(core.pc());
        registers.extend(core.gprs());
        registers.push(core.scratch_word(0x40));
        retired.push(core.retired());
    }
    let words = (RESULT..RESULT + 0x100)
        .step_by(4)
        .map(|address| machine.word(address));
    (machine.cycle(), registers, retired, words.collect())
}

/// Skipping while both CPUs wait gives the same state, to the instruction, as executing
/// every poll: steps of one cycle leave no room for a skip.
#[test]
fn skipping_over_waiting_changes_nothing() {
    for (name_a, idle_a) in idle_ways() {
        for (name_b, idle_b) in idle_ways() {
            let mut skipping = timers(100, 37, &idle_a, &idle_b);
            let mut stepping = timers(100, 37, &idle_a, &idle_b);
            for chunk in [10_000, 7_777, 1, 9_999] {
                skipping.run(chunk);
                for _ in 0..chunk {
                    stepping.run(1);
                }
                let same = state(&mut skipping) == state(&mut stepping);
                assert!(
                    same,
                    "A does {name_a}, B does {name_b}: differs in a chunk of {chunk}"
                );
            }
            let (cycle, _, _, words) = state(&mut skipping);
            assert_eq!(u64::from(words[0]), cycle / (100 * TICK));
            assert_eq!(u64::from(words[1]), cycle / (37 * TICK));
            assert_eq!(
                (skipping.fault(Cpu::A), skipping.fault(Cpu::B)),
                (None, None)
            );
        }
    }
}

/// A minute of waiting takes no time on the computer: it is 5 * 10^9 cycles, of which the
/// test can execute only a small part. Counting turns does not change that.
#[test]
fn waiting_is_free() {
    let counting = [vec![lui(RA, 0x00C0)], count_turns(0x40)].concat();
    for idle in [vec![], count_turns(0x280), counting] {
        let mut machine = timers(0x7000, 0x7000, &idle, &[]);
        let before = std::time::Instant::now();
        machine.run(60 * 88_000_000);
        assert!(before.elapsed() < std::time::Duration::from_secs(30));
        assert_eq!(
            u64::from(machine.word(RESULT)),
            machine.cycle() / (0x7000 * TICK)
        );
        assert!(machine.cpus().core(Cpu::A).retired() > 5_000_000_000);
    }
}
