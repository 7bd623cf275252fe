//! The event tables of both groups.
//!
//! The handlers are the two-CPU firmware's, and so are the [rows](host_interface::handlers); each
//! runs behind the lock of its side. A group has one table; each CPU's mask selects its events.

use crate::bus::Shared;
use crate::start::{CLAIM_A, CLAIM_B, GROUP_A, GROUP_B, LOCAL_A, LOCAL_B};
use core::arch::global_asm;
use tigon_firmware::path::send::claim;
use tigon_firmware::{SideA, SideB, events, start::BUS};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::Mmio;
use tigon2_hal::events::Dispatch;

type A = SideA<Shared<Mmio>>;
type B = SideB<Shared<Mmio>>;

/// A table: its rows from the lowest priority to the highest, each with its entry. The entry
/// receives the number of its row.
macro_rules! table {
    (
        $handlers:ident of $side:ident, $data:literal, $text:literal, $table:literal;
        $( $name:ident: $event:ident => $entry:ident [$handler:path], )+
    ) => {
        /// The handlers of the rows.
        #[unsafe(link_section = $data)]
        static $handlers: [extern "C" fn(&mut $side); Row::$side] = [ $( $handler, )+ ];

        global_asm!(
            concat!(".section ", $text, ", \"ax\", @progbits"),
            ".set push",
            ".set noreorder",
            ".balign 8",
            concat!(".globl dispatch_table_", $table),
            concat!("dispatch_table_", $table, ":"),
            concat!("j dispatch_idle_", $table),
            "lw $8, 4($17)",
            ".set previous, -1",
            ".set row, 0",
            $( concat!(
                ".rept {", stringify!($name), "} - previous - 1\n",
                "j dispatch_loop_", $table, "\n",
                "nop\n",
                ".endr\n",
                "j {", stringify!($event), "}\n",
                "addiu $4, $0, row\n",
                ".set previous, {", stringify!($name), "}\n",
                ".set row, row + 1",
            ), )+
            ".rept 31 - previous",
            concat!("j dispatch_loop_", $table),
            "nop",
            ".endr",
            ".set pop",
            $( $name = const EventBit::$event.number(), )+
            $( $event = sym $entry, )+
        );
    };
}

/// How many rows each table has.
struct Row;

impl Row {
    const A: usize = rows_of(Cpu::A);
    const B: usize = rows_of(Cpu::B);
}

/// The rows of a side in the two-CPU firmware's table.
const fn rows_of(side: Cpu) -> usize {
    let (mut rows, mut index) = (0, 0);
    while index < events::HANDLERS.len() {
        if events::HANDLERS[index].cpu as u8 == side as u8 {
            rows += 1;
        }
        index += 1;
    }
    rows
}

/// Sorts the rows by their side, and makes a table of each. Some handlers are entered in a way of
/// their own here; all others run as they are, behind the lock of their side.
macro_rules! tables {
    ([$($a:tt)*] [$($b:tt)*]) => {
        table! { HANDLERS_A of A, ".scratch_a.data", ".scratch_a.text", "a"; $($a)* }
        table! { HANDLERS_B of B, ".scratch_b.data", ".scratch_b.text", "b"; $($b)* }
    };
    ([$($a:tt)*] [$($b:tt)*] receive_complete $event:ident SideA, $($rest:tt)*) => {
        tables! { [$($a)* receive_complete: $event => receive [events::receive_complete],] [$($b)*] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] dma_write_complete $event:ident SideA, $($rest:tt)*) => {
        tables! { [$($a)* dma_write_complete: $event => run_a [write_complete],] [$($b)*] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] dma_write_attention $event:ident SideA, $($rest:tt)*) => {
        tables! { [$($a)* dma_write_attention: $event => attention_a [events::dma_write_attention],] [$($b)*] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] doorbell_a $event:ident SideA, $($rest:tt)*) => {
        tables! { [$($a)* doorbell_a: $event => bell_a [events::doorbell_a],] [$($b)*] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] $name:ident $event:ident SideA, $($rest:tt)*) => {
        tables! { [$($a)* $name: $event => run_a [events::$name],] [$($b)*] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] send_data_ready $event:ident SideB, $($rest:tt)*) => {
        tables! { [$($a)*] [$($b)* send_data_ready: $event => send [events::send_data_ready],] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] dma_read_complete $event:ident SideB, $($rest:tt)*) => {
        tables! { [$($a)*] [$($b)* dma_read_complete: $event => run_b [read_complete],] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] dma_read_attention $event:ident SideB, $($rest:tt)*) => {
        tables! { [$($a)*] [$($b)* dma_read_attention: $event => attention_b [events::dma_read_attention],] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] doorbell_b $event:ident SideB, $($rest:tt)*) => {
        tables! { [$($a)*] [$($b)* doorbell_b: $event => bell_b [events::doorbell_b],] $($rest)* }
    };
    ([$($a:tt)*] [$($b:tt)*] $name:ident $event:ident SideB, $($rest:tt)*) => {
        tables! { [$($a)*] [$($b)* $name: $event => run_b [events::$name],] $($rest)* }
    };
}

/// What the tables need of the [rows](host_interface::handlers).
macro_rules! sorted {
    ($( $(#[doc = $doc:literal])+ $name:ident: $event:ident on $side:ident $($where:ident)?, $count:ident = $number:literal => $function:path [$($part:ident),+], )+) => {
        tables! { [] [] $( $name $event $side, )+ }
    };
}

host_interface::handlers!(sorted! {});

/// DMA Write Complete: there may be descriptors for waiting frames.
#[unsafe(link_section = ".scratch_a.text")]
extern "C" fn write_complete(a: &mut A) {
    events::dma_write_complete(a);
    a.io.bus.set(EventBit::ReceiveComplete);
}

/// DMA Read Complete: likewise for BDs.
#[unsafe(link_section = ".scratch_b.text")]
extern "C" fn read_complete(b: &mut B) {
    events::dma_read_complete(b);
    claim::go_on(&b.send, &mut b.io);
}

/// A handler of side A.
#[unsafe(link_section = ".scratch_a.text")]
#[inline(never)]
extern "C" fn run_a(row: usize) {
    if let Some(handler) = HANDLERS_A.get(row) {
        GROUP_A.with(LOCAL_A.borrow(), |a| handler(a));
    }
}

/// A handler of side B.
#[unsafe(link_section = ".scratch_b.text")]
#[inline(never)]
extern "C" fn run_b(row: usize) {
    if let Some(handler) = HANDLERS_B.get(row) {
        GROUP_B.with(LOCAL_B.borrow(), |b| handler(b));
    }
}

/// The doorbell of CPU A, or that of a worker, which renews its mask.
#[unsafe(link_section = ".scratch_a.text")]
extern "C" fn bell_a(row: usize) {
    let local = LOCAL_A.borrow();
    if !local.is_worker() {
        return run_a(row);
    }
    local.answer(&mut { BUS });
    GROUP_A.with(local, |_| {});
}

/// Likewise of CPU B.
#[unsafe(link_section = ".scratch_b.text")]
extern "C" fn bell_b(row: usize) {
    let local = LOCAL_B.borrow();
    if !local.is_worker() {
        return run_b(row);
    }
    local.answer(&mut { BUS });
    GROUP_B.with(local, |_| {});
}

/// Recovery, which inspects all descriptors.
extern "C" fn attention_a(_: usize) {
    GROUP_A.with_whole(LOCAL_A.borrow(), |a| events::dma_write_attention(a));
}

/// Likewise.
extern "C" fn attention_b(_: usize) {
    GROUP_B.with_whole(LOCAL_B.borrow(), |b| events::dma_read_attention(b));
}

/// Receive Complete.
#[unsafe(link_section = ".scratch_a.text")]
extern "C" fn receive(_: usize) {
    CLAIM_A.lend(|claim| GROUP_A.receive(LOCAL_A.borrow(), &mut { BUS }, claim));
}

/// Send Data Ready.
#[unsafe(link_section = ".scratch_b.text")]
extern "C" fn send(_: usize) {
    CLAIM_B.lend(|claim| GROUP_B.send(LOCAL_B.borrow(), &mut { BUS }, claim));
}
