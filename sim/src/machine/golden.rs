//! Checks that the cycle model is unchanged: digests of runs, exact to the cycle and the counter.
//!
//! An optimisation of the simulator must not change its results. Both CPUs run random programs,
//! half of them in their scratch pad and half in SRAM, while DMA channels and both sides of the
//! MAC use the same port. All counters, registers and memory go into a digest that is stored here.
//! Only a change of the timing rules may change the digests.

use super::Machine;
use super::noise::Noise;
use super::tests::{A, B, K, frame, mac};
use crate::asm::*;
use crate::timing::Parameters;
use crate::timing::parameters::Arbitration;
use host_driver::DmaMemory;
use tigon2_chip::memory::{SCRATCH_BASE, block};
use tigon2_chip::{Cpu, Register};
use tigon2_model::Board;

/// Instructions of a half of a program.
const HALF: usize = 160;
/// What programs point to: their scratch pad's data, SRAM, the registers.
const POINTERS: [(u32, u32); 3] = [
    (26, SCRATCH_BASE + 0x1000),
    (27, 0x1_0000),
    (28, 0xC000_0000),
];
/// Registers that instructions compute in.
const COMPUTED: u32 = 20;
/// Where the host's memory is.
const IOVA: u64 = 0x10_0000;

impl Noise {
    fn register(&mut self) -> u32 {
        self.below(COMPUTED)
    }

    /// An instruction that never halts the CPU.
    fn work(&mut self, cpu: Cpu) -> u32 {
        let (d, s, t) = (self.register(), self.register(), self.register());
        let at = 4 * self.below(64) as i32;
        let pick = |choices: &[Register], noise: &mut Noise| {
            choices[noise.below(choices.len() as u32) as usize].offset() as i32
        };
        match self.below(24) {
            0..5 => special([0x21, 0x23, 0x24, 0x26, 0x2B][s as usize % 5], d, s, t, 0),
            5..8 => addiu(d, s, at),
            8 => pri(d, s, t),
            9 => special(0x02, d, 0, t, at as u32 & 31),
            10..13 => lw(d, at, 26),
            13..15 => sw(d, at, 26),
            15 => immediate(0x24, d, 27, at + 1),
            16..18 => lw(d, at, 27),
            18..20 => sw(d, at, 27),
            20 => immediate(0x29, d, 27, at + 2),
            21 | 22 => {
                let read = [
                    Register::Timer,
                    Register::event(cpu),
                    Register::semaphore(cpu),
                    Register::RxDescriptorProducer,
                    Register::DmaReadState,
                    Register::TxConsumer,
                ];
                lw(d, pick(&read, self), 28)
            }
            _ => {
                let written = [
                    Register::semaphore(cpu),
                    Register::timer_reference(cpu),
                    Register::MulticastHash0,
                ];
                sw(d, pick(&written, self), 28)
            }
        }
    }

    /// Half a program that ends with a jump to `other`.
    fn half(&mut self, cpu: Cpu, other: u32) -> Vec<u32> {
        let mut words = Vec::new();
        while words.len() < HALF {
            if self.below(6) == 0 {
                let opcode = [0x04, 0x05, 0x06, 0x07, 0x14, 0x15][self.below(6) as usize];
                let t = if matches!(opcode, 6 | 7) {
                    0
                } else {
                    self.register()
                };
                let ahead = 1 + self.below(5) as i32;
                words.push(immediate(opcode, t, self.register(), ahead));
            }
            words.push(self.work(cpu));
        }
        words.extend([NOP, NOP, NOP, NOP, NOP, j(other), self.work(cpu)]);
        words
    }
}

/// A card whose CPUs have begun such programs, and its host's memory.
pub(super) fn busy(parameters: Parameters, noise: &mut Noise) -> (Machine, DmaMemory) {
    let mut machine = Machine::timed(Board::default(), parameters, 1);
    machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
    machine.bar_write(Register::MiscConfig.offset(), 0x10_0055);
    mac(&mut machine);
    let memory = DmaMemory::new(0x1_0000, IOVA).expect("memory");
    machine.map(memory.clone());
    for (cpu, sram) in [(Cpu::A, A), (Cpu::B, B)] {
        let image = noise.half(cpu, SCRATCH_BASE);
        machine.load_image(sram, &bytes(&image));
        let pad = noise.half(cpu, sram);
        machine.load_scratch(cpu, &pad);
        let core = machine.cpus.core_mut(cpu);
        for (register, value) in POINTERS {
            core.set_gpr(register as usize, value);
        }
        machine.bar_write(Register::cpu_pc(cpu).offset(), SCRATCH_BASE);
        machine.bar_write(Register::cpu_state(cpu).offset(), 0);
    }
    (machine, memory)
}

/// Frames and transfers of round `n`.
pub(super) fn disturb(machine: &mut Machine, noise: &mut Noise, n: u32) {
    let mut write = |register: Register, value| machine.bar_write(register.offset(), value);
    let length = 8 + noise.below(600);
    write(Register::DmaReadHostHigh, 0);
    write(Register::DmaReadHostLow, IOVA as u32 + noise.below(0x1000));
    write(Register::DmaReadLocal, 0x2_0000 + noise.below(0x100));
    write(Register::DmaReadLength, length);
    write(Register::DmaReadState, 0x4);
    write(Register::DmaWriteHostHigh, 0);
    write(
        Register::DmaWriteHostLow,
        IOVA as u32 + 0x8000 + noise.below(0x1000),
    );
    write(Register::DmaWriteLocal, 0x1_0000 + noise.below(0x100));
    write(Register::DmaWriteLength, noise.below(1500));
    write(Register::DmaWriteState, 0x4);
    machine.send_frame(0, frame(n as u8, 60 + noise.below(1400) as usize));
    let start = K + block::PACKET_BUFFERS + 2048 * (n % 16);
    let length = 60 + noise.below(1400);
    let slot = K + block::MAC_TX_RING + 8 * (n % 256);
    let descriptor = [start, length].map(u32::to_be_bytes).concat();
    machine.load_image(slot, &descriptor);
    machine.bar_write(Register::TxProducer.offset(), start + length);
    let next = K + block::MAC_TX_RING + 8 * ((n + 1) % 256);
    machine.bar_write(Register::TxDescriptorProducer.offset(), next);
}

/// Numbers become one (FNV-1a).
struct Digest(u64);

impl Digest {
    fn add(&mut self, value: impl Into<u64>) {
        for byte in value.into().to_be_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

/// The complete observable state of a machine.
pub(super) fn digest(machine: &mut Machine, memory: &DmaMemory) -> u64 {
    let mut digest = Digest(0xCBF2_9CE4_8422_2325);
    digest.add(machine.cycle());
    for cpu in Cpu::ALL {
        let core = machine.cpus().core(cpu);
        digest.add(core.pc());
        digest.add(core.retired());
        core.gprs().iter().for_each(|value| digest.add(*value));
        core.history().for_each(|pc| digest.add(pc));
        for offset in (0x1000..0x1100).step_by(4) {
            digest.add(core.scratch_word(offset));
        }
    }
    let timed = machine.timing().expect("timed");
    for pipeline in &timed.pipelines[..2] {
        for (_, tally) in pipeline.counts.iter() {
            digest.add(tally.runs);
            digest.add(tally.instructions);
            tally.cycles.iter().for_each(|cycles| digest.add(*cycles));
        }
    }
    timed.port.grants()[..6].iter().for_each(|n| digest.add(*n));
    digest.add(timed.dma.bus_busy());
    for address in (0x1_0000..0x3_0000).step_by(4) {
        digest.add(machine.word(address));
    }
    for offset in (0..0x1_0000).step_by(4) {
        digest.add(memory.read_word(offset).expect("inside"));
    }
    let received = machine.received();
    digest.add(received.accepted);
    digest.add(received.dropped);
    while let Some(frame) = machine.take_frame() {
        digest.add(frame.at);
        frame.bytes.iter().for_each(|byte| digest.add(*byte));
    }
    digest.0
}

/// Runs a program of a seed; digests along the way become one.
fn run(parameters: Parameters, seed: u32) -> u64 {
    let mut noise = Noise(seed);
    let (mut machine, memory) = busy(parameters, &mut noise);
    let mut all = Digest(0);
    for n in 0..60 {
        disturb(&mut machine, &mut noise, n);
        machine.run(u64::from(1 + noise.below(3000)));
        if n % 10 == 9 {
            all.add(digest(&mut machine, &memory));
        }
    }
    for cpu in Cpu::ALL {
        assert_eq!(machine.fault(cpu), None, "the programs go on");
        assert!(machine.cpus().core(cpu).retired() > 5_000);
    }
    assert!(machine.received().accepted > 5);
    let bus = machine.timing().map_or(0, |timed| timed.dma.bus_busy());
    assert!(bus > 1_000, "{bus} cycles of the PCI bus");
    all.0
}

#[test]
fn a_busy_card_does_what_it_always_did() {
    let default = Parameters::default();
    let cases = [
        (default.clone(), 0x1234_5678, 0xE879_9EEF_8534_7E82),
        (default.clone(), 0x0BAD_CAFE, 0x3657_E57D_5327_8109),
        (
            Parameters {
                arb: Arbitration::RoundRobin,
                cwf: false,
                turn: 1,
                ..default.clone()
            },
            0x2468_ACE1,
            0x253B_89C1_4F63_CA9A,
        ),
        (
            Parameters {
                arb: Arbitration::CpuFirst,
                wb: 0,
                sp_ld: 0,
                load_use: 0,
                beat: 2,
                ..default
            },
            0x1357_9BDF,
            0x8307_F40A_972D_D6C6_u64,
        ),
    ];
    let digests = cases.map(|(parameters, seed, golden)| (run(parameters, seed), golden));
    let told = digests.map(|(digest, _)| format!("{digest:#018x}"));
    for (digest, golden) in digests {
        assert_eq!(digest, golden, "{told:?}");
    }
}
