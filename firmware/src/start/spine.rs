//! The way into an extension's text and out of it, and what it imports.
//!
//! `sides::spine::enter` has the picture. The saved registers, and the effects of the run in work,
//! are in CPU A's pad: extensions run there alone, one at a time.

use super::{BUS, State};
use crate::memory::shared::{SPINE_OVERDUE, SPINE_RUNNING};
use crate::sides::spine::effects::{Effects, Status};
use crate::sides::spine::enter::{CUT, Ended};
use core::arch::global_asm;
use spine_image::interface::{self, Number};
use tigon2_hal::timer;

/// s0 to s8, ra, sp; and the effects of the run in work.
#[unsafe(link_section = ".scratch_a.data")]
static SAVED: State<[u32; 12]> = State::new([0; 12]);
/// Index of the effects.
const EFFECTS: usize = 11;

global_asm!(
    r#"
    .set push
    .set noreorder
    .section .scratch_a.text, "ax", @progbits
    .globl spine_enter
    .type spine_enter, @function
spine_enter:
    lui   $8, %hi({saved})
    addiu $8, $8, %lo({saved})
    sw    $16, 0($8)
    sw    $17, 4($8)
    sw    $18, 8($8)
    sw    $19, 12($8)
    sw    $20, 16($8)
    sw    $21, 20($8)
    sw    $22, 24($8)
    sw    $23, 28($8)
    sw    $30, 32($8)
    sw    $31, 36($8)
    sw    $29, 40($8)
    sw    $7, 44($8)
    move  $9, $4
    move  $4, $5
    jalr  $9
    move  $5, $6
    # A verdict has no bit 31.
    sll   $2, $2, 1
    srl   $2, $2, 1
spine_leave:
    lui   $8, %hi({saved})
    addiu $8, $8, %lo({saved})
    lw    $16, 0($8)
    lw    $17, 4($8)
    lw    $18, 8($8)
    lw    $19, 12($8)
    lw    $20, 16($8)
    lw    $21, 20($8)
    lw    $22, 24($8)
    lw    $23, 28($8)
    lw    $30, 32($8)
    lw    $31, 36($8)
    lw    $29, 40($8)
    jr    $31
    sw    $0, 44($8)
    .size spine_enter, . - spine_enter

    .globl spine_abort
    .type spine_abort, @function
spine_abort:
    j     spine_leave
    lui   $2, 0x8000
    .size spine_abort, . - spine_abort

    # The same from an import, with the reason.
    .globl spine_end
    .type spine_end, @function
spine_end:
    j     spine_leave
    move  $2, $4
    .size spine_end, . - spine_end
    .set pop
"#,
    saved = sym SAVED,
);

unsafe extern "C" {
    safe fn spine_end(reason: u32) -> !;
}

/// Ends the run if its time is over, and hands out its effects.
#[inline(always)]
fn effects() -> &'static mut Effects {
    let overdue = SPINE_OVERDUE.get(&mut { BUS });
    if overdue != 0 && overdue == SPINE_RUNNING.get(&mut { BUS }) {
        spine_end(CUT | Ended::Overrun as u32);
    }
    // SAFETY: `spine_enter` has put it there and clears it; imports are called by the
    // extension's text alone, so the caller of `spine_enter` has lent it for the run. No import
    // calls another.
    unsafe { &mut *((*SAVED.get())[EFFECTS] as *mut Effects) }
}

extern "C" fn add_handler(entry: u32, number: u32, argument: u32) -> Status {
    effects().install(entry, number, argument)
}

extern "C" fn panic() -> ! {
    spine_end(CUT | Ended::Panicked as u32)
}

#[unsafe(link_section = ".scratch_a.low")]
extern "C" fn now() -> u32 {
    let _ = effects();
    timer::now(&mut { BUS })
}

#[unsafe(link_section = ".scratch_a.low")]
extern "C" fn patch(index: u32, value: u32) -> Status {
    effects().patch(index, value)
}

#[unsafe(link_section = ".scratch_a.low")]
extern "C" fn transmit() -> Status {
    effects().transmit()
}

#[unsafe(link_section = ".scratch_a.low")]
extern "C" fn count(counter: u32) -> Status {
    effects().count(counter)
}

/// Addresses of functions.
#[repr(transparent)]
pub struct Table([*const (); interface::COUNT]);

// SAFETY: constants.
unsafe impl Sync for Table {}

/// What the host's linker finds the interfaces by, in the order of their numbers.
#[unsafe(no_mangle)]
pub static SPINE_IMPORTS: Table = {
    let mut table = [panic as *const (); interface::COUNT];
    table[Number::AddHandler as usize] = add_handler as *const ();
    table[Number::Panic as usize] = panic as *const ();
    table[Number::Now as usize] = now as *const ();
    table[Number::Patch as usize] = patch as *const ();
    table[Number::Transmit as usize] = transmit as *const ();
    table[Number::Count as usize] = count as *const ();
    Table(table)
};
