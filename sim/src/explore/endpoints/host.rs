//! The driver and the process of a story, with what is due of each endpoint.

use super::followed::Followed;
use super::mishaps::{Mishaps, Odd};
use super::side::{BUFFER, Gone, Outgoing, PEER_PORT, PLACE, PLACES, Side};
use super::wire::{self, datagram};
use super::{EndpointStory, endpoints};
use crate::explore::disturbance::{below, choose};
use crate::explore::schedule::Schedule;
use crate::explore::{EndpointFault, ExploreError};
use crate::transport::{SharedMachine, SimTransport};
use crate::workload::datagram::PEER as STATION;
use eudp::{Completion, Eudp};
use host_driver::Nic;
use host_driver::nic::EndpointCard;
use rand_xoshiro::SplitMix64;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Datagrams of each endpoint, each way.
pub(super) const COUNT: u32 = 40;
/// Their lengths: in the descriptor, a whole frame, the shortest that is cut through, in fragments.
pub(super) const LENGTHS: [usize; 12] = [
    0, 1, 64, 65, 400, 1472, 1473, 2007, 4054, 4055, 8972, 20_000,
];
/// The card's time without a datagram after which a story has failed.
const STALL_NS: u64 = 80_000_000;
/// The type of the driver's own frames: for experiments.
const PLAIN: [u8; 2] = [0x88, 0xB5];
/// Those that are due at a time.
const PLAINS: usize = 4;
/// Cycles of a turn, at most, and turns in which what was queued leaves.
const TURN: u64 = 6000;
const TURNS: u32 = 2000;

/// The driver, and both endpoints.
pub(super) struct Host<'a> {
    pub(super) sides: Vec<Side>,
    pub(super) nic: Nic<SimTransport>,
    pub(super) eudp: Eudp,
    pub(super) machine: SharedMachine,
    pub(super) schedule: Schedule,
    pub(super) story: &'a EndpointStory,
    pub(super) random: SplitMix64,
    pub(super) mishaps: Mishaps,
    pub(super) trace: Followed,
    /// Frames of the driver's own that are due on the wire.
    pub(super) plain: VecDeque<Vec<u8>>,
    /// Datagrams for which no buffer was there in time, or none that could be written.
    pub(super) lost: u32,
    pub(super) odd: Odd,
}

impl Host<'_> {
    /// Opens endpoint `number`.
    pub(super) fn open(&mut self, number: u8) -> Result<Side, ExploreError> {
        let card = (&mut self.nic, &mut self.eudp);
        Side::open(number, card, (self.story, &self.mishaps), &self.machine)
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
            self.see_lost()?;
            if !self.sides.iter().any(|side| side.is_busy(COUNT)) {
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

    /// Sends a frame of the driver's own, if there is room.
    fn send_plain(&mut self) -> Result<(), ExploreError> {
        self.nic.service()?;
        let length = 60 + below(&mut self.mishaps.random, 1400) as usize;
        let mut frame = datagram(0xFF, self.plain.len() as u32, length);
        frame[..6].copy_from_slice(&STATION);
        frame[6..12].copy_from_slice(&self.nic.station());
        frame[12..14].copy_from_slice(&PLAIN);
        if self.nic.queue(&[IoSlice::new(&frame)])? {
            self.nic.submit()?;
            self.plain.push_back(frame);
        }
        Ok(())
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
        if self.plain.len() < PLAINS && self.mishaps.is_plain() {
            self.send_plain()?;
        }
        let side = &mut self.sides[number];
        if let Some(gone) = side.gone.as_mut().filter(|_| self.mishaps.is_turned()) {
            gone.turn(&self.machine);
        }
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
                let mut pieces = [
                    side.region.segment(offset, cut),
                    side.region.segment(offset + cut, length as u32 - cut),
                ];
                if let Some(gone) = &mut side.gone
                    && self.mishaps.is_unreadable()
                    && let Some(there) = gone.places.pop()
                {
                    let (first, second) = data.split_at(cut as usize);
                    let some = below(&mut self.mishaps.random, 2) as usize;
                    let (at, bytes) = (Gone::at_place(there), [first, second][some]);
                    gone.memory.write_bytes(at, bytes).map_err(endpoints)?;
                    pieces[some] = gone.region.segment(at as u32, bytes.len() as u32);
                    side.unreadable.insert(place, there);
                }
                side.endpoint.queue(lent, to, &pieces, place)
            }
            .map_err(endpoints)?;
            side.on_wire.push_back(Outgoing {
                number: side.posted,
                data,
                place: Some(place),
                is_gone: side.unreadable.contains_key(&place),
            });
            side.posted += 1;
        }
        while side.offered < COUNT
            && let Some(buffer) = side.buffers.pop()
        {
            if let Some(gone) = &mut side.gone
                && self.mishaps.is_unwritable()
                && let Some(buffer) = gone.buffers.pop()
            {
                let at = Gone::at_buffer(buffer) as u32;
                let piece = gone.region.segment(at, BUFFER as u32);
                side.endpoint
                    .post(lent, &[piece], buffer)
                    .map_err(endpoints)?;
            }
            let at = (PLACES as usize * PLACE + buffer as usize * BUFFER) as u32;
            let piece = side.region.segment(at, BUFFER as u32);
            side.endpoint
                .post(lent, &[piece], buffer)
                .map_err(endpoints)?;
        }
        side.endpoint.submit(lent)?;
        Ok(())
    }

    pub(super) fn random_bit(&mut self) -> bool {
        below(&mut self.random, 2) == 0
    }

    pub(super) fn poll(&mut self, number: usize) -> Result<(), ExploreError> {
        let fault = |fault| Err(ExploreError::Endpoint(fault));
        loop {
            let side = &mut self.sides[number];
            let lent = &mut EndpointCard(&mut self.nic);
            match side.endpoint.poll(lent).map_err(endpoints)? {
                None if side.endpoint.is_lost() => return fault(EndpointFault::Twice),
                None => return Ok(()),
                Some(Completion::Sent { cookie, status }) => {
                    side.sent += 1;
                    if side.places.contains(&cookie) {
                        return fault(EndpointFault::Twice);
                    }
                    side.places.push(cookie);
                    if !side.complete(cookie, status) {
                        return fault(EndpointFault::Status(status));
                    }
                }
                Some(Completion::Received {
                    cookie,
                    status,
                    datagram,
                }) => self.received(number, (cookie, status), datagram)?,
            }
        }
    }

    /// Sees what has left.
    fn take_sent(&mut self) -> Result<(), ExploreError> {
        while let Some(frame) = { self.machine.lock().take_frame() } {
            if frame.bytes.get(12..14) == Some(&PLAIN)
                && self.plain.pop_front().as_ref() != Some(&frame.bytes)
            {
                return Err(ExploreError::Endpoint(EndpointFault::Plain));
            }
            let Some((number, part)) = wire::outbound(&frame.bytes) else {
                continue;
            };
            let side = self.sides.iter_mut().find(|side| side.number == number);
            let fault = |fault| ExploreError::Endpoint(fault);
            let side = side.ok_or(fault(EndpointFault::Frame(frame.bytes.len())))?;
            if side.on_wire.front().is_some_and(|due| due.is_gone) {
                side.assembled.give_up_for(&part);
            }
            let Some(data) = side.assembled.take(part).map_err(fault)? else {
                continue;
            };
            side.skip_to(&data);
            match side.on_wire.pop_front() {
                Some(due) if due.data == data => side.left += 1,
                due => {
                    let (due, right) = due.map(|due| (due.number, due.data)).unzip();
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
        if self.mishaps.have_bad_frames() {
            self.empty_wire()?;
        }
        let cycles = self.machine.lock().clock().cycle_at(2_000_000);
        self.machine.lock().run(cycles);
        for number in 0..self.sides.len() {
            self.poll(number)?;
        }
        self.take_sent()?;
        self.trace.follow(&self.machine)?;
        for _ in 0..TURNS {
            if self.plain.is_empty() {
                break;
            }
            self.machine.lock().run(TURN);
            self.take_sent()?;
            self.trace.follow(&self.machine)?;
        }
        if !self.plain.is_empty() {
            return Err(ExploreError::Endpoint(EndpointFault::Plain));
        }
        self.check_refused()?;
        self.nic.check_fatal()?;
        self.schedule.check_pointers()?;
        self.schedule.check_accesses()
    }
}
