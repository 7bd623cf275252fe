//! The images for the chip: handlers on one CPU or on two.
//!
//! `_start` is at the image's first address, where the driver points CPU A. It moves the hot part
//! to the scratch pad, clears the variables, calls [`main_a`] and enters the dispatch loop, which
//! never returns. In the parallel firmware CPU A starts CPU B at `_start_b`, which does the same
//! for its own pad.

use super::{BUS, State, start_log};
use crate::io::filter::MulticastList;
use crate::memory::region::Regions;
use crate::{SideA, SideB, assembler_macros, boot};
use core::arch::global_asm;
#[cfg(feature = "parallel")]
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::Mmio;
use tigon2_hal::resources::Resources;

/// Where the driver points CPU A.
macro_rules! start {
    () => {
        r#"
    .section .text.start, "ax", @progbits
    .globl _start
    .type _start, @function
_start:
    fill_pad a
    copy  a_low
    clear_variables
    jal   {main_a}
    nop
    load_address $20, {state_a}
"#
    };
}

#[cfg(not(feature = "parallel"))]
global_asm!(
    assembler_macros!(),
    start!(),
    r#"
    load_address $21, {state_b}
    enter_loop u
    .size _start, . - _start

    .section .scratch_a.text, "ax", @progbits
    dispatch_loop u, {event_a}
    .set pop
"#,
    main_a = sym main_a,
    state_a = sym STATE_A,
    state_b = sym STATE_B,
    event_a = const Register::EventA.offset(),
    pri = const tigon2_chip::instruction::encode_pri(8, 8, 9),
    joff = const tigon2_chip::instruction::encode_joff(18, 8),
);

/// CPU A's code of the host's frames, which the reset entry copies, and what takes its place.
#[cfg(all(feature = "parallel", not(receive_queues)))]
macro_rules! fill_overlay_a {
    () => {
        "    copy  a_host\n"
    };
}
#[cfg(receive_queues)]
macro_rules! fill_overlay_a {
    () => {
        ""
    };
}

/// See [`fill_overlay_a`].
#[cfg(all(feature = "parallel", not(receive_queues)))]
macro_rules! overlay_a {
    () => {
        r#"
    .macro place_a name, what
    .globl \name
    .type \name, @function
\name:
    copy  a_\what
    jr    $31
    nop
    .size \name, . - \name
    .endm

    .section .text.overlay, "ax", @progbits
    place_a place_host_code_a, host
    place_a place_system_code_a, system
"#
    };
}
#[cfg(receive_queues)]
macro_rules! overlay_a {
    () => {
        ""
    };
}

/// CPU B's hot code takes another's place, and CPU B goes on with it from its loop: nobody returns
/// to code that may have been overwritten.
#[cfg(all(feature = "parallel", feature = "eudp"))]
macro_rules! overlay {
    () => {
        r#"
    .macro place name, what, table
    .globl \name
    .type \name, @function
\name:
    copy  b_\what
    load_address $29, _scratch_stack_top - 16
    load_address $21, {state_b}
    enter_loop \table
    .size \name, . - \name
    .endm

    .section .text.overlay, "ax", @progbits
    place place_host_code, text, b
    place place_endpoint_code, endpoints, e

    .section .scratch_b.endpoints, "ax", @progbits
    dispatch_loop e, {event_b}
"#
    };
}
#[cfg(all(feature = "parallel", not(feature = "eudp")))]
macro_rules! overlay {
    () => {
        ""
    };
}

// The row of Receive Complete in CPU A's jump table leads to one of two handlers: a jump to each
// is here, and takes the place of the one that is there. Entry 0 is "nothing pending".
#[cfg(feature = "parallel")]
global_asm!(
    r#"
    .set push
    .set noreorder
    .macro lead name, handler
    .globl \name
    .type \name, @function
\name:
    lui   $4, %hi(1f)
    lw    $4, %lo(1f)($4)
    lui   $5, %hi(dispatch_table_a + {row})
    jr    $31
    sw    $4, %lo(dispatch_table_a + {row})($5)
1:  j     \handler
    nop
    .size \name, . - \name
    .endm

    .section .text.overlay, "ax", @progbits
    lead lead_to_classic, {classic}
    lead lead_to_other, {other}
    .set pop
"#,
    row = const (EventBit::ReceiveComplete.number() as u32 + 1) * 8,
    classic = sym crate::events::receive_complete::<Mmio>,
    other = sym other_receiver::<Mmio>,
);

// The row of Mailbox in CPU B's jump table, where the dispatch loop has no handler otherwise: for the
// bells of endpoints and of the other card on the bus. A jump, and in its delay slot the handler's
// side.
#[cfg(all(feature = "parallel", feature = "spine"))]
global_asm!(
    r#"
    .set push
    .set noreorder
    .section .text.overlay, "ax", @progbits
    .globl lead_to_bell
    .type lead_to_bell, @function
lead_to_bell:
    lui   $4, %hi(1f)
    lw    $5, %lo(1f)($4)
    lw    $6, %lo(1f + 4)($4)
    lui   $7, %hi(dispatch_table_b + {row})
    sw    $5, %lo(dispatch_table_b + {row})($7)
    jr    $31
    sw    $6, %lo(dispatch_table_b + {row} + 4)($7)
    .balign 8
1:  j     {bell}
    move  $4, $21
    .size lead_to_bell, . - lead_to_bell
    .set pop
"#,
    row = const (EventBit::Mailbox.number() as u32 + 1) * 8,
    bell = sym crate::events::bell::<Mmio>,
);

#[cfg(all(feature = "parallel", not(receive_queues)))]
use crate::events::receive_beside_system as other_receiver;
#[cfg(receive_queues)]
use crate::events::receive_by_queue as other_receiver;

#[cfg(feature = "parallel")]
global_asm!(
    assembler_macros!(),
    start!(),
    fill_overlay_a!(),
    r#"
    enter_loop a
    .size _start, . - _start

    .section .text.start_b, "ax", @progbits
    .globl _start_b
    .type _start_b, @function
_start_b:
    fill_pad b
    jal   {main_b}
    nop
    load_address $21, {state_b}
    enter_loop b
    .size _start_b, . - _start_b

    .section .text.overlay, "ax", @progbits
    .globl place_run_by_source
    .type place_run_by_source, @function
place_run_by_source:
    copy  a_low
    jr    $31
    nop
    .size place_run_by_source, . - place_run_by_source

    .globl place_run_ahead
    .type place_run_ahead, @function
place_run_ahead:
    copy  a_low_ahead
    jr    $31
    nop
    .size place_run_ahead, . - place_run_ahead

    .section .scratch_a.text, "ax", @progbits
    dispatch_loop a, {event_a}

    .section .scratch_b.text, "ax", @progbits
    dispatch_loop b, {event_b}
"#,
    overlay_a!(),
    overlay!(),
    ".set pop",
    main_a = sym main_a,
    main_b = sym main_b,
    state_a = sym STATE_A,
    state_b = sym STATE_B,
    event_a = const Register::EventA.offset(),
    event_b = const Register::EventB.offset(),
    pri = const tigon2_chip::instruction::encode_pri(8, 8, 9),
    joff = const tigon2_chip::instruction::encode_joff(18, 8),
);

/// In SRAM, apart from the rest of CPU A's side.
static MULTICAST: State<MulticastList> = State::new(MulticastList::new());

// Each takes its parts of the chip, and leaves the other's.
#[unsafe(link_section = ".scratch_a.data")]
static STATE_A: State<SideA<Mmio>> = {
    let chip = Resources::of_chip();
    // SAFETY: the only reference to it, in the state of the one CPU that uses it.
    let multicast = unsafe { &mut *MULTICAST.get() };
    let side = SideA::new(
        BUS,
        chip.write,
        chip.receiver,
        Regions::of_sram().a,
        multicast,
    );
    State::new(side)
};

#[unsafe(link_section = ".scratch_b.data")]
static STATE_B: State<SideB<Mmio>> = {
    let chip = Resources::of_chip();
    let side = SideB::new(BUS, chip.read, chip.transmitter, Regions::of_sram().b);
    State::new(side)
};

/// Prepares the chip and CPU A's side.
extern "C" fn main_a() {
    Mmio::begin(Cpu::A, cfg!(not(feature = "parallel")));
    let block = boot::claim(&mut { BUS });
    start_log();
    // SAFETY: the only reference to it until the loop makes its own.
    let a = unsafe { &mut *STATE_A.get() };
    boot::run(a, block, start_b);
}

/// CPU B's side, where CPU A has it.
#[cfg(not(feature = "parallel"))]
fn start_b(_: &mut Mmio) {
    // SAFETY: as for CPU A's.
    boot::join(unsafe { &mut *STATE_B.get() });
}

/// Starts CPU B (hardware reference, section 3.4).
#[cfg(feature = "parallel")]
fn start_b(bus: &mut Mmio) {
    // SAFETY: it is written in this file; here only its address is taken.
    unsafe extern "C" {
        fn _start_b();
    }
    boot::start_cpu_b(bus, _start_b as *const () as u32);
}

/// Prepares CPU B's side.
#[cfg(feature = "parallel")]
extern "C" fn main_b() {
    Mmio::begin(Cpu::B, false);
    // SAFETY: the only reference to it until the loop makes its own.
    boot::join(unsafe { &mut *STATE_B.get() });
}
