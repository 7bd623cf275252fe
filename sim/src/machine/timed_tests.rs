//! Tests the cycle model: the cost of single accesses, contention, and that parking CPUs changes
//! nothing.

use super::Machine;
use super::tests::{A, REGISTERS, RESULT, frame, get, mac, put};
use super::timed::publishes;
use super::waits::{idle_ways, state, timer_program};
use crate::asm::*;
use crate::timing::Parameters;
use crate::timing::counts::{Activity, Cause};
use tigon2_chip::memory::SCRATCH_BASE;
use tigon2_chip::{Cpu, Register};
use tigon2_model::{Board, CpuFault};

/// A machine whose CPUs have not been started.
pub(super) fn machine(parameters: Parameters) -> Machine {
    let mut machine = Machine::timed(Board::default(), parameters, 1);
    machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
    machine.bar_write(Register::MiscConfig.offset(), 0x10_0055);
    machine
}

/// Starts CPU A.
pub(super) fn start(machine: &mut Machine, pc: u32) {
    machine.bar_write(Register::CpuAPc.offset(), pc);
    machine.bar_write(Register::CpuAState.offset(), 0);
}

/// Runs a program of CPU A from its scratch pad to its end; returns the cycles of its
/// instructions, and how many of them went to a cause.
fn pad(parameters: &Parameters, program: &[u32], cause: Cause) -> (u64, u64) {
    let mut machine = machine(parameters.clone());
    let setup = [REGISTERS, lui(A0, 0x00C0), addiu(A1, ZERO, RESULT as i32)];
    let program = [&setup[..], program, &[BREAK]].concat();
    machine.load_scratch(Cpu::A, &program);
    start(&mut machine, SCRATCH_BASE);
    let limit = machine.cycle() + 100_000;
    assert!(machine.run_until(limit, |machine| machine.fault(Cpu::A).is_some()));
    assert_eq!(machine.fault(Cpu::A).map(|f| f.0), Some(CpuFault::Break));
    let counts = &machine.timing().expect("timed").pipelines[0].counts;
    let tally = counts.tally(Activity::Boot);
    (tally.total() - setup.len() as u64, tally.of(cause))
}

/// `timing.md` 1.1: what each kind of instruction costs alone, with the default figures.
#[test]
fn accesses_cost_what_the_rules_say() {
    let parameters = Parameters::default();
    let cost = |program: &[u32], cause| pad(&parameters, program, cause);
    assert_eq!(cost(&[NOP; 10], Cause::Issue), (10, 13));
    // Scratch pad: one more for a load, one for a store, one if the next uses the load.
    assert_eq!(cost(&[lw(V0, 0x100, A0), NOP], Cause::Scratch), (3, 1));
    assert_eq!(cost(&[sw(V0, 0x100, A0), NOP], Cause::Scratch), (3, 1));
    let used = [lw(V0, 0x100, A0), addiu(V0, V0, 1)];
    assert_eq!(cost(&used, Cause::LoadUse), (4, 1));
    let later = [lw(V0, 0x100, A0), NOP, addiu(V0, V0, 1)];
    assert_eq!(cost(&later, Cause::LoadUse), (4, 0));
    // Registers: 8 for a load, 2 for a store.
    assert_eq!(cost(&[get(V0, Register::Timer)], Cause::Register), (9, 8));
    let store = [put(ZERO, Register::MulticastHash0)];
    assert_eq!(cost(&store, Cause::Register), (3, 2));
    // SRAM: issue, request, grant, latency; a store goes to the buffer.
    assert_eq!(cost(&[lw(V0, 0, A1), NOP], Cause::SramLoad), (5, 3));
    assert_eq!(cost(&[sw(V0, 0, A1), NOP], Cause::SramStore), (2, 0));
    let stores = [sw(V0, 0, A1), sw(V0, 4, A1), sw(V0, 8, A1)];
    assert_eq!(cost(&stores, Cause::SramStore), (3, 0));
    // A load waits for the stores before it: the port serves them first.
    let behind = [sw(V0, 0, A1), lw(V0, 4, A1)];
    assert_eq!(cost(&behind, Cause::SramLoad), (5, 3));
    // A branch that goes elsewhere, one that does not, one to the next instruction.
    assert_eq!(
        cost(&[beq(ZERO, ZERO, 2), NOP, NOP, NOP], Cause::Branch).1,
        1
    );
    assert_eq!(cost(&[bne(ZERO, ZERO, 2), NOP, NOP], Cause::Branch), (3, 0));
    assert_eq!(cost(&[beq(ZERO, ZERO, 1), NOP, NOP], Cause::Branch), (3, 0));
}

/// `timing.md` 1.1, 7: who tells another unit while a store of its own waits for the port is
/// counted; a load in between waits for the store, and other registers tell nobody.
#[test]
fn what_is_told_ahead_of_a_store_is_counted() {
    let overtakes = |rest: &[u32]| {
        let mut machine = machine(Parameters {
            beat: 4,
            wb: 2,
            ..Parameters::default()
        });
        let stores = [REGISTERS, sw(ZERO, 0x200, ZERO), sw(ZERO, 0x208, ZERO)];
        machine.load_scratch(Cpu::A, &[&stores, rest, &[BREAK]].concat());
        start(&mut machine, SCRATCH_BASE);
        machine.run(1000);
        let counts = &machine.timing().expect("timed").pipelines[0].counts;
        counts.overtakes()
    };
    let publish = put(ZERO, Register::AssistReadProducer);
    assert_eq!(overtakes(&[publish]), 1);
    assert_eq!(overtakes(&[lw(V0, 0x200, ZERO), publish]), 0);
    assert_eq!(overtakes(&[put(ZERO, Register::MulticastHash0)]), 0);
}

/// `timing.md` 1.1, 3: one line of 16 instructions; the first one of a line costs the grant
/// and the latency, those behind it stream in.
#[test]
fn code_in_sram_comes_by_lines() {
    let parameters = Parameters::default();
    let run = |cwf| {
        let mut machine = machine(Parameters {
            cwf,
            ..parameters.clone()
        });
        machine.load_image(A, &bytes(&[&[NOP; 32][..], &[BREAK]].concat()));
        start(&mut machine, A);
        machine.run(1000);
        let counts = &machine.timing().expect("timed").pipelines[0].counts;
        let tally = counts.tally(Activity::Boot);
        (tally.instructions, tally.of(Cause::Fetch))
    };
    // Two lines and the break's line; each 1 + 2 cycles, and no other wait: a beat holds
    // two instructions.
    assert_eq!(run(true), (32, 3 * 3));
    // The whole line: 8 + 2 cycles.
    assert_eq!(run(false), (32, 3 * 10));
}

/// Both CPUs load from SRAM all the time: CPU A is served first, CPU B's waiting is
/// contention.
#[test]
fn cpu_a_goes_before_cpu_b() {
    let mut machine = machine(Parameters::default());
    let program = [
        lw(V0, 0x200, ZERO),
        lw(V0, 0x200, ZERO),
        j(SCRATCH_BASE),
        NOP,
    ];
    for cpu in Cpu::ALL {
        machine.load_scratch(cpu, &program);
        let (pc, state) = match cpu {
            Cpu::A => (Register::CpuAPc, Register::CpuAState),
            _ => (Register::CpuBPc, Register::CpuBState),
        };
        machine.bar_write(pc.offset(), SCRATCH_BASE);
        machine.bar_write(state.offset(), 0);
    }
    machine.run(10_000);
    let timed = machine.timing().expect("timed");
    let contention = |cpu: Cpu| {
        let tally = timed.pipelines[cpu.index()].counts.tally(Activity::Boot);
        (tally.of(Cause::Contention), tally.total())
    };
    assert_eq!(contention(Cpu::A).0, 0);
    assert!(
        contention(Cpu::A).1 > 9_900,
        "its cycles are all accounted for"
    );
    assert!(
        contention(Cpu::B).1 > 9_900,
        "its cycles are all accounted for"
    );
}

/// `timing.md` 1.5: a frame that begins to arrive at a card where nothing else happens is
/// stored as soon as one among others.
#[test]
fn a_frame_wakes_a_quiet_card() {
    let mut machine = machine(Parameters::default());
    mac(&mut machine);
    machine.run(1_000_000);
    for number in 0..3 {
        let arrival = machine.send_frame(0, frame(number, 100));
        let limit = machine.clock().cycle_at(arrival) + 50;
        machine.run(limit - machine.cycle());
        assert_eq!(machine.received().accepted, u64::from(number) + 1);
        machine.run(1_000_000);
    }
}

/// A parked CPU is where it would be had it executed every poll, whatever it does between
/// two polls: the same registers, counts and time, to the cycle.
#[test]
fn parking_changes_nothing() {
    for (name, idle) in idle_ways() {
        let timed = || {
            let mut machine = machine(Parameters::default());
            // Dispatch from the scratch pads; the programs are position dependent.
            for (cpu, result) in [(Cpu::A, RESULT), (Cpu::B, RESULT + 4)] {
                let ticks = if cpu == Cpu::A { 100 } else { 37 };
                let program = timer_program(cpu, SCRATCH_BASE, ticks, result, &idle);
                machine.load_scratch(cpu, &program);
            }
            start(&mut machine, SCRATCH_BASE);
            machine.bar_write(Register::CpuBPc.offset(), SCRATCH_BASE);
            machine.bar_write(Register::CpuBState.offset(), 0);
            machine
        };
        let (mut parking, mut stepping) = (timed(), timed());
        for chunk in [10_000, 7_777, 1, 9_999] {
            parking.run(chunk);
            for _ in 0..chunk {
                stepping.run(1);
            }
            let (a, b) = (state(&mut parking), state(&mut stepping));
            assert_eq!((a.0, &a.1, &a.2), (b.0, &b.1, &b.2), "{name}, {chunk}");
            assert!(a.3 == b.3, "{name}: memory");
            let counts = |machine: &Machine| {
                let timed = machine.timing().expect("timed");
                [0, 1].map(|n| timed.pipelines[n].counts.clone().since(&Default::default()))
            };
            for cpu in 0..2 {
                let (a, b) = (&counts(&parking)[cpu], &counts(&stepping)[cpu]);
                let totals = |c: &crate::timing::counts::Counts| c.iter().collect::<Vec<_>>();
                assert_eq!(totals(a), totals(b), "{name}");
            }
        }
        assert!(parking.word(RESULT) > 0, "{name}: the timer came");
    }
}

/// Another CPU's event register tells that one of what was stored; on the boards beyond the
/// chip any of six CPUs may write it.
#[test]
fn every_cpu_publishes_by_the_event_registers_of_others() {
    for cpu in Cpu::EVERY {
        for (register, owner) in [(Register::EventA, Cpu::A), (Register::EventB, Cpu::B)] {
            assert_eq!(publishes(cpu, register.offset()), cpu != owner);
        }
        assert!(publishes(cpu, Register::AssistReadProducer.offset()));
        assert!(!publishes(cpu, Register::Timer.offset()));
    }
}
