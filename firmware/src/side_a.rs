//! CPU A's side: wire to host, and all that is not about frames.
//!
//! Paper, section 4.2: Mailbox, Receive Complete, DMA Write Complete and Update Receive
//! Return Producer are CPU A's. What else writes to the host goes with them, since the
//! write channel is here: events, statistics, commands, the send consumer index. The link
//! is here because the receiver is.

use crate::config::Config;
use crate::dma::WriteStates;
use crate::host_events::HostEvents;
use crate::interrupt::Interrupt;
use crate::link::Link;
use crate::question::Asked;
use crate::receive::Receive;
use crate::send_index::SendIndex;
use crate::shared::OfA;
use crate::statistics::CountersA;
use crate::timer::Deadlines;
use host_interface::extension;
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_hal::assist::{DescriptorRing, Write};
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceiveRing;
use tigon2_hal::resources::Receiver;

/// Everything that the handlers of CPU A know, about 800 bytes. On the chip it lies in the
/// scratch pad of the CPU that runs them, and one handler at a time has it.
#[derive(Debug)]
pub struct SideA<B: Dispatch> {
    /// The chip, and what is pending.
    pub bus: B,
    /// The right to write what CPU A shares.
    pub(crate) me: OfA,
    /// How often each handler ran, in the order of [`extension::HANDLERS`].
    pub(crate) counts: [u32; extension::HANDLER_COUNT],
    /// State words of transfers.
    pub(crate) states: WriteStates,
    /// Transfers to the host.
    pub(crate) write_ring: DescriptorRing<Write>,
    /// Index updates whose end is awaited.
    pub(crate) awaited: u32,
    /// Events that wait for a write descriptor.
    pub(crate) held: u32,
    /// The receive path.
    pub(crate) receive: Receive,
    /// Telling the host the send consumer index.
    pub(crate) send_index: SendIndex,
    /// Interrupts to the host.
    pub(crate) interrupt: Interrupt,
    /// What is counted on the receive path.
    pub(crate) counters: CountersA,
    /// When something is due.
    pub(crate) deadlines: Deadlines,
    /// Events to the host.
    pub(crate) host_events: HostEvents,
    /// What CPU B was asked.
    pub(crate) asked: Asked,
    /// The link.
    pub(crate) link: Link,
    /// What the host configured.
    pub(crate) config: Config,
    /// Base K of the descriptor and buffer block.
    pub(crate) block: u32,
    /// Frames and bytes of the workers that were counted.
    #[cfg(feature = "lanes")]
    pub(crate) seen: crate::lanes::turn::Seen,
}

impl<B: Dispatch> SideA<B> {
    /// The state before anything is known. It is a constant, so that on the chip it comes
    /// with the image instead of being copied together by code.
    pub const fn new(bus: B, write: Write, receiver: Receiver) -> SideA<B> {
        SideA {
            bus,
            me: OfA::new(),
            counts: [0; extension::HANDLER_COUNT],
            states: WriteStates::new(0, true, true),
            write_ring: DescriptorRing::new(write),
            awaited: 0,
            held: 0,
            receive: Receive::new(ReceiveRing::new(receiver)),
            send_index: SendIndex::new(),
            interrupt: Interrupt::new(),
            counters: CountersA::new(),
            deadlines: Deadlines::new(),
            host_events: HostEvents::new(),
            asked: Asked::new(),
            link: Link::new(),
            config: Config::new(),
            block: 0,
            #[cfg(feature = "lanes")]
            seen: crate::lanes::turn::Seen::NOTHING,
        }
    }

    /// Places the rings in the descriptor and buffer block with base K.
    pub(crate) fn place(&mut self, block: u32) {
        self.block = block;
        self.write_ring.place(block + block::DMA_WRITE_RING);
        self.receive.place(block);
    }

    /// A software event that finds no write descriptor waits until one is free: what frees
    /// them has a lower priority.
    #[inline(always)]
    pub(crate) fn wait_for_descriptor(&mut self, event: EventBit) {
        self.bus.clear(event);
        self.held |= event.mask();
        self.bus.set(EventBit::DmaWriteComplete);
    }

    /// Rings CPU B.
    #[inline(always)]
    pub(crate) fn ring(&mut self) {
        self.bus.ring(Cpu::B);
    }
}
