//! Tests random instructions: whatever firmware does, the engine does not panic, hang or lose
//! time, and a second run gives the same result.

use super::Machine;
use crate::asm::bytes;
use tigon2_chip::{Cpu, Register};
use tigon2_model::Board;

/// Where the programs are.
const CODE: u32 = 0x4000;
/// Words of each program.
const WORDS: u32 = 0x1000;

/// Numbers that look random (xorshift32); the state is never 0.
pub(super) struct Noise(pub(super) u32);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    pub(super) fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    /// An instruction: mostly one that exists, often one that touches a register of the
    /// chip through general register 28, as firmware does.
    fn instruction(&mut self) -> u32 {
        const SPECIAL: [u32; 14] = [
            0x00, 0x02, 0x03, 0x04, 0x07, 0x0A, 0x0B, 0x21, 0x23, 0x24, 0x25, 0x26, 0x2A, 0x2B,
        ];
        const MEMORY: [u32; 8] = [0x20, 0x21, 0x23, 0x24, 0x25, 0x28, 0x29, 0x2B];
        const IMMEDIATE: [u32; 7] = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F];
        let (random, registers) = (self.next(), self.next() & 0x03FF_F800);
        let pick = |choices: &[u32]| choices[random as usize % choices.len()];
        match self.below(16) {
            0..4 => registers | pick(&SPECIAL) | if random & 0x100 == 0 { 0 } else { 0x40 },
            4..7 => pick(&IMMEDIATE) << 26 | registers & 0x001F_0000 | random & 0xFFFF,
            7..9 => {
                // A word near the start of SRAM: gencom, mailboxes, descriptors.
                pick(&MEMORY) << 26 | registers & 0x001F_0000 | random & 0x7FFC
            }
            9..14 => {
                let opcode = if random & 0x400 == 0 { 0x23 } else { 0x2B };
                opcode << 26 | 28 << 21 | registers & 0x001F_0000 | random & 0x3FC
            }
            14 => (0x04 | random & 3) << 26 | registers & 0x03E0_0000 | random & 0x1F,
            _ => self.next(),
        }
    }
}

/// Runs noise on both CPUs for `rounds` of 300 cycles each, with a host that writes
/// anywhere, frames, and new starts after faults. Returns a digest of the outcome.
fn run(seed: u32, rounds: u32) -> (u64, u64, u32) {
    let mut noise = Noise(seed);
    let mut machine = Machine::new(Board::default());
    let program: Vec<u32> = (0..WORDS).map(|_| noise.instruction()).collect();
    machine.load_image(CODE, &bytes(&program));
    let mut retired = 0;
    let mut digest = 0u32;
    for _ in 0..rounds {
        for cpu in Cpu::ALL {
            let state = Register::cpu_state(cpu).offset();
            machine.bar_write(state, 0x1_0000);
            machine.bar_write(
                Register::cpu_pc(cpu).offset(),
                CODE + 4 * noise.below(WORDS),
            );
            machine.cpus.core_mut(cpu).set_gpr(28, 0xC000_0000);
            machine.bar_write(state, 0);
        }
        let offset = noise.below(0x1000) & !3;
        let value = noise.next();
        machine.bar_write(offset, value);
        digest = digest.rotate_left(5) ^ machine.bar_read(noise.below(0x1000) & !3);
        let frame = vec![noise.next() as u8; noise.below(1600) as usize];
        machine.send_frame(0, frame);
        let before = machine.cycle();
        machine.run(300);
        assert_eq!(machine.cycle(), before + 300, "seed {seed}");
        while let Some(frame) = machine.take_frame() {
            digest = digest.rotate_left(3) ^ frame.bytes.len() as u32;
        }
        retired = Cpu::ALL
            .iter()
            .map(|cpu| machine.cpus().core(*cpu).retired())
            .sum();
    }
    (machine.now(), retired, digest)
}

#[test]
fn random_programs_neither_panic_nor_hang() {
    let mut retired = 0;
    for seed in 1..=800 {
        retired += run(0x9E37_79B9u32.wrapping_mul(seed), 100).1;
    }
    assert!(retired > 500_000, "the noise was executed: {retired}");
}

#[test]
fn random_programs_do_the_same_again() {
    for seed in [3, 77, 0xDEAD_BEEF] {
        assert_eq!(run(seed, 40), run(seed, 40), "seed {seed}");
    }
}
