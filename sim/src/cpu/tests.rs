//! Tests every instruction of the CPU, the order of execution around branches, and faults.

use super::{Access, Core};
use crate::asm::*;
use crate::memory::SramBytes;
use tigon2_chip::instruction::{Class, classify};
use tigon2_chip::memory::{SCRATCH_A_BYTES, SCRATCH_BASE};
use tigon2_model::CpuFault;

const START: u32 = 0x4000;
const SRAM_BYTES: u32 = 0x10_0000;

/// CPU A alone with its memory.
struct Bench {
    core: Core,
    sram: SramBytes,
}

impl Bench {
    fn new(program: &[u32]) -> Bench {
        let mut bench = Bench {
            core: Core::new(SCRATCH_A_BYTES),
            sram: SramBytes::new(SRAM_BYTES),
        };
        bench.sram.copy_in(START, &bytes(program));
        bench.core.start(START);
        bench
    }

    fn with(mut self, gprs: &[(u32, u32)]) -> Bench {
        for (n, value) in gprs {
            self.core.set_gpr(*n as usize, *value);
        }
        self
    }

    fn steps(&mut self, count: usize) -> &mut Bench {
        for _ in 0..count {
            self.core.step(&mut self.sram).expect("no fault");
        }
        self
    }

    fn gpr(&self, n: u32) -> u32 {
        self.core.gpr(n as usize)
    }
}

/// The value that one instruction leaves in `V0` for operands in `A0` and `A1`.
fn result(word: u32, a0: u32, a1: u32) -> u32 {
    let mut bench = Bench::new(&[word]).with(&[(A0, a0), (A1, a1), (V0, 0xDEAD_BEEF)]);
    bench.steps(1);
    assert_eq!(bench.core.pc(), START + 4);
    bench.gpr(V0)
}

/// Reference 3.1: addu subu and or xor nor slt sltu (C).
#[test]
fn arithmetic_and_logic_of_two_registers() {
    let min = i32::MIN as u32;
    for (function, a0, a1, expected) in [
        (0x21, u32::MAX, 2, 1),
        (0x21, 0x7FFF_FFFF, 1, min),
        (0x23, 1, 2, u32::MAX),
        (0x23, min, 1, 0x7FFF_FFFF),
        (0x24, 0xFF00_FF00, 0x0FF0_0FF0, 0x0F00_0F00),
        (0x25, 0xFF00_0000, 0x0000_00FF, 0xFF00_00FF),
        (0x26, 0xFF00_FF00, 0x0FF0_0FF0, 0xF0F0_F0F0),
        (0x27, 0xFF00_0000, 0x0000_00FF, 0x00FF_FF00),
        (0x2A, min, 1, 1),
        (0x2A, 1, min, 0),
        (0x2A, 5, 5, 0),
        (0x2B, min, 1, 0),
        (0x2B, 1, min, 1),
    ] {
        let word = special(function, V0, A0, A1, 0);
        assert_eq!(result(word, a0, a1), expected, "function {function:#x}");
    }
}

/// Reference 3.1: sll srl sra sllv srav (C), srlv; variable shifts use 5 bits.
#[test]
fn shifts() {
    let value = 0x8000_00F1;
    for (function, shift, expected) in [
        (0x00, 4, 0x0000_0F10),
        (0x02, 4, 0x0800_000F),
        (0x03, 4, 0xF800_000F),
    ] {
        let fixed = special(function, V0, 0, A1, shift);
        assert_eq!(result(fixed, 0, value), expected, "function {function:#x}");
        let variable = special(function + 4, V0, A0, A1, 0);
        assert_eq!(result(variable, shift, value), expected);
        assert_eq!(result(variable, shift + 32, value), expected);
    }
    assert_eq!(result(special(0x00, V0, 0, A1, 31), 0, 1), 0x8000_0000);
    assert_eq!(result(special(0x03, V0, 0, A1, 31), 0, value), u32::MAX);
}

/// Reference 3.1: addiu slti sltiu andi ori xori lui (C). Arithmetic extends the sign of
/// the immediate, logic does not.
#[test]
fn arithmetic_and_logic_with_an_immediate() {
    for (opcode, a0, value, expected) in [
        (0x09, 1, -2, u32::MAX),
        (0x09, 0x7FFF_FFFF, 1, 0x8000_0000),
        (0x0A, u32::MAX, 0, 1),
        (0x0A, 0, -1, 0),
        (0x0B, u32::MAX, 0, 0),
        (0x0B, 5, -1, 1),
        (0x0C, u32::MAX, -1, 0x0000_FFFF),
        (0x0D, 0x1234_0000, -1, 0x1234_FFFF),
        (0x0E, u32::MAX, -1, 0xFFFF_0000),
    ] {
        let word = immediate(opcode, V0, A0, value);
        assert_eq!(result(word, a0, 0), expected, "opcode {opcode:#x}");
    }
    assert_eq!(result(lui(V0, 0xC000), 0, 0), 0xC000_0000);
}

/// Reference 3.2: index of the most significant common bit plus 1, 0 if none (C!).
#[test]
fn pri_encodes_the_highest_common_bit() {
    let word = pri(V0, A0, A1);
    assert_eq!(result(word, 0, u32::MAX), 0);
    assert_eq!(result(word, 0x8000_0000, u32::MAX), 32);
    assert_eq!(result(word, 0x1040_0008, 0x0040_0008), 23);
    assert_eq!(result(word, 0x1040_0008, 8), 4);
}

/// Reference 3.3: target = rs + 8 * rt after one ordinary delay slot (C).
#[test]
fn joff_jumps_into_a_table_after_its_delay_slot() {
    let mut bench =
        Bench::new(&[joff(A0, A1), addiu(V0, V0, 1)]).with(&[(A0, SCRATCH_BASE + 0x100), (A1, 3)]);
    bench.steps(2);
    assert_eq!(bench.core.pc(), SCRATCH_BASE + 0x118);
    assert_eq!(bench.gpr(V0), 1);
}

/// Reference 3.1: lw lhu lbu sw sh sb (C), lb lh; NIC data is big-endian.
#[test]
fn loads_and_stores_are_big_endian_in_sram_and_scratch_pad() {
    for (base, load, store) in [
        (0x8000, Access::LoadSram, Access::StoreSram),
        (
            SCRATCH_BASE + 0x40,
            Access::LoadScratch,
            Access::StoreScratch,
        ),
    ] {
        let program = [
            sw(A1, 8, A0),
            immediate(0x24, V0, A0, 9),
            immediate(0x25, V1, A0, 10),
            immediate(0x20, T0, A0, 9),
            immediate(0x21, T1, A0, 10),
            immediate(0x28, A1, A0, -1),
            immediate(0x29, A1, A0, -4),
            lw(A1, -4, A0),
        ];
        let mut bench = Bench::new(&program).with(&[(A0, base), (A1, 0x0182_F304)]);
        let accesses: Vec<_> = program
            .iter()
            .map(|_| bench.core.step(&mut bench.sram).expect("ok").access)
            .collect();
        assert_eq!(
            accesses,
            [store, load, load, load, load, store, store, load]
        );
        assert_eq!(bench.gpr(V0), 0x82);
        assert_eq!(bench.gpr(V1), 0xF304);
        assert_eq!(bench.gpr(T0), 0xFFFF_FF82);
        assert_eq!(bench.gpr(T1), 0xFFFF_F304);
        assert_eq!(bench.gpr(A1), 0xF304_0004);
    }
}

/// Reference 3.1: load results may be used by the very next instruction (C).
#[test]
fn a_load_is_visible_to_the_next_instruction() {
    let mut bench = Bench::new(&[lw(V0, 0, A0), addiu(V0, V0, 1)]).with(&[(A0, START)]);
    bench.steps(2);
    assert_eq!(bench.gpr(V0), lw(V0, 0, A0) + 1);
}

/// Reference 2: wrap of SRAM (C!), spill window with `R[150]` (C!).
#[test]
fn the_spill_window_and_aliases_lead_to_sram() {
    let k = 0x12_F000;
    let mut bench = Bench::new(&[sw(A1, 0, A0), lw(V0, 0, V1)]).with(&[
        (A0, 0x00BF_F010),
        (A1, 0x1234_5678),
        (V1, 0x7_2F010),
    ]);
    bench.core.set_spill_base(0x00BF_F000 - k);
    bench.steps(2);
    assert_eq!(bench.gpr(V0), 0x1234_5678);
}

/// Reference 2: registers at 0xC0000000; the machine completes the access.
#[test]
fn register_accesses_are_handed_to_the_machine() {
    let mut bench =
        Bench::new(&[lw(V0, 0x60, A0), sw(A1, 0x3FC, A0)]).with(&[(A0, 0xC000_0000), (A1, 77)]);
    let read = bench.core.step(&mut bench.sram).expect("no fault").access;
    assert_eq!(
        read,
        Access::ReadRegister {
            offset: 0x60,
            target: V0 as usize
        }
    );
    bench.core.complete_read(V0 as usize, 5);
    assert_eq!(bench.gpr(V0), 5);
    let write = bench.core.step(&mut bench.sram).expect("no fault").access;
    assert_eq!(
        write,
        Access::WriteRegister {
            offset: 0x3FC,
            value: 77
        }
    );
}

#[test]
fn register_zero_stays_zero() {
    let mut bench = Bench::new(&[addiu(ZERO, ZERO, 5), lw(ZERO, 0, ZERO), lui(ZERO, 1)]);
    bench.steps(3);
    bench.core.complete_read(0, 9);
    assert_eq!(bench.gpr(ZERO), 0);
}

/// For a branch: the path over the next instructions when it is taken, else.
fn path(word: u32, a0: u32, a1: u32) -> (Vec<u32>, u32) {
    let mut bench = Bench::new(&[word, NOP, NOP, NOP, NOP]).with(&[(A0, a0), (A1, a1)]);
    let mut path = Vec::new();
    for _ in 0..3 {
        path.push((bench.core.pc() - START) / 4);
        bench.steps(1);
    }
    (path, bench.gpr(RA))
}

/// Reference 3.1: one branch delay slot; likely branches annul it when not taken (C).
#[test]
fn branches_execute_their_delay_slot_and_likely_ones_annul_it() {
    let minus = u32::MAX;
    let regimm = |rt| immediate(0x01, rt, A0, 3);
    let taken = vec![0, 1, 4];
    let slot = vec![0, 1, 2];
    let annulled = vec![0, 2, 3];
    // word, operands for which it is taken, operands for which it is not, likely
    let cases = [
        (immediate(0x04, A1, A0, 3), [(7, 7)], [(7, 8)], false),
        (immediate(0x05, A1, A0, 3), [(7, 8)], [(7, 7)], false),
        (immediate(0x06, 0, A0, 3), [(minus, 0)], [(1, 0)], false),
        (immediate(0x07, 0, A0, 3), [(1, 0)], [(0, 0)], false),
        (regimm(0x00), [(minus, 0)], [(0, 0)], false),
        (regimm(0x01), [(0, 0)], [(minus, 0)], false),
        (immediate(0x14, A1, A0, 3), [(7, 7)], [(7, 8)], true),
        (immediate(0x15, A1, A0, 3), [(7, 8)], [(7, 7)], true),
        (immediate(0x16, 0, A0, 3), [(0, 0)], [(1, 0)], true),
        (immediate(0x17, 0, A0, 3), [(1, 0)], [(minus, 0)], true),
        (regimm(0x02), [(minus, 0)], [(0, 0)], true),
        (regimm(0x03), [(0, 0)], [(minus, 0)], true),
    ];
    for (word, yes, no, likely) in cases {
        for (a0, a1) in yes {
            assert_eq!(path(word, a0, a1), (taken.clone(), 0), "{word:#010x}");
        }
        for (a0, a1) in no {
            let expected = if likely { &annulled } else { &slot };
            assert_eq!(path(word, a0, a1), (expected.clone(), 0), "{word:#010x}");
        }
    }
}

/// Linking branches write the return address whether they are taken or not (MIPS I).
#[test]
fn linking_branches_always_link() {
    for (rt, a0, expected) in [
        (0x10, u32::MAX, [0, 1, 4]),
        (0x10, 0, [0, 1, 2]),
        (0x11, 0, [0, 1, 4]),
        (0x11, u32::MAX, [0, 1, 2]),
        (0x12, 0, [0, 2, 3]),
        (0x13, u32::MAX, [0, 2, 3]),
    ] {
        let (path, link) = path(immediate(0x01, rt, A0, 3), a0, 0);
        assert_eq!((path, link), (expected.to_vec(), START + 8), "rt {rt:#x}");
    }
}

/// Reference 3.1: j jal jr jalr (C).
#[test]
fn jumps_go_where_they_say_and_link_behind_the_slot() {
    let far = START + 16;
    assert_eq!(path(j(far), 0, 0), (vec![0, 1, 4], 0));
    assert_eq!(
        path(0x03 << 26 | far >> 2, 0, 0),
        (vec![0, 1, 4], START + 8)
    );
    assert_eq!(path(jr(A0), far, 0), (vec![0, 1, 4], 0));
    assert_eq!(
        path(special(0x09, RA, A0, 0, 0), far, 0),
        (vec![0, 1, 4], START + 8)
    );
    let backward = immediate(0x04, ZERO, ZERO, -1);
    assert_eq!(path(backward, 0, 0).0, [0, 1, 0]);
}

/// A call that uses and restores what compilers use: loop, stack, return.
#[test]
fn a_program_sums_an_array() {
    let program = [
        addiu(V0, ZERO, 0),
        lw(V1, 0, A0),
        addiu(A0, A0, 4),
        addiu(A1, A1, -1),
        bne(A1, ZERO, -4),
        addu(V0, V0, V1),
        jr(RA),
        NOP,
    ];
    let mut bench = Bench::new(&program).with(&[(A0, 0x9000), (A1, 10), (RA, 0x5000)]);
    bench
        .sram
        .copy_in(0x9000, &bytes(&(1..=10).collect::<Vec<u32>>()));
    while bench.core.pc() != 0x5000 {
        bench.steps(1);
    }
    assert_eq!(bench.gpr(V0), 55);
    assert_eq!(bench.core.retired(), 1 + 10 * 5 + 2);
}

/// Reference 3.1: `break` is "must not happen"; unaligned accesses are unknown and fault.
/// A fault leaves the state as before the instruction.
#[test]
fn faults_name_their_cause_and_change_nothing() {
    let unaligned = |address| CpuFault::Unaligned { address };
    for (word, a0, fault) in [
        (BREAK, 0, CpuFault::Break),
        (lw(V0, 1, A0), 0x8000, unaligned(0x8001)),
        (lw(V0, 2, A0), 0x8000, unaligned(0x8002)),
        (immediate(0x25, V0, A0, 1), 0x8000, unaligned(0x8001)),
        (sw(V0, 3, A0), 0x8000, unaligned(0x8003)),
        (immediate(0x29, V0, A0, 1), 0x8000, unaligned(0x8001)),
        (
            immediate(0x22, V0, A0, 0),
            0x8000,
            CpuFault::ReservedInstruction,
        ),
        (
            special(0x18, 0, A0, A1, 0),
            0,
            CpuFault::ReservedInstruction,
        ),
        (0x0000_000C, 0, CpuFault::ReservedInstruction),
    ] {
        let mut bench = Bench::new(&[word]).with(&[(A0, a0), (V0, 3)]);
        assert_eq!(bench.core.step(&mut bench.sram), Err(fault), "{word:#010x}");
        assert_eq!(
            (bench.core.pc(), bench.gpr(V0), bench.core.retired()),
            (START, 3, 0)
        );
    }
}

/// As in QEMU: where nothing answers, a load gives 0 and a store changes nothing; the
/// machine is told. So with parts of registers.
#[test]
fn nothing_answers_with_zero() {
    for (word, address) in [
        (lw(V0, 0, A0), 0x00C0_4000),
        (lw(V0, 0, A0), 0xC000_0400),
        (lw(V0, 0, A0), 0x4000_0000),
        (immediate(0x24, V0, A0, 0), 0xC000_0061),
        (immediate(0x25, V0, A0, 0), 0xC000_0062),
    ] {
        let mut bench = Bench::new(&[word]).with(&[(A0, address), (V0, 3)]);
        let executed = bench.core.step(&mut bench.sram).expect("it is executed");
        assert_eq!(executed.access, Access::LoadNothing { address });
        assert_eq!(bench.gpr(V0), 0);
    }
    for (word, address, value) in [
        (sw(V0, 0, A0), 0x4000_0000, 0x1234_5678),
        (immediate(0x29, V0, A0, 0), 0xC000_0060, 0x5678),
        (immediate(0x28, V0, A0, 0), 0xFFFF_FFFF, 0x78),
    ] {
        let mut bench = Bench::new(&[word]).with(&[(A0, address), (V0, 0x1234_5678)]);
        let executed = bench.core.step(&mut bench.sram).expect("it is executed");
        assert_eq!(executed.access, Access::StoreNothing { address, value });
    }
}

#[test]
fn a_jump_to_nowhere_faults_at_the_target() {
    for (target, fault) in [
        (0x5002, CpuFault::Unaligned { address: 0x5002 }),
        (
            0xC000_0060,
            CpuFault::BusError {
                address: 0xC000_0060,
            },
        ),
        (
            0x8000_0000,
            CpuFault::BusError {
                address: 0x8000_0000,
            },
        ),
    ] {
        let mut bench = Bench::new(&[jr(A0), NOP]).with(&[(A0, target)]);
        bench.steps(2);
        assert_eq!(bench.core.step(&mut bench.sram), Err(fault));
        assert_eq!(bench.core.pc(), target);
    }
}

/// The interpreter executes exactly the instructions that the image check lets pass.
#[test]
fn interpreter_and_image_check_agree_on_every_encoding() {
    let operands = |word: u32| word | A0 << 21 | A1 << 16;
    let opcodes = (0..64u32).map(|opcode| opcode << 26);
    let sparse = (1..64u32).map(|opcode| opcode << 26 | A0 << 21);
    let special = (0..64u32).flat_map(|function| {
        [
            function,
            function | A1 << 16,
            function | V0 << 11,
            function | 3 << 6,
            function | A0 << 21,
            function | A0 << 21 | V0 << 11,
            function | A0 << 21 | A1 << 16,
            function | A0 << 21 | A1 << 16 | V0 << 11,
            function | A1 << 16 | V0 << 11 | 3 << 6,
            0x03FF_FFC0 | function,
        ]
    });
    let regimm = (0..32u32).map(|rt| 1 << 26 | A0 << 21 | rt << 16);
    let words = opcodes
        .clone()
        .map(operands)
        .chain(opcodes)
        .chain(sparse)
        .chain(special);
    let mut checked = 0;
    for word in words.chain(regimm) {
        let registers = [(A0, 0x8000), (A1, 0x8000), (RA, 0x8000)];
        let mut bench = Bench::new(&[word]).with(&registers);
        let reserved = bench.core.step(&mut bench.sram) == Err(CpuFault::ReservedInstruction);
        let forbidden = matches!(classify(word), Class::Forbidden(..));
        assert_eq!(reserved, forbidden, "{word:#010x} {:?}", classify(word));
        checked += 1;
    }
    assert!(checked > 800);
}

#[test]
fn the_history_holds_the_last_program_counters() {
    let mut bench = Bench::new(&[j(START), NOP]);
    bench.steps(5);
    let history: Vec<_> = bench.core.history().collect();
    assert_eq!(history, [START, START + 4, START, START + 4, START]);
    bench.steps(200);
    assert_eq!(bench.core.history().count(), super::HISTORY);
    assert_eq!(bench.core.history().last(), Some(START));
}

/// A jump in the delay slot of another is refused where it stands, whether the first one
/// is taken or not; MIPS leaves it undefined. An annulled slot is not looked at.
#[test]
fn a_jump_in_a_delay_slot_is_refused() {
    let refused = Err(CpuFault::ReservedInstruction);
    let far = START + 0x40;
    let taken = beq(ZERO, ZERO, 7);
    let not_taken = bne(ZERO, ZERO, 7);
    let likely = immediate(0x15, ZERO, ZERO, 7);
    for second in [j(far), jr(A0), joff(A0, ZERO), taken, not_taken, likely] {
        for first in [j(far), jr(A0), joff(A0, ZERO), taken, not_taken] {
            let mut bench = Bench::new(&[first, second]).with(&[(A0, far)]);
            bench.steps(1);
            assert_eq!(bench.core.step(&mut bench.sram), refused, "{second:#010x}");
            assert_eq!(bench.core.pc(), START + 4);
        }
        let mut bench = Bench::new(&[likely, second, NOP]).with(&[(A0, far)]);
        bench.steps(2);
        assert_eq!(bench.core.pc(), START + 12);
    }
    // Behind the slot, and where a CPU starts anew, jumps are jumps.
    let mut bench = Bench::new(&[taken, NOP, j(far), NOP]).with(&[]);
    bench.steps(1);
    bench.core.start(START + 8);
    bench.steps(2);
    assert_eq!(bench.core.pc(), far);
}

/// A fault in a delay slot shows the slot's own address, and the jump is not lost: when
/// the cause is removed the CPU continues at the target.
#[test]
fn a_fault_in_a_delay_slot_keeps_the_jump() {
    let mut bench = Bench::new(&[beq(ZERO, ZERO, 3), lw(V0, 0, A0), NOP, NOP, NOP]);
    bench.core.set_gpr(A0 as usize, 0x8001);
    bench.steps(1);
    let fault = bench.core.step(&mut bench.sram);
    assert_eq!(fault, Err(CpuFault::Unaligned { address: 0x8001 }));
    assert_eq!(bench.core.pc(), START + 4);
    bench.core.set_gpr(A0 as usize, 0x8000);
    bench.core.start(START + 4);
    bench.steps(1);
    assert_eq!(bench.core.pc(), START + 16);
}

/// Reference 3.1: a value just loaded can be stored, encoded, be an address, be branched on
/// and jumped through by the next instruction (C).
#[test]
fn a_load_feeds_whatever_comes_next() {
    let value = 0x9000;
    for base in [0x8000, SCRATCH_BASE + 0x80] {
        let after = |next: u32, steps: usize| {
            let program = [sw(A1, 0, A0), lw(V0, 0, A0), next, lw(T0, 4, A0), BREAK];
            let mut bench = Bench::new(&program).with(&[(A0, base), (A1, value)]);
            bench.sram.copy_in(value, &bytes(&[0x1234_5678]));
            bench.steps(steps);
            bench
        };
        assert_eq!(after(sw(V0, 4, A0), 4).gpr(T0), value);
        assert_eq!(after(lw(V1, 0, V0), 3).gpr(V1), 0x1234_5678);
        assert_eq!(after(pri(V1, V0, V0), 3).gpr(V1), 16);
        assert_eq!(after(beq(V0, A1, 5), 4).core.pc(), START + 32);
        assert_eq!(after(jr(V0), 4).core.pc(), value);
        assert_eq!(after(joff(V0, ZERO), 4).core.pc(), value);
    }
}
