//! Tests the CPUs' view of memory, and the chip's special instructions.

use crate::assembler::{GP, Program, T0, T1, T2, T3, ZERO};
use crate::card::{Card, SRAM_BYTES};
use tigon2_chip::Cpu;
use tigon2_chip::memory::{SCRATCH_A_BYTES, SCRATCH_B_BYTES, SCRATCH_BASE};
use tigon2_chip::registers::Register;

/// Where the programs leave results.
const RESULT: u32 = 0x1000;

/// Reference 3.2: the most significant bit of rs & rt counts, 0 if there is none (C!).
#[test]
fn pri_encodes_the_highest_common_bit() {
    let cases = [
        (0x0000_0000, 0xFFFF_FFFF, 0),
        (0x0000_0001, 0xFFFF_FFFF, 1),
        (0x8000_0000, 0x8000_0000, 32),
        (0x8000_0010, 0x7FFF_FFFF, 5),
        (0xFFFF_FFFF, 0x0040_C000, 23),
        (0x1234_5678, 0x8000_0007, 0),
    ];
    let mut program = Program::new();
    program.li(T3, RESULT);
    for (n, (events, mask, _)) in (0..).zip(cases) {
        program
            .li(T0, events)
            .li(T1, mask)
            .pri(T2, T0, T1)
            .sw(T2, 4 * n, T3);
    }
    // A result in r0 vanishes like any other.
    program
        .li(T0, 1)
        .pri(ZERO, T0, T0)
        .sw(ZERO, 0x40, T3)
        .stop();
    let mut card = Card::start();
    card.store(RESULT + 0x40, 7);
    card.run_to_end(&program);
    for (n, (events, mask, expected)) in (0..).zip(cases) {
        assert_eq!(
            card.load(RESULT + 4 * n),
            expected,
            "{events:#x} & {mask:#x}"
        );
    }
    assert_eq!(card.load(RESULT + 0x40), 0);
}

/// Reference 3.3: target rs + 8 * rt, after one ordinary delay slot (C).
#[test]
fn joff_jumps_into_a_table_of_pairs() {
    let mut program = Program::new();
    program.li(T3, RESULT).addiu(T2, ZERO, 3);
    // The table follows the jump, its delay slot and the two words of `li`.
    let table = program.here() + 4 * 4;
    program.li(T1, table).joff(T1, T2).addiu(T2, ZERO, 100);
    assert_eq!(program.here(), table);
    for n in 0..5 {
        program.addiu(T0, ZERO, 10 + n).word(0x0D);
    }
    let mut card = Card::start();
    card.run(&program);
    assert_eq!(card.wait_halt(Cpu::A), table + 8 * 3 + 4);
    let gpr = |n: u32| tigon2_chip::registers::cpu_gpr(Cpu::A, n as usize);
    assert_eq!(card.read(gpr(T0)), 13, "the fourth pair was run");
    assert_eq!(card.read(gpr(T2)), 100, "the delay slot was run");
    assert_eq!(card.read(gpr(GP)), 0xC000_0000);
}

/// Reference 2: 16 KB and 8 KB of scratch at one address, private to each CPU (C).
#[test]
fn each_cpu_has_its_own_scratch_pad() {
    let last_of_a = SCRATCH_BASE + SCRATCH_A_BYTES - 4;
    let last_of_b = SCRATCH_BASE + SCRATCH_B_BYTES - 4;
    let mut fill_a = Program::new();
    fill_a
        .store(0xA0, SCRATCH_BASE)
        .store(0xA1, last_of_b)
        .store(0xA2, last_of_a)
        .stop();
    let mut b = Program::new();
    b.store(0xB0, SCRATCH_BASE)
        .store(0xB1, last_of_b)
        .copy(SCRATCH_BASE, RESULT)
        .copy(last_of_b, RESULT + 4)
        .copy(last_of_a, RESULT + 8)
        .stop();
    let mut read_a = Program::new();
    read_a
        .copy(SCRATCH_BASE, RESULT + 0x10)
        .copy(last_of_b, RESULT + 0x14)
        .copy(last_of_a, RESULT + 0x18)
        .stop();

    let mut card = Card::start();
    card.run_to_end_on(Cpu::A, &fill_a);
    card.run_to_end_on(Cpu::B, &b);
    card.run_to_end_on(Cpu::A, &read_a);
    let mut results = |at: u32| [0, 4, 8].map(|n| card.load(at + n));
    assert_eq!(
        results(RESULT),
        [0xB0, 0xB1, 0],
        "B has nothing behind its 8 KB"
    );
    assert_eq!(results(RESULT + 0x10), [0xA0, 0xA1, 0xA2]);

    // Reference 3.4: the host reaches both by address and data registers (I).
    for (cpu, expected) in [(Cpu::A, 0xA0), (Cpu::B, 0xB0)] {
        card.write(Register::scratch_address(cpu).offset(), 0);
        assert_eq!(card.read(Register::scratch_data(cpu).offset()), expected);
    }
}

/// Reference 3.5: code copied to the scratch pad and patched there is never stale (C).
#[test]
fn code_in_the_scratch_pad_is_never_stale() {
    let first = 0x2408_0001; // addiu t0, zero, 1
    let second = 0x2408_0002;
    let mut program = Program::new();
    program
        .li(T2, SCRATCH_BASE)
        .li(T3, 0x03E0_0008)
        .sw(T3, 4, T2); // jr ra
    for (n, word) in (0..).zip([first, second]) {
        program.li(T1, word).sw(T1, 0, T2).sw(ZERO, 8, T2);
        program.word(T2 << 21 | 31 << 11 | 0x09).nop(); // jalr t2
        program.li(T1, RESULT).sw(T0, 4 * n, T1);
    }
    program.stop();
    let mut card = Card::start();
    card.run_to_end(&program);
    assert_eq!([0, 4].map(|n| card.load(RESULT + n)), [1, 2]);
}

/// A download replaces code that has been run: what was translated from it must go.
#[test]
fn code_that_the_host_replaces_is_never_stale() {
    let mut card = Card::start();
    for value in [1, 2, 3] {
        let mut program = Program::new();
        program.store(value, RESULT).stop();
        card.run_to_end(&program);
        assert_eq!(card.load(RESULT), value);
    }
}

/// Reference 2: addresses from 0 to 8 MB wrap at the installed size (C!).
#[test]
fn sram_wraps_at_its_size() {
    let mut program = Program::new();
    program
        .store(0x1111, RESULT + SRAM_BYTES)
        .store(0x2222, RESULT + 4 + 7 * SRAM_BYTES)
        .copy(RESULT, RESULT + 8)
        .copy(RESULT + 4 + 3 * SRAM_BYTES, RESULT + 12)
        .stop();
    let mut card = Card::start();
    card.run_to_end(&program);
    let results = [0, 4, 8, 12].map(|n| card.load(RESULT + n));
    assert_eq!(results, [0x1111, 0x2222, 0x1111, 0x2222]);
}

/// A board with another size of SRAM wraps there.
#[test]
fn the_board_file_decides_the_size_of_sram() {
    let text = include_str!("../../../boards/tigon2/tigon2.toml");
    let text = text.replace("sram_bytes = 0x10_0000", "sram_bytes = 0x8_0000");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), text).expect("it can be written");
    let mut program = Program::new();
    program
        .store(0x5555, RESULT)
        .copy(RESULT + 0x8_0000, RESULT + 4)
        .stop();
    let mut card = Card::start_with(&format!(",board={}", file.path().display()), |_| Vec::new());
    card.run_to_end(&program);
    assert_eq!(card.load(RESULT + 4), 0x5555);
}

/// Reference 2 and 2.2: the spill window is SRAM at (address - R[150]), for CPU B
/// (address - R[250]), modulo the size (C!). With K = 0x12F000, so 0x2F000.
#[test]
fn the_spill_window_follows_its_base() {
    let k = 0x12_F000;
    for (cpu, window, offset) in [(Cpu::A, 0x00BF_F000, 0), (Cpu::B, 0x00BF_E000, 0x1000)] {
        let mut program = Program::new();
        program
            .li(T0, window - k - offset)
            .write(T0, Register::spill_base(cpu))
            .store(0x77 + offset, window + 0x10)
            // A second base in the next instructions must count at once.
            .li(T0, window - RESULT)
            .write(T0, Register::spill_base(cpu))
            .store(0x88 + offset, window)
            .stop();
        let mut card = Card::start();
        card.run_to_end_on(cpu, &program);
        assert_eq!(card.load((k + offset + 0x10) % SRAM_BYTES), 0x77 + offset);
        assert_eq!(card.load(RESULT), 0x88 + offset);
    }
}

/// Reference 2: the window moves in steps of 4 KB, whatever is written: an odd base is
/// rounded, and reads back as it was written.
#[test]
fn an_odd_spill_base_is_rounded() {
    let mut program = Program::new();
    program
        .li(T0, 0x00BF_F000 - 0x8000 + 0xABD)
        .write(T0, Register::SpillBaseA)
        .store(0x77, 0x00BF_F010)
        .stop();
    let mut card = Card::start();
    card.run_to_end(&program);
    assert_eq!(card.load(0x8010), 0x77);
    let base = card.read(Register::SpillBaseA.offset());
    assert_eq!(base, 0x00BF_F000 - 0x8000 + 0xABD);
}

/// The map of a CPU that runs changes under it, from outside and from the other CPU, while
/// it does nothing but look things up in it: no access finds half of a map.
#[test]
fn the_map_changes_while_cpus_use_it() {
    let mut polling = Program::new();
    let next = polling.here();
    polling
        .read(T0, Register::Timer)
        .copy(0x4000_0000, RESULT)
        .copy(0x00BF_F000, RESULT + 4)
        .beq(ZERO, ZERO, next);
    let mut card = Card::start();
    card.run(&polling);
    for n in 0..4000u32 {
        let base = n.wrapping_mul(0x9E37_79B9);
        card.write(Register::SpillBaseA.offset(), base);
        card.write(Register::SpillBaseB.offset(), !base);
    }
    assert!(!card.halted(Cpu::A));
    card.store(0x8000, 0x1234);
    card.write(Register::SpillBaseA.offset(), 0x00BF_F000 - 0x8000);
    card.wait("the new map counts", |card| card.load(RESULT + 4) == 0x1234);
}

/// Nothing answers elsewhere: reads give 0, writes vanish, and the CPU goes on.
#[test]
fn an_access_to_nothing_is_not_fatal() {
    let mut program = Program::new();
    for address in [0x4000_0000, 0x8000_0000, 0xC000_1000, 0x00D0_0000] {
        program.store(1, address).copy(address, RESULT);
    }
    program.store(9, RESULT + 4).stop();
    let mut card = Card::start();
    card.store(RESULT, 5);
    card.run_to_end(&program);
    assert_eq!([card.load(RESULT), card.load(RESULT + 4)], [0, 9]);
}
