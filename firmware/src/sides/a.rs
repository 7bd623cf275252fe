//! CPU A's side: wire to host, and all that is not about frames.
//!
//! Paper, section 4.2: Mailbox, Receive Complete, DMA Write Complete and Update Receive
//! Return Producer are CPU A's. What else writes to the host goes with them, since the
//! write channel is here: events, statistics, commands, the send consumer index. The link
//! is here because the receiver is.

use super::cross_call::Calls;
use super::queues::Stage;
use super::timer::Housekeeping;
use crate::control::host_events::HostEvents;
use crate::control::link::Link;
use crate::io::IoA;
use crate::memory::config::Config;
use crate::path::receive::Receive;
use crate::path::receive::queues::Queues;
use crate::path::send_index::SendIndex;
use host_interface::extension;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceiveRing;
use tigon2_hal::resources::Receiver;

/// Everything that the handlers of CPU A know, about 800 bytes. On the chip it lies in the
/// scratch pad of the CPU that runs them, and one handler at a time has what its row of the
/// [event table](crate::events) names of it.
#[derive(Debug)]
#[repr(C)]
pub struct SideA<B: Dispatch> {
    /// What its paths work with.
    pub io: IoA<B>,
    /// How often each handler ran, in the order of [`extension::HANDLERS`].
    pub(crate) counts: [u32; extension::HANDLER_COUNT],
    /// The receive path.
    pub receive: Receive,
    /// The receive queues.
    pub(crate) queues: Queues,
    /// How far a command about them is.
    pub(crate) queue_stage: Stage,
    /// Reporting the send consumer index to the host.
    pub(crate) send_index: SendIndex,
    /// Events to the host.
    pub(crate) host_events: HostEvents,
    /// What CPU B was asked to do.
    pub(crate) calls: Calls,
    /// The link.
    pub(crate) link: Link,
    /// What is done each millisecond.
    pub(crate) housekeeping: Housekeeping,
    /// What the host configured.
    pub(crate) config: Config,
    /// Base K of the descriptor and buffer block.
    pub(crate) block: u32,
}

impl<B: Dispatch> SideA<B> {
    /// The state before anything is known. It is a constant, so that on the chip it comes
    /// with the image instead of being copied together by code.
    pub const fn new(bus: B, write: B::WriteChannel, receiver: Receiver) -> SideA<B> {
        SideA {
            io: IoA::new(bus, write),
            counts: [0; extension::HANDLER_COUNT],
            receive: Receive::new(ReceiveRing::new(receiver)),
            queues: Queues::new(),
            queue_stage: Stage::Idle,
            send_index: SendIndex::new(),
            host_events: HostEvents::new(),
            calls: Calls::new(),
            link: Link::new(),
            housekeeping: Housekeeping::new(),
            config: Config::new(),
            block: 0,
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
        self.block = block;
        self.io.place(block);
        self.receive.place(block);
    }
}
