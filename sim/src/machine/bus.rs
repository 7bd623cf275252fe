//! A machine whose card shares its PCI bus with other cards: see [`fabric`](crate::fabric).

use super::lead::concerns_cpus;
use super::{Environment, Machine, environment};
use crate::memory::HostAccesses;
use crate::memory::{Devices, Posted, Target};
use crate::shared_bus::Bus;
use crate::timing::Fine;
use crate::timing::dma::{BusRequest, DmaEngine};
use host_driver::DmaMemory;
use tigon2_model::Direction;
use tigon2_model::dma::Transfer;

impl Machine {
    /// The bus is one of several cards from now on.
    pub(crate) fn share_bus(&mut self, bus: Bus) {
        self.shared_bus = Some(bus);
        if let Some(timed) = &mut self.timed {
            timed.dma.share_bus();
        }
    }

    /// The devices that the card may reach.
    pub(crate) fn host_devices(&mut self) -> &mut Devices {
        &mut self.host.devices
    }

    /// Lets the card reach a frame buffer.
    pub(crate) fn map_frame_buffer(&mut self, number: usize, pixels: DmaMemory) {
        self.host.map_frame_buffer(number, pixels);
    }

    /// What the host's CPU has accessed.
    pub(crate) fn host_accesses(&self) -> HostAccesses {
        self.host_accesses
    }

    /// The latency of a transfer's target, on a bus that others share.
    #[inline]
    pub(super) fn note_target(
        &self,
        dma: &mut DmaEngine,
        direction: Direction,
        transfer: Option<&Transfer>,
    ) {
        let (Some(bus), Some(transfer)) = (self.shared_bus, transfer) else {
            return;
        };
        let target = self.host.target(transfer.host);
        dma.set_latency(direction, bus.latency(target, transfer.host));
    }

    /// What the card wants of the bus.
    pub(crate) fn bus_request(&self) -> BusRequest {
        match &self.timed {
            // Its transfers take no time.
            None => BusRequest::Not(self.cycle + self.clock.cycle_at(FUNCTIONAL_NS)),
            Some(timed) => timed
                .dma
                .request(self.cycle, self.rests_until(), &timed.parameters),
        }
    }

    pub(crate) fn bus_free_for_others(&self) -> Fine {
        let timed = self.timed.as_ref();
        timed.map_or(Fine::default(), |timed| timed.dma.bus_free_for_others())
    }

    pub(crate) fn grant_bus(&mut self, granted: bool, free: Fine) {
        if let Some(timed) = &mut self.timed {
            timed.dma.grant_bus(granted, free);
        }
    }

    /// The cycle in which a write to another card may end, if one is under way.
    pub(crate) fn peer_write_ends(&self) -> Option<u64> {
        let transfer = self.card.inspect().dma_transfer(Direction::Write)?;
        let Target::Card(_) = self.host.target(transfer.host) else {
            return None;
        };
        let timed = self.timed.as_ref()?;
        timed.dma.write_ends(self.cycle, &timed.parameters)
    }

    /// Another card writes to BAR 0.
    pub(crate) fn write_by_peer(&mut self, posted: &Posted) {
        let offsets = (posted.offset..).step_by(4);
        for (offset, bytes) in offsets.zip(posted.bytes.as_chunks().0) {
            if concerns_cpus(offset) {
                self.gather();
            }
            let value = u32::from_le_bytes(*bytes);
            self.card
                .device(&mut environment!(self))
                .bar_write(offset, value);
        }
        self.settle();
        if let Some(mut timed) = self.timed.take() {
            self.unpark_changed(&mut timed, self.cycle, None);
            self.timed = Some(timed);
        }
    }
}

/// For how long cards without a notion of time do not see what others write.
const FUNCTIONAL_NS: u64 = 500;
