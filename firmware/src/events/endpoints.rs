//! The handlers of CPU B while endpoints are open.
//!
//! CPU B's scratch pad has no room for the hot code of both the host's frames and the endpoints'.
//! So it has either, see [`overlay`](crate::memory::overlay): the entries of the table above,
//! or these, among which those for the host's frames are in SRAM. Only these take the mailboxes of
//! endpoints, so that CPU A need not ring.

use crate::sides::endpoints;
use crate::sides::eudp::handlers;
use crate::{SideB, path};
use host_interface::extension;
use tigon2_hal::events::Dispatch;

/// The entries, lowest priority first, and the table of the chip.
macro_rules! entries {
    ($( $(#[doc = $doc:literal])+ $name:ident: $event:ident in $section:literal, $count:ident
        => $function:path [$($part:ident),+], )+) => {
        $(
            $(#[doc = $doc])+
            #[cfg_attr(target_arch = "mips", unsafe(link_section = $section))]
            #[inline(never)]
            pub extern "C" fn $name<B: Dispatch>(side: &mut SideB<B>) {
                let count = &mut side.counts[extension::Handler::$count as usize];
                *count = count.wrapping_add(1);
                call!(side $function [$($part),+]);
            }
        )+

        #[cfg(all(target_arch = "mips", feature = "eudp"))]
        core::arch::global_asm!(
            ".macro row_e bit, target",
            "filler_e \\bit",
            "j \\target",
            "move $4, $21",
            ".set previous, \\bit",
            ".endm",
            ".macro filler_e next",
            ".rept \\next - previous - 1",
            "j dispatch_loop_e",
            "nop",
            ".endr",
            ".endm",
            ".section .scratch_b.endpoints, \"ax\", @progbits",
            ".set push",
            ".set noreorder",
            ".balign 8",
            ".globl dispatch_table_e",
            "dispatch_table_e:",
            "j dispatch_idle_e",
            "lw $8, 4($17)",
            ".set previous, -1",
            $( concat!("row_e {", stringify!($event), "}, {", stringify!($name), "}"), )+
            "filler_e 32",
            ".set pop",
            $( $event = const tigon2_chip::events::EventBit::$event.number(), )+
            $( $name = sym $name::<tigon2_hal::Mmio>, )+
        );
    };
}

entries! {
    /// Takes the next send BDs.
    send_data_ready: SendDataReady in ".text.rarely", SendDataReady
        => endpoints::data_ready[all],
    /// Fetches send BDs.
    send_bd_ready: SendBdReady in ".text.rarely", SendBdReady => path::send::bd_ready[send, io],
    /// CPU A has rung.
    doorbell_b: DoorbellB in ".text.rarely", DoorbellB => endpoints::doorbell[all],
    /// Fetches jumbo receive BDs.
    jumbo_bd_ready: JumboReceiveBdReady in ".text.rarely", JumboReceiveBdReady
        => handlers::jumbo_bds[buffer_fetch, io],
    /// Fetches standard receive BDs.
    receive_bd_ready: StandardReceiveBdReady in ".text.rarely", StandardReceiveBdReady
        => handlers::standard_bds[buffer_fetch, io],
    /// Fetches mini receive BDs.
    mini_bd_ready: MiniReceiveBdReady in ".text.rarely", MiniReceiveBdReady
        => handlers::mini_bds[buffer_fetch, io],
    /// Retires completed transfers from the host.
    dma_read_complete: DmaReadComplete in ".scratch_b.endpoints", DmaReadComplete
        => endpoints::read_complete[all],
    /// The read channel reports an error.
    dma_read_attention: DmaReadAttention in ".text.rarely", DmaReadAttention
        => crate::sides::recovery::read_attention[all],
    /// The host has moved a producer of an endpoint's.
    mailbox: Mailbox in ".scratch_b.endpoints", DoorbellB => handlers::mailbox[eudp, send, io],
    /// Reports the send consumer index.
    update_send_consumer: UpdateSendConsumer in ".text.rarely", UpdateSendConsumer
        => path::send::update_consumer[send, io],
    /// A deadline.
    send_timer: Timer in ".text.rarely", SendTimer => endpoints::deadline[all],
}
