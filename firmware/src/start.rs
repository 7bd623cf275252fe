//! Reset, the dispatch loop and the panic handler, as the chip runs them.
//!
//! `_start` is at the image's first address, where the driver points CPU A. It moves the
//! hot part to the scratch pad, clears the variables and calls [`main`], which comes back
//! with the state of all handlers; the dispatch loop then runs for ever.

use crate::{Firmware, boot, fatal};
use core::arch::global_asm;
use core::cell::UnsafeCell;
use host_interface::extension::{Extension, FatalCode};
use tigon2_hal::Mmio;
use tigon2_hal::log::Words;

// Registers of the loop, all of them preserved by called functions: s0 ($16) registers,
// s1 ($17) state, s2 ($18) jump table, s3 ($19) where handlers return to. PRI and JOFF
// are words because assemblers do not know them: pri $8, $8, $9 and joff $18, $8.
global_asm!(
    r#"
    .section .text.start, "ax", @progbits
    .set push
    .set noreorder
    .globl _start
    .type _start, @function
_start:
    lui   $29, %hi(_scratch_a_stack_top - 16)
    addiu $29, $29, %lo(_scratch_a_stack_top - 16)
    # The hot part, from the image to the scratch pad.
    lui   $4, %hi(_scratch_a_load)
    addiu $4, $4, %lo(_scratch_a_load)
    lui   $5, %hi(_scratch_a_start)
    addiu $5, $5, %lo(_scratch_a_start)
    lui   $6, %hi(_scratch_a_end)
    addiu $6, $6, %lo(_scratch_a_end)
1:  beq   $5, $6, 2f
    nop
    lw    $2, 0($4)
    addiu $4, $4, 4
    addiu $5, $5, 4
    b     1b
    sw    $2, -4($5)
    # Zeroed variables: those in the scratch pad, those in SRAM.
2:  lui   $5, %hi(_scratch_a_bss_start)
    addiu $5, $5, %lo(_scratch_a_bss_start)
    lui   $6, %hi(_scratch_a_bss_end)
    addiu $6, $6, %lo(_scratch_a_bss_end)
3:  beq   $5, $6, 4f
    addiu $5, $5, 4
    b     3b
    sw    $0, -4($5)
4:  lui   $5, %hi(_bss_start)
    addiu $5, $5, %lo(_bss_start)
    lui   $6, %hi(_bss_end)
    addiu $6, $6, %lo(_bss_end)
5:  beq   $5, $6, 6f
    addiu $5, $5, 4
    b     5b
    sw    $0, -4($5)
6:  jal   {main}
    nop
    # Into the dispatch loop.
    or    $17, $2, $0
    lui   $16, 0xC000
    lui   $18, %hi(dispatch_table)
    addiu $18, $18, %lo(dispatch_table)
    lui   $19, %hi(dispatch_loop)
    j     dispatch_loop
    addiu $19, $19, %lo(dispatch_loop)
    .size _start, . - _start

    .section .scratch_a.text, "ax", @progbits
    .globl dispatch_loop
    .type dispatch_loop, @function
dispatch_loop:
    lw    $8, {event}($16)
    lw    $9, 0($17)
    .word {pri}
    .word {joff}
    or    $31, $19, $0
    .size dispatch_loop, . - dispatch_loop

    .globl dispatch_idle
    .type dispatch_idle, @function
dispatch_idle:
    addiu $8, $8, 1
    j     dispatch_loop
    sw    $8, 4($17)
    .size dispatch_idle, . - dispatch_idle
    .set pop
"#,
    main = sym main,
    event = const tigon2_chip::Register::EventA.offset(),
    pri = const tigon2_chip::instruction::encode_pri(8, 8, 9),
    joff = const tigon2_chip::instruction::encode_joff(18, 8),
);

/// Where the log ring is described to the host.
const LOG_WORDS: Words = Words {
    address: Extension::LogAddress.nic_address(),
    bytes: Extension::LogBytes.nic_address(),
    producer: Extension::LogProducer.nic_address(),
    consumer: Extension::LogConsumer.nic_address(),
    lost: Extension::LogLost.nic_address(),
};

// Microseconds since the firmware started.
defmt::timestamp!("{=u32:us}", { tigon2_hal::timer::now(&mut { BUS }) });

struct State(UnsafeCell<Firmware<Mmio>>);

// SAFETY: CPU A alone uses it: `main` has it first, then the loop lends it to one handler
// after the other, and the panic handler does not touch it.
unsafe impl Sync for State {}

#[unsafe(link_section = ".scratch_a.data")]
static STATE: State = State(UnsafeCell::new(Firmware::new(BUS)));

// SAFETY: the linker script keeps the image apart from all that `layout` and the hardware
// name.
const BUS: Mmio = unsafe { Mmio::new() };

/// Prepares the chip and returns the state for the loop.
extern "C" fn main() -> &'static mut Firmware<Mmio> {
    let block = boot::claim(&mut { BUS });
    // SAFETY: nothing was logged yet; the words are the extension's and nobody else's.
    unsafe { tigon2_hal::log::start(LOG_WORDS) };
    // SAFETY: the only reference ever made to it; the loop passes this one on.
    let firmware = unsafe { &mut *STATE.0.get() };
    boot::run(firmware, block);
    firmware
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = match info.location() {
        Some(location) => {
            defmt::error!("panic at {=str}:{=u32}", location.file(), location.line());
            location.line()
        }
        None => 0,
    };
    fatal::stop(&mut { BUS }, FatalCode::Panic, line);
    loop {}
}
