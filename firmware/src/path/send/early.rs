//! The path, lent for a frame that may leave before it is whole.
//!
//! The transmit buffer and the MAC's ring are in order, and so is the read channel. While no data of
//! the host's frames is under way, somebody else may have all three for a frame: it says itself when
//! TxPrd moves, which the channel does for the host's frames. Meanwhile these wait in their ring.
//!
//! With SPINE the host's path does not look at who has it: while it is lent, the current frame has
//! the length of one that is skipped, so the next BD is unfit, and only then it looks.
//!
//! ```text
//! lend --> place, transfers of its own --> hand_over --> lend.. --> take_back
//!                                             |
//!                                    reset, resume: the frame again
//! ```

use super::own::Wait;
use super::{ROOM, SKIPPED, SendPath};
use crate::io::IoB;
use crate::memory::layout::SPINE;
use crate::memory::shared::LINK_UP;
use host_interface::statistics::Counter64;
use tigon2_chip::bits::MacTxState;
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::{Frames, TransmitBuffer};

/// What stands in `lent` while somebody wants the path back.
const WANTED: u32 = 2;
/// Bytes at the start of a frame that lie in one piece.
pub const TOGETHER: u32 = 128;
/// Frames that may be lent for and not handed over.
const MOST: u32 = 2;

impl SendPath {
    /// Whether somebody else has the path.
    #[inline(always)]
    pub fn is_lent(&self) -> bool {
        self.lent.first().is_some_and(|lent| *lent != 0)
    }

    /// Lends the path, with room for another frame, the longest.
    ///
    /// # Errors
    /// [`Wait`], and nothing has happened.
    #[inline(always)]
    pub fn lend<B: Dispatch>(&mut self, io: &mut IoB<B>) -> Result<(), Wait> {
        if self.is_lent() && self.ring.knows_free(MOST) && self.buffer.knows_room(ROOM + TOGETHER) {
            return Ok(());
        }
        self.lend_anew(io)
    }

    #[inline(never)]
    fn lend_anew<B: Dispatch>(&mut self, io: &mut IoB<B>) -> Result<(), Wait> {
        if !self.is_lent() {
            if self.frame_bytes != 0 {
                return Err(Wait::Later);
            }
            if self.is_reading() {
                return Err(Wait::Reads);
            }
        }
        let mut frames = self.ring.open();
        let fits = frames.held() == 0 && frames.free(&mut io.bus, MOST) >= MOST;
        frames.close(&mut io.bus);
        if !fits || !self.buffer.has_room(&mut io.bus, ROOM + TOGETHER) {
            return Err(Wait::Later);
        }
        if let Some(lent) = self.lent.first_mut() {
            *lent = (*lent).max(1);
        }
        if SPINE != 0 {
            self.frame_bytes = SKIPPED;
        }
        // The host's frames may have left it off until they have their turn.
        io.bus.set(EventBit::DmaReadComplete);
        Ok(())
    }

    /// Somebody has frames for the path, which is lent.
    #[inline(always)]
    pub(super) fn wait_for_path<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        io.bus.clear(EventBit::SendDataReady);
        if SPINE != 0 {
            self.want_path(io);
        }
    }

    /// Has the one who has the path look whether he is asked for it.
    #[inline(never)]
    pub(super) fn want_path<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        if let Some(lent) = self.lent.first_mut() {
            *lent = WANTED;
        }
        io.bus.ring(Cpu::B);
    }

    /// Whether the path is lent and somebody wants it.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.lent.first().is_some_and(|lent| *lent == WANTED)
    }

    /// Whether the host has frames that have not been begun.
    #[inline(always)]
    pub fn has_waiting(&self) -> bool {
        !self.bds.is_empty()
    }

    /// Takes the path back, if it is lent: the host's frames go on.
    #[inline(never)]
    pub fn take_back<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        if SPINE != 0 && self.is_lent() {
            self.frame_bytes = 0;
        }
        if let Some(lent) = self.lent.first_mut() {
            *lent = 0;
        }
        if self.has_waiting() {
            io.bus.set(EventBit::SendDataReady);
        }
    }

    /// Whether frames pass.
    #[inline(always)]
    pub fn has_link<B: Bus>(bus: &mut B) -> bool {
        LINK_UP.get(bus) != 0
    }

    /// Takes a whole page of `bytes`, a power of two, at a multiple of that; none if there is no
    /// room for it now. What is left in front of it stays empty.
    #[inline(always)]
    pub fn take_page<B: Bus>(&mut self, bus: &mut B, bytes: u32) -> Option<u32> {
        if !self.buffer.has_room(bus, bytes << 2) {
            return None;
        }
        let front = self.buffer.position().wrapping_neg() & (bytes - 1);
        self.buffer.take(front);
        self.buffer.keep_together(bytes);
        let front = self.buffer.position().wrapping_neg() & (bytes - 1);
        self.buffer.take(front);
        let page = self.buffer.position();
        self.buffer.take(bytes);
        Some(page)
    }

    /// Gives the MAC the frame of `length` bytes without CRC that begins at `start` and lies in the
    /// page that ends at `end`; `false` if it has no room for a descriptor.
    #[inline(always)]
    pub fn push_page<B: Bus>(&mut self, bus: &mut B, start: u32, length: u32, end: u32) -> bool {
        let mut frames = self.ring.open();
        let fits = frames.free(bus, 1) != 0;
        if fits {
            frames.push(bus, start, length, None);
            // The writes of registers would go past stores that wait; a load does not.
            let _ = bus.load(start);
            bus.write(Register::TxProducer, self.buffer.behind(end, 0));
        }
        frames.close(bus);
        if fits {
            self.counters.octets.add(length);
        }
        fits
    }

    /// Where a frame of `length` bytes begins, which takes this room.
    #[inline(always)]
    pub fn place_frame(&mut self, length: u32) -> u32 {
        self.buffer.take_frame(length, TOGETHER)
    }

    /// The address `bytes` behind `address` in the transmit buffer.
    #[inline(always)]
    pub fn behind(&self, address: u32, bytes: u32) -> u32 {
        self.buffer.behind(address, bytes)
    }

    /// Gives the MAC the frame of `length` bytes without CRC that begins at `start`, whatever of it
    /// is there: the MAC sends it as soon as it may, with the VLAN tag in bits 31:16 of `tag` unless
    /// that is 0.
    #[inline(always)]
    pub fn hand_over<B: Dispatch>(&mut self, io: &mut IoB<B>, start: u32, length: u32, tag: u32) {
        let bus = &mut io.bus;
        let mut frames = self.ring.open();
        frames.push(bus, start, length, (tag != 0).then_some(tag >> 16));
        // The writes of registers would go past stores that wait; a load does not.
        let _ = bus.load(start);
        let end = self.buffer.behind(start, length);
        bus.write(Register::TxProducer, end);
        frames.close(bus);
        self.counters.octets.add(length);
    }

    /// Begins with frames that the MAC gets together, when all of them are stored. They have at most
    /// `bytes`, which lie in one piece, each rounded up to a multiple of 8.
    #[inline(always)]
    pub fn store_frames(&mut self, bytes: u32) -> StoredFrames<'_> {
        self.buffer.keep_together(bytes);
        StoredFrames {
            begin: self.buffer.position(),
            at: self.buffer.position(),
            frames: self.ring.open(),
            buffer: &mut self.buffer,
            octets: &mut self.counters.octets,
            bytes: 0,
        }
    }

    /// Whether the MAC has sent all that it was given.
    #[inline(always)]
    pub fn mac_is_idle<B: Bus>(&self, bus: &mut B) -> bool {
        self.ring.is_empty(bus)
    }

    /// Frames that the MAC was given and has not sent.
    #[inline(always)]
    pub fn unsent<B: Bus>(&self, bus: &mut B) -> u32 {
        self.ring.unsent(bus)
    }

    /// Cuts off the frame that leaves, and stops the transmitter until [`resume`](Self::resume) if
    /// it is not whole. Its descriptor and TxPrd stay, so the MAC sends it again.
    #[inline(always)]
    pub fn reset<B: Bus>(&mut self, bus: &mut B, stop: bool) {
        let to = MacTxState::new().with_reset(true).with_stop(stop);
        let mask = MacTxState::new().with_reset(true).with_stop(true);
        bus.modify(
            Register::MacTxState,
            mask.into_bits() | MacTxState::ATTENTION,
            to.into_bits(),
        );
    }

    /// Lets the transmitter go on.
    #[inline(always)]
    pub fn resume<B: Bus>(&mut self, bus: &mut B) {
        let stop = MacTxState::new().with_stop(true).into_bits();
        bus.modify(Register::MacTxState, stop | MacTxState::ATTENTION, 0);
    }
}

/// Frames that are stored one behind the other, while the path is lent. It holds the path's state
/// meanwhile; [`close`](Self::close) hands them over.
#[derive(Debug)]
#[must_use]
pub struct StoredFrames<'a> {
    frames: Frames<'a>,
    buffer: &'a mut TransmitBuffer,
    octets: &'a mut Counter64,
    begin: u32,
    at: u32,
    /// Bytes of all, without what rounds them up.
    bytes: u32,
}

impl StoredFrames<'_> {
    /// For how many more it is known that the MAC has room.
    #[inline(always)]
    pub fn most(&self) -> u32 {
        self.frames.known()
    }

    /// Where the next one begins.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        self.at
    }

    /// The frame of `length` bytes at the position is stored. Its VLAN tag is in bits 31:16 of `tag`,
    /// or that is 0.
    #[inline(always)]
    pub fn push<B: Bus>(&mut self, bus: &mut B, length: u32, tag: u32) {
        self.frames
            .push(bus, self.at, length, (tag != 0).then_some(tag >> 16));
        self.at += (length + 7) & !7;
        self.bytes += length;
    }

    /// Hands them over, if there are any.
    #[inline(always)]
    pub fn close<B: Bus>(self, bus: &mut B) {
        self.buffer.take(self.at - self.begin);
        if self.bytes != 0 {
            // The writes of registers would go past stores that wait; a load does not.
            let _ = bus.load(self.begin);
            bus.write(Register::TxProducer, self.buffer.position());
            self.octets.add(self.bytes);
        }
        self.frames.close(bus);
    }
}
