//! The table of the firmware's handlers, each declared once.
//!
//! The host shows how often each handler has run, so the driver needs the handlers' names and the
//! order of their counts; the firmware needs the event, the CPU and the function of each. All of
//! it is one row of [`handlers!`](crate::handlers):
//!
//! ```text
//! /// What it does.
//! entry: Event on Side place, Count = number => function[parts of the side],
//!                      rarely: in SRAM, not in the scratch pad
//! ```
//!
//! | user | what it makes of the rows |
//! | --- | --- |
//! | this module | [`Handler`], the counts in NIC memory |
//! | `tigon_firmware::events` | the entries and jump tables of one or two CPUs |
//! | `beyond::events` | the jump tables of more CPUs |
//!
//! Only the firmware resolves the functions and the parts. Rows are in the order of priority,
//! lowest first. A number never changes: it is the place of a count in NIC memory.

/// Gives all rows to a macro, followed by what else is in its braces:
/// `handlers!(name! { more })` expands to `name! { rows more }`.
#[macro_export]
macro_rules! handlers {
    ($macro:ident! { $($more:tt)* }) => {
        $macro! {
            /// Follows a frame for an endpoint while it arrives, and writes what has come of it.
            follow_frame: FollowFrame on SideA beside, FollowFrame = 21 => sides::eudp::events::follow[receive, eudp, io],
            /// Classifies received frames ahead of CPU A, which sorts them into queues.
            classify_ahead: ClassifyAhead on SideB rarely, ClassifyAhead = 20 => path::ahead::classify[ahead, io],
            /// Takes the next send BD: queues its data's DMA and, with the last of a frame, the MAC descriptor.
            send_data_ready: SendDataReady on SideB, SendDataReady = 0 => path::send::data_ready[send, io],
            /// Fetches send BDs from the host's ring.
            send_bd_ready: SendBdReady on SideB, SendBdReady = 1 => path::send::bd_ready[send, io],
            /// Takes the next received frame: queues its data's DMA and its return BD.
            receive_complete: ReceiveComplete on SideA overlaid, ReceiveComplete = 2 => sides::eudp::events::complete[receive, queues, spine, eudp, io],
            /// CPU A has rung: producers of the host moved, or a command concerns CPU B.
            doorbell_b: DoorbellB on SideB, DoorbellB = 3 => sides::doorbell::doorbell_b[all],
            /// Fetches jumbo receive BDs from the host's ring.
            jumbo_bd_ready: JumboReceiveBdReady on SideB rarely, JumboReceiveBdReady = 4 => path::buffer_fetch::jumbo_bd_ready[buffer_fetch, io],
            /// Fetches standard receive BDs from the host's ring.
            receive_bd_ready: StandardReceiveBdReady on SideB, StandardReceiveBdReady = 5 => path::buffer_fetch::standard_bd_ready[buffer_fetch, io],
            /// Writes the send consumer index for hosts that do not read it, or raises its interrupt.
            write_send_consumer: WriteSendConsumer on SideA, WriteSendConsumer = 19 => path::send_index::write[send_index, io],
            /// Fetches mini receive BDs from the host's ring.
            mini_bd_ready: MiniReceiveBdReady on SideB, MiniReceiveBdReady = 6 => path::buffer_fetch::mini_bd_ready[buffer_fetch, io],
            /// Retires completed transfers to the host and raises the interrupt.
            dma_write_complete: DmaWriteComplete on SideA, DmaWriteComplete = 7 => sides::completion::write_complete[all],
            /// Retires completed transfers from the host: BDs have arrived, data of frames was read.
            dma_read_complete: DmaReadComplete on SideB, DmaReadComplete = 8 => sides::completion::read_complete[all],
            /// The write channel reports an error: drops the failed transfer and its frame.
            dma_write_attention: DmaWriteAttention on SideA rarely, DmaWriteAttention = 9 => sides::recovery::write_attention[all],
            /// The read channel reports an error: drops the failed transfer and its frame.
            dma_read_attention: DmaReadAttention on SideB rarely, DmaReadAttention = 10 => sides::recovery::read_attention[all],
            /// The host moved a producer, queued commands or ended its interrupt service.
            mailbox: Mailbox on SideA, Mailbox = 11 => sides::mailbox::handle[all],
            /// Reports the send consumer index: the driver reads it, or CPU A writes it to the host.
            update_send_consumer: UpdateSendConsumer on SideB, UpdateSendConsumer = 12 => path::send::update_consumer[send, io],
            /// Reports the receive return producer index to the host.
            update_receive_return_producer: UpdateReceiveReturnProducer on SideA, UpdateReceiveReturnProducer = 13 => path::receive::handlers::update[receive, queues, io],
            /// The MAC's receiver raises an attention: link or buffer.
            mac_rx_attention: MacRxAttention on SideA rarely, MacRxAttention = 14 => sides::fatal::receive_attention[all],
            /// The MAC's transmitter raises an attention.
            mac_tx_attention: MacTxAttention on SideA rarely, MacTxAttention = 15 => control::link::transmit_attention[io],
            /// CPU B has rung: BDs for a waiting frame, a report for the host, or an answer to a cross call.
            doorbell_a: DoorbellA on SideA, DoorbellA = 16 => sides::doorbell::doorbell_a[all],
            /// A deadline: coalescing of the receive path, or the housekeeping of each millisecond.
            timer: Timer on SideA rarely, Timer = 17 => sides::timer::handle[all],
            /// A deadline: coalescing of the send path, a full transmit buffer, or CPU B's counters.
            send_timer: Timer on SideB, SendTimer = 18 => sides::timer::handle_send[all],
            $($more)*
        }
    };
}

macro_rules! counts {
    ($( $(#[doc = $doc:literal])+ $entry:ident: $event:ident on $side:ident $($place:ident)?, $count:ident = $number:literal => $function:path [$($part:ident),+], )+) => {
        /// A handler whose runs are counted; its value is the place of its count.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Handler {
            $( $(#[doc = $doc])+ $count = $number, )+
        }

        /// All handlers in the order of their rows.
        const ROWS: &[Handler] = &[ $( Handler::$count, )+ ];

        impl Handler {
            /// Its name as the table has it.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Handler::$count => stringify!($count), )+
                }
            }

            /// Whether the parallel firmware runs it on CPU B; otherwise on CPU A.
            pub const fn runs_on_b(self) -> bool {
                match self {
                    $( Handler::$count => runs_on_b!($side), )+
                }
            }
        }
    };
}

/// Whether a side is CPU B's.
macro_rules! runs_on_b {
    (SideA) => {
        false
    };
    (SideB) => {
        true
    };
}

handlers!(counts! {});

/// The number of handlers.
pub const HANDLER_COUNT: usize = ROWS.len();

/// All of [`Handler`] in the order of their counts. The numbers have no gap, or this does not
/// compile.
pub const HANDLERS: &[Handler] = &{
    let mut ordered = [ROWS[0]; HANDLER_COUNT];
    let mut index = 0;
    while index < HANDLER_COUNT {
        ordered[ROWS[index] as usize] = ROWS[index];
        index += 1;
    }
    ordered
};

impl Handler {
    /// The place of its count.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The handler whose count is at a place.
    pub fn from_number(number: u32) -> Option<Handler> {
        HANDLERS.get(number as usize).copied()
    }
}
