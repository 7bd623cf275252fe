//! Claims: runs of simple frames that one CPU delivers while others use the ring.
//!
//! For boards with several receiving CPUs. Under the caller's lock, [`claim`] takes a run of
//! frames that the fast path would take, with their BDs, their return entries,
//! their descriptors and those of the return BDs after them. The expensive part, [`Claim::fill`],
//! needs no state of the path:
//!
//! ```text
//! CPU A:  [claim 0-15][fill 0-15 ............][settle]
//! CPU C:              [claim 16-31][fill 16-31 ............][settle]
//! ```
//!
//! The channel must not see a descriptor before it is filled; the caller ensures that. The caller
//! calls [`settle`] after it has released the descriptors.

use super::deliver::{CUT, NOW, Taken, flags_of};
use super::frame;
use super::index::returned;
use super::returns::{self, Made};
use super::state::Receive;
use crate::io::bd_ring::Take;
use crate::io::note::WriteNote;
use crate::io::{IoA, filter};
use crate::memory::layout::RETURN_SLOTS;
use host_interface::bd::ReceiveBdAt;
use host_interface::bd::destination::UNICAST;
use host_interface::extension::DropReason;
use tigon2_chip::events::EventBit;
use tigon2_hal::assist::Descriptors;
use tigon2_hal::events::Dispatch;

/// Frames of one claim, more than of one handler run, because a claim costs as much as several
/// frames. Together with the claims of other CPUs they fill the descriptor ring.
const FRAMES: u32 = 24;
/// Transfers of their return BDs, and of return BDs that waited.
const TRANSFERS: u32 = (FRAMES + returns::MANY - 1).div_ceil(returns::MANY) + 1;
// As for a handler run: slots for the ring's frames, for this claim, and for BDs that wait.
const _: () = assert!(64 + FRAMES + returns::MANY <= RETURN_SLOTS);

/// The result of looking for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Frames are claimed and must be filled.
    Claimed,
    /// There is no frame.
    Nothing,
    /// No descriptor is free: the event is masked until completed transfers have been processed.
    Full,
    /// The next frame needs inspection or has to wait: it is for
    /// [`complete`](super::handlers::complete).
    Other,
}

/// Frames of one run that one CPU delivers.
#[derive(Debug)]
pub struct Claim {
    /// Start in the receive buffer and length without CRC.
    frames: [(u32, u32); FRAMES as usize],
    count: usize,
    bds: Take<5>,
    made: Made,
    descriptors: Descriptors,
    state: u32,
    /// Flags of their return BDs.
    flags: u32,
    /// Bytes of the CRC that the host wants.
    more: u32,
}

/// What [`settle`] needs to know of the filled frames; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled(u32);

impl Filled {
    const DONE: u32 = 1;
    const NOW: u32 = 2;
    const CUT: u32 = 0x100;

    /// As a word that is not 0.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// From such a word.
    pub const fn of_word(word: u32) -> Filled {
        Filled(word)
    }
}

impl Claim {
    /// No frame.
    pub const NONE: Claim = Claim {
        frames: [(0, 0); FRAMES as usize],
        count: 0,
        bds: Take::NONE,
        made: Made::NONE,
        descriptors: Descriptors::NONE,
        state: 0,
        flags: 0,
        more: 0,
    };

    /// Fills descriptors and return BDs. Truncates a frame that its buffer does not hold.
    #[inline(always)]
    pub fn fill<B: Dispatch>(&self, bus: &mut B) -> Filled {
        let (mut bds, mut made, mut descriptors) = (self.bds, self.made, self.descriptors);
        let (plain, state, more) = (self.flags, self.state, self.more);
        let (mut now, mut cut) = (0, 0);
        let frames = self.frames.get(..self.count).unwrap_or_default();
        for (start, length) in frames {
            let taken = Taken::new(bus, bds.next_address());
            let descriptor = descriptors.next();
            descriptor.local(bus, *start);
            bds.advance();
            let slot = made.slot();
            made.set(made.after());
            now |= taken.flags;
            let mut bytes = *length + more;
            let mut flags = plain;
            if bytes > taken.room() {
                bytes = taken.room();
                flags |= CUT.0;
                bus.store(ReceiveBdAt(slot).errors_and_vlan(), CUT.1);
                cut += Filled::CUT;
            }
            descriptor.length(bus, bytes);
            descriptor.state(bus, state);
            descriptor.host(bus, taken.host);
            bus.store(ReceiveBdAt(slot).kind_and_flags(), flags);
            taken.stage(bus, slot, bytes);
        }
        let now = if now & NOW != 0 { Filled::NOW } else { 0 };
        Filled(Filled::DONE | now | cut)
    }
}

/// Claims up to a run of frames. Its descriptors are the next ones of the ring. One loop in one
/// function, so that what goes from frame to frame is in registers: all of it is under a lock.
#[inline(always)]
pub fn claim<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, claim: &mut Claim) -> Look {
    if receive.detours() != 0 {
        return Look::Other;
    }
    io.look_for_room(FRAMES + TRANSFERS);
    if !io.has_write_room(1 + TRANSFERS) {
        io.bus.clear(EventBit::ReceiveComplete);
        return Look::Full;
    }
    let IoA {
        bus,
        write_ring,
        states,
        ..
    } = io;
    let mut frames = receive.ring.open();
    let Some(first) = frames.oldest(bus) else {
        return Look::Nothing;
    };
    drop(frames);
    let length = (first.errors << 16 | first.length).wrapping_sub(frame::CRC);
    let (shortest, lengths) = receive.lengths(receive.usual);
    if length.wrapping_sub(shortest) >= lengths && !receive.changes_ring(length) {
        return Look::Other;
    }
    let usual = receive.usual;
    let (shortest, lengths) = receive.lengths(usual);
    let mut made = receive.returns.open();
    let mut frames = receive.ring.open();
    let mut queue = write_ring.open();
    let ring = receive.rings.get_mut(usual);
    let mut bds = ring.open(bus, FRAMES);
    let limit = FRAMES
        .min(bds.ready())
        .min(receive.returns.known_room())
        .min(queue.free().saturating_sub(TRANSFERS));
    claim.bds = bds;
    claim.made = made;
    claim.descriptors = queue.ahead();
    claim.state = states.data;
    claim.flags = flags_of(ring.flag(), UNICAST);
    claim.more = frame::CRC - receive.cut;
    let mut left = limit;
    let mut octets = 0;
    for place in &mut claim.frames {
        if left == 0 {
            break;
        }
        let Some(frame) = frames.oldest(bus) else {
            break;
        };
        // Error bits make it longer than any frame.
        let length = (frame.errors << 16 | frame.length).wrapping_sub(frame::CRC);
        if length.wrapping_sub(shortest) >= lengths || filter::is_of_group(bus, frame.start) {
            break;
        }
        *place = (frame.start, length);
        octets += length;
        frames.release();
        left -= 1;
    }
    drop(frames);
    let count = limit - left;
    for _ in 0..count {
        queue.commit(WriteNote::receive_data(made.slot()).word());
        made.set(made.after());
    }
    drop(queue);
    bds.pass(count);
    ring.close(bds);
    claim.count = count as usize;
    if count == 0 {
        return Look::Other;
    }
    receive.returns.close(made);
    io.frees_with_data();
    receive.counters.received(UNICAST, count, octets);
    returned(&mut receive.index, io, count, false);
    let enough = if receive.index.is_due() {
        1
    } else {
        returns::MANY
    };
    returns::queue(&mut receive.returns, io, enough);
    receive.ring.give_back(&mut io.bus);
    Look::Claimed
}

/// Records that claimed frames are filled.
#[inline(always)]
pub fn settle<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, filled: Filled) {
    if filled.0 != Filled::DONE {
        settle_more(receive, io, filled);
    }
}

#[inline(never)]
fn settle_more<B: Dispatch>(receive: &mut Receive, io: &mut IoA<B>, filled: Filled) {
    for _ in 0..filled.0 / Filled::CUT {
        receive.counters.drops.count(DropReason::BufferTooSmall);
        // As after a frame with flaws, and those that were claimed since.
        receive.untidy = RETURN_SLOTS + 1;
    }
    if filled.0 & Filled::NOW != 0 {
        returned(&mut receive.index, io, 0, true);
    }
}
