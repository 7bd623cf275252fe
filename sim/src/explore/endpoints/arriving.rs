//! Datagrams of a story from the wire: what is due of them, and what the card makes of frames that are
//! none.

use super::endpoints;
use super::host::{COUNT, Host, LENGTHS};
use super::mishaps::{Damage, Odd};
use super::side::{BUFFER, CONNECTED, Gone, PEER_PORT, PLACE, PLACES, PORT, Side, is_gone};
use super::wire::{self, Way, datagram};
use crate::explore::disturbance::{below, choose};
use crate::explore::{EndpointFault, ExploreError};
use eudp::{Received, Refusals, Status};
use host_driver::nic::EndpointCard;
use host_interface::eudp::{BlockWord, Refusal};
use host_interface::extension::Extension;
use tigon2_chip::Register;
use tigon2_chip::mac::RxError;

/// Lengths of datagrams in fragments, and bytes of IP payload in each.
const PARTED: [usize; 4] = [1473, 2007, 4055, 8972];
const PARTS: [usize; 3] = [800, 1024, 1480];
/// Nanoseconds between two looks at a wire that is to be empty, and looks at the most.
const LOOK: u64 = 2_000;
const LOOKS: u32 = 10_000;
/// Frames on the wire to which none is added that is damaged.
const PENDING: usize = 8;
/// Flows of damaged frames: nobody waits for their datagrams.
const NOBODY: u8 = 4;

impl Host<'_> {
    fn way(&self, number: u8, peer: u8) -> Way {
        Way {
            station: self.nic.station(),
            peer,
            peer_port: PEER_PORT,
            port: PORT + u16::from(number),
        }
    }

    /// Puts a datagram on the wire, if there are buffers for it, and frames that are none.
    pub(super) fn offer(&mut self, number: usize) {
        if self.sides[number].offered < COUNT && self.machine.lock().pending_frames() < PENDING {
            if let Some(damage) = self.mishaps.damaged() {
                self.offer_damaged(number, damage);
            }
            if self.mishaps.is_rejected() {
                self.reject_one(number);
            }
        }
        self.offer_fragment(number);
        let side = &mut self.sides[number];
        let waiting = side.endpoint.receiving();
        if side.offered == COUNT || side.missing() >= waiting || self.random_bit() {
            return;
        }
        let most = self.story.mtu as usize - 28;
        let length = choose(&mut self.random, LENGTHS).min(most);
        let side = &self.sides[number];
        if side.parted.is_none() && side.fragments.is_empty() && self.mishaps.is_parted() {
            return self.part_one(number);
        }
        let is_summed = self.mishaps.is_summed();
        let side = &self.sides[number];
        let data = datagram(side.number + 2, side.offered, length);
        let frame = wire::inbound(self.way(side.number, 0), is_summed, &data);
        self.machine.lock().send_frame(0, frame);
        let side = &mut self.sides[number];
        side.into.push_back(data);
        side.offered += 1;
    }

    /// Makes the next datagram one in fragments, in any order, of which one comes twice.
    fn part_one(&mut self, number: usize) {
        let is_summed = self.mishaps.is_summed();
        let any = &mut self.mishaps.random;
        let (length, most) = (choose(any, PARTED), choose(any, PARTS));
        let side = &self.sides[number];
        let data = datagram(side.number + 2, side.offered, length);
        let way = self.way(side.number, CONNECTED + side.number);
        // An endpoint that is opened again does not use them again.
        self.odd.parted += 1;
        let mut frames = wire::parted(way, is_summed, &data, (self.odd.parted, most));
        let any = &mut self.mishaps.random;
        for last in (1..frames.len()).rev() {
            frames.swap(last, below(any, last as u64 + 1) as usize);
        }
        let last = frames.len() as u64 - 1;
        let again = frames[below(any, last) as usize].clone();
        frames.insert(below(any, last + 1) as usize, again);
        let side = &mut self.sides[number];
        side.fragments = frames.into_iter().map(|it| (it, RxError::NONE)).collect();
        side.parted = Some(data);
        side.offered += 1;
    }

    /// Puts some fragments on the wire: one that is damaged comes again.
    fn offer_fragment(&mut self, number: usize) {
        let damage = if self.sides[number].fragments.is_empty() {
            return;
        } else {
            self.mishaps.damaged()
        };
        let some = below(&mut self.mishaps.random, 4);
        let side = &mut self.sides[number];
        let bad = match (damage, side.fragments.front()) {
            (Some(Damage::Error(error)), Some((frame, _))) => Some((frame.clone(), error)),
            (Some(Damage::Burst), Some((frame, _))) => {
                Some((self.mishaps.burst(frame), RxError::CRC))
            }
            _ => None,
        };
        if let Some(bad) = bad {
            self.odd.frames += 1;
            side.fragments.push_front(bad);
        }
        for _ in 0..some {
            let Some((frame, error)) = side.fragments.pop_front() else {
                break;
            };
            self.machine.lock().send_damaged_frame(0, frame, error);
        }
    }

    /// Puts a frame on the wire whose datagram nobody is to see.
    fn offer_damaged(&mut self, number: usize, damage: Damage) {
        let most = self.story.mtu as usize - 28;
        let length = choose(&mut self.mishaps.random, [400, 1472, 4054, 8972]).min(most);
        let is_summed = damage == Damage::Sum || self.mishaps.is_summed();
        let side = self.sides[number].number;
        let data = datagram(NOBODY + side, self.odd.frames, length);
        let mut frame = wire::inbound(self.way(side, 0), is_summed, &data);
        self.odd.frames += 1;
        let mut error = RxError::NONE;
        match damage {
            Damage::Error(what) => error = what,
            Damage::Burst => {
                frame = self.mishaps.burst(&frame);
                error = RxError::CRC;
            }
            Damage::Sum => {
                let at = frame.len() - 1 - below(&mut self.mishaps.random, 300) as usize;
                frame[at] ^= 0x55;
                self.odd.wrong_sums += 1;
            }
            Damage::Short => {
                let cut = 1 + below(&mut self.mishaps.random, 300) as usize;
                frame.truncate(frame.len() - cut);
                self.odd.short += 1;
            }
        }
        self.machine.lock().send_damaged_frame(0, frame, error);
    }

    /// Lets the MAC reject a long frame at its end, of which something has come before: the card's
    /// address is another one meanwhile.
    fn reject_one(&mut self, number: usize) {
        let length = self.story.mtu as usize - 28;
        let mut machine = self.machine.lock();
        if self.story.stall.is_none() || machine.pending_frames() != 0 {
            return;
        }
        let side = self.sides[number].number;
        let data = datagram(NOBODY + side, self.odd.frames, length);
        self.odd.frames += 1;
        let way = Way {
            station: self.nic.station(),
            peer: 0,
            peer_port: PEER_PORT,
            port: PORT + u16::from(side),
        };
        let end = machine.send_frame(0, wire::inbound(way, true, &data));
        let before = below(&mut self.mishaps.random, end - machine.now());
        let cycles = machine.clock().cycle_at(before);
        machine.run(cycles);
        let register = Register::StationAddressLow.offset();
        let address = machine.bar_read(register);
        machine.bar_write(register, address ^ 1);
        let look = machine.clock().cycle_at(LOOK);
        for _ in 0..LOOKS {
            if machine.pending_frames() == 0 {
                break;
            }
            machine.run(look);
        }
        machine.bar_write(register, address);
    }

    /// A buffer has come back.
    pub(super) fn received(
        &mut self,
        number: usize,
        (cookie, status): (u32, Status),
        datagram: Received,
    ) -> Result<(), ExploreError> {
        let side = &mut self.sides[number];
        let fault = |fault| Err(ExploreError::Endpoint(fault));
        let gone = side.gone.as_mut().filter(|_| is_gone(cookie));
        let (free, memory, at) = match gone {
            Some(gone) => (&mut gone.buffers, &gone.memory, Gone::at_buffer(cookie)),
            None => {
                let at = PLACES as usize * PLACE + cookie as usize * BUFFER;
                (&mut side.buffers, &side.memory, at)
            }
        };
        if free.contains(&cookie) {
            return fault(EndpointFault::Twice);
        }
        free.push(cookie);
        match status {
            Status::Done => {}
            Status::Unwritable if is_gone(cookie) => {
                self.odd.unwritten += 1;
                return Ok(());
            }
            Status::Incomplete if is_gone(cookie) && side.parted.is_some() => {
                side.parted = None;
                side.fragments.clear();
                side.lost += 1;
                self.odd.incomplete += 1;
                return Ok(());
            }
            status => return fault(EndpointFault::Status(status)),
        }
        let mut data = vec![0; datagram.bytes as usize];
        memory.read_bytes(at, &mut data).map_err(endpoints)?;
        side.came += 1;
        if side.parted.as_ref() == Some(&data) {
            side.parted = None;
            return Ok(());
        }
        // Those in front of it found no buffer, or one that could not be written.
        let Some(due) = side.into.iter().position(|due| *due == data) else {
            return fault(EndpointFault::Received(data.len()));
        };
        side.into.drain(..=due);
        side.lost += due as u32;
        self.lost += due as u32;
        Ok(())
    }

    /// Datagrams that found no buffer, since the mailbox was slower, or one that could not be written,
    /// do not come any more.
    pub(super) fn see_lost(&mut self) -> Result<(), ExploreError> {
        let machine = self.machine.lock();
        let block = machine.word(Extension::Eudp.nic_address());
        let refused = |refusal: Refusal| {
            let at = block + BlockWord::Refused as u32 + refusal as u32;
            machine.word(at)
        };
        let without_buffer = refused(Refusal::NoBuffer) + self.odd.unwritten;
        // Those with a wrong sum of which nothing is known may be among them, or still come.
        let bad_sums = refused(Refusal::BadSum);
        drop(machine);
        let Some(others) = self.odd.wrong_sums.checked_sub(bad_sums) else {
            return Err(ExploreError::Endpoint(EndpointFault::BadSums(bad_sums)));
        };
        let lost = without_buffer.saturating_sub(self.lost + others);
        let missing: usize = self.sides.iter().map(Side::missing).sum();
        if missing == 0 || missing != lost as usize {
            return Ok(());
        }
        for side in &mut self.sides {
            let lost = side.missing() as u32;
            side.into.clear();
            side.parted = None;
            side.fragments.clear();
            side.lost += lost;
            self.lost += lost;
        }
        Ok(())
    }

    /// Lets what is on the wire come, so that its endpoint is open when it does.
    pub(super) fn empty_wire(&mut self) -> Result<(), ExploreError> {
        let look = self.machine.lock().clock().cycle_at(LOOK);
        for _ in 0..LOOKS {
            if self.machine.lock().pending_frames() == 0 {
                break;
            }
            self.machine.lock().run(look);
            self.trace.follow(&self.machine)?;
        }
        let cycles = self.machine.lock().clock().cycle_at(500_000);
        self.machine.lock().run(cycles);
        self.trace.follow(&self.machine)
    }

    /// What was refused was to be refused, and what was lost was counted.
    pub(super) fn check_refused(&mut self) -> Result<(), ExploreError> {
        let lent = &mut EndpointCard(&mut self.nic);
        let refused = self.eudp.refusals(lent).map_err(endpoints)?;
        let [_, _, faults] = self.eudp.cuts(lent).map_err(endpoints)?;
        let Odd {
            wrong_sums,
            short,
            parted,
            unwritten,
            incomplete,
            ..
        } = self.odd;
        let right = Refusals {
            bad_header: short,
            bad_region: unwritten + incomplete,
            bad_sum: refused.bad_sum.min(wrong_sums),
            duplicate: refused.duplicate.min(parted.into()),
            no_buffer: refused.no_buffer,
            ..Refusals::default()
        };
        if faults != 0 || refused != right {
            return Err(ExploreError::Endpoint(EndpointFault::Refused(refused)));
        }
        if self.lost > refused.no_buffer + unwritten {
            return Err(ExploreError::Endpoint(EndpointFault::Lost(self.lost)));
        }
        Ok(())
    }
}
