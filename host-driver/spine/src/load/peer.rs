//! Cards that hand frames to each other: [`host_interface::spine::peer`].
//!
//! The host allows each card on the bus what it needs of the other one's BAR ([`reach`]), opens
//! first the card that only sends, then the one that grants rooms, and leases the windows of both to
//! the cards: until they are closed, nothing of the host's may move them, this loader included.

use super::{Card, LoadError, Loader};
use host_interface::spine::Command;
use host_interface::spine::peer::{MAILBOX, PeerWord};
use std::ops::Range;
use tigon2_chip::mailbox::{BAR_BASE, BYTES};
use tigon2_chip::{Register, memory};

/// A card's peer, as the card is to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Address on the bus of its BAR 0.
    pub bar: u64,
    /// NIC address of its peer page: [`Loader::peer_page`].
    pub page: u32,
    /// [`GRANTS`](host_interface::spine::peer::GRANTS),
    /// [`SENDS`](host_interface::spine::peer::SENDS): what this card does.
    pub roles: u32,
}

/// The ranges of its peer's BAR 0 that a card writes to: the window's base, the mailbox, the window.
pub const fn reach() -> [Range<u32>; 3] {
    let base = Register::WindowBase.offset();
    let bell = BAR_BASE + BYTES * MAILBOX + 4;
    let window = memory::REGISTERS_BYTES + memory::DIRECT_BYTES;
    [base..base + 4, bell..bell + 4, window..0x1000]
}

impl Loader {
    /// NIC address of this card's peer page: behind the arena.
    pub fn peer_page(&self) -> u32 {
        self.arena.start + self.arena.bytes
    }

    /// Tells the card of its peer, or that it has none any more (no roles).
    ///
    /// # Errors
    /// What the firmware says, or that it does not answer.
    pub fn set_peer<C: Card>(
        &mut self,
        card: &mut C,
        peer: &Peer,
    ) -> Result<(), LoadError<C::Error>> {
        let words = [
            (peer.bar >> 32) as u32,
            peer.bar as u32,
            peer.page,
            peer.roles,
        ];
        const { assert!(PeerWord::BarHigh as u32 == 0 && PeerWord::Roles as u32 == 12) };
        card.write(self.peer_page(), &words)
            .map_err(LoadError::Card)?;
        self.ask(card, Command::Peer, 0)
    }
}
