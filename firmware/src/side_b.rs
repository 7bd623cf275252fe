//! CPU B's side: host to wire, and all that is fetched from the host.
//!
//! Paper, section 4.2: DMA Read Complete, Send BD Ready, Send Data Ready, Receive BD Ready
//! and Update Send Consumer are CPU B's.

use crate::dma::ReadStates;
use crate::refill::Refill;
use crate::send::Send;
use crate::shared::OfB;
use crate::statistics::CountersB;
use crate::timer::SendDeadlines;
use host_interface::extension;
use tigon2_chip::Cpu;
use tigon2_chip::memory::block;
use tigon2_hal::assist::{DescriptorRing, Read};
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::TransmitRing;
use tigon2_hal::resources::Transmitter;

/// Everything that the handlers of CPU B know, about 600 bytes. On the chip it lies in the
/// scratch pad of the CPU that runs them, and one handler at a time has it.
#[derive(Debug)]
pub struct SideB<B: Dispatch> {
    /// The chip, and what is pending.
    pub bus: B,
    /// The right to write what CPU B shares.
    pub(crate) me: OfB,
    /// How often each handler ran, in the order of [`extension::HANDLERS`].
    pub(crate) counts: [u32; extension::HANDLER_COUNT],
    /// State words of transfers.
    pub(crate) states: ReadStates,
    /// Transfers from the host.
    pub(crate) read_ring: DescriptorRing<Read>,
    /// The send path.
    pub(crate) send: Send,
    /// The receive BDs that the host gives.
    pub(crate) refill: Refill,
    /// What is counted on the send path.
    pub(crate) counters: CountersB,
    /// When something is due.
    pub(crate) deadlines: SendDeadlines,
    /// The question of CPU A that was answered last.
    pub(crate) answered: u32,
    /// Transfers of its own that are done.
    #[cfg(feature = "lanes")]
    pub(crate) asked: u32,
    /// Send BDs whose data was read.
    #[cfg(feature = "lanes")]
    pub(crate) sent: u32,
    /// Frames and bytes of the workers that were counted.
    #[cfg(feature = "lanes")]
    pub(crate) seen: crate::lanes::turn::Seen,
}

impl<B: Dispatch> SideB<B> {
    /// The state before anything is known, a constant as that of CPU A.
    pub const fn new(bus: B, read: Read, transmitter: Transmitter) -> SideB<B> {
        SideB {
            bus,
            me: OfB::new(),
            counts: [0; extension::HANDLER_COUNT],
            states: ReadStates::new(0, true, true),
            read_ring: DescriptorRing::new(read),
            send: Send::new(TransmitRing::new(transmitter)),
            refill: Refill::new(),
            counters: CountersB::new(),
            deadlines: SendDeadlines::new(),
            answered: 0,
            #[cfg(feature = "lanes")]
            asked: 0,
            #[cfg(feature = "lanes")]
            sent: 0,
            #[cfg(feature = "lanes")]
            seen: crate::lanes::turn::Seen::NOTHING,
        }
    }

    /// Places the rings in the descriptor and buffer block with base K.
    pub(crate) fn place(&mut self, block: u32) {
        self.read_ring.place(block + block::DMA_READ_RING);
        self.send.place(block);
    }

    /// Rings CPU A.
    #[inline(always)]
    pub(crate) fn ring(&mut self) {
        self.bus.ring(Cpu::A);
    }
}
