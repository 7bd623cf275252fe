//! The boot memory: what a reset starts, and how boot code reports a failure.
//!
//! Hardware reference 3.4, bits 0 and 4 of R[140] (I); docs/hardware.md, "Boot".

use crate::testing::Bench;
use crate::{BootCodeTooLarge, Cpu, Effect};
use tigon2_chip::Register;
use tigon2_chip::bits::CpuState;
use tigon2_chip::memory::SCRATCH_BASE;

const STARTED: Effect = Effect::CpuStart {
    cpu: Cpu::A,
    pc: SCRATCH_BASE,
};

fn with_boot_code() -> Bench {
    let mut bench = Bench::default();
    let code = [0x11, 0x22, 0x33, 0x44, 0x55];
    bench.card.set_boot_code(&code).expect("it fits");
    bench
}

/// Reference 3.4, bit 0 (I): reset runs what the boot memory holds, on CPU A alone.
#[test]
fn a_reset_starts_the_boot_code() {
    let mut bench = with_boot_code();
    bench.with(|card, env| card.power_on(env));
    assert_eq!(bench.effects(), [STARTED]);
    assert_eq!(bench.cpus.scratch[0][..2], [0x1122_3344, 0x5500_0000]);
    assert!(bench.card.inspect().halted(Cpu::B));
    // The chip reset of R[40] does the same again, whatever has become of the scratch pad.
    bench.cpus.scratch[0][0] = 0;
    bench.bar_write(0x40, 0x0800_0008);
    assert_eq!(bench.effects(), [Effect::CpuHalt { cpu: Cpu::A }, STARTED]);
    assert_eq!(bench.cpus.scratch[0][0], 0x1122_3344);
}

/// A card without boot memory.
#[test]
fn without_boot_code_a_reset_leaves_both_cpus_halted() {
    let mut bench = Bench::default();
    bench.with(|card, env| card.power_on(env));
    bench.bar_write(0x40, 0x0800_0008);
    assert_eq!(bench.effects(), []);
    assert!(bench.card.inspect().halted(Cpu::A));
}

/// A driver halts the CPU and loads its own firmware (19, start).
#[test]
fn a_host_takes_the_card_from_its_boot_code() {
    let mut bench = with_boot_code();
    bench.bar_write(0x40, 0x0800_0008);
    bench.bar_write(0x40, 0x2200_0022);
    let state = bench.bar_read(0x140);
    bench.bar_write(0x140, state | 0x1_0000);
    bench.bar_write(0x144, 0x4000);
    bench.effects();
    bench.bar_write(0x140, 0);
    let start = Effect::CpuStart {
        cpu: Cpu::A,
        pc: 0x4000,
    };
    assert_eq!(bench.effects(), [start]);
}

/// Reference 3.4, bit 4 (I): only the CPU itself can report it; the host can only read it.
#[test]
fn the_boot_code_says_that_the_prom_failed() {
    let mut bench = with_boot_code();
    bench.bar_write(0x40, 0x0800_0008);
    bench.bar_write(0x40, 0x2200_0022);
    let failed = CpuState::new().with_rom_failed(true).into_bits();
    bench.bar_write(0x140, failed);
    assert_eq!(bench.bar_read(0x140) & failed, 0, "not the host's to say");
    bench.write(Register::CpuAState, failed | 0x1_0000);
    assert_eq!(bench.bar_read(0x140), failed | 0x1_0000);
    // The host halts it once more and starts its own firmware, which clears the bit.
    bench.bar_write(0x140, failed | 0x1_0000);
    assert_eq!(bench.bar_read(0x140), failed | 0x1_0000);
    bench.bar_write(0x140, 0);
    assert_eq!(bench.bar_read(0x140), 0);
}

#[test]
fn code_that_does_not_fit_is_refused() {
    let mut bench = Bench::default();
    let refused = bench.card.set_boot_code(&[0; 0x4001]);
    let (bytes, room) = (0x4001, 0x4000);
    assert_eq!(refused, Err(BootCodeTooLarge { bytes, room }));
}
