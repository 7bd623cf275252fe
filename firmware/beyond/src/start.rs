//! Reset and the dispatch loops of more than two CPUs.
//!
//! CPU A and CPU B start as in the two-CPU firmware. Each then starts the workers of its group,
//! which copy the same hot code to their own pads and enter the same loop; $22 (s6) is the CPU's
//! event register.

use crate::bus::Shared;
use crate::channel::Ordered;
use crate::group::{Group, Local};
use crate::partition::{LEAST, Partition, is_worker, side};
use core::arch::global_asm;
use core::cell::UnsafeCell;
use tigon_firmware::io::filter::MulticastList;
use tigon_firmware::memory::region::Regions;
use tigon_firmware::path::{receive, send};
use tigon_firmware::start::{BUS, State, start_log};
use tigon_firmware::{SideA, SideB, assembler_macros, boot};
use tigon2_chip::beyond;
use tigon2_chip::memory::REGISTERS_BASE;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::resources::Resources;
use tigon2_hal::{Bus, Mmio};

global_asm!(
    assembler_macros!(),
    r#"
    .section .text.start, "ax", @progbits
    .globl _start
    .type _start, @function
_start:
    fill_pad a
    clear_variables
    jal   {main_a}
    nop
    lui   $22, 0xC000
    ori   $22, $22, {event_a}
    enter_loop a
    .size _start, . - _start

    .section .text.start_b, "ax", @progbits
    .globl _start_b
    .type _start_b, @function
_start_b:
    fill_pad b
    jal   {main_b}
    nop
    lui   $22, 0xC000
    ori   $22, $22, {event_b}
    enter_loop b
    .size _start_b, . - _start_b

    # The workers, CPU C and those behind it: each begins at an entry of its own, of 8 bytes.
    .section .text.start_w, "ax", @progbits
    .globl _start_w
    .type _start_w, @function
_start_w:
    j     start_worker_a
    addiu $23, $0, 2
    j     start_worker_b
    addiu $23, $0, 3
    j     start_worker_a
    addiu $23, $0, 4
    j     start_worker_b
    addiu $23, $0, 5
    .macro start_worker group
start_worker_\group:
    fill_pad \group
    or    $4, $23, $0
    jal   {main_w}
    nop
    lui   $22, 0xC000
    ori   $22, $22, {first_event}
    addiu $23, $23, -2
    sll   $23, $23, 4
    addu  $22, $22, $23
    enter_loop \group
    .endm
    start_worker a
    start_worker b
    .size _start_w, . - _start_w

    .section .scratch_a.text, "ax", @progbits
    dispatch_loop a, 0, $22

    .section .scratch_b.text, "ax", @progbits
    dispatch_loop b, 0, $22
    .set pop
"#,
    main_a = sym main_a,
    main_b = sym main_b,
    main_w = sym main_w,
    event_a = const Register::EventA.offset(),
    event_b = const Register::EventB.offset(),
    first_event = const beyond::event(Cpu::C),
    pri = const tigon2_chip::instruction::encode_pri(8, 8, 9),
    joff = const tigon2_chip::instruction::encode_joff(18, 8),
);

const PARTITION: Partition = if cfg!(feature = "by-handler") {
    Partition::ByHandler
} else {
    Partition::ByPacket
};

/// Data in each CPU's own pad.
#[derive(Debug)]
pub struct Own<T>(UnsafeCell<T>);

// SAFETY: each CPU has its own copy, in its pad, and nothing interrupts code. It is written
// before the CPU's loop begins, or lent to one handler at a time.
unsafe impl<T> Sync for Own<T> {}

impl<T> Own<T> {
    const fn new(value: T) -> Own<T> {
        Own(UnsafeCell::new(value))
    }

    /// Borrows it.
    #[inline(always)]
    pub fn borrow(&self) -> &T {
        // SAFETY: it is only written before the loop begins, see `set`.
        unsafe { &*self.0.get() }
    }

    /// Lends it to a handler, which no other handler of this CPU interrupts.
    #[inline(always)]
    pub fn lend<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: handlers do not call each other, and lent data is not borrowed.
        work(unsafe { &mut *self.0.get() })
    }

    fn set(&self, value: T) {
        // SAFETY: the loop has not begun, so there is no reference.
        unsafe { *self.0.get() = value };
    }
}

/// Data of CPU A, and of its workers.
#[unsafe(link_section = ".scratch_a.data")]
pub static LOCAL_A: Own<Local> = Own::new(Local::NONE);
/// Data of CPU B, and of its workers.
#[unsafe(link_section = ".scratch_b.data")]
pub static LOCAL_B: Own<Local> = Own::new(Local::NONE);
/// Frames that this CPU delivers.
#[unsafe(link_section = ".scratch_a.data")]
pub static CLAIM_A: Own<receive::claim::Claim> = Own::new(receive::claim::Claim::NONE);
/// BDs whose data this CPU has fetched.
#[unsafe(link_section = ".scratch_b.data")]
pub static CLAIM_B: Own<send::claim::Claim> = Own::new(send::claim::Claim::NONE);

/// In SRAM, as all of CPU A's side.
static MULTICAST: State<MulticastList> = State::new(MulticastList::new());

/// The receive path and all that is not about frames.
pub static GROUP_A: Group<SideA<Shared<Mmio>>> = {
    let chip = Resources::of_chip();
    // SAFETY: the only reference to it, in the state that one CPU at a time is lent.
    let multicast = unsafe { &mut *MULTICAST.get() };
    Group::new(SideA::new(
        Shared(BUS),
        Ordered::new(chip.write),
        chip.receiver,
        Regions::of_sram().a,
        multicast,
    ))
};

/// The send path and everything that is fetched.
pub static GROUP_B: Group<SideB<Shared<Mmio>>> = {
    let chip = Resources::of_chip();
    Group::new(SideB::new(
        Shared(BUS),
        Ordered::new(chip.read),
        chip.transmitter,
        Regions::of_sram().b,
    ))
};

fn local(number: u32) -> Local {
    let there = { BUS }.load(REGISTERS_BASE + beyond::COUNT);
    Local::new(PARTITION, number, PARTITION.cpus(there))
}

/// Prepares the chip and CPU A's side.
extern "C" fn main_a() {
    Mmio::begin(Cpu::A, false);
    let block = boot::claim(&mut { BUS });
    start_log();
    LOCAL_A.set(local(Cpu::A as u32));
    GROUP_A.with(LOCAL_A.borrow(), |a| boot::run(a, block, start_b));
    start_workers(Cpu::A);
}

/// Starts CPU B on a board with workers; on any other board CPU A's wait times out, and it reports
/// that.
fn start_b(bus: &mut Shared<Mmio>) {
    // SAFETY: it is written above; here only its address is taken.
    unsafe extern "C" {
        fn _start_b();
    }
    if bus.load(REGISTERS_BASE + beyond::COUNT) >= LEAST {
        boot::start_cpu_b(bus, _start_b as *const () as u32);
    }
}

/// Prepares CPU B's side.
extern "C" fn main_b() {
    Mmio::begin(Cpu::B, false);
    LOCAL_B.set(local(Cpu::B as u32));
    GROUP_B.with(LOCAL_B.borrow(), boot::join);
    start_workers(Cpu::B);
}

/// Starts the workers of a side.
fn start_workers(of: Cpu) {
    // SAFETY: as above.
    unsafe extern "C" {
        fn _start_w();
    }
    let bus = &mut { BUS };
    let there = bus.load(REGISTERS_BASE + beyond::COUNT);
    let cpus = PARTITION.cpus(there);
    for cpu in Cpu::EVERY.into_iter().take(cpus as usize) {
        if is_worker(cpu) && side(cpu) as u8 == of as u8 {
            let entry = _start_w as *const () as u32 + ((cpu as u32 - Cpu::C as u32) << 3);
            bus.store(REGISTERS_BASE + beyond::pc(cpu), entry);
            bus.store(REGISTERS_BASE + beyond::state(cpu), 0);
        }
    }
}

/// Prepares a worker, CPU `number`: its events are enabled like those of its group.
extern "C" fn main_w(number: u32) {
    let local = local(number);
    if number & 1 == 0 {
        Mmio::begin(Cpu::A, false);
        LOCAL_A.set(local);
        local.answer(&mut { BUS });
        GROUP_A.with(LOCAL_A.borrow(), |_| {});
    } else {
        Mmio::begin(Cpu::B, false);
        LOCAL_B.set(local);
        local.answer(&mut { BUS });
        GROUP_B.with(LOCAL_B.borrow(), |_| {});
    }
}
