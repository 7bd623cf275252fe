//! Tests where and how a CPU continues after a halt, on the whole machine.

use tigon2_chip::{Cpu, Register};
use tigon2_model::Board;
use tigon2_sim::Machine;

const PROGRAM: u32 = 0x4000;
const OTHER: u32 = 0x5000;
/// First word of gencom.
const RESULT: u32 = 0x200;

/// Reference 3.4: execution continues at `R[144]` with a cleared pipeline (C): a branch whose
/// delay slot was next when the host halted the CPU is forgotten.
#[test]
fn a_start_clears_the_pipeline() {
    let branch_to_itself = [0x1000_FFFF, 0]; // beq zero, zero, itself; nop
    let straight = [
        0x2402_0001, // addiu v0, zero, 1
        0x2442_0001, // addiu v0, v0, 1
        0x2442_0001, // addiu v0, v0, 1
        0xAC02_0200, // sw v0, 0x200(zero)
        0x0000_000D, // break
    ];
    let bytes =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_be_bytes()).collect() };
    let mut stood_in_a_slot = false;
    for cycles in 1..5 {
        let mut machine = Machine::new(Board::default());
        machine.bar_write(Register::MiscHostControl.offset(), 0x2200_0022);
        machine.load_image(PROGRAM, &bytes(&branch_to_itself));
        machine.load_image(OTHER, &bytes(&straight));
        machine.bar_write(Register::CpuAPc.offset(), PROGRAM);
        machine.bar_write(Register::CpuAState.offset(), 0);
        machine.run(cycles);
        machine.bar_write(Register::CpuAState.offset(), 0x1_0000);
        stood_in_a_slot |= machine.bar_read(Register::CpuAPc.offset()) == PROGRAM + 4;
        machine.bar_write(Register::CpuAPc.offset(), OTHER);
        machine.bar_write(Register::CpuAState.offset(), 0);
        machine.run(100);
        assert_eq!(machine.word(RESULT), 3, "halted after {cycles} cycles");
        assert!(!machine.cpus().core(Cpu::A).running());
    }
    assert!(stood_in_a_slot);
}
