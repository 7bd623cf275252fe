//! CPU B's side: host to wire, and everything that is fetched from the host.
//!
//! Paper, section 4.2: DMA Read Complete, Send BD Ready, Send Data Ready, Receive BD Ready and
//! Update Send Consumer run on CPU B.

use super::eudp::EudpB;
use super::spine::watch::SpineB;
use super::timer::Turns;
use crate::io::IoB;
use crate::memory::region::RegionsB;
use crate::path::ahead::Ahead;
use crate::path::buffer_fetch::BufferFetch;
use crate::path::send::SendPath;
use host_interface::extension;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::TransmitRing;
use tigon2_hal::resources::Transmitter;

/// The state of CPU B's handlers, about 600 bytes. On the chip it lies in the scratch pad of the
/// CPU that runs them. Each handler borrows the parts that its row of the [event
/// table](crate::events) names.
#[derive(Debug)]
#[repr(C)]
pub struct SideB<B: Dispatch> {
    /// The resources of its paths.
    pub io: IoB<B>,
    /// How often each handler ran, in the order of [`extension::HANDLERS`].
    pub(crate) counts: [u32; extension::HANDLER_COUNT],
    /// The send path.
    pub send: SendPath,
    /// The fetching of receive BDs.
    pub(crate) buffer_fetch: BufferFetch,
    /// Classification ahead of CPU A.
    pub(crate) ahead: Ahead,
    /// Looking after extensions.
    pub(crate) spine: SpineB,
    /// The endpoints' frames.
    pub(crate) eudp: EudpB,
    /// When the counters are copied.
    pub(crate) turns: Turns,
    /// CPU A's last cross call that was answered.
    pub(crate) answered: u32,
}

impl<B: Dispatch> SideB<B> {
    /// The state before the host has configured anything, a constant like that of CPU A.
    pub const fn new(
        bus: B,
        read: B::ReadChannel,
        transmitter: Transmitter,
        regions: RegionsB,
    ) -> SideB<B> {
        let RegionsB {
            send_bds,
            receive_bds,
        } = regions;
        SideB {
            io: IoB::new(bus, read),
            counts: [0; extension::HANDLER_COUNT],
            send: SendPath::new(TransmitRing::new(transmitter), send_bds),
            buffer_fetch: BufferFetch::new(receive_bds),
            ahead: Ahead::new(),
            spine: SpineB::new(),
            eudp: EudpB::new(),
            turns: Turns::new(),
            answered: 0,
        }
    }

    /// Counts a partial run of a handler, for callers that bypass the event table.
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
        self.ahead.place(block);
    }
}
