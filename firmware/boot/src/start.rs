//! The reset entry and the panic handler of the boot code.

use crate::run;
use boot_slots::BoardId;
use core::arch::global_asm;
use tigon2_chip::Register;
use tigon2_chip::bits::CpuState;
use tigon2_chip::memory::REGISTERS_BASE;
use tigon2_hal::{Bus, Mmio};

global_asm!(
    r#"
    .section .text.start, "ax", @progbits
    .set push
    .set noreorder
    .globl _start
    .type _start, @function
_start:
    lui   $29, %hi(_boot_stack_top - 16)
    addiu $29, $29, %lo(_boot_stack_top - 16)
    jal   {main}
    nop
    beq   $2, $0, 1f
    nop
    jr    $2
    nop
1:  b     1b
    nop
    .size _start, . - _start
    .set pop
"#,
    main = sym main,
);

// SAFETY: the boot code has no variables outside of its stack in the scratch pad.
const BUS: Mmio = unsafe { Mmio::new() };

/// The address to jump to, or 0.
extern "C" fn main() -> u32 {
    let mut bus = BUS;
    // The copy of PCI configuration space begins with device and vendor (9, C).
    let ids = bus.load(REGISTERS_BASE);
    let board = BoardId {
        vendor: ids as u16,
        device: (ids >> 16) as u16,
    };
    run(&mut bus, board).unwrap_or(0)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    let failed = CpuState::new().with_halt(true).with_rom_failed(true);
    { BUS }.write(Register::CpuAState, failed.into_bits());
    loop {}
}
