//! Reset, the dispatch loops and the panic handler, as the chip runs them.
//!
//! `_start` is at the image's first address, where the driver points CPU A. It moves the
//! hot part to the scratch pad, clears the variables, calls [`main_a`] and goes into the
//! dispatch loop, which runs for ever. In the parallel firmware
//! CPU A has CPU B started at `_start_b` on its way, which does the same for its own pad.

#[cfg(feature = "lanes")]
use crate::lanes::{self, worker, worker::Worker};
use crate::memory::layout::LOG;
use crate::record::fatal;
use crate::record::log::log_error;
use crate::{SideA, SideB, boot};
use core::arch::global_asm;
use core::cell::UnsafeCell;
use host_interface::extension::{Extension, FatalCode};
use host_interface::log::{self, Level, RingWord};
#[cfg(feature = "lanes")]
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::log::Words;
use tigon2_hal::resources::Resources;
use tigon2_hal::{Bus, Mmio};

// What both CPUs do, as macros of the assembler: `cpu` is the pad, `table` the jump table.
//
// Registers of the loop, all of them preserved by called functions: s0 ($16) registers,
// s1 ($17) core, s2 ($18) jump table, s3 ($19) where handlers return to, s4 ($20) side A,
// s5 ($21) side B. PRI and JOFF are words because assemblers do not know them:
// pri $8, $8, $9 and joff $18, $8.
macro_rules! common {
    () => {
        r#"
    .set push
    .set noreorder

    .macro load_address register, symbol
    lui   \register, %hi(\symbol)
    addiu \register, \register, %lo(\symbol)
    .endm

    # From the image to where it was linked for; nothing if that is the same place.
    .macro copy what
    load_address $4, _scratch_\what\()_load
    load_address $5, _scratch_\what\()_start
    load_address $6, _scratch_\what\()_end
    beq   $4, $5, 2f
    nop
1:  beq   $5, $6, 2f
    nop
    lw    $2, 0($4)
    addiu $4, $4, 4
    addiu $5, $5, 4
    b     1b
    sw    $2, -4($5)
2:
    .endm

    # The state and the hot code.
    .macro fill_pad cpu
    load_address $29, _scratch_stack_top - 16
    copy \cpu
    copy \cpu\()_text
    .endm

    # Zeroed variables in SRAM.
    .macro clear_variables
    load_address $5, _bss_start
    load_address $6, _bss_end
1:  beq   $5, $6, 2f
    addiu $5, $5, 4
    b     1b
    sw    $0, -4($5)
2:
    .endm

    .macro enter_loop table
    load_address $17, _core
    lui   $16, 0xC000
    load_address $18, dispatch_table_\table
    lui   $19, %hi(dispatch_loop_\table)
    j     dispatch_loop_\table
    addiu $19, $19, %lo(dispatch_loop_\table)
    .endm

    .macro dispatch_loop table, event
    .globl dispatch_loop_\table
    .type dispatch_loop_\table, @function
dispatch_loop_\table:
    lw    $8, \event($16)
    lw    $9, 0($17)
    .word {pri}
    .word {joff}
    or    $31, $19, $0
    .size dispatch_loop_\table, . - dispatch_loop_\table

    .globl dispatch_idle_\table
    .type dispatch_idle_\table, @function
dispatch_idle_\table:
    addiu $8, $8, 1
    j     dispatch_loop_\table
    sw    $8, 4($17)
    .size dispatch_idle_\table, . - dispatch_idle_\table
    .endm

    .section .text.start, "ax", @progbits
    .globl _start
    .type _start, @function
_start:
    fill_pad a
    clear_variables
    jal   {main_a}
    nop
    load_address $20, {state_a}
"#
    };
}

#[cfg(not(feature = "parallel"))]
global_asm!(
    common!(),
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

#[cfg(feature = "parallel")]
global_asm!(
    common!(),
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

    .section .scratch_a.text, "ax", @progbits
    dispatch_loop a, {event_a}

    .section .scratch_b.text, "ax", @progbits
    dispatch_loop b, {event_b}
    .set pop
"#,
    main_a = sym main_a,
    main_b = sym main_b,
    state_a = sym STATE_A,
    state_b = sym STATE_B,
    event_a = const Register::EventA.offset(),
    event_b = const Register::EventB.offset(),
    pri = const tigon2_chip::instruction::encode_pri(8, 8, 9),
    joff = const tigon2_chip::instruction::encode_joff(18, 8),
);

// The workers, CPU C and those behind it: each begins at an entry of its own, of 8 bytes. All
// run the same code, each from its own pad. s6 ($22) is the event register of the CPU.
#[cfg(feature = "lanes")]
global_asm!(
    r#"
    .set push
    .set noreorder
    .section .text.start_w, "ax", @progbits
    .globl _start_w
    .type _start_w, @function
_start_w:
    j     start_worker
    addiu $23, $0, 2
    j     start_worker
    addiu $23, $0, 3
    j     start_worker
    addiu $23, $0, 4
    j     start_worker
    addiu $23, $0, 5
start_worker:
    fill_pad w
    or    $4, $23, $0
    jal   {main_w}
    nop
    load_address $20, {state_w}
    lui   $22, 0xC000
    ori   $22, $22, {first_event}
    addiu $23, $23, -2
    sll   $23, $23, 4
    addu  $22, $22, $23
    enter_loop w
    .size _start_w, . - _start_w

    .section .scratch_w.text, "ax", @progbits
    .globl dispatch_loop_w
    .type dispatch_loop_w, @function
dispatch_loop_w:
    lw    $8, 0($22)
    lw    $9, 0($17)
    .word {pri}
    .word {joff}
    or    $31, $19, $0
    .size dispatch_loop_w, . - dispatch_loop_w

    .globl dispatch_idle_w
    .type dispatch_idle_w, @function
dispatch_idle_w:
    addiu $8, $8, 1
    j     dispatch_loop_w
    sw    $8, 4($17)
    .size dispatch_idle_w, . - dispatch_idle_w

    .balign 8
    .globl dispatch_table_w
dispatch_table_w:
    j     dispatch_idle_w
    lw    $8, 4($17)
    .rept {send}
    j     dispatch_loop_w
    nop
    .endr
    j     {worker_send}
    move  $4, $20
    j     {worker_receive}
    move  $4, $20
    .rept {receive} - {again} - 1
    j     dispatch_loop_w
    nop
    .endr
    j     {worker_receive}
    move  $4, $20
    j     {worker_bell}
    move  $4, $20
    .rept 31 - {bell}
    j     dispatch_loop_w
    nop
    .endr
    .set pop
"#,
    main_w = sym main_w,
    state_w = sym STATE_W,
    first_event = const tigon2_chip::beyond::event(Cpu::C),
    worker_send = sym worker::worker_send::<Mmio>,
    worker_receive = sym worker::worker_receive::<Mmio>,
    worker_bell = sym worker::worker_bell::<Mmio>,
    send = const EventBit::SendDataReady.number(),
    again = const lanes::receive::AGAIN.number(),
    receive = const EventBit::ReceiveComplete.number(),
    bell = const EventBit::DoorbellB.number(),
    pri = const tigon2_chip::instruction::encode_pri(8, 8, 9),
    joff = const tigon2_chip::instruction::encode_joff(18, 8),
);

// Each is the entry behind the other.
#[cfg(feature = "lanes")]
const _: () = assert!(
    lanes::receive::AGAIN.number() == EventBit::SendDataReady.number() + 1
        && EventBit::DoorbellB.number() == EventBit::ReceiveComplete.number() + 1
);

/// Where the log ring of a CPU is described to the host.
const fn log_words(cpu: Cpu) -> Words {
    const fn at(cpu: Cpu, word: RingWord) -> u32 {
        LOG + log::ring_word(cpu as u32, word)
    }
    Words {
        address: at(cpu, RingWord::Address),
        bytes: at(cpu, RingWord::Bytes),
        producer: at(cpu, RingWord::Producer),
        consumer: at(cpu, RingWord::Consumer),
        recorded: at(cpu, RingWord::Recorded),
        lost: at(cpu, RingWord::Lost),
    }
}

/// Prepares the log: its block, which names the build, and the rings.
fn start_log() {
    unsafe extern "C" {
        /// The ELF file's note "GNU build id": 16 bytes of header, then the id.
        #[link_name = "_build_id_note"]
        static NOTE: [u32; 4 + log::BUILD_ID_BYTES / 4];
    }
    let bus = &mut { BUS };
    bus.store(LOG + log::RINGS, log::RING_COUNT as u32);
    bus.store(LOG + log::MODULES, log::MODULE_NAMES.len() as u32);
    // SAFETY: the linker script puts the note there, aligned and of this length.
    let id = unsafe { &NOTE }.iter().skip(4);
    for (address, word) in (LOG + log::BUILD_ID..).step_by(4).zip(id) {
        bus.store(address, *word);
    }
    for module in 0..log::MODULE_NAMES.len() {
        bus.store(LOG + log::level_word(module), Level::DEFAULT as u32);
    }
    // SAFETY: nothing was logged yet; the words are the block's and nobody else's.
    unsafe { tigon2_hal::log::start([log_words(Cpu::A), log_words(Cpu::B)]) };
    bus.store(Extension::LogBlock.nic_address(), LOG);
}

// Microseconds since the firmware started.
defmt::timestamp!("{=u32:us}", { tigon2_hal::timer::now(&mut { BUS }) });

struct State<T>(UnsafeCell<T>);

// SAFETY: one CPU alone uses each: its `main` has it first, then its loop lends it to one
// handler after the other, and the panic handler does not touch it.
unsafe impl<T> Sync for State<T> {}

// Each takes its parts of the chip, and leaves the other's.
#[unsafe(link_section = ".scratch_a.data")]
static STATE_A: State<SideA<Mmio>> = {
    let chip = Resources::of_chip();
    let side = SideA::new(BUS, chip.write, chip.receiver);
    State(UnsafeCell::new(side))
};

#[unsafe(link_section = ".scratch_b.data")]
static STATE_B: State<SideB<Mmio>> = {
    let chip = Resources::of_chip();
    let side = SideB::new(BUS, chip.read, chip.transmitter);
    State(UnsafeCell::new(side))
};

// SAFETY: the linker script keeps the image apart from all that `layout` and the hardware
// name.
const BUS: Mmio = unsafe { Mmio::new() };

/// Prepares the chip and CPU A's side.
extern "C" fn main_a() {
    Mmio::begin(Cpu::A, cfg!(not(feature = "parallel")));
    let block = boot::claim(&mut { BUS });
    start_log();
    // SAFETY: the only reference to it until the loop makes its own.
    let a = unsafe { &mut *STATE_A.0.get() };
    boot::run(a, block, start_b);
}

/// CPU B's side, where CPU A has it.
#[cfg(not(feature = "parallel"))]
fn start_b(_: &mut Mmio) {
    // SAFETY: as for CPU A's.
    boot::join(unsafe { &mut *STATE_B.0.get() });
}

/// Starts CPU B (hardware reference, section 3.4).
#[cfg(feature = "parallel")]
fn start_b(bus: &mut Mmio) {
    unsafe extern "C" {
        fn _start_b();
    }
    #[cfg(feature = "lanes")]
    bus.store(lanes::ENTRY, start_w());
    boot::start_cpu_b(bus, _start_b as *const () as u32);
}

/// Where workers begin.
#[cfg(feature = "lanes")]
fn start_w() -> u32 {
    unsafe extern "C" {
        fn _start_w();
    }
    _start_w as *const () as u32
}

/// The state of a worker, in the pad of each.
#[cfg(feature = "lanes")]
#[unsafe(link_section = ".scratch_w.data")]
static STATE_W: State<Worker<Mmio>> = State(UnsafeCell::new(Worker::new(BUS)));

/// Prepares a worker, CPU `number`.
#[cfg(feature = "lanes")]
extern "C" fn main_w(number: u32) {
    Mmio::begin(Cpu::B, false);
    // SAFETY: each CPU has one in its own pad, and this is the only reference to it until
    // the loop makes its own.
    unsafe { &mut *STATE_W.0.get() }.join(number);
}

/// Prepares CPU B's side.
#[cfg(feature = "parallel")]
extern "C" fn main_b() {
    Mmio::begin(Cpu::B, false);
    // SAFETY: the only reference to it until the loop makes its own.
    boot::join(unsafe { &mut *STATE_B.0.get() });
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = match info.location() {
        Some(location) => {
            log_error!("panic at {=str}:{=u32}", location.file(), location.line());
            location.line()
        }
        None => 0,
    };
    fatal::stop(&mut { BUS }, FatalCode::Panic, line);
    loop {}
}
