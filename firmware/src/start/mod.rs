//! Reset, the dispatch loops and the panic handler on the chip.
//!
//! This module has what every image shares: the assembler macros, the log and the panic handler.
//! `two` (variants for the chip) has the reset entry and the state of CPU A and CPU B. An image
//! for a board with more CPUs provides its own.

#[cfg(feature = "spine")]
pub mod spine;
#[cfg(any(feature = "uniprocessor", feature = "parallel"))]
mod two;

use crate::memory::layout::LOG;
use crate::record::fatal;
use crate::record::log::log_error;
use core::cell::UnsafeCell;
use host_interface::extension::{Extension, FatalCode};
use host_interface::log::{self, Level, RingWord};
use tigon2_chip::Cpu;
use tigon2_hal::log::Words;
use tigon2_hal::{Bus, Mmio};

/// Code of each CPU, as assembler macros: `cpu` is the pad, `table` the jump table.
///
/// Registers of the loop, all preserved by called functions: s0 ($16) registers, s1 ($17) core, s2
/// ($18) jump table, s3 ($19) return address of handlers, s4 ($20) side A, s5 ($21) side B. PRI
/// and JOFF are words because assemblers do not know them: pri $8, $8, $9 and joff $18, $8.
#[macro_export]
macro_rules! assembler_macros {
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

    .macro dispatch_loop table, event, base=$16
    .globl dispatch_loop_\table
    .type dispatch_loop_\table, @function
dispatch_loop_\table:
    lw    $8, \event(\base)
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
"#
    };
}

/// Where the host finds the log ring of a CPU.
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
pub fn start_log() {
    // SAFETY: the linker script defines it, see below.
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

/// State that one CPU alone uses.
#[derive(Debug)]
pub struct State<T>(UnsafeCell<T>);

impl<T> State<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> State<T> {
        State(UnsafeCell::new(value))
    }

    /// A pointer to the value.
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}

// SAFETY: one CPU alone uses each: `main` uses it first, then the loop lends it to one handler at
// a time, and the panic handler does not touch it.
unsafe impl<T> Sync for State<T> {}

// SAFETY: the linker script keeps the image apart from all that `layout` and the hardware
// name.
/// The chip.
pub const BUS: Mmio = unsafe { Mmio::new() };

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
