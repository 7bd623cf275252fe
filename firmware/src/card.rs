//! The state that all handlers share.

use crate::config::Config;
use crate::dma::States;
use crate::host_events::HostEvents;
use crate::interrupt::Interrupt;
use crate::link::Link;
use crate::receive::Receive;
use crate::send::Send;
use crate::statistics::Counters;
use crate::timer::Deadlines;
use host_interface::extension;
use tigon2_chip::Cpu;
use tigon2_chip::memory::block;
use tigon2_hal::Bus;
use tigon2_hal::assist::{DescriptorRing, Read, Write};
use tigon2_hal::events::SoftwareEvents;

/// Everything that the handlers know, about 500 bytes. On the chip it lies in CPU A's
/// scratch pad, and one handler at a time has it.
#[derive(Debug)]
#[repr(C)]
pub struct Firmware<B: Bus> {
    /// Events that are let through. The first field: the chip's dispatch loop reads it at
    /// the address of the whole.
    pub mask: u32,
    /// Turns of the dispatch loop that found nothing. The second field: the chip's loop
    /// counts here.
    pub idle: u32,
    /// The chip.
    pub bus: B,
    /// The software bits of the event register.
    pub events: SoftwareEvents,
    /// How often each handler ran, in the order of [`extension::HANDLERS`].
    pub counts: [u32; extension::HANDLER_COUNT],
    /// State words of transfers.
    pub(crate) states: States,
    /// Transfers from the host.
    pub(crate) read_ring: DescriptorRing<Read>,
    /// Transfers to the host.
    pub(crate) write_ring: DescriptorRing<Write>,
    /// The transmit side.
    pub(crate) send: Send,
    /// The receive side.
    pub(crate) receive: Receive,
    /// Interrupts to the host.
    pub(crate) interrupt: Interrupt,
    /// What is counted on the packet path.
    pub(crate) counters: Counters,
    /// When something is due.
    pub(crate) deadlines: Deadlines,
    /// Events to the host.
    pub(crate) host_events: HostEvents,
    /// The link.
    pub(crate) link: Link,
    /// What the host configured.
    pub(crate) config: Config,
    /// Base K of the descriptor and buffer block.
    pub(crate) block: u32,
    /// Whether a fatal error was reported; nothing is dispatched any more.
    pub(crate) stopped: bool,
}

impl<B: Bus> Firmware<B> {
    /// The state before anything is known. It is a constant, so that on the chip it comes
    /// with the image instead of being copied together by code.
    pub const fn new(bus: B) -> Firmware<B> {
        Firmware {
            mask: 0,
            idle: 0,
            bus,
            events: SoftwareEvents::new(Cpu::A),
            counts: [0; extension::HANDLER_COUNT],
            states: States::new(0, 0, true, true),
            read_ring: DescriptorRing::new(0),
            write_ring: DescriptorRing::new(0),
            send: Send::new(),
            receive: Receive::new(),
            interrupt: Interrupt::new(),
            counters: Counters::new(),
            deadlines: Deadlines::new(),
            host_events: HostEvents::new(),
            link: Link::new(),
            config: Config::new(),
            block: 0,
            stopped: false,
        }
    }

    /// Places the rings in the descriptor and buffer block with base K.
    pub(crate) fn place(&mut self, block: u32) {
        self.block = block;
        self.read_ring = DescriptorRing::new(block + block::DMA_READ_RING);
        self.write_ring = DescriptorRing::new(block + block::DMA_WRITE_RING);
        self.send.place(block);
        self.receive.place(block);
    }

    /// Whether a fatal error stopped the firmware.
    pub const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Lets an event through again.
    #[inline(always)]
    pub(crate) fn unmask(&mut self, event: tigon2_chip::events::EventBit) {
        if !self.stopped {
            self.mask |= event.mask();
        }
    }

    /// Holds an event back.
    #[inline(always)]
    pub(crate) fn hold(&mut self, event: tigon2_chip::events::EventBit) {
        self.mask &= !event.mask();
    }
}
