//! The entries of the handlers, and the tables by which the chip finds them.
//!
//! The rows are in [`host_interface::handlers`], each handler declared once. Here they generate
//! the entry of each handler, its place in the scratch pad of its CPU, the dispatch on a host, the
//! jump tables of CPU A, of CPU B and of the uniprocessor firmware, and the table in
//! `docs/firmware.md`.
//!
//! Hardware reference, section 5. Section 4.2 of the paper and the sides' own modules give the CPU
//! of each event. A handler runs to completion; nothing interrupts it. A handler that could not
//! finish, because no descriptor or no buffer is free, leaves its event set: the dispatch loop
//! calls it again after the events of higher priority.
//!
//! A row names the parts of its CPU's side that the handler may touch, and the entry borrows
//! exactly those. A handler therefore cannot name state of the other CPU or of another path. A
//! handler in [`sides`] joins paths and gets `all` of its side.
//!
//! ```compile_fail,E0609
//! use tigon2_hal::events::Dispatch;
//! use tigon_firmware::SideA;
//!
//! fn of_cpu_a<B: Dispatch>(a: &mut SideA<B>) {
//!     let _ = &a.io.read_ring; // the read channel is CPU B's
//! }
//! ```
//!
//! ```compile_fail,E0609
//! use tigon2_hal::events::Dispatch;
//! use tigon_firmware::SideB;
//!
//! fn of_cpu_b<B: Dispatch>(b: &mut SideB<B>) {
//!     let _ = &b.receive; // received frames are CPU A's
//! }
//! ```
//!
//! ```compile_fail,E0609
//! use tigon2_hal::events::Dispatch;
//! use tigon_firmware::io::IoA;
//!
//! fn of_the_receive_path<B: Dispatch>(io: &mut IoA<B>) {
//!     let _ = &io.link; // the link is not among what a path works with
//! }
//! ```
//!
//! ```compile_fail,E0616
//! use tigon_firmware::path::receive::Receive;
//!
//! fn of_another_path(receive: &mut Receive) {
//!     let _ = &receive.rings; // a path's state is its own
//! }
//! ```
//!
//! ```compile_fail,E0308
//! use tigon2_hal::events::Dispatch;
//! use tigon_firmware::{SideB, events};
//!
//! fn on_cpu_b<B: Dispatch>(b: &mut SideB<B>) {
//!     events::receive_complete(b); // a handler of CPU A
//! }
//! ```
//!
//! ```
//! use tigon2_hal::events::Dispatch;
//! use tigon_firmware::{SideB, events};
//!
//! fn on_cpu_b<B: Dispatch>(b: &mut SideB<B>) {
//!     events::send_data_ready(b);
//! }
//! ```

use crate::io::loadable;
use crate::memory::layout::SPINE;
use crate::{SideA, SideB, control, path, sides};
use host_interface::extension;
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::events::Dispatch;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The event's bit; the highest bit has the highest priority.
    pub event: EventBit,
    /// The CPU that runs it in the parallel firmware.
    pub cpu: Cpu,
    /// The counter of its runs.
    pub count: extension::Handler,
    /// The name of the entry, as gdb and the reports show it.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
}

/// A line of the table whose handler comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    /// The event's bit, one of software's.
    pub event: EventBit,
    /// The CPU that runs it in the parallel firmware.
    pub cpu: Cpu,
    /// The row of the host's block, see [`host_interface::loadable`].
    pub row: u32,
    /// The name of the entry.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
}

/// The CPU with a side.
macro_rules! cpu {
    (SideA) => {
        Cpu::A
    };
    (SideB) => {
        Cpu::B
    };
}

/// Expands to what follows if the first two are the same side.
macro_rules! only {
    (SideA SideA $($rest:tt)*) => { $($rest)* };
    (SideB SideB $($rest:tt)*) => { $($rest)* };
    ($one:ident $other:ident $($rest:tt)*) => {};
}

/// Calls a handler with the parts of its side that its row names.
macro_rules! call {
    ($side:ident $function:path [all]) => {
        $function($side)
    };
    ($side:ident $function:path [$($part:ident),+]) => {
        $function($(&mut $side.$part),+)
    };
}

/// The entry of one handler, in the scratch pad of its CPU, or in SRAM with `rarely`. With `overlaid`
/// other code takes its place while extensions are loaded or endpoints are open; `beside` is part of
/// what takes it with endpoints, and its event comes only then.
macro_rules! entry {
    (SideA overlaid $($rest:tt)+) => {
        overlaid!($($rest)+);
    };
    (SideA beside $($rest:tt)+) => {
        beside!($($rest)+);
    };
    ($side:ident rarely $(#[$doc:meta])+ $name:ident $count:ident $function:path [$($part:ident),+]) => {
        entry!(@ $side ".text.rarely" $(#[$doc])+ $name $count $function [$($part),+]);
    };
    (SideA $(#[$doc:meta])+ $name:ident $count:ident $function:path [$($part:ident),+]) => {
        entry!(@ SideA ".scratch_a.text" $(#[$doc])+ $name $count $function [$($part),+]);
    };
    (SideB $(#[$doc:meta])+ $name:ident $count:ident $function:path [$($part:ident),+]) => {
        entry!(@ SideB ".scratch_b.text" $(#[$doc])+ $name $count $function [$($part),+]);
    };
    (@ $side:ident $section:literal $(#[$doc:meta])+ $name:ident $count:ident $function:path [$($part:ident),+]) => {
        $(#[$doc])+
        #[cfg_attr(target_arch = "mips", unsafe(link_section = $section))]
        #[inline(never)]
        pub extern "C" fn $name<B: Dispatch>(side: &mut $side<B>) {
            let count = &mut side.counts[extension::Handler::$count as usize];
            *count = count.wrapping_add(1);
            call!(side $function [$($part),+]);
        }
    };
}

#[cfg(any(feature = "spine", feature = "eudp"))]
macro_rules! overlaid {
    ($($rest:tt)+) => {
        entry!(@ SideA ".scratch_a.host" $($rest)+);
    };
}
#[cfg(not(any(feature = "spine", feature = "eudp")))]
macro_rules! overlaid {
    ($($rest:tt)+) => {
        entry!(@ SideA ".scratch_a.text" $($rest)+);
    };
}

#[cfg(feature = "eudp")]
macro_rules! beside {
    ($($rest:tt)+) => {
        entry!(@ SideA ".scratch_a.system" $($rest)+);
    };
}
#[cfg(not(feature = "eudp"))]
macro_rules! beside {
    ($($rest:tt)+) => {
        entry!(@ SideA ".text.rarely" $($rest)+);
    };
}

macro_rules! handlers {
    ($( $(#[doc = $doc:literal])+ $name:ident: $event:ident on $side:ident $($where:ident)?, $count:ident = $number:literal => $function:path [$($part:ident),+], )+
      later:
      $( $(#[doc = $later_doc:literal])+ $later:ident: $later_event:ident on $later_side:ident, $row:literal, )+) => {
        /// All handlers, lowest priority first.
        pub const HANDLERS: &[Handler] = &[
            $( Handler {
                event: EventBit::$event,
                cpu: cpu!($side),
                count: extension::Handler::$count,
                name: stringify!($name),
                summary: concat!($($doc),+).trim_ascii(),
            }, )+
        ];

        /// The events whose handlers come later, in firmware that has
        /// [room](loadable::HAS_ROOM) for them; lowest priority first.
        pub const LATER: &[Later] = &[
            $( Later {
                event: EventBit::$later_event,
                cpu: cpu!($later_side),
                row: $row,
                name: stringify!($later),
                summary: concat!($($later_doc),+).trim_ascii(),
            }, )+
        ];

        $( entry!($side $($where)? $(#[doc = $doc])+ $name $count $function [$($part),+]); )+

        $(
            $(#[doc = $later_doc])+
            #[cfg_attr(target_arch = "mips", unsafe(link_section = ".text.later"))]
            #[inline(never)]
            pub extern "C" fn $later<B: Dispatch>(side: &mut $later_side<B>) {
                // What the host has loaded is extensions.
                if SPINE != 0 {
                    sides::spine::message::turn(&mut side.spine, &mut side.io);
                } else {
                    loadable::run(&mut side.io.bus, $row);
                }
            }
        )+

        /// Runs CPU A's handler of an event; `false` if it has none.
        pub fn run_a<B: Dispatch>(side: &mut SideA<B>, event: EventBit) -> bool {
            $( only!(SideA $side if event == EventBit::$event {
                $name(side);
                return true;
            }); )+
            $( only!(SideA $later_side if event == EventBit::$later_event {
                $later(side);
                return true;
            }); )+
            false
        }

        /// Runs CPU B's handler of an event; `false` if it has none.
        pub fn run_b<B: Dispatch>(side: &mut SideB<B>, event: EventBit) -> bool {
            $( only!(SideB $side if event == EventBit::$event {
                $name(side);
                return true;
            }); )+
            $( only!(SideB $later_side if event == EventBit::$later_event {
                $later(side);
                return true;
            }); )+
            false
        }

        // The jump tables of the chip: entry 0 is "nothing pending", entry n + 1 belongs to
        // bit n. Each is a jump whose delay slot hands the handler its side, $20 or $21; an
        // entry without handler goes back to the loop, as entry 0 does. A row is the bit and,
        // from bit 8 on, the CPU. Alone, one timer is for the deadlines of both sides. What
        // comes later is where no handler is, if there is room for it.
        #[cfg(all(target_arch = "mips", any(feature = "uniprocessor", feature = "parallel")))]
        core::arch::global_asm!(
            include_str!("events/rows.s"),
            ".macro dispatch_between cpu, next",
            ".set between, previous + 1",
            ".rept \\next - previous - 1",
            ".set filled, 0",
            ".if {has_room}",
            $( concat!(
                "dispatch_later \\cpu, {", stringify!($later_event), "}, {", stringify!($later), "}",
            ), )+
            ".endif",
            ".if filled == 0",
            "j dispatch_loop_\\cpu",
            "nop",
            ".endif",
            ".set between, between + 1",
            ".endr",
            ".endm",
            ".macro dispatch_table cpu",
            ".set push",
            ".set noreorder",
            ".balign 8",
            ".globl dispatch_table_\\cpu",
            "dispatch_table_\\cpu:",
            "j dispatch_idle_\\cpu",
            "lw $8, 4($17)",
            ".set previous, -1",
            $( concat!(
                "dispatch_row \\cpu, {", stringify!($count), "}, {", stringify!($name), "}",
            ), )+
            "dispatch_between \\cpu, 32",
            ".set pop",
            ".endm",
            tables!(),
            timer_bit = const EventBit::Timer.number(),
            $( $count = const EventBit::$event.number() | (cpu!($side) as u32) << 8, )+
            $( $name = sym $name::<tigon2_hal::Mmio>, )+
            has_room = const (loadable::HAS_ROOM || SPINE != 0) as u32,
            $( $later_event = const EventBit::$later_event.number() | (cpu!($later_side) as u32) << 8, )+
            $( $later = sym $later::<tigon2_hal::Mmio>, )+
            both_timers = sym timer_alone::<tigon2_hal::Mmio>,
        );
    };
}

// The timer's entry in the table of both sides. The parallel firmware has no such table, and must
// not contain code that calls handlers of both CPUs.
#[cfg(all(target_arch = "mips", feature = "uniprocessor"))]
use both_timers as timer_alone;
#[cfg(all(target_arch = "mips", feature = "parallel"))]
use timer as timer_alone;

/// The tables of an image, and their sides.
#[cfg(all(target_arch = "mips", feature = "uniprocessor"))]
macro_rules! tables {
    () => {
        r#"
        .set of_a, 1
        .set of_b, 1
        .section .scratch_a.text, "ax", @progbits
        dispatch_table u
        .set push
        .set noreorder
dispatch_timers:
        j {both_timers}
        move $4, $20
        .set pop
        "#
    };
}
#[cfg(all(target_arch = "mips", feature = "parallel"))]
macro_rules! tables {
    () => {
        r#"
        .set of_a, 1
        .set of_b, 0
        .section .scratch_a.text, "ax", @progbits
        dispatch_table a
        .set of_a, 0
        .set of_b, 1
        .section .scratch_b.text, "ax", @progbits
        dispatch_table b
        # Not here: {both_timers}
        "#
    };
}

pub mod endpoints;

host_interface::handlers!(handlers! {
    later:
    /// What the host has loaded, behind the frames that have arrived: with SPINE, messages for
    /// extensions.
    loaded: Loaded on SideA, 0,
    /// What the host has loaded, in front of all else.
    loaded_urgent: LoadedUrgent on SideA, 1,
});

const _: () = {
    let mut index = 1;
    while index < HANDLERS.len() {
        let (before, this) = (HANDLERS[index - 1].event, HANDLERS[index].event);
        let both = before.number() == this.number()
            && HANDLERS[index - 1].cpu as u8 != HANDLERS[index].cpu as u8;
        assert!(before.number() < this.number() || both);
        index += 1;
    }
    let mut index = 0;
    while index < LATER.len() {
        let later = LATER[index];
        assert!(later.row as usize == index && !later.event.is_hardware());
        assert!(loadable::EVENTS[index] as u8 == later.event as u8);
        index += 1;
    }
};

/// The events of a side, as a mask. For constants alone: at run time it would keep the table and
/// its texts in the image.
pub const fn handled(side: Cpu) -> u32 {
    let mut mask = 0;
    let mut index = 0;
    while index < HANDLERS.len() {
        if HANDLERS[index].cpu as u8 == side as u8 {
            mask |= HANDLERS[index].event.mask();
        }
        index += 1;
    }
    mask
}

/// The timer handler where one CPU has both sides.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
pub extern "C" fn both_timers<B: Dispatch>(a: &mut SideA<B>, b: &mut SideB<B>) {
    timer(a);
    send_timer(b);
}

/// Receive Complete while queues are open: CPU A's jump table leads here then, past what classic
/// mode needs.
#[cfg(all(target_arch = "mips", receive_queues))]
pub extern "C" fn receive_by_queue<B: Dispatch>(a: &mut SideA<B>) {
    a.count_run(extension::Handler::ReceiveComplete);
    path::receive::queues::complete(&mut a.receive, &mut a.queues, &mut a.io);
}

/// Receive Complete while extensions are loaded or endpoints are open: CPU A's jump table leads
/// here then.
#[cfg(all(target_arch = "mips", any(feature = "spine", feature = "eudp")))]
#[unsafe(link_section = ".scratch_a.system")]
pub extern "C" fn receive_beside_system<B: Dispatch>(a: &mut SideA<B>) {
    a.count_run(extension::Handler::ReceiveComplete);
    sides::eudp::events::complete_beside(&mut a.receive, &mut a.spine, &mut a.eudp, &mut a.io);
}

/// Mailbox, on CPU B while endpoints of SPINE are open, or the card grants rooms to another one:
/// there are messages, or rooms are filled.
#[cfg(all(target_arch = "mips", feature = "spine"))]
#[unsafe(link_section = ".scratch_b.text")]
pub extern "C" fn bell<B: Dispatch>(b: &mut SideB<B>) {
    sides::spine::watch::bell(&mut b.spine, &mut b.send, &mut b.io);
}

/// The highest-priority pending event of a CPU, if any.
fn pending<B: Dispatch>(bus: &mut B) -> Option<EventBit> {
    let cpu = bus.core(|core| core.cpu());
    let events = bus.read(Register::event(cpu));
    let mask = bus.core(|core| core.mask);
    let number = tigon2_hal::events::priority(events, mask);
    number.checked_sub(1).and_then(EventBit::from_number)
}

/// Runs the highest-priority handler of CPU A; `false` if no event is pending. The chip's own loop
/// does the same with its two instructions, see `start`.
pub fn dispatch_a<B: Dispatch>(a: &mut SideA<B>) -> bool {
    pending(&mut a.io.bus).is_some_and(|event| run_a(a, event))
}

/// Runs the highest-priority handler of CPU B; `false` if no event is pending.
pub fn dispatch_b<B: Dispatch>(b: &mut SideB<B>) -> bool {
    pending(&mut b.io.bus).is_some_and(|event| run_b(b, event))
}

/// Runs the highest-priority handler of either side, both on one CPU; `false` if no event is
/// pending.
pub fn dispatch_both<B: Dispatch>(a: &mut SideA<B>, b: &mut SideB<B>) -> bool {
    match pending(&mut a.io.bus) {
        Some(EventBit::Timer) => {
            both_timers(a, b);
            true
        }
        Some(event) => run_a(a, event) || run_b(b, event),
        None => false,
    }
}
