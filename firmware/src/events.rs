//! The events that the firmware handles, each declared once.
//!
//! From the one table below come the entry of each handler, the order of the counts that
//! the host can read, the dispatch on a host, the jump table on the chip, and the table
//! in `docs/firmware.md`.
//!
//! Hardware reference, section 5. A handler runs to its end; nothing interrupts it. It
//! leaves its event set when it could not do all (no descriptor or no buffer is free):
//! it will be called again after what has a higher priority.

use crate::Firmware;
use host_interface::extension;
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The event's bit; the highest goes first.
    pub event: EventBit,
    /// The name of the entry, as gdb and the reports show it.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
}

macro_rules! handlers {
    ($( $(#[doc = $doc:literal])+ $name:ident: $event:ident => $function:path, )+) => {
        /// All handlers, lowest priority first.
        pub const HANDLERS: &[Handler] = &[
            $( Handler {
                event: EventBit::$event,
                name: stringify!($name),
                summary: concat!($($doc),+).trim_ascii(),
            }, )+
        ];

        /// The events with a handler, as a mask.
        pub const HANDLED: u32 = 0 $( | EventBit::$event.mask() )+;

        $(
            $(#[doc = $doc])+
            #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
            #[inline(never)]
            pub extern "C" fn $name<B: Bus>(firmware: &mut Firmware<B>) {
                let count = &mut firmware.counts[extension::Handler::$event as usize];
                *count = count.wrapping_add(1);
                $function(firmware);
            }
        )+

        /// Runs the handler of an event; `false` if it has none.
        pub fn run<B: Bus>(firmware: &mut Firmware<B>, event: EventBit) -> bool {
            match event {
                $( EventBit::$event => $name(firmware), )+
                _ => return false,
            }
            true
        }

        // The jump table of the chip: entry 0 is "nothing pending", entry n + 1 belongs
        // to bit n. Each is a jump whose delay slot hands the state to the handler; an
        // entry without handler goes back to the loop, as entry 0 does.
        #[cfg(target_arch = "mips")]
        core::arch::global_asm!(
            ".section .scratch_a.text, \"ax\", @progbits",
            ".set push",
            ".set noreorder",
            ".balign 8",
            ".globl dispatch_table",
            "dispatch_table:",
            "j dispatch_idle",
            "lw $8, 4($17)",
            ".set previous, -1",
            $(
                concat!(
                    ".rept {", stringify!($event), "} - previous - 1\n",
                    "j dispatch_loop\n",
                    "nop\n",
                    ".endr\n",
                    "j {", stringify!($name), "}\n",
                    "move $4, $17\n",
                    ".set previous, {", stringify!($event), "}",
                ),
            )+
            ".rept 31 - previous",
            "j dispatch_loop",
            "nop",
            ".endr",
            ".set pop",
            $( $event = const EventBit::$event.number(), )+
            $( $name = sym $name::<tigon2_hal::Mmio>, )+
        );
    };
}

handlers! {
    /// Takes the next send BD: queues its data's DMA and, with the last of a frame, the MAC descriptor.
    send_data_ready: SendDataReady => crate::send::data_ready,
    /// Fetches send BDs from the host's ring.
    send_bd_ready: SendBdReady => crate::send::bd_ready,
    /// Takes the next received frame: queues its data's DMA and its return BD.
    receive_complete: ReceiveComplete => crate::receive::frame::complete,
    /// Fetches jumbo receive BDs from the host's ring.
    jumbo_bd_ready: JumboReceiveBdReady => crate::receive::jumbo_bd_ready,
    /// Fetches standard receive BDs from the host's ring.
    receive_bd_ready: StandardReceiveBdReady => crate::receive::standard_bd_ready,
    /// Fetches mini receive BDs from the host's ring.
    mini_bd_ready: MiniReceiveBdReady => crate::receive::mini_bd_ready,
    /// Looks at finished transfers to the host and raises the interrupt.
    dma_write_complete: DmaWriteComplete => crate::dma::write_complete,
    /// Looks at finished transfers from the host: BDs arrived, data of frames read.
    dma_read_complete: DmaReadComplete => crate::dma::read_complete,
    /// The write channel reports an error: what it was for is dropped.
    dma_write_attention: DmaWriteAttention => crate::dma::fault::write_attention,
    /// The read channel reports an error: what it was for is dropped.
    dma_read_attention: DmaReadAttention => crate::dma::fault::read_attention,
    /// The host moved a producer, queued commands or ended its interrupt service.
    mailbox: Mailbox => crate::mailbox::handle,
    /// Tells the host the send consumer index.
    update_send_consumer: UpdateSendConsumer => crate::send::update_consumer,
    /// Tells the host the receive return producer index.
    update_receive_return_producer: UpdateReceiveReturnProducer => crate::receive::index::update_producer,
    /// The MAC's receiver wants attention: link or buffer.
    mac_rx_attention: MacRxAttention => crate::link::receive_attention,
    /// The MAC's transmitter wants attention.
    mac_tx_attention: MacTxAttention => crate::link::transmit_attention,
    /// A deadline: coalescing of either side, or the housekeeping of each millisecond.
    timer: Timer => crate::timer::handle,
}

const _: () = {
    let mut index = 1;
    while index < HANDLERS.len() {
        assert!(HANDLERS[index - 1].event.number() < HANDLERS[index].event.number());
        index += 1;
    }
};

/// Runs the handler of the most urgent event; `false` if there is none. The chip's own
/// loop does the same with its two instructions, see `start`.
pub fn dispatch<B: Bus>(firmware: &mut Firmware<B>) -> bool {
    let events = firmware.bus.read(tigon2_chip::Register::EventA);
    let number = tigon2_hal::events::priority(events, firmware.mask);
    match number.checked_sub(1).and_then(EventBit::from_number) {
        Some(event) => run(firmware, event),
        None => false,
    }
}
