//! The reset entry and the panic handler.

use crate::program;
use core::arch::global_asm;
use tigon2_hal::Mmio;

global_asm!(
    r#"
    .section .text.start, "ax", @progbits
    .set push
    .set noreorder
    .globl _start
    .type _start, @function
_start:
    lui   $29, %hi(_stack_top - 16)
    addiu $29, $29, %lo(_stack_top - 16)
    jal   {main}
    nop
    break
1:  b     1b
    nop
    .size _start, . - _start
    .set pop
"#,
    main = sym main,
);

extern "C" fn main() {
    // SAFETY: the program's variables are in the scratch pad; it uses the bus for SRAM alone.
    let mut bus = unsafe { Mmio::new() };
    program::run(&mut bus);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
