//! Messages to and from the other card on the bus: [`host_interface::spine::peer`].
//!
//! SPINE paper, section 3.2: peer devices are endpoints, too. Both ways are CPU A's, and no message
//! is fetched: the card that sends writes it to where the other one's handler reads it.
//!
//! ```text
//!   Context::send_peer ──► MESSAGES_OUT ── R[68], message, mailbox ──► slot of the page ──► handler
//!   MessagesAcknowledged ◄── R[68], word ───────────────────────────── MessagesTaken
//! ```
//!
//! How far both are is in the page, so a card that exchanges no messages has no state for them.

use super::{Peer, word};
use crate::io::IoA;
use crate::memory::layout::PEER_PAGE;
use crate::memory::shared::SPINE_PEER;
use crate::sides::spine::bump;
use host_interface::spine::peer::{self, EXCHANGES, MESSAGES, PeerWord};
use host_interface::spine::rings::{HeaderWord, MESSAGE_BYTES};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Descriptors of a message: the window, the message, the mailbox.
const DESCRIPTORS: u32 = 3;

/// Messages that the peer has room for.
#[inline(always)]
pub fn credit<B: Bus>(bus: &mut B) -> u32 {
    if SPINE_PEER.get(bus) & EXCHANGES == 0 {
        return 0;
    }
    let sent = bus.load(word(PeerWord::MessagesSent));
    let acknowledged = bus.load(word(PeerWord::MessagesAcknowledged));
    MESSAGES.saturating_sub(sent.wrapping_sub(acknowledged))
}

/// The serial of one more message.
pub fn next_serial<B: Bus>(bus: &mut B) -> u32 {
    bump(bus, word(PeerWord::MessagesSent));
    bus.load(word(PeerWord::MessagesSent))
}

/// One of the peer's ran no handler to its end.
pub fn dropped<B: Bus>(bus: &mut B) {
    bump(bus, word(PeerWord::MessagesDropped));
}

impl Peer {
    /// Whether the cards exchange messages.
    #[inline(always)]
    pub const fn exchanges(&self) -> bool {
        self.roles & EXCHANGES != 0
    }

    /// NIC address of the next message of the peer's, if it is there.
    #[inline(never)]
    pub fn next_message<B: Bus>(&self, bus: &mut B) -> Option<u32> {
        let serial = bus.load(word(PeerWord::MessagesTaken)).wrapping_add(1);
        let at = PEER_PAGE + peer::message_at(serial);
        (bus.load(at + HeaderWord::Serial as u32) == serial).then_some(at)
    }

    /// That one is done with.
    pub fn has_taken_message<B: Bus>(&self, bus: &mut B) {
        bump(bus, word(PeerWord::MessagesTaken));
    }

    /// Tells the peer which of its messages are done with; `false` if no descriptors are free.
    #[inline(never)]
    pub fn acknowledge<B: Dispatch>(&mut self, io: &mut IoA<B>) -> bool {
        let taken = io.bus.load(word(PeerWord::MessagesTaken));
        if taken == io.bus.load(word(PeerWord::MessagesTold)) {
            return true;
        }
        if !io.has_write_room(DESCRIPTORS - 1) {
            return false;
        }
        io.bus.store(word(PeerWord::MessagesTold), taken);
        let offset = PeerWord::MessagesAcknowledged as u32;
        // A later count that is read instead is as good.
        self.put_in_page(io, offset, word(PeerWord::MessagesTaken), 4);
        true
    }

    /// Queues the transfers of the message in a slot; `false` if no descriptors are free.
    pub fn write_message<B: Dispatch>(&mut self, io: &mut IoA<B>, slot: u32) -> bool {
        if !self.exchanges() {
            // Nobody is there any more.
            return true;
        }
        if !io.has_write_room(DESCRIPTORS) {
            return false;
        }
        let serial = io.bus.load(slot + HeaderWord::Serial as u32);
        self.put_in_page(io, peer::message_at(serial), slot, MESSAGE_BYTES);
        self.ring(io, word(PeerWord::MessagesSent));
        true
    }
}

/// The cards exchange no messages any more: the next ones are counted from 1 on.
pub(super) fn forget<B: Bus>(bus: &mut B) {
    let (first, last) = (PeerWord::MessagesSent, PeerWord::MessagesTold);
    for count in (word(first)..=word(last)).step_by(4) {
        bus.store(barrier(count), 0);
    }
    for serial in 0..MESSAGES {
        let at = PEER_PAGE + peer::message_at(barrier(serial));
        bus.store(at + HeaderWord::Serial as u32, 0);
    }
}
