//! Tests that idle CPUs use no host time and miss no event.

use crate::assembler::{Program, T0, T1, T2, T3, T4, ZERO};
use crate::card::Card;
use std::time::{Duration, Instant};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_chip::registers::Register;

const RESULT: u32 = 0x1000;
/// Host interrupt control is mailbox 0; this one has no meaning to hardware.
const MAILBOX: u32 = 0x514;

/// Polls the event register; at each event counts, clears the mailbox bits and
/// stores the count.
fn counter(cpu: Cpu, result: u32) -> Program {
    let mut program = Program::at(0x4000 + 0x1000 * cpu as u32);
    program.li(T1, result).li(T3, u32::MAX);
    let poll = program.here();
    program.read(T0, Register::event(cpu)).beq(T0, ZERO, poll);
    program
        .write(T3, Register::mailbox_event(cpu))
        .addiu(T2, T2, 1)
        .sw(T2, 0, T1)
        .beq(ZERO, ZERO, poll);
    program
}

/// The same as this project's firmware polls: all software bits of the register are on for
/// good, PRI finds which of the events that it wants are there.
fn chooser(cpu: Cpu, wanted: u32, result: u32) -> Program {
    let mut program = Program::at(0x4000 + 0x1000 * cpu as u32);
    program.li(T1, result).li(T3, u32::MAX).li(T4, wanted);
    program.write(T3, Register::event(cpu));
    let poll = program.here();
    program
        .read(T0, Register::event(cpu))
        .pri(T0, T0, T4)
        .beq(T0, ZERO, poll);
    program
        .write(T3, Register::mailbox_event(cpu))
        .addiu(T2, T2, 1)
        .sw(T2, 0, T1)
        .beq(ZERO, ZERO, poll);
    program
}

/// Processor time that QEMU has used, in clock ticks of 10 ms.
fn ticks(card: &Card) -> u64 {
    let path = format!("/proc/{}/stat", card.qemu.id());
    let stat = std::fs::read_to_string(path).expect("QEMU is a process");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let number = |n: usize| fields[n].parse::<u64>().expect("a number");
    number(11) + number(12)
}

#[test]
fn every_mailbox_write_is_noticed_by_both_cpus() {
    let mut card = Card::start();
    card.run_on(Cpu::A, &counter(Cpu::A, RESULT));
    card.run_on(Cpu::B, &counter(Cpu::B, RESULT + 4));
    for n in 1..=2000 {
        // Often at once, sometimes when they have fallen asleep, and at
        // every moment in between.
        if n % 10 == 0 {
            std::thread::sleep(Duration::from_micros(u64::from(n)));
        }
        let start = Instant::now();
        card.write(MAILBOX, n);
        card.wait("both CPUs see the mailbox", |card| {
            card.load(RESULT) == n && card.load(RESULT + 4) == n
        });
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}

/// Reference 5: a CPU raises software events of the other one. Each waits for the other
/// most of the time, so both fall asleep and are woken over and over, by a CPU that has
/// nothing but the card's own lock.
#[test]
fn two_cpus_wake_each_other() {
    const ROUNDS: u32 = 3000;
    const EVENT: u32 = 1 << 23;
    let player = |own: Cpu, other: Cpu, serves: bool, result: u32| {
        let mut program = Program::at(0x4000 + 0x1000 * own as u32);
        program.li(T1, result).li(T3, EVENT).sw(ZERO, 0, T1);
        if serves {
            program.write(T3, Register::event(other));
        }
        let poll = program.here();
        program.read(T0, Register::event(own)).beq(T0, ZERO, poll);
        program
            .write(ZERO, Register::event(own))
            .addiu(T2, T2, 1)
            .sw(T2, 0, T1)
            .write(T3, Register::event(other))
            .beq(ZERO, ZERO, poll);
        program
    };
    let mut card = Card::start();
    card.run_on(Cpu::B, &player(Cpu::B, Cpu::A, false, RESULT + 4));
    card.run_on(Cpu::A, &player(Cpu::A, Cpu::B, true, RESULT));
    card.wait("the ball goes to and fro", |card| {
        card.load(RESULT) >= ROUNDS
    });
    for cpu in [Cpu::A, Cpu::B] {
        card.write(Register::cpu_state(cpu).offset(), 1 << 16);
    }
    let (a, b) = (card.load(RESULT), card.load(RESULT + 4));
    // Either has it, or it is on its way.
    assert!(a == b || a + 1 == b, "the ball is lost or doubled: {a} {b}");
}

#[test]
fn idle_cpus_leave_the_processor_to_others() {
    let mut card = Card::start();
    card.run_on(Cpu::A, &counter(Cpu::A, RESULT));
    card.run_on(Cpu::B, &counter(Cpu::B, RESULT + 4));
    std::thread::sleep(Duration::from_millis(100));
    let before = ticks(&card);
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks(&card) - before;
    assert!(used <= 30, "{used} of 100 ticks used by two idle CPUs");
}

/// Reference 3.2, 5: what PRI's other operand holds back is no reason to stay awake, and what
/// it lets through wakes.
#[test]
fn a_cpu_that_wants_nothing_of_what_is_on_sleeps_and_wakes_for_what_it_wants() {
    let mut card = Card::start();
    let mailbox = EventBit::Mailbox.mask();
    card.run_on(Cpu::A, &chooser(Cpu::A, mailbox, RESULT));
    card.run_on(Cpu::B, &chooser(Cpu::B, 0, RESULT + 4));
    std::thread::sleep(Duration::from_millis(100));
    let before = ticks(&card);
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks(&card) - before;
    assert!(used <= 30, "{used} of 100 ticks used by two idle CPUs");
    for n in 1..=500 {
        std::thread::sleep(Duration::from_micros(u64::from(n)));
        card.write(MAILBOX, n);
        card.wait("CPU A sees the mailbox", |card| card.load(RESULT) == n);
    }
    assert_eq!(card.load(RESULT + 4), 0, "CPU B has seen nothing");
}

/// Reference 7: the timer event comes when the counter reaches the reference (C); it
/// wakes a CPU that sleeps.
#[test]
fn the_timer_wakes_a_sleeping_cpu() {
    let mut program = Program::new();
    program.li(T1, RESULT);
    let again = program.here();
    program
        .read(T0, Register::Timer)
        .addiu(T0, T0, 3000)
        .write(T0, Register::TimerReferenceA);
    let poll = program.here();
    program.read(T0, Register::EventA).beq(T0, ZERO, poll);
    program
        .addiu(T2, T2, 1)
        .sw(T2, 0, T1)
        .beq(ZERO, ZERO, again);
    let mut card = Card::start();
    card.write(Register::MiscConfig.offset(), 0x55);
    card.run(&program);
    let start = Instant::now();
    card.wait("100 periods of 3 ms", |card| card.load(RESULT) >= 100);
    let took = start.elapsed();
    assert!(
        took >= Duration::from_millis(250),
        "100 periods of 3 ms took {took:?}"
    );
    assert!(
        took < Duration::from_secs(3),
        "100 periods of 3 ms took {took:?}"
    );
}

/// Reference 3.5: no data cache is visible to a CPU that polls a word of memory (C). A change
/// of it raises no event; the wait ends all the same.
#[test]
fn a_sleeping_cpu_sees_changes_of_memory() {
    let mut program = Program::new();
    program.li(T1, RESULT);
    let poll = program.here();
    program
        .read(T0, Register::EventA)
        .lw(T0, 0, T1)
        .beq(T0, ZERO, poll);
    program.store(1, RESULT + 4).stop();
    let mut card = Card::start();
    card.store(RESULT, 0);
    card.run(&program);
    std::thread::sleep(Duration::from_millis(50));
    card.store(RESULT, 1);
    card.wait_halt(Cpu::A);
    assert_eq!(card.load(RESULT + 4), 1);
}
