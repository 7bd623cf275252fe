//! Tests that instructions are counted which changed in SRAM while a CPU held their line.

use super::Machine;
use super::tests::{A, RESULT, frame, mac};
use super::timed_tests::{machine, start};
use crate::asm::*;
use crate::timing::Parameters;
use host_driver::DmaMemory;
use tigon2_chip::memory::SCRATCH_BASE;
use tigon2_chip::{Cpu, Register};
use tigon2_model::CpuFault;

/// Where the word lies that changes: in the line of [`A`], behind what runs first.
const CHANGES: u32 = A + 0x28;
/// Where host memory is for the card.
const IOVA: u64 = 0x1_0000;

fn stale(machine: &Machine) -> u64 {
    machine.timing().expect("timed").stale_fetches()
}

/// Runs a program of CPU A, from SRAM to a `break`, which stores `word` over a `nop` of its line
/// and then continues with `rest`; returns how often it executed something stale.
fn after_a_store(word: u32, rest: &[u32]) -> u64 {
    let mut machine = machine(Parameters::default());
    let mut line = [lw(V0, RESULT as i32, ZERO), sw(V0, CHANGES as i32, ZERO)].to_vec();
    line.extend(rest);
    line.resize(11, NOP);
    line.push(BREAK);
    machine.load_image(A, &bytes(&line));
    // Elsewhere in SRAM, and in the scratch pad: back at once.
    let back = [j(CHANGES), NOP];
    machine.load_image(A + 0x40, &bytes(&back));
    machine.load_scratch(Cpu::A, &back);
    machine.load_image(RESULT, &word.to_be_bytes());
    start(&mut machine, A);
    machine.run(1000);
    let end = (CpuFault::Break, CHANGES + 4);
    assert_eq!(machine.fault(Cpu::A), Some(end));
    stale(&machine)
}

/// The line is not changed by stores: whoever goes on in it executes the old word on the chip.
#[test]
fn a_store_into_the_line_makes_its_word_stale() {
    let word = addiu(V1, V1, 1);
    assert_eq!(after_a_store(word, &[]), 1);
    assert_eq!(after_a_store(word, &[j(SCRATCH_BASE), NOP]), 1);
    assert_eq!(after_a_store(NOP, &[]), 0, "the same word");
    assert_eq!(after_a_store(word, &[j(CHANGES + 4), NOP]), 0, "another");
}

/// Code of another line takes the place of this one: what comes back is new.
#[test]
fn who_leaves_the_line_finds_the_new_word() {
    let word = addiu(V1, V1, 1);
    assert_eq!(after_a_store(word, &[j(A + 0x40), NOP]), 0);
}

/// CPU A runs in a loop of two words of one line at `at`, 100 cycles before `write` lets somebody
/// write to the second one and 1000 after; returns how often it executed something stale.
fn while_somebody_writes(at: u32, write: impl FnOnce(&mut Machine)) -> u64 {
    let mut machine = machine(Parameters::default());
    mac(&mut machine);
    // Until there is a link.
    machine.run(1_000_000);
    machine.load_image(at, &bytes(&[beq(ZERO, ZERO, -1), NOP]));
    start(&mut machine, at);
    machine.run(100);
    assert_eq!(stale(&machine), 0);
    write(&mut machine);
    machine.run(1000);
    assert_eq!(machine.fault(Cpu::A), None);
    stale(&machine)
}

/// It does not matter who writes: the line is CPU A's own.
#[test]
fn a_write_by_anybody_makes_the_word_stale() {
    let word = addiu(V1, V1, 1);
    assert_eq!(while_somebody_writes(A, |_| ()), 0);
    let others = |address: u32| {
        move |machine: &mut Machine| {
            let store = [
                lui(V0, word >> 16),
                ori(V0, V0, word & 0xFFFF),
                sw(V0, address as i32, ZERO),
                beq(ZERO, ZERO, -1),
                NOP,
            ];
            machine.load_scratch(Cpu::B, &store);
            machine.bar_write(Register::CpuBPc.offset(), SCRATCH_BASE);
            machine.bar_write(Register::CpuBState.offset(), 0);
        }
    };
    assert!(while_somebody_writes(A, others(A + 4)) > 100);
    // A word of the line that is not executed.
    assert_eq!(while_somebody_writes(A, others(A + 8)), 0);
    let window = |machine: &mut Machine| {
        machine.bar_write(Register::WindowBase.offset(), A);
        machine.bar_write(0x804, word);
    };
    assert!(while_somebody_writes(A, window) > 100);
    let dma = |machine: &mut Machine| {
        let memory = DmaMemory::new(4096, IOVA).expect("memory");
        memory.write_bytes(0, &word.to_be_bytes()).expect("in it");
        machine.map(memory);
        for (register, value) in [
            (Register::DmaReadHostHigh, 0),
            (Register::DmaReadHostLow, IOVA as u32),
            (Register::DmaReadLocal, A + 4),
            (Register::DmaReadLength, 4),
            (Register::DmaReadState, 4),
        ] {
            machine.bar_write(register.offset(), value);
        }
    };
    assert!(while_somebody_writes(A, dma) > 100);
}

/// A frame over code: its bytes are those of the loop's second word.
#[test]
fn a_frame_makes_the_word_stale() {
    // In the frame at the start of the receive buffer.
    let code = 0x18_0000 + 64;
    let told = while_somebody_writes(code, |machine| {
        let mut data = frame(0, 80);
        data[64..72].copy_from_slice(&bytes(&[beq(ZERO, ZERO, -1), addiu(V1, V1, 1)]));
        machine.send_frame(0, data);
    });
    assert!(told > 50, "{told}");
}
