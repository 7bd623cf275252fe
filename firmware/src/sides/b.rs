//! CPU B's side: host to wire, and all that is fetched from the host.
//!
//! Paper, section 4.2: DMA Read Complete, Send BD Ready, Send Data Ready, Receive BD Ready
//! and Update Send Consumer are CPU B's.

use super::timer::Turns;
use crate::io::IoB;
use crate::path::buffer_fetch::BufferFetch;
use crate::path::send::SendPath;
use host_interface::extension;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::TransmitRing;
use tigon2_hal::resources::Transmitter;

/// Everything that the handlers of CPU B know, about 600 bytes. On the chip it lies in the
/// scratch pad of the CPU that runs them, and one handler at a time has what its row of the
/// [event table](crate::events) names of it.
#[derive(Debug)]
#[repr(C)]
pub struct SideB<B: Dispatch> {
    /// What its paths work with.
    pub io: IoB<B>,
    /// How often each handler ran, in the order of [`extension::HANDLERS`].
    pub(crate) counts: [u32; extension::HANDLER_COUNT],
    /// The send path.
    pub send: SendPath,
    /// The receive BDs that the host gives.
    pub(crate) buffer_fetch: BufferFetch,
    /// When the counters are copied.
    pub(crate) turns: Turns,
    /// The call of CPU A that was answered last.
    pub(crate) answered: u32,
}

impl<B: Dispatch> SideB<B> {
    /// The state before anything is known, a constant as that of CPU A.
    pub const fn new(bus: B, read: B::ReadChannel, transmitter: Transmitter) -> SideB<B> {
        SideB {
            io: IoB::new(bus, read),
            counts: [0; extension::HANDLER_COUNT],
            send: SendPath::new(TransmitRing::new(transmitter)),
            buffer_fetch: BufferFetch::new(),
            turns: Turns::new(),
            answered: 0,
        }
    }

    /// A handler has run in part: for who does not enter it by the event table.
    #[inline(always)]
    pub fn count_run(&mut self, handler: extension::Handler) {
        if let Some(count) = self.counts.get_mut(handler as usize) {
            *count = count.wrapping_add(1);
        }
    }

    /// Places the rings in the descriptor and buffer block with base K.
    pub(crate) fn place(&mut self, block: u32) {
        self.io.place(block);
        self.send.place(block);
    }
}
