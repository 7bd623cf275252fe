//! The driver and the process of a story, with what is due of each endpoint.

use super::followed::Followed;
use super::wire::{self, Assembled, datagram};
use super::{EndpointStory, endpoints};
use crate::explore::disturbance::{below, choose};
use crate::explore::schedule::Schedule;
use crate::explore::{EndpointFault, ExploreError};
use crate::transport::{SharedMachine, SimTransport};
use crate::workload::datagram::PEER as STATION;
use eudp::{
    AddressHandle, Card as _, Completion, Destination, Endpoint, EndpointConfig, Eudp, Region,
    Status,
};
use host_driver::nic::EndpointCard;
use host_driver::{DmaMemory, Nic};
use host_interface::eudp::{BlockWord, Refusal};
use host_interface::extension::Extension;
use rand_xoshiro::SplitMix64;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Datagrams of each endpoint, each way.
const COUNT: u32 = 40;
/// Their lengths: in the descriptor, a whole frame, the shortest that is cut through, in fragments.
const LENGTHS: [usize; 12] = [
    0, 1, 64, 65, 400, 1472, 1473, 2007, 4054, 4055, 8972, 20_000,
];
/// Memory of an endpoint: places to send from, and to receive into.
const PLACE: usize = 20_480;
const PLACES: u32 = 20;
const BUFFER: usize = 9216;
const BUFFERS: u32 = 24;
const MEMORY: usize = PLACES as usize * PLACE + BUFFERS as usize * BUFFER;
/// The port of endpoint 0, and the peer's.
const PORT: u16 = 4711;
const PEER_PORT: u16 = 9;
/// The card's time without a datagram after which a story has failed.
const STALL_NS: u64 = 80_000_000;
/// Cycles of a turn, at most.
const TURN: u64 = 6000;

/// An endpoint, and what is due.
pub(super) struct Side {
    number: u8,
    pub(super) endpoint: Endpoint<DmaMemory>,
    memory: DmaMemory,
    region: Region,
    peer: AddressHandle,
    /// Places that may be sent from.
    places: Vec<u32>,
    posted: u32,
    on_wire: VecDeque<(u32, Vec<u8>)>,
    sent: u32,
    assembled: Assembled,
    /// Datagrams that are on their way in.
    into: VecDeque<Vec<u8>>,
    offered: u32,
    buffers: Vec<u32>,
    pub(super) came: u32,
    lost: u32,
    /// Datagrams that were seen on the wire.
    left: u32,
}

/// The driver, and both endpoints.
pub(super) struct Host<'a> {
    pub(super) sides: Vec<Side>,
    pub(super) nic: Nic<SimTransport>,
    pub(super) eudp: Eudp,
    pub(super) machine: SharedMachine,
    pub(super) schedule: Schedule,
    pub(super) story: &'a EndpointStory,
    pub(super) random: SplitMix64,
    pub(super) trace: Followed,
    /// Datagrams for which no buffer was there in time.
    pub(super) lost: u32,
}

impl Host<'_> {
    pub(super) fn open(&mut self, number: u8) -> Result<Side, ExploreError> {
        let station = self.nic.station();
        let lent = &mut EndpointCard(&mut self.nic);
        let config = EndpointConfig {
            station,
            address: Ipv4Addr::new(10, 0, 0, 1),
            port: PORT + u16::from(number),
            vlan: None,
            mtu: self.story.mtu,
            checksum: self.story.checksum,
            descriptors: self.story.descriptors,
            pushed: self.story.pushed,
            connected: None,
        };
        let mut endpoint = self.eudp.open(lent, config).map_err(endpoints)?;
        let memory = lent.allocate(MEMORY)?;
        let region = self.eudp.register(lent, &mut endpoint, &memory);
        let region = region.map_err(endpoints)?;
        let to = Destination {
            station: STATION,
            address: Ipv4Addr::new(10, 0, 1, number),
            lifetime: 64,
            dont_fragment: false,
        };
        let peer = self.eudp.address(lent, &mut endpoint, &to);
        Ok(Side {
            number,
            endpoint,
            memory,
            region,
            peer: peer.map_err(endpoints)?,
            places: (0..PLACES).collect(),
            posted: 0,
            on_wire: VecDeque::new(),
            sent: 0,
            assembled: Assembled::default(),
            into: VecDeque::new(),
            offered: 0,
            buffers: (0..BUFFERS).collect(),
            came: 0,
            lost: 0,
            left: 0,
        })
    }

    /// Lets all datagrams pass.
    pub(super) fn carry(&mut self) -> Result<(), ExploreError> {
        let mut moved = (0, self.schedule.now());
        loop {
            for number in 0..self.sides.len() {
                self.post(number)?;
                self.offer(number);
                self.poll(number)?;
            }
            let cycles = 1 + below(&mut self.random, TURN);
            self.machine.lock().run(cycles);
            self.take_sent()?;
            self.schedule.check_cpus()?;
            self.trace.follow(&self.machine)?;
            self.see_lost();
            let busy = |side: &Side| {
                side.sent < COUNT || !side.on_wire.is_empty() || side.came + side.lost < COUNT
            };
            if !self.sides.iter().any(busy) {
                return Ok(());
            }
            let done = |side: &Side| side.sent + side.came + side.lost + side.left;
            let all = self.sides.iter().map(done).sum::<u32>();
            let now = self.schedule.now();
            if all != moved.0 {
                moved = (all, now);
            } else if now - moved.1 > STALL_NS {
                return Err(self.stalled());
            }
        }
    }

    fn stalled(&self) -> ExploreError {
        ExploreError::Stalled {
            milliseconds: STALL_NS / 1_000_000,
            sent: self.sides.iter().map(|side| u64::from(side.sent)).sum(),
            received: self.sides.iter().map(|side| u64::from(side.came)).sum(),
            expected: u64::from(COUNT) * self.sides.len() as u64,
        }
    }

    /// Posts some datagrams, and lends the buffers that are free.
    fn post(&mut self, number: usize) -> Result<(), ExploreError> {
        let side = &mut self.sides[number];
        let lent = &mut EndpointCard(&mut self.nic);
        for _ in 0..below(&mut self.random, self.story.burst + 1) {
            let Some(place) = side.places.pop().filter(|_| side.posted < COUNT) else {
                break;
            };
            let length = choose(&mut self.random, LENGTHS);
            let data = datagram(side.number, side.posted, length);
            let at = place as usize * PLACE;
            side.memory.write_bytes(at, &data).map_err(endpoints)?;
            let to = (side.peer, PEER_PORT);
            if length <= eudp::INLINE_BYTES as usize {
                side.endpoint.send_inline(lent, to, &data, place)
            } else {
                // In two pieces, at an odd place.
                let (offset, cut) = (at as u32, (length as u32 / 3) | 1);
                let pieces = [
                    side.region.segment(offset, cut),
                    side.region.segment(offset + cut, length as u32 - cut),
                ];
                side.endpoint.queue(lent, to, &pieces, place)
            }
            .map_err(endpoints)?;
            side.on_wire.push_back((side.posted, data));
            side.posted += 1;
        }
        while side.offered < COUNT
            && let Some(buffer) = side.buffers.pop()
        {
            let at = (PLACES as usize * PLACE + buffer as usize * BUFFER) as u32;
            let piece = side.region.segment(at, BUFFER as u32);
            side.endpoint
                .post(lent, &[piece], buffer)
                .map_err(endpoints)?;
        }
        side.endpoint.submit(lent)?;
        Ok(())
    }

    /// Puts a datagram on the wire, if there are buffers for it.
    fn offer(&mut self, number: usize) {
        let station = self.nic.station();
        let side = &mut self.sides[number];
        let waiting = side.endpoint.receiving();
        if side.offered == COUNT || side.into.len() >= waiting || self.random_bit() {
            return;
        }
        let side = &mut self.sides[number];
        let most = self.story.mtu as usize - 28;
        let length = choose(&mut self.random, LENGTHS).min(most);
        let data = datagram(side.number + 2, side.offered, length);
        let port = PORT + u16::from(side.number);
        let frame = wire::inbound(station, port, PEER_PORT, &data);
        self.machine.lock().send_frame(0, frame);
        side.into.push_back(data);
        side.offered += 1;
    }

    fn random_bit(&mut self) -> bool {
        below(&mut self.random, 2) == 0
    }

    fn poll(&mut self, number: usize) -> Result<(), ExploreError> {
        let side = &mut self.sides[number];
        let lent = &mut EndpointCard(&mut self.nic);
        while let Some(completion) = side.endpoint.poll(lent).map_err(endpoints)? {
            match completion {
                Completion::Sent { cookie, status } => {
                    side.sent += 1;
                    side.places.push(cookie);
                    if status != Status::Done {
                        return Err(ExploreError::Endpoint(EndpointFault::Status(status)));
                    }
                }
                Completion::Received {
                    cookie, datagram, ..
                } => {
                    let at = PLACES as usize * PLACE + cookie as usize * BUFFER;
                    let mut data = vec![0; datagram.bytes as usize];
                    side.memory.read_bytes(at, &mut data).map_err(endpoints)?;
                    // Those in front of it found no buffer.
                    let due = side.into.iter().position(|due| *due == data);
                    let Some(due) = due else {
                        return Err(ExploreError::Endpoint(EndpointFault::Received(data.len())));
                    };
                    side.into.drain(..=due);
                    side.lost += due as u32;
                    self.lost += due as u32;
                    side.came += 1;
                    side.buffers.push(cookie);
                }
            }
        }
        if side.endpoint.is_lost() {
            return Err(ExploreError::Endpoint(EndpointFault::Twice));
        }
        Ok(())
    }

    /// Datagrams that found no buffer, since the mailbox was slower, do not come any more.
    fn see_lost(&mut self) {
        let machine = self.machine.lock();
        let block = machine.word(Extension::Eudp.nic_address());
        let at = block + BlockWord::Refused as u32 + Refusal::NoBuffer as u32;
        let refused = machine.word(at).saturating_sub(self.lost);
        let missing: usize = self.sides.iter().map(|side| side.into.len()).sum();
        if missing != 0 && missing == refused as usize {
            for side in &mut self.sides {
                let lost = side.into.drain(..).count() as u32;
                side.lost += lost;
                self.lost += lost;
            }
        }
    }

    /// Sees what has left.
    fn take_sent(&mut self) -> Result<(), ExploreError> {
        while let Some(frame) = { self.machine.lock().take_frame() } {
            let Some((number, part)) = wire::outbound(&frame.bytes) else {
                continue;
            };
            let side = self.sides.iter_mut().find(|side| side.number == number);
            let fault = |fault| ExploreError::Endpoint(fault);
            let side = side.ok_or(fault(EndpointFault::Frame(frame.bytes.len())))?;
            let Some(data) = side.assembled.take(part).map_err(fault)? else {
                continue;
            };
            match side.on_wire.pop_front() {
                Some((_, due)) if due == data => side.left += 1,
                due => {
                    let (due, right) = due.unzip();
                    let right = right.unwrap_or_default();
                    let differs = data.iter().zip(&right).position(|(a, b)| a != b);
                    return Err(fault(EndpointFault::Sent {
                        due,
                        bytes: data.len(),
                        differs: differs.unwrap_or(data.len().min(right.len())),
                    }));
                }
            }
        }
        Ok(())
    }

    /// Nothing else comes, and what was lost was counted.
    pub(super) fn finish(&mut self) -> Result<(), ExploreError> {
        let cycles = self.machine.lock().clock().cycle_at(2_000_000);
        self.machine.lock().run(cycles);
        for number in 0..self.sides.len() {
            self.poll(number)?;
        }
        self.take_sent()?;
        self.trace.follow(&self.machine)?;
        let lent = &mut EndpointCard(&mut self.nic);
        let refused = self.eudp.refusals(lent).map_err(endpoints)?;
        let [_, _, faults] = self.eudp.cuts(lent).map_err(endpoints)?;
        if faults != 0 || refused.bad_sum != 0 || refused.bad_header != 0 {
            return Err(ExploreError::Endpoint(EndpointFault::Refused(refused)));
        }
        if self.lost > refused.no_buffer {
            return Err(ExploreError::Endpoint(EndpointFault::Lost(self.lost)));
        }
        self.nic.check_fatal()?;
        self.schedule.check_pointers()?;
        self.schedule.check_accesses()
    }
}
