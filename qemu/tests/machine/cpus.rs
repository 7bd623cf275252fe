//! Tests starting, halting and faults of the CPUs.

use crate::assembler::{Program, T0, T1, ZERO};
use crate::card::Card;
use tigon2_chip::Cpu;
use tigon2_chip::registers::Register;

const RESULT: u32 = 0x1000;
const HALT: u32 = 1 << 16;

/// Reference 3.1 and 3.4: `break` halts the CPU (I), the host sees it in bit 16 (C!).
#[test]
fn break_halts_at_its_address() {
    let mut program = Program::new();
    program.store(1, RESULT);
    let pc = program.here();
    program.stop().store(2, RESULT);
    let mut card = Card::start();
    assert!(
        card.halted(Cpu::A) && card.halted(Cpu::B),
        "both halted at power-on"
    );
    card.run(&program);
    assert_eq!(card.wait_halt(Cpu::A), pc);
    assert_eq!(card.load(RESULT), 1, "nothing behind it was run");
    assert!(card.halted(Cpu::B), "the other CPU was not touched");
}

/// Everything that another MIPS would take as an exception halts, at its address.
#[test]
fn faults_halt_at_their_address() {
    let unaligned_load = 0x23 << 26 | T1 << 21 | T0 << 16 | 2;
    let unaligned_store = 0x2B << 26 | T1 << 21 | T0 << 16 | 2;
    let cases = [
        ("lw at +2", unaligned_load),
        ("sw at +2", unaligned_store),
        ("lh at +1", 0x21 << 26 | T1 << 21 | T0 << 16 | 1),
        ("syscall", 0x0C),
        ("mult", T0 << 21 | T1 << 16 | 0x18),
        ("divu", T0 << 21 | T1 << 16 | 0x1B),
        ("mflo", T0 << 11 | 0x12),
        ("mfc0", 0x10 << 26 | T0 << 16 | 12 << 11),
        ("cfc1", 0x11 << 26 | 2 << 21 | T0 << 16),
        ("lwl", 0x22 << 26 | T1 << 21 | T0 << 16),
        ("swr", 0x2E << 26 | T1 << 21 | T0 << 16),
        ("ll", 0x30 << 26 | T1 << 21 | T0 << 16),
        ("sc", 0x38 << 26 | T1 << 21 | T0 << 16),
        ("lwc1", 0x31 << 26 | T1 << 21 | T0 << 16),
        ("movn", T0 << 21 | T1 << 16 | T0 << 11 | 0x4A), // PRI with a shift amount
        ("teq", T0 << 21 | T0 << 16 | 0x34),
    ];
    let mut card = Card::start();
    for (name, word) in cases {
        let mut program = Program::new();
        program.li(T1, RESULT);
        let pc = program.here();
        program.word(word).stop();
        card.run(&program);
        assert_eq!(card.wait_halt(Cpu::A), pc, "{name}");
    }
}

/// A jump to where no memory is halts instead of running through nothing.
#[test]
fn a_fetch_from_nothing_halts() {
    let mut card = Card::start();
    for target in [0x00D0_0000, 0x4000_0000, 0xC000_0000] {
        let mut program = Program::new();
        program.li(T0, target).word(T0 << 21 | 0x08).nop(); // jr t0
        card.run(&program);
        assert_eq!(card.wait_halt(Cpu::A), target);
    }
}

/// Reference 3.4: CPU A starts CPU B: R[240] |= 0x10000; R[244] = entry; R[240] = 0 (C).
#[test]
fn cpu_a_starts_and_halts_cpu_b() {
    let mut b = Program::at(0x8000);
    b.li(T1, RESULT);
    let loop_start = b.here();
    b.addiu(T0, T0, 1).sw(T0, 0, T1).beq(ZERO, ZERO, loop_start);
    let mut a = Program::new();
    a.li(T0, HALT).write(T0, Register::CpuBState);
    a.li(T0, b.base)
        .write(T0, Register::CpuBPc)
        .write(ZERO, Register::CpuBState);
    a.stop();
    let mut card = Card::start();
    for (n, word) in (0..).zip(&b.words) {
        card.store(b.base + 4 * n, *word);
    }
    card.store(RESULT, 0);
    card.run_to_end(&a);
    card.wait("CPU B counts", |card| card.load(RESULT) > 1000);

    let mut halt = Program::new();
    halt.li(T0, HALT).write(T0, Register::CpuBState).stop();
    card.run_to_end(&halt);
    assert!(card.halted(Cpu::B));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let stopped_at = card.load(RESULT);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(card.load(RESULT), stopped_at, "it does not count any more");
}

/// Reference 3.4: firmware stops itself with bit 16 of R[140] (C). The instruction after
/// the store is not run; without a new program counter it is the next one to run.
#[test]
fn a_cpu_halts_itself_between_two_instructions() {
    let mut program = Program::new();
    program.li(T1, RESULT).li(T0, HALT).sw(ZERO, 0, T1);
    program.write(T0, Register::CpuAState);
    let next = program.here();
    program.sw(T0, 0, T1).stop();
    let mut card = Card::start();
    card.run(&program);
    assert_eq!(card.wait_halt(Cpu::A), next);
    assert_eq!(card.load(RESULT), 0);
    card.write(Register::CpuAState.offset(), 0);
    card.wait_halt(Cpu::A);
    assert_eq!(card.load(RESULT), HALT);
}

/// When the host has halted a CPU, it has halted: nothing is stored any more.
#[test]
fn the_host_halts_at_once() {
    let mut program = Program::new();
    program.li(T1, RESULT);
    let loop_start = program.here();
    program
        .addiu(T0, T0, 1)
        .sw(T0, 0, T1)
        .beq(ZERO, ZERO, loop_start);
    let mut card = Card::start();
    for _ in 0..50 {
        card.run(&program);
        card.wait("it runs", |card| card.load(RESULT) != 0);
        // The halt and both reads arrive in one batch of messages.
        card.write(Register::CpuAState.offset(), HALT);
        card.store(RESULT, 0);
        assert_eq!(card.load(RESULT), 0);
    }
}

/// Firmware that runs on without a host could only do harm: the card is reset.
#[test]
fn the_card_is_reset_when_its_client_goes_away() {
    let mut program = Program::new();
    program.spin();
    let mut card = Card::start();
    card.run(&program);
    assert!(!card.halted(Cpu::A));
    card.connect();
    assert!(card.halted(Cpu::A) && card.halted(Cpu::B));
}
