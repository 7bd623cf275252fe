//! Claims: runs of simple send BDs that one CPU queues while others use the ring.
//!
//! For boards with several sending CPUs, as [`path::receive::claim`] is for receiving ones.
//! [`claim`] takes send BDs of frames without offloads, assigns buffer space and descriptors, and
//! puts the frames into the MAC's ring. [`Claim::fill`] has the data fetched and needs no state of
//! the path.
//!
//! [`path::receive::claim`]: ../../receive/claim/index.html

use super::{END, FRAME_MAX, NOW, ROOM, SendPath};
use crate::io::IoB;
use crate::io::bd_ring::Take;
use crate::io::note::ReadNote;
use crate::memory::shared::LINK_UP;
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::{Descriptors, HostAddress};
use tigon2_hal::events::Dispatch;

/// BDs of one claim, more than of one handler run, because a claim costs as much as several.
const BDS: u32 = 24;

/// BDs of one run whose data one CPU has fetched.
#[derive(Debug)]
pub struct Claim {
    /// Length and flags, and where in the transmit buffer the data goes.
    data: [(u32, u32); BDS as usize],
    count: usize,
    bds: Take<4>,
    descriptors: Descriptors,
    /// State words of a fragment and of the last one of a frame.
    state: u32,
    last: u32,
}

impl Claim {
    /// No BD.
    pub const NONE: Claim = Claim {
        data: [(0, 0); BDS as usize],
        count: 0,
        bds: Take::NONE,
        descriptors: Descriptors::NONE,
        state: 0,
        last: 0,
    };

    /// Fills the descriptors.
    #[inline(always)]
    pub fn fill<B: Dispatch>(&self, bus: &mut B) {
        let (mut bds, mut descriptors) = (self.bds, self.descriptors);
        let (state, last) = (self.state, self.last);
        let data = self.data.get(..self.count).unwrap_or_default();
        for (word, local) in data {
            let bd = bds.next_address();
            bds.advance();
            let host = HostAddress {
                high: bus.load(bd),
                low: bus.load(bd + 4),
            };
            let descriptor = descriptors.next();
            descriptor.local(bus, *local);
            descriptor.length(bus, word >> 16);
            descriptor.state(bus, if word & END != 0 { last } else { state });
            descriptor.host(bus, host);
        }
    }
}

/// The result of looking for BDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// BDs are claimed and must be filled.
    Claimed,
    /// There is no BD.
    Nothing,
    /// No descriptor is free: the event is masked until completed transfers have been processed.
    Full,
    /// The next BD needs inspection or has to wait: it is for [`data_ready`](super::data_ready).
    Other,
}

/// Completed transfers were processed: there is room for the data of waiting BDs.
#[inline(always)]
pub fn go_on<B: Dispatch>(send: &SendPath, io: &mut IoB<B>) {
    if !send.bds.is_empty() {
        io.bus.set(EventBit::SendDataReady);
    }
}

/// Claims some BDs. The descriptors are the next ones of the ring. One loop in one function, so
/// that what goes from BD to BD is in registers: all of it is under a lock.
#[inline(always)]
pub fn claim<B: Dispatch>(send: &mut SendPath, io: &mut IoB<B>, claim: &mut Claim) -> Look {
    if send.bds.is_empty() {
        io.bus.clear(EventBit::SendDataReady);
        return Look::Nothing;
    }
    if !io.read_ring.has_room(1) {
        io.bus.set(EventBit::DmaReadComplete);
        io.bus.clear(EventBit::SendDataReady);
        return Look::Full;
    }
    if send.frame_bytes != 0 && send.requested.flags != 0 || LINK_UP.get(&mut io.bus) == 0 {
        return Look::Other;
    }
    let IoB {
        bus,
        read_ring,
        states,
        ..
    } = io;
    let mut queue = read_ring.open();
    let mut frames = send.ring.open();
    let mut buffer = send.buffer;
    let mut bds: Take<4> = *send.bds;
    let (mut start, mut so_far) = (send.frame_start, send.frame_bytes);
    let mut octets = 0;
    let mut left = bds.ready().min(BDS).min(queue.free());
    left = left.min(frames.free(bus, left));
    if frames.held() != 0 {
        left = 0;
    }
    claim.bds = bds;
    claim.descriptors = queue.ahead();
    claim.state = states.data;
    claim.last = states.last;
    let mut count = 0;
    for place in claim.data.iter_mut().take(left as usize) {
        let word = bus.load(bds.next_address() + 8);
        let length = word >> 16;
        let bytes = so_far + length;
        if length == 0 || bytes > FRAME_MAX {
            break;
        }
        let mut note = ReadNote::data(word, NOW);
        if so_far == 0 {
            if send.offloads.of(word) != 0 || !buffer.has_room(bus, ROOM) {
                break;
            }
            start = buffer.position();
            note = note.first(start);
        }
        *place = (word, buffer.position());
        queue.commit(note.word());
        bds.advance();
        count += 1;
        if word & END != 0 {
            frames.push(bus, start, bytes, None);
            buffer.take_last(length);
            so_far = 0;
            octets += bytes;
        } else {
            buffer.take(length);
            so_far = bytes;
        }
    }
    drop(queue);
    frames.close(bus);
    claim.count = count;
    if count == 0 {
        return Look::Other;
    }
    send.buffer = buffer;
    *send.bds = bds;
    send.frame_start = start;
    send.frame_bytes = so_far;
    send.requested = super::offload::Requested::NONE;
    send.counters.octets.add(octets);
    io.bus.set(EventBit::DmaReadComplete);
    if send.bds.is_empty() {
        io.bus.clear(EventBit::SendDataReady);
    }
    Look::Claimed
}
