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
//! The peer's mailbox rings its CPU B, which sees to the [rooms].

pub mod messages;
mod ring;
pub mod rooms;

use super::effects::Effects;
use super::{Runtime, Spine, supply};
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::memory::layout::PEER_PAGE;
use crate::memory::shared::{SPINE_GRANTS, SPINE_PEER};
use host_interface::spine::peer::{
    self, EXCHANGES, GRANT_BYTES, GRANTED, GRANTS, LENT, MAILBOX, OWN, PeerWord, RING, ROOM_WORDS,
    ROOMS, SENDS, STAGING,
};
use host_interface::spine::{DomainCount, Outcome};
use tigon2_chip::Register;
use tigon2_chip::bits::DmaState;
use tigon2_chip::events::EventBit;
use tigon2_chip::mailbox;
use tigon2_chip::memory::REGISTERS_BYTES;
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;

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
/// Descriptors of a frame.
pub const DESCRIPTORS: u32 = 3;
/// In the roles, of a peer that is being closed.
const CLOSING: u32 = 1 << 31;

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
            io.look_at_frees();
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
