//! One table of neighbours for the stacks of all threads.
//!
//! ARP has no IP header, so the card puts it all into queue 0. Its thread learns for everybody;
//! a stack on another queue that asks who has an address gets its answer from the table, and
//! only a question that nobody can answer goes out. Its answer comes to queue 0.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{PoisonError, RwLock};

use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr,
};

/// Bytes of an Ethernet header.
const HEADER: usize = 14;

/// Addresses and stations of neighbours.
#[derive(Debug, Default)]
pub struct Neighbours {
    stations: RwLock<BTreeMap<Ipv4Addr, [u8; 6]>>,
}

/// The ARP packet in a frame.
fn arp(frame: &[u8]) -> Option<ArpRepr> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    if frame.ethertype() != EthernetProtocol::Arp {
        return None;
    }
    let packet = ArpPacket::new_checked(frame.payload()).ok()?;
    ArpRepr::parse(&packet).ok()
}

impl Neighbours {
    /// Learns from a received frame, if it is one of ARP's.
    pub fn learn(&self, frame: &[u8]) {
        let Some(ArpRepr::EthernetIpv4 {
            source_hardware_addr,
            source_protocol_addr,
            ..
        }) = arp(frame)
        else {
            return;
        };
        if source_hardware_addr.is_unicast() && !source_protocol_addr.is_unspecified() {
            let mut stations = self
                .stations
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            stations.insert(source_protocol_addr, source_hardware_addr.0);
        }
    }

    /// The station of an address.
    pub fn station(&self, address: Ipv4Addr) -> Option<[u8; 6]> {
        let stations = self.stations.read().unwrap_or_else(PoisonError::into_inner);
        stations.get(&address).copied()
    }

    /// The answer to a frame that asks for an address in the table, as if it had come in.
    pub fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let Some(ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Request,
            source_hardware_addr: asker,
            source_protocol_addr: asker_address,
            target_protocol_addr: wanted,
            ..
        }) = arp(frame)
        else {
            return None;
        };
        let station = EthernetAddress(self.station(wanted)?);
        let header = EthernetRepr {
            src_addr: station,
            dst_addr: asker,
            ethertype: EthernetProtocol::Arp,
        };
        let reply = ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Reply,
            source_hardware_addr: station,
            source_protocol_addr: wanted,
            target_hardware_addr: asker,
            target_protocol_addr: asker_address,
        };
        let mut bytes = vec![0; HEADER + reply.buffer_len()];
        let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
        header.emit(&mut frame);
        reply.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];
    const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn request(from: [u8; 6], address: [u8; 4], wanted: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![0xFF; 6];
        frame.extend(from);
        frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend(from);
        frame.extend(address);
        frame.extend([0; 6]);
        frame.extend(wanted);
        frame
    }

    #[test]
    fn what_one_thread_learns_answers_anothers_question() {
        let table = Neighbours::default();
        let question = request(OURS, [10, 0, 0, 1], [10, 0, 0, 9]);
        assert_eq!(table.answer(&question), None, "nobody knows");
        table.learn(&request(PEER, [10, 0, 0, 9], [10, 0, 0, 1]));
        assert_eq!(table.station(Ipv4Addr::new(10, 0, 0, 9)), Some(PEER));
        let answer = table.answer(&question).expect("it is known");
        assert_eq!((&answer[..6], &answer[6..12]), (&OURS[..], &PEER[..]));
        let reply = arp(&answer).expect("a reply");
        let ArpRepr::EthernetIpv4 {
            operation,
            source_protocol_addr,
            target_protocol_addr,
            ..
        } = reply
        else {
            panic!("{reply:?}");
        };
        assert_eq!(operation, ArpOperation::Reply);
        assert_eq!(source_protocol_addr, Ipv4Addr::new(10, 0, 0, 9));
        assert_eq!(target_protocol_addr, Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(table.answer(&answer), None, "no question");
    }

    #[test]
    fn what_is_cut_or_no_arp_teaches_nothing() {
        let table = Neighbours::default();
        let whole = request(PEER, [10, 0, 0, 9], [10, 0, 0, 1]);
        for length in 0..whole.len() {
            table.learn(&whole[..length]);
        }
        let mut other = whole.clone();
        other[12] = 0x86;
        table.learn(&other);
        table.learn(&request(PEER, [0; 4], [10, 0, 0, 1]));
        table.learn(&request([1, 0, 0, 0, 0, 9], [10, 0, 0, 9], [10, 0, 0, 1]));
        assert_eq!(table.station(Ipv4Addr::new(10, 0, 0, 9)), None);
        assert_eq!(table.station(Ipv4Addr::UNSPECIFIED), None);
    }
}
