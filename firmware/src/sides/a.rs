//! CPU A's side: wire to host, and everything that is not about frames.
//!
//! Paper, section 4.2: Mailbox, Receive Complete, DMA Write Complete and Update Receive Return
//! Producer run on CPU A. Other writes to the host belong here too, because the write channel
//! does: events, statistics, commands, the send consumer index. The link belongs here because the
//! receiver does.

use super::cross_call::Calls;
use super::eudp::EudpA;
use super::queues::Stage;
use super::spine::Spine;
use super::timer::Housekeeping;
use crate::control::host_events::HostEvents;
use crate::control::link::Link;
use crate::io::IoA;
use crate::io::filter::MulticastList;
use crate::memory::config::Config;
use crate::memory::region::RegionsA;
use crate::path::receive::Receive;
use crate::path::receive::queues::Queues;
use crate::path::send_index::SendIndex;
use host_interface::extension;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceiveRing;
use tigon2_hal::resources::Receiver;

/// The state of CPU A's handlers, about 800 bytes. On the chip it lies in the scratch pad of the
/// CPU that runs them. Each handler borrows the parts that its row of the [event
/// table](crate::events) names.
#[derive(Debug)]
#[repr(C)]
pub struct SideA<B: Dispatch> {
    /// The resources of its paths.
    pub io: IoA<B>,
    /// How often each handler ran, in the order of [`extension::HANDLERS`].
    pub(crate) counts: [u32; extension::HANDLER_COUNT],
    /// The receive path.
    pub receive: Receive,
    /// The receive queues.
    pub(crate) queues: Queues,
    /// The progress of a command about them.
    pub(crate) queue_stage: Stage,
    /// The extensions.
    pub(crate) spine: Spine,
    /// The endpoints.
    pub(crate) eudp: EudpA,
    /// Reporting the send consumer index to the host.
    pub(crate) send_index: SendIndex,
    /// Events to the host.
    pub(crate) host_events: HostEvents,
    /// Cross calls to CPU B.
    pub(crate) calls: Calls,
    /// The link.
    pub(crate) link: Link,
    /// The work of each millisecond.
    pub(crate) housekeeping: Housekeeping,
    /// The host's configuration.
    pub(crate) config: Config,
    /// Base K of the descriptor and buffer block.
    pub(crate) block: u32,
}

impl<B: Dispatch> SideA<B> {
    /// Counts frames of queue mode that never arrived, rounded down to turns of the MAC's ring:
    /// tests let positions wrap.
    #[cfg(not(target_arch = "mips"))]
    pub const fn count_frames(&mut self, count: u32) {
        self.queues.count_frames(count);
    }

    /// The state before the host has configured anything. It is a constant, so that it comes with
    /// the chip's image and no code has to build it.
    pub const fn new(
        bus: B,
        write: B::WriteChannel,
        receiver: Receiver,
        regions: RegionsA,
        multicast: &'static mut MulticastList,
    ) -> SideA<B> {
        let RegionsA {
            return_bds,
            receive_bds,
            staging,
        } = regions;
        let receive = Receive::new(
            ReceiveRing::new(receiver),
            return_bds,
            receive_bds,
            &staging,
        );
        SideA {
            io: IoA::new(bus, write, staging, multicast),
            counts: [0; extension::HANDLER_COUNT],
            receive,
            queues: Queues::new(),
            spine: Spine::new(),
            eudp: EudpA::new(),
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

    /// Counts a partial run of a handler, for callers that bypass the event table.
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
