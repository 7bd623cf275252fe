//! Frames to another card on the bus, without the host: [`host_interface::spine::peer`]. The
//! [messages](messages) go the same way. Beside it, frames go by a [ring in host memory](ring).
//!
//! SPINE paper, section 5.2. CPU A of the card that a frame came to has it written from the receive
//! buffer into a room of the other card's transmit buffer, three transfers one behind the other:
//!
//! ```text
//!   R[68] of the peer = room ──► frame and trailer, by the window ──► mailbox
//! ```
//!
//! The peer's mailbox rings its CPU B, which gives the MAC the rooms that are filled, in their order,
//! grants others, and has CPU A tell so. While rooms are granted the transmit path is
//! lent: the card's own frames would pass over them. When it has some, it waits for what is on its
//! way, [`PATIENCE`] at most, makes the other rooms void, and grants again when the path is free.

pub mod messages;
mod ring;

use super::effects::Effects;
use super::endpoint::Open;
use super::{Runtime, Spine, supply};
use crate::io::note::WriteNote;
use crate::io::{IoA, IoB};
use crate::memory::layout::PEER_PAGE;
use crate::memory::shared::{LINK_UP, SPINE_GRANTS, SPINE_PEER};
use crate::path::send::SendPath;
use host_interface::spine::peer::{
    self, EXCHANGES, GRANT_BYTES, GRANTED, GRANTS, LENT, MAILBOX, OWN, PAGE_BYTES, PeerWord, RING,
    ROOM_WORDS, ROOMS, SENDS, STAGING,
};
use host_interface::spine::{DomainCount, Outcome};
use tigon2_chip::bits::DmaState;
use tigon2_chip::events::EventBit;
use tigon2_chip::mailbox;
use tigon2_chip::memory::REGISTERS_BYTES;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;
use tigon2_hal::timer;

/// Offset of the window in BAR 0.
const WINDOW: u32 = 0x800;
/// Offset of the peer's mailbox in its BAR 0: the lower word.
const BELL: u32 = mailbox::BAR_BASE + mailbox::BYTES * MAILBOX + 4;
/// Word values stay what they are.
const STATE: u32 = DmaState::new()
    .with_start(true)
    .with_no_swap(true)
    .with_end_of_frame(true)
    .into_bits();
/// A frame that was read frees its bytes in the receive buffer.
const FREES: u32 = DmaState::new().with_free_rx_buffer(true).into_bits();
/// Microseconds that the card's own frames wait for rooms to be filled.
const PATIENCE: u32 = 20;
/// Descriptors of a frame.
pub const DESCRIPTORS: u32 = 3;
/// In the roles, of a peer that is being closed.
const CLOSING: u32 = 1 << 31;
/// Rooms that are granted at once.
const AT_ONCE: u32 = 4;

const _: () = assert!(WINDOW >= REGISTERS_BYTES);

const fn word(word: PeerWord) -> u32 {
    PEER_PAGE + word as u32
}

/// What CPU A knows of the peer.
#[derive(Debug)]
pub struct Peer {
    roles: u32,
    bar: HostAddress,
    /// NIC address of its peer page.
    page: u32,
    /// Where its window was moved last.
    window: u32,
    /// CPU B's grants that the peer was told of.
    told: u32,
}

impl Peer {
    /// There is none.
    pub const NONE: Peer = Peer {
        roles: 0,
        bar: HostAddress { high: 0, low: 0 },
        page: 0,
        window: 0,
        told: 0,
    };

    /// Takes over what the host says, when nothing of the peer that there was is under way.
    ///
    /// # Errors
    /// [`Outcome::Busy`] while something is. It is told that it has no rooms any more; otherwise
    /// nothing is sent to it from now on.
    #[inline(never)]
    pub fn open<B: Dispatch>(&mut self, io: &mut IoA<B>) -> Result<(), Outcome> {
        if self.roles != 0 && !self.has_closed(io) {
            return Err(Outcome::Busy);
        }
        let bus = &mut io.bus;
        let roles = bus.load(word(PeerWord::Roles));
        // What CPU B has granted meanwhile is told, too.
        let told = SPINE_GRANTS.get(bus).wrapping_sub(1);
        *self = Peer {
            roles,
            bar: HostAddress {
                high: bus.load(word(PeerWord::BarHigh)),
                low: bus.load(word(PeerWord::BarLow)),
            },
            page: bus.load(word(PeerWord::Page)),
            window: 0,
            told,
        };
        if roles & RING != 0 {
            ring::begin(bus);
        }
        let next = bus.load(PEER_PAGE + GRANTED);
        bus.store(word(PeerWord::Next), next);
        if roles & EXCHANGES == 0 {
            messages::forget(bus);
        }
        SPINE_PEER.set(&io.me, bus, roles);
        self.called(io);
        Ok(())
    }

    /// Whether the peer has been closed, which may take several looks.
    fn has_closed<B: Dispatch>(&mut self, io: &mut IoA<B>) -> bool {
        if self.roles & CLOSING == 0 {
            // CPU B makes its rooms void, and the next look is later.
            SPINE_PEER.set(&io.me, &mut io.bus, 0);
            self.roles = self.roles & GRANTS | CLOSING;
            return false;
        }
        let is_lent = io.bus.load(PEER_PAGE + LENT) != 0;
        self.called(io);
        let is_told = self.roles & GRANTS == 0 || self.told == SPINE_GRANTS.get(&mut io.bus);
        !is_lent && is_told && io.all_written()
    }

    /// Hands the frame of `length` bytes that lies at `at` to the peer, as a run of a domain has
    /// asked for: with changed words, into the room that was there. Returns whether its transfer
    /// frees it.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
    #[inline(never)]
    pub fn forward<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        number: u32,
        at: u32,
        length: u32,
        effects: &Effects,
    ) -> bool {
        // Nobody awaits the transfers of the frames before.
        io.look_for_room(DESCRIPTORS);
        let bus = &mut io.bus;
        let next = next(bus);
        let room = room(bus, next);
        if room == 0 || !io.write_ring.has_room(DESCRIPTORS) {
            return self.otherwise(io, number, at, length, effects);
        }
        let bus = &mut io.bus;
        let window = PEER_PAGE + STAGING + ((next & (ROOMS - 1)) << 2);
        bus.store(window, room);
        self.window = room;
        // It is on its way while the rest is made ready.
        self.put(io, Register::WindowBase.offset(), window, 4, STATE);
        let bus = &mut io.bus;
        for (index, value) in effects.patches() {
            bus.store(at + (index << 2), *value);
        }
        // The CRC's place is free.
        let bytes = (length + 3) & !3;
        bus.store(at + bytes, peer::trailer(next, length));
        let offset = peer::trailer_at(bytes) - bytes;
        let frees = supply::is_in_place(at);
        let state = if frees { STATE | FREES } else { STATE };
        self.put(io, WINDOW + offset, at, bytes + 4, state);
        self.ring(io, window);
        let bus = &mut io.bus;
        bus.store(word(PeerWord::Next), next.wrapping_add(1));
        super::bump(bus, word(PeerWord::Sent));
        Runtime::count(&mut io.bus, number, DomainCount::Consumed);
        frees
    }

    /// The same when the write channel has to be read first, or without a room: by the ring, or not
    /// at all.
    #[inline(never)]
    fn otherwise<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        number: u32,
        at: u32,
        length: u32,
        effects: &Effects,
    ) -> bool {
        let mut count = DomainCount::Consumed;
        if self.roles & RING == 0 || !ring::put(self.bar, io, at, length, effects) {
            let next = next(&mut io.bus);
            // A frame that came in two pieces may have its room freed later.
            io.follow_frees();
            if room(&mut io.bus, next) != 0 && io.has_write_room(DESCRIPTORS) {
                return self.forward(io, number, at, length, effects);
            }
            // The room became void since it was asked for.
            super::bump(&mut io.bus, word(PeerWord::NoRoom));
            count = DomainCount::Dropped;
        }
        Runtime::count(&mut io.bus, number, count);
        false
    }

    /// Queues a transfer to an offset of the peer's page, to which its window is moved before: two
    /// descriptors at most.
    #[inline(never)]
    fn put_in_page<B: Dispatch>(&mut self, io: &mut IoA<B>, offset: u32, local: u32, length: u32) {
        if self.window != self.page {
            self.window = self.page;
            let at = Register::WindowBase.offset();
            self.put(io, at, word(PeerWord::Page), 4, STATE);
        }
        self.put(io, WINDOW + offset, local, length, STATE);
    }

    /// Queues a write of any word to the peer's mailbox.
    #[inline(always)]
    fn ring<B: Dispatch>(&self, io: &mut IoA<B>, local: u32) {
        self.put(io, BELL, local, 4, STATE);
    }

    /// Queues a transfer to an offset of the peer's BAR.
    #[inline(always)]
    fn put<B: Dispatch>(&self, io: &mut IoA<B>, offset: u32, local: u32, length: u32, state: u32) {
        let transfer = Transfer {
            host: HostAddress {
                high: self.bar.high,
                low: self.bar.low + offset,
            },
            local,
            length,
            state,
            note: WriteNote::EXTENSION.word(),
        };
        io.write_ring.put(&mut io.bus, &transfer);
    }

    /// Doorbell A, and a turn of messages: tells the peer what CPU B has granted.
    #[inline(always)]
    pub fn called<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        if self.roles & GRANTS != 0 {
            self.report_grants(io);
        }
    }

    #[inline(never)]
    fn report_grants<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        let grants = SPINE_GRANTS.get(&mut io.bus);
        if grants == self.told {
            return;
        }
        if !io.has_write_room(2) {
            return io.wait_for_descriptor(EventBit::Loaded);
        }
        self.told = grants;
        self.put_in_page(io, GRANTED, PEER_PAGE + OWN, GRANT_BYTES);
    }
}

/// The number of the next room to fill: not one that is void by now.
#[inline(always)]
fn next<B: Bus>(bus: &mut B) -> u32 {
    let (next, counts) = (
        bus.load(word(PeerWord::Next)),
        bus.load(PEER_PAGE + GRANTED),
    );
    if counts.wrapping_sub(next) as i32 > 0 {
        counts
    } else {
        next
    }
}

/// The room of a number, 0 if it is not granted.
#[inline(always)]
fn room<B: Bus>(bus: &mut B, number: u32) -> u32 {
    let entry = PEER_PAGE + GRANTED + ROOM_WORDS + ((number & (ROOMS - 1)) << 2);
    peer::room(bus.load(entry), number).unwrap_or(0)
}

/// Whether the peer has room for a frame.
#[inline(always)]
pub fn has_room<B: Bus>(bus: &mut B) -> bool {
    let roles = SPINE_PEER.get(bus);
    if roles & SENDS == 0 {
        return false;
    }
    let next = next(bus);
    room(bus, next) != 0 || roles & RING != 0 && ring::has_room(bus)
}

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

/// The peer's bell: there is a message. That rooms are filled CPU B hears by itself.
#[inline(never)]
pub fn rung<B: Dispatch>(spine: &mut Spine, io: &mut IoA<B>) {
    let Some(runtime) = spine.runtime() else {
        return;
    };
    if runtime.outgoing.peer.exchanges() {
        runtime.look_for_peer(io);
    }
}
