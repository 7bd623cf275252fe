//! Reference numbers of the cycle model: any change of a parameter or rule changes them.
//!
//! Small programs and the engines alone produce them, without firmware, so they depend only on the
//! board file and the model. `sim/golden/model.txt` has them for each profile, and a test compares
//! every digit.

use super::WorkloadError;
use super::bound::{self, Demand};
use crate::asm::{A0, A1, BREAK, NOP, T1, V0, ZERO, addiu, beq, bytes, j, lui, lw, sw};
use crate::machine::Machine;
use crate::timing::Parameters;
use crate::timing::counts::Activity;
use crate::transport::{HostTiming, SimTransport};
use host_driver::{DmaMemory, NicError, Transport, Vector};
use std::time::Duration;
use tigon2_chip::bits::DmaState;
use tigon2_chip::memory::{FIRMWARE_BASE, SCRATCH_BASE};
use tigon2_chip::{Cpu, Register};
use tigon2_model::Board;

const DATA: i32 = 0x200;
/// Where the host's memory is.
const HOST: u64 = 0x1_0000_0000;
/// Nanoseconds of a measurement of the engines.
const LOOK: u64 = 1_000_000;
/// Cycles in which a program must have come to its end.
const PATIENCE: u64 = 100_000;
/// Cycles for which two CPUs contend.
const CONTENTION: u64 = 10_000;
/// Frames that are sent to a card that gives none of them away.
const FRAMES: usize = 600;
/// A million parts, for shares.
const PARTS: f64 = 1e6;

/// A number of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What was done.
    pub name: &'static str,
    /// Cycles, unless the name says something else.
    pub value: u64,
}

/// The table of a board under a profile.
///
/// # Errors
/// [`WorkloadError`] if the engines move nothing.
pub fn rows(board: &Board, parameters: &Parameters) -> Result<Vec<Row>, WorkloadError> {
    let bench = Bench { board, parameters };
    let mut rows = bench.programs();
    rows.extend(bench.host()?);
    rows.extend(bench.contention());
    rows.extend(bench.engines()?);
    rows.push(bench.direct_transfer()?);
    rows.extend(bench.full_card());
    Ok(rows)
}

/// What the numbers are taken of.
struct Bench<'a> {
    board: &'a Board,
    parameters: &'a Parameters,
}

/// Loads and stores of SRAM for ever.
fn busy_loop() -> Vec<u32> {
    vec![
        sw(V0, DATA, ZERO),
        sw(V0, DATA + 8, ZERO),
        sw(V0, DATA + 16, ZERO),
        lw(V0, DATA, ZERO),
        lw(V0, DATA + 8, ZERO),
        j(SCRATCH_BASE),
        NOP,
    ]
}

impl Bench<'_> {
    fn machine(&self) -> Machine {
        let mut machine = Machine::timed(self.board.clone(), self.parameters.clone(), 1);
        machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
        machine.bar_write(Register::MiscConfig.offset(), 0x10_0055);
        machine
    }

    /// Runs a program of CPU A from its scratch pad up to a `break`.
    fn program(&self, name: &'static str, program: &[u32]) -> Row {
        let mut machine = self.machine();
        let setup = [lui(T1, 0xC000), lui(A0, 0x00C0), addiu(A1, ZERO, DATA)];
        let words = [&setup[..], program, &[BREAK]].concat();
        machine.load_scratch(Cpu::A, &words);
        start(&mut machine, Cpu::A, SCRATCH_BASE);
        finish(name, &mut machine)
    }

    /// What instructions cost alone.
    fn programs(&self) -> Vec<Row> {
        let timer = Register::Timer.offset() as i32;
        let hash = Register::MulticastHash0.offset() as i32;
        let loads = [lw(V0, 0x100, A0), addiu(V0, V0, 1)].repeat(10);
        let branches = [beq(ZERO, ZERO, 2), NOP, NOP].repeat(10);
        let mut rows = vec![
            self.program("10 no-operations", &[NOP; 10]),
            self.program("10 scratch loads, used", &loads),
            self.program("10 scratch stores", &[sw(V0, 0x100, A0); 10]),
            self.program("10 register loads", &[lw(V0, timer, T1); 10]),
            self.program("10 register stores", &[sw(ZERO, hash, T1); 10]),
            self.program("10 SRAM loads", &[lw(V0, 0, A1); 10]),
            self.program("10 SRAM stores", &[sw(V0, 0, A1); 10]),
            self.program("10 branches", &branches),
        ];
        let mut machine = self.machine();
        machine.load_image(FIRMWARE_BASE, &bytes(&[&[NOP; 100][..], &[BREAK]].concat()));
        start(&mut machine, Cpu::A, FIRMWARE_BASE);
        rows.push(finish("100 instructions from SRAM", &mut machine));
        rows
    }

    /// Both CPUs at the SRAM port, with and without the engines beside them.
    fn contention(&self) -> Vec<Row> {
        let mut machine = self.machine();
        let count = |machine: &Machine| Cpu::ALL.map(|cpu| machine.cpus().core(cpu).retired());
        begin_contention(&mut machine);
        machine.run(CONTENTION);
        let [a, b] = count(&machine);
        let mut rows = vec![
            row("CPU A, SRAM loop, instructions", a),
            row("CPU B beside it, instructions", b),
        ];
        let mut machine = self.machine();
        begin_contention(&mut machine);
        let demand = Demand {
            datagram: 1472,
            fragments: 2,
            return_bds: 1,
            one_at_a_time: false,
        };
        if bound::on(&mut machine, demand, LOOK).is_ok() {
            let [a, b] = count(&machine);
            rows.push(row("CPU A beside the engines, instructions", a));
            rows.push(row("CPU B beside the engines, instructions", b));
        }
        rows
    }

    /// The engines alone.
    fn engines(&self) -> Result<Vec<Row>, WorkloadError> {
        let mut rows = Vec::new();
        for (names, datagram, fragments, one_at_a_time) in [
            (ENGINES[0], 18, 2, false),
            (ENGINES[1], 400, 1, false),
            (ENGINES[2], 1472, 2, true),
        ] {
            let demand = Demand {
                datagram,
                fragments,
                return_bds: 1,
                one_at_a_time,
            };
            let mut machine = self.machine();
            let bound = bound::on(&mut machine, demand, LOOK)?;
            rows.push(row(names[0], bound.pairs_per_s.round() as u64));
            rows.push(row(names[1], (bound.sram * PARTS).round() as u64));
            rows.push(row(names[2], (bound.pci * PARTS).round() as u64));
        }
        Ok(rows)
    }

    /// A word to the host by the channel's registers (reference 6.1).
    fn direct_transfer(&self) -> Result<Row, WorkloadError> {
        let mut machine = self.machine();
        let memory = DmaMemory::new(64, HOST).map_err(NicError::from)?;
        machine.map(memory.clone());
        machine.load_image(DATA as u32, &[0xFF; 8]);
        let state = DmaState::new().with_start(true).with_no_swap(true);
        for (register, value) in [
            (Register::DmaWriteHostHigh, (HOST >> 32) as u32),
            (Register::DmaWriteHostLow, HOST as u32),
            (Register::DmaWriteLocal, DATA as u32),
            (Register::DmaWriteLength, 8),
            (Register::DmaWriteState, state.into_bits()),
        ] {
            machine.register_write(Cpu::A, register, value);
        }
        let start = machine.cycle();
        while memory.read_word(0).map_err(NicError::from)? == 0
            && machine.cycle() - start < PATIENCE
        {
            machine.run(1);
        }
        Ok(row("direct DMA write", machine.cycle() - start))
    }

    /// The host: an interrupt, an access, its service routine, a frame to send.
    fn host(&self) -> Result<Vec<Row>, WorkloadError> {
        let parameters = self.parameters;
        let mut transport = SimTransport::new(self.machine());
        transport.set_timing(HostTiming::of(parameters));
        let machine = transport.machine();
        let cycle = || machine.lock().cycle();
        let start = cycle();
        machine
            .lock()
            .register_write(Cpu::A, Register::MiscLocalControl, 4);
        let taken = transport.wait(Vector::INTERRUPT, Duration::from_millis(1));
        taken.map_err(NicError::from)?;
        let interrupt = cycle() - start;
        let read = transport.read(Register::Timer.offset());
        read.map_err(NicError::from)?;
        Ok(vec![
            row("host: interrupt", interrupt),
            row("host: register read", cycle() - start - interrupt),
            row("host: service, no frame, ns", parameters.service_time(0)),
            row("host: service, 3 frames, ns", parameters.service_time(3)),
            row("host: a frame to send, ns", parameters.gen_ns),
        ])
    }

    /// Frames for a card whose frames are never taken.
    fn full_card(&self) -> Vec<Row> {
        let mut machine = self.machine();
        bound::switch_on(&mut machine);
        for _ in 0..FRAMES {
            machine.send_frame(0, vec![0; 1514]);
        }
        machine.run(PATIENCE * 10);
        let received = machine.received();
        vec![
            row("full card: frames taken", received.accepted),
            row("full card: frames held", machine.pending_frames() as u64),
        ]
    }
}

const ENGINES: [[&str; 3]; 3] = [
    [
        "18 B, 2 BDs: pairs/s",
        "18 B, 2 BDs: SRAM port, millionths",
        "18 B, 2 BDs: PCI bus, millionths",
    ],
    [
        "400 B, 1 BD: pairs/s",
        "400 B, 1 BD: SRAM port, millionths",
        "400 B, 1 BD: PCI bus, millionths",
    ],
    [
        "1472 B, 2 BDs, one channel: pairs/s",
        "1472 B, 2 BDs, one channel: SRAM port, millionths",
        "1472 B, 2 BDs, one channel: PCI bus, millionths",
    ],
];

const fn row(name: &'static str, value: u64) -> Row {
    Row { name, value }
}

fn begin_contention(machine: &mut Machine) {
    for cpu in Cpu::ALL {
        machine.load_scratch(cpu, &busy_loop());
        start(machine, cpu, SCRATCH_BASE);
    }
}

fn start(machine: &mut Machine, cpu: Cpu, pc: u32) {
    let (counter, state) = match cpu {
        Cpu::A => (Register::CpuAPc, Register::CpuAState),
        _ => (Register::CpuBPc, Register::CpuBState),
    };
    machine.bar_write(counter.offset(), pc);
    machine.bar_write(state.offset(), 0);
}

/// The cycles of CPU A's instructions up to its `break`.
fn finish(name: &'static str, machine: &mut Machine) -> Row {
    let limit = machine.cycle() + PATIENCE;
    machine.run_until(limit, |machine| machine.fault(Cpu::A).is_some());
    let cycles = machine
        .timing()
        .map(|timed| timed.pipelines[0].counts.tally(Activity::Boot).total());
    row(name, cycles.unwrap_or(0))
}

/// The table of all profiles of a board file, as it is checked in: a line a number, a
/// column a profile.
///
/// # Errors
/// [`WorkloadError`] if the board file is wrong or the engines move nothing.
pub fn golden_text(board_file: &str) -> Result<String, WorkloadError> {
    let board = Board::from_toml(board_file)?;
    let names = Parameters::profiles(board_file)?;
    let mut columns = Vec::new();
    for name in &names {
        columns.push(rows(&board, &Parameters::from_toml(board_file, name)?)?);
    }
    let mut text = line("", names.iter().map(String::as_str));
    for number in 0..columns.first().map_or(0, Vec::len) {
        let values: Vec<String> = columns
            .iter()
            .filter_map(|column| column.get(number))
            .map(|row| row.value.to_string())
            .collect();
        let name = columns[0][number].name;
        text += &line(name, values.iter().map(String::as_str));
    }
    Ok(text)
}

fn line<'a>(name: &str, values: impl Iterator<Item = &'a str>) -> String {
    let values: String = values.map(|value| format!("{value:>16}")).collect();
    format!("{name:<50}{values}\n")
}
