//! CPU B's end of the rooms that a peer may fill.
//!
//! It gives the MAC the rooms that are filled, in their order, grants others, and has CPU A tell so.
//! While rooms are granted the transmit path is lent: the card's own frames would pass over them.
//! When it has some, it waits for what is on its way, [`PATIENCE`] at most, makes the other rooms
//! void, and grants again when the path is free.
//!
//! ```text
//!          filled        granted
//!            v              v
//! rooms  ----+==============+-------   numbers that wrap, modulo 16
//!    for the | the peer's   |
//!    MAC     | to fill      |
//! ```

use super::word;
use crate::io::IoB;
use crate::memory::layout::PEER_PAGE;
use crate::memory::shared::{LINK_UP, SPINE_GRANTS, SPINE_PEER};
use crate::path::send::SendPath;
use crate::sides::spine::endpoint::Open;
use host_interface::spine::peer::{
    self, GRANTS, LENT, OWN, PAGE_BYTES, PeerWord, ROOM_WORDS, ROOMS,
};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Microseconds that the card's own frames wait for rooms to be filled.
const PATIENCE: u32 = 20;
/// Rooms that are granted at once.
const AT_ONCE: u32 = 4;

/// What CPU B knows of the rooms that it has granted.
#[derive(Debug)]
pub struct Rooms {
    /// Numbers of the next room to be granted, and to be filled.
    granted: u32,
    filled: u32,
    /// Since when the card's own frames wait.
    since: u32,
    waits: u32,
    /// Whether the transmit path is lent for the rooms.
    has_path: u32,
}

impl Rooms {
    /// None.
    pub const NONE: Rooms = Rooms {
        granted: 0,
        filled: 0,
        since: 0,
        waits: 0,
        has_path: 0,
    };

    /// Sees to what has come from the peer, and to what it may send next. Returns whether to look
    /// again soon.
    #[inline(always)]
    pub fn serve<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) -> bool {
        if self.are_idle(io) {
            return false;
        }
        self.serve_peer(send, io)
    }

    /// Whether rooms may be filled, with a bell each.
    #[inline(always)]
    pub const fn are_granted(&self) -> bool {
        self.has_path != 0
    }

    /// Whether there is no peer to see to.
    #[inline(always)]
    pub fn are_idle<B: Dispatch>(&self, io: &mut IoB<B>) -> bool {
        SPINE_PEER.get(&mut io.bus) & GRANTS == 0 && self.has_path == 0
    }

    #[inline(never)]
    fn serve_peer<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) -> bool {
        let mut again = !self.collect(send, io);
        let open = SPINE_PEER.get(&mut io.bus) & GRANTS != 0;
        if send.is_wanted() || !open {
            return self.give_back(send, io);
        }
        self.waits = 0;
        if !send.is_lent() && (send.has_waiting() || send.lend(io).is_err()) {
            return true;
        }
        if self.has_path == 0 {
            self.set_path(io, 1);
        }
        if self.granted.wrapping_sub(self.filled) <= ROOMS - AT_ONCE {
            again |= !self.grant(send, io);
        }
        // Each room that is filled is followed by a bell.
        again
    }

    /// Gives the MAC what was filled; `false` if it has no room.
    #[inline(always)]
    fn collect<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) -> bool {
        let (before, mut fits) = (self.filled, true);
        while self.filled != self.granted {
            let bus = &mut io.bus;
            let entry = PEER_PAGE + OWN + ROOM_WORDS + ((self.filled & (ROOMS - 1)) << 2);
            let page = bus.load(entry) & !(PAGE_BYTES - 1);
            let Some((start, length)) = frame(bus, page, self.filled) else {
                break;
            };
            if LINK_UP.get(bus) != 0 && !send.push_page(bus, start, length, page + PAGE_BYTES) {
                fits = false;
                break;
            }
            self.filled = self.filled.wrapping_add(1);
        }
        if before != self.filled {
            let taken = io.bus.load(word(PeerWord::Taken));
            let taken = taken.wrapping_add(self.filled.wrapping_sub(before));
            io.bus.store(word(PeerWord::Taken), taken);
        }
        fits
    }

    /// The card's own frames go on when no room is left that may be filled yet.
    fn give_back<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) -> bool {
        let now = timer::now(&mut io.bus);
        if self.waits == 0 {
            self.waits = 1;
            self.since = now;
        }
        let left = self.granted.wrapping_sub(self.filled);
        if left != 0 && now.wrapping_sub(self.since) < PATIENCE {
            return true;
        }
        if left != 0 {
            let void = io.bus.load(word(PeerWord::Void)).wrapping_add(left);
            io.bus.store(word(PeerWord::Void), void);
            self.filled = self.granted;
            io.bus.store(PEER_PAGE + OWN, self.granted);
            self.say(io);
        }
        self.waits = 0;
        send.take_back(io);
        self.set_path(io, 0);
        true
    }

    /// The path is lent, or not any more: CPU A may ask for it.
    fn set_path<B: Dispatch>(&mut self, io: &mut IoB<B>, has_path: u32) {
        self.has_path = has_path;
        io.bus.store(PEER_PAGE + LENT, has_path);
        // Rooms are filled, and their bells wanted, meanwhile.
        let is_wanted = has_path != 0 || Open::now(&mut io.bus).any();
        io.bus.set_to(EventBit::Mailbox, is_wanted);
    }

    /// Grants rooms, as many as there may be; `false` if the transmit buffer is full.
    #[inline(never)]
    fn grant<B: Dispatch>(&mut self, send: &mut SendPath, io: &mut IoB<B>) -> bool {
        let out = self.granted.wrapping_sub(self.filled);
        let mut fits = true;
        for _ in out..ROOMS {
            let bus = &mut io.bus;
            let Some(page) = send.take_page(bus, PAGE_BYTES) else {
                fits = false;
                break;
            };
            // No trailer yet.
            bus.store(page + peer::trailer_at(0), 0);
            bus.store(page + peer::trailer_at(4), 0);
            let entry = PEER_PAGE + OWN + ROOM_WORDS + ((self.granted & (ROOMS - 1)) << 2);
            bus.store(entry, peer::granted(page, self.granted));
            self.granted = self.granted.wrapping_add(1);
        }
        if self.granted.wrapping_sub(self.filled) != out {
            self.say(io);
        }
        fits
    }

    /// Has CPU A tell the peer.
    fn say<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        let grants = SPINE_GRANTS.get(&mut io.bus).wrapping_add(1);
        SPINE_GRANTS.set(&io.me, &mut io.bus, grants);
        io.bus.ring(Cpu::A);
    }
}

/// Where the frame in a room begins, and its bytes, once the room is filled. The last word is the
/// trailer unless nothing was written to it: only then the word before it may be.
#[inline(always)]
fn frame<B: Bus>(bus: &mut B, page: u32, number: u32) -> Option<(u32, u32)> {
    let mut at = peer::trailer_at(4);
    let mut trailer = bus.load(page + at);
    if trailer == 0 {
        at = peer::trailer_at(0);
        trailer = bus.load(page + at);
    }
    let length = trailer & 0xFFFF;
    let bytes = (length + 3) & !3;
    let is_filled = trailer == peer::trailer(number, length)
        && length != 0
        && length <= peer::LONGEST
        && peer::trailer_at(bytes) == at;
    is_filled.then_some((page + at - bytes, length))
}
