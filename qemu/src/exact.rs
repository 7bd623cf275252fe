//! Classifies register accesses: some end the translation block, most do not.
//!
//! Most register accesses have no effect on the CPU that makes them, so they run without QEMU's
//! big lock and within the translated code. The exceptions control CPUs or show their internal
//! state.

use tigon2_chip::registers::{GPR_COUNT, Register, cpu_gpr};
use tigon2_model::Cpu;

/// What they are kept in.
const WORDS: usize = crate::ffi::REGISTERS / 64;

/// A bit for each exact register by its number, offset / 4.
pub const EXACT: [u64; WORDS] = exact();

const fn exact() -> [u64; WORDS] {
    let mut map = [0; WORDS];
    // Chip reset halts both CPUs.
    map = set(map, Register::MiscHostControl.offset());
    let cpus = [Cpu::A, Cpu::B];
    let mut n = 0;
    while n < cpus.len() {
        let cpu = cpus[n];
        map = set(map, Register::cpu_state(cpu).offset());
        map = set(map, Register::cpu_pc(cpu).offset());
        map = set(map, Register::spill_base(cpu).offset());
        map = set(map, Register::scratch_address(cpu).offset());
        map = set(map, Register::scratch_data(cpu).offset());
        let mut number = 0;
        while number < GPR_COUNT {
            map = set(map, cpu_gpr(cpu, number));
            number += 1;
        }
        n += 1;
    }
    map
}

const fn set(mut map: [u64; WORDS], offset: u32) -> [u64; WORDS] {
    let number = offset / 4;
    map[(number / 64) as usize] |= 1 << (number % 64);
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_exact(offset: u32) -> bool {
        EXACT[offset as usize / 256] >> (offset / 4 % 64) & 1 == 1
    }

    /// Reference 3.4: state, program counter, spill base, scratch access and general
    /// registers of each CPU; 5 and 6: what a dispatch loop uses all the time.
    #[test]
    fn what_controls_a_cpu_is_exact_and_what_firmware_polls_is_not() {
        for offset in [0x40, 0x140, 0x144, 0x150, 0x180, 0x1FC, 0x240, 0x250, 0x2FC] {
            assert!(is_exact(offset), "{offset:#x}");
        }
        for register in [
            Register::EventA,
            Register::EventB,
            Register::MailboxEventA,
            Register::Timer,
            Register::MiscLocalControl,
            Register::AssistReadProducer,
            Register::TxDescriptorProducer,
            Register::CpuAState,
        ] {
            let controls = register == Register::CpuAState;
            assert_eq!(is_exact(register.offset()), controls, "{register:?}");
        }
    }
}
