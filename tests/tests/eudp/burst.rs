//! What fills the write channel's queue, or breaks it: a bus that stalls, frames that come without
//! gaps or are wrong, memory that is gone.

use crate::card::Card;
use eudp::{Checksum, Completion, CutThrough, Region, Status};
use host_driver::DmaMemory;
use host_driver::nic::EndpointCard;
use integration_tests::{Engine, Sim};
use smoltcp::wire::Ipv4Packet;
use tigon2_sim::timing::Parameters;

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;

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

    /// A received datagram's buffer, what became of it, and its bytes.
    pub fn ended(&mut self) -> (u32, Status, u32) {
        match self.completion() {
            Completion::Received {
                cookie,
                status,
                datagram,
            } => (cookie, status, datagram.bytes),
            other => panic!("{other:?}"),
        }
    }
}

/// A frame with other words in its IP packet; the sum of the IP header is made again.
pub fn changed(frame: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let packet = &mut frame[ETHERNET..];
    change(packet);
    Ipv4Packet::new_unchecked(packet).fill_checksum();
    frame
}
