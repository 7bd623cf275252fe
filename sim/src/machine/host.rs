//! The host's accesses on the PCI bus.
//!
//! ```text
//!   host   | write | write |            read        |
//!   bus    ....[w]..[===== DMA =====][w]..[= DMA =][ r ]
//! ```
//!
//! The host waits until its access has left the bus, also for a posted write: a bridge that buffers
//! some of them would let it go on earlier, with the same accesses on the bus.

use super::Machine;
use crate::timing::HostAccess;

impl Machine {
    /// An access of the host waits for the bus; `false` where such accesses take no time there.
    pub(crate) fn host_asks_for_bus(&mut self, access: HostAccess) -> bool {
        let timed = self.timed.as_mut();
        timed.is_some_and(|timed| timed.dma.host_asks(access))
    }

    /// Whether it has had the bus.
    pub(crate) fn host_had_bus(&self) -> bool {
        let done = |timed: &crate::timing::Timed| timed.dma.host_is_done(self.cycle);
        self.is_left() || self.timing().is_none_or(done)
    }
}
