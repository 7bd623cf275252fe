//! The events that the firmware handles, each declared once.
//!
//! From the one table below come the entry of each handler, its place in the scratch pad of
//! its CPU, the order of the counts that the host can read, the dispatch on a host, the jump
//! tables of CPU A, of CPU B and of the uniprocessor firmware, and the table in
//! `docs/firmware.md`.
//!
//! Hardware reference, section 5; for the CPU of each: paper, section 4.2, and the sides'
//! own modules. A handler runs to its end; nothing interrupts it. It leaves its event set
//! when it could not do all (no descriptor or no buffer is free): it will be called again
//! after what has a higher priority.
//!
//! A row names the parts of its CPU's side that the handler may touch, and the entry borrows
//! exactly those: what belongs to the other CPU, or to another path, cannot be named.
//! A handler in [`sides`](crate::sides) joins paths and gets `all` of its side.
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

use crate::{SideA, SideB, control, path, sides};
use host_interface::extension;
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::events::Dispatch;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The event's bit; the highest goes first.
    pub event: EventBit,
    /// The CPU that runs it in the parallel firmware.
    pub cpu: Cpu,
    /// Where its runs are counted.
    pub count: extension::Handler,
    /// The name of the entry, as gdb and the reports show it.
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

/// The entry of one handler, in the scratch pad of its CPU; with `rarely` in SRAM.
macro_rules! entry {
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

macro_rules! handlers {
    ($( $(#[doc = $doc:literal])+ $name:ident: $event:ident on $side:ident $($rarely:ident)?, $count:ident => $function:path [$($part:ident),+], )+) => {
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

        $( entry!($side $($rarely)? $(#[doc = $doc])+ $name $count $function [$($part),+]); )+

        /// Runs CPU A's handler of an event; `false` if it has none.
        pub fn run_a<B: Dispatch>(side: &mut SideA<B>, event: EventBit) -> bool {
            $( only!(SideA $side if event == EventBit::$event {
                $name(side);
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
            false
        }

        // The jump tables of the chip: entry 0 is "nothing pending", entry n + 1 belongs to
        // bit n. Each is a jump whose delay slot hands the handler its side, $20 or $21; an
        // entry without handler goes back to the loop, as entry 0 does. A row is the bit and,
        // from bit 8 on, the CPU. Alone, one timer is for the deadlines of both sides.
        #[cfg(all(target_arch = "mips", any(feature = "uniprocessor", feature = "parallel")))]
        core::arch::global_asm!(
            ".macro dispatch_row cpu, row, target",
            ".set mine, of_a",
            ".if \\row >> 8",
            ".set mine, of_b",
            ".endif",
            ".if (\\row & 255) <= previous",
            ".set mine, 0",
            ".endif",
            ".if mine",
            ".rept (\\row & 255) - previous - 1",
            "j dispatch_loop_\\cpu",
            "nop",
            ".endr",
            ".set both, 0",
            ".if of_a + of_b == 2",
            ".if (\\row & 255) == {timer_bit}",
            ".set both, 1",
            ".endif",
            ".endif",
            ".if both",
            "j dispatch_timers",
            "move $5, $21",
            ".else",
            "j \\target",
            ".if \\row >> 8",
            "move $4, $21",
            ".else",
            "move $4, $20",
            ".endif",
            ".endif",
            ".set previous, \\row & 255",
            ".endif",
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
            ".rept 31 - previous",
            "j dispatch_loop_\\cpu",
            "nop",
            ".endr",
            ".set pop",
            ".endm",
            tables!(),
            timer_bit = const EventBit::Timer.number(),
            $( $count = const EventBit::$event.number() | (cpu!($side) as u32) << 8, )+
            $( $name = sym $name::<tigon2_hal::Mmio>, )+
            both_timers = sym timer_alone::<tigon2_hal::Mmio>,
        );
    };
}

// What the table of both sides has for the timer. In the parallel firmware there is no such
// table, and nothing may be there that calls handlers of both CPUs.
#[cfg(all(target_arch = "mips", feature = "uniprocessor"))]
use both_timers as timer_alone;
#[cfg(all(target_arch = "mips", feature = "parallel"))]
use timer as timer_alone;

/// Which tables an image has, and for which sides.
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

handlers! {
    /// Takes the next send BD: queues its data's DMA and, with the last of a frame, the MAC descriptor.
    send_data_ready: SendDataReady on SideB, SendDataReady => path::send::data_ready[send, io],
    /// Fetches send BDs from the host's ring.
    send_bd_ready: SendBdReady on SideB, SendBdReady => path::send::bd_ready[send, io],
    /// Takes the next received frame: queues its data's DMA and its return BD.
    receive_complete: ReceiveComplete on SideA, ReceiveComplete => path::receive::frame::complete[receive, queues, io],
    /// CPU A has rung: producers of the host moved, or a command concerns CPU B.
    doorbell_b: DoorbellB on SideB, DoorbellB => sides::doorbell::doorbell_b[all],
    /// Fetches jumbo receive BDs from the host's ring.
    jumbo_bd_ready: JumboReceiveBdReady on SideB rarely, JumboReceiveBdReady => path::buffer_fetch::jumbo_bd_ready[buffer_fetch, io],
    /// Fetches standard receive BDs from the host's ring.
    receive_bd_ready: StandardReceiveBdReady on SideB, StandardReceiveBdReady => path::buffer_fetch::standard_bd_ready[buffer_fetch, io],
    /// Writes the send consumer index for hosts that do not read it, or interrupts for it.
    write_send_consumer: WriteSendConsumer on SideA, WriteSendConsumer => path::send_index::write[send_index, io],
    /// Fetches mini receive BDs from the host's ring.
    mini_bd_ready: MiniReceiveBdReady on SideB, MiniReceiveBdReady => path::buffer_fetch::mini_bd_ready[buffer_fetch, io],
    /// Looks at finished transfers to the host and raises the interrupt.
    dma_write_complete: DmaWriteComplete on SideA, DmaWriteComplete => sides::completion::write_complete[all],
    /// Looks at finished transfers from the host: BDs arrived, data of frames read.
    dma_read_complete: DmaReadComplete on SideB, DmaReadComplete => sides::completion::read_complete[all],
    /// The write channel reports an error: what it was for is dropped.
    dma_write_attention: DmaWriteAttention on SideA rarely, DmaWriteAttention => sides::recovery::write_attention[all],
    /// The read channel reports an error: what it was for is dropped.
    dma_read_attention: DmaReadAttention on SideB rarely, DmaReadAttention => sides::recovery::read_attention[all],
    /// The host moved a producer, queued commands or ended its interrupt service.
    mailbox: Mailbox on SideA, Mailbox => sides::mailbox::handle[all],
    /// Takes the send consumer index for told: the driver reads it, or CPU A tells it.
    update_send_consumer: UpdateSendConsumer on SideB, UpdateSendConsumer => path::send::update_consumer[send, io],
    /// Tells the host the receive return producer index.
    update_receive_return_producer: UpdateReceiveReturnProducer on SideA, UpdateReceiveReturnProducer => path::receive::index::update[receive, queues, io],
    /// The MAC's receiver wants attention: link or buffer.
    mac_rx_attention: MacRxAttention on SideA rarely, MacRxAttention => sides::fatal::receive_attention[all],
    /// The MAC's transmitter wants attention.
    mac_tx_attention: MacTxAttention on SideA rarely, MacTxAttention => control::link::transmit_attention[io],
    /// CPU B has rung: BDs for a frame that waits, word for the host, or an answer.
    doorbell_a: DoorbellA on SideA, DoorbellA => sides::doorbell::doorbell_a[all],
    /// A deadline: coalescing of the receive path, or the housekeeping of each millisecond.
    timer: Timer on SideA, Timer => sides::timer::handle[all],
    /// A deadline: coalescing of the send path, a full transmit buffer, or CPU B's counters.
    send_timer: Timer on SideB, SendTimer => sides::timer::handle_send[all],
}

const _: () = {
    let mut index = 1;
    while index < HANDLERS.len() {
        let (before, this) = (HANDLERS[index - 1].event, HANDLERS[index].event);
        let both = before.number() == this.number()
            && HANDLERS[index - 1].cpu as u8 != HANDLERS[index].cpu as u8;
        assert!(before.number() < this.number() || both);
        index += 1;
    }
    // Who counts for the host goes by the interface's list.
    let mut index = 0;
    while index < HANDLERS.len() {
        let on_b = matches!(HANDLERS[index].cpu, Cpu::B);
        assert!(HANDLERS[index].count.runs_on_b() == on_b);
        index += 1;
    }
    assert!(HANDLERS.len() == extension::HANDLER_COUNT);
};

/// The events of a side, as a mask.
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

/// Timer, where one CPU has both sides.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
pub extern "C" fn both_timers<B: Dispatch>(a: &mut SideA<B>, b: &mut SideB<B>) {
    timer(a);
    send_timer(b);
}

/// The most urgent event of a CPU, if there is any.
fn pending<B: Dispatch>(bus: &mut B) -> Option<EventBit> {
    let cpu = bus.core(|core| core.cpu());
    let events = bus.read(Register::event(cpu));
    let mask = bus.core(|core| core.mask);
    let number = tigon2_hal::events::priority(events, mask);
    number.checked_sub(1).and_then(EventBit::from_number)
}

/// Runs the most urgent handler of CPU A; `false` if there is none. The chip's own loop does
/// the same with its two instructions, see `start`.
pub fn dispatch_a<B: Dispatch>(a: &mut SideA<B>) -> bool {
    pending(&mut a.io.bus).is_some_and(|event| run_a(a, event))
}

/// Runs the most urgent handler of CPU B; `false` if there is none.
pub fn dispatch_b<B: Dispatch>(b: &mut SideB<B>) -> bool {
    pending(&mut b.io.bus).is_some_and(|event| run_b(b, event))
}

/// Runs the most urgent handler of either side, both on one CPU; `false` if there is none.
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
