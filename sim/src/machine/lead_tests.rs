//! Tests that no observer sees a CPU in the lead: machines that execute runs and machines that
//! execute one instruction at a time give the same results.

use super::Machine;
use super::golden::{busy, digest, disturb};
use super::noise::Noise;
use super::tests::{REGISTERS, get, put};
use crate::asm::*;
use crate::timeline::Recorder;
use crate::timing::Parameters;
use tigon2_chip::memory::SCRATCH_BASE;
use tigon2_chip::{Cpu, Register};
use tigon2_model::Board;

/// Two machines of a seed. The second one is recorded: there nobody runs ahead.
fn both(
    seed: u32,
    prepare: impl Fn(&mut Machine),
) -> [(Machine, Noise, host_driver::DmaMemory); 2] {
    [false, true].map(|recorded| {
        let mut noise = Noise(seed);
        let (mut machine, memory) = busy(Parameters::default(), &mut noise);
        prepare(&mut machine);
        if recorded {
            machine.record(Recorder::new(1, |_| None));
        }
        (machine, noise, memory)
    })
}

/// The host stops the machine where the card has changed, in the middle of whatever the
/// CPUs do.
#[test]
fn whoever_stops_the_machine_finds_each_cpu_in_its_cycle() {
    for seed in [0x1111_2222, 0x3333_4444, 0x5555_6666] {
        let mut stops = 0;
        let digests = both(seed, |_| ()).map(|(mut machine, mut noise, memory)| {
            let digests: Vec<u64> = (0..40)
                .map(|n| {
                    disturb(&mut machine, &mut noise, n);
                    let from = machine.cycle() + u64::from(noise.below(400));
                    let limit = from + 2000;
                    stops += u32::from(machine.run_until(limit, |now| now.cycle() > from));
                    digest(&mut machine, &memory)
                })
                .collect();
            digests
        });
        assert_eq!(digests[0], digests[1], "seed {seed:#x}");
        assert!(stops > 40, "{stops} of 80 ended before their limit");
    }
}

/// CPU A reads CPU B's program counter, registers and scratch pad, changes the pad,
/// halts CPU B and lets it go on, while CPU B computes.
#[test]
fn a_cpu_that_looks_at_another_one_sees_it_in_its_cycle() {
    let looks = |machine: &mut Machine| {
        let gpr = |n| lw(2, Register::CpuBGpr0.offset() as i32 + 4 * n, 28);
        let mut program = vec![lui(5, 1), addiu(6, 0, 0x1000)];
        let around = SCRATCH_BASE + 4 * program.len() as u32;
        for n in 0..12 {
            program.extend([get(2, Register::CpuBPc), addu(4, 4, 2), gpr(1 + n)]);
            program.extend([
                addu(4, 4, 2),
                addiu(6, 6, 4),
                put(6, Register::ScratchAddressB),
            ]);
            program.extend([get(2, Register::ScratchDataB), addu(4, 4, 2)]);
            program.push(put(4, Register::ScratchDataB));
            program.extend(vec![NOP; n as usize]);
            program.push(put(5, Register::CpuBState));
            program.extend(vec![NOP; 3 * (n as usize % 4)]);
            program.extend([put(0, Register::CpuBState), sw(4, 4 * n, 26)]);
        }
        program.extend([addiu(6, 0, 0x1000), j(around), NOP]);
        machine.load_scratch(Cpu::A, &program);
    };
    for seed in [0x0101_2323, 0x4545_6767] {
        let digests = both(seed, looks).map(|(mut machine, _, memory)| {
            let digests: Vec<u64> = (0..50)
                .map(|n| {
                    machine.run(700 + n);
                    digest(&mut machine, &memory)
                })
                .collect();
            assert!(machine.cpus().core(Cpu::B).retired() > 5_000);
            digests
        });
        assert_eq!(digests[0], digests[1], "seed {seed:#x}");
    }
}

/// Code in a scratch pad is changed: by its own CPU, a byte at a time, by the other one and
/// by the host. What stands there is what is executed.
#[test]
fn code_that_is_stored_over_is_executed_as_it_stands() {
    // Adds the number that stands in its third word, and raises that number.
    let counts = [
        lui(A0, SCRATCH_BASE >> 16),
        addiu(T0, ZERO, 0),
        addiu(V0, V0, 0),
        addiu(T0, T0, 1),
        immediate(0x28, T0, A0, 4 * 2 + 3),
        addiu(T1, T0, -10),
        bne(T1, ZERO, -5),
        NOP,
        j(SCRATCH_BASE + 4 * 7),
        NOP,
    ];
    let mut machine = Machine::timed(Board::default(), Parameters::default(), 1);
    machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
    machine.load_scratch(Cpu::B, &counts);
    machine.bar_write(Register::CpuBPc.offset(), SCRATCH_BASE);
    machine.bar_write(Register::CpuBState.offset(), 0);
    machine.run(1000);
    let sum = |machine: &Machine| machine.cpus().core(Cpu::B).gpr(V0 as usize);
    assert_eq!(sum(&machine), (0..10).sum::<u32>());

    // The host has the endless loop at its end raise it, while the CPU is in the lead.
    let over = |machine: &mut Machine, place: u32, word| {
        machine.bar_write(Register::ScratchAddressB.offset(), 4 * place);
        machine.bar_write(Register::ScratchDataB.offset(), word);
    };
    over(&mut machine, 9, addiu(V0, V0, 1));
    machine.run(1000);
    let raised = sum(&machine);
    assert!(raised > 45 + 200, "{raised}");

    // CPU A has it stop that.
    let stops = [
        REGISTERS,
        addiu(3, ZERO, 4 * 9),
        put(3, Register::ScratchAddressB),
        put(ZERO, Register::ScratchDataB),
        j(SCRATCH_BASE + 4 * 4),
        NOP,
    ];
    machine.load_scratch(Cpu::A, &stops);
    machine.bar_write(Register::CpuAPc.offset(), SCRATCH_BASE);
    machine.bar_write(Register::CpuAState.offset(), 0);
    machine.run(1000);
    let stopped = sum(&machine);
    assert!(stopped < raised + 50, "{raised}, {stopped}");
    machine.run(1000);
    assert_eq!(sum(&machine), stopped);
}
