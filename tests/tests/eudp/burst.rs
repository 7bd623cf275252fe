//! What fills the write channel's queue, or breaks it: a bus that stalls, frames that come without
//! gaps, memory that is gone.

use crate::card::Card;
use eudp::{Checksum, CutThrough, Region};
use host_driver::DmaMemory;
use host_driver::nic::EndpointCard;
use integration_tests::{Engine, Sim};
use tigon2_sim::timing::Parameters;

impl Card {
    /// One on a bus that stalls so many clocks before each write.
    pub fn stalling(stall: u64) -> Card {
        let parameters = Parameters {
            pci_wr: Parameters::default().pci_wr + stall,
            ..Parameters::default()
        };
        let sim = Sim::timed_by(parameters, 1);
        Card::on(sim, CutThrough::OfBus, Checksum::None, 1500)
    }

    /// Frames come from the wire without gaps.
    pub fn arrive(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            self.stage.engine.send(frame);
        }
    }

    /// Memory of the process that the endpoint knows, but that is gone until it is mapped again.
    pub fn gone(&mut self, bytes: u32) -> (Region, DmaMemory) {
        let mut lent = EndpointCard(&mut self.stage.nic);
        let memory = eudp::Card::allocate(&mut lent, bytes as usize).expect("memory");
        let region = self.eudp.register(&mut lent, &mut self.endpoint, &memory);
        self.stage.engine.machine().lock().unmap(&memory);
        (region.expect("a region"), memory)
    }
}
