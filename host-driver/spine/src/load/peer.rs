//! Cards that hand frames to each other: [`host_interface::spine::peer`].
//!
//! The host allows each card on the bus what it needs of the other one's BAR ([`reach`]).
//! [`open_peers`] leases the window of each card to the other one, until [`close_peers`]: meanwhile
//! the host reads and writes NIC memory by requests ([`crate::access`]).

use super::{Card, LoadError, Loader};
use host_interface::spine::Command;
use host_interface::spine::peer::{MAILBOX, PeerWord, RING, RING_WORDS, RingWord};
use std::ops::Range;
use tigon2_chip::mailbox::{BAR_BASE, BYTES, Mailbox};
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
    /// The peer's send ring, if this card sends frames by it.
    pub ring: Option<Ring>,
}

impl Peer {
    /// None.
    pub const NONE: Peer = Peer {
        bar: 0,
        page: 0,
        roles: 0,
        ring: None,
    };
}

/// A peer's send ring in host memory, which its driver lends: `host_driver::Nic::map_ring`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Address on the bus of its BDs.
    pub bds: u64,
    /// How many there are, a power of two.
    pub entries: u32,
    /// Address on the bus of the first BD's buffer; the others follow.
    pub buffers: u64,
    /// Bytes of a buffer, a power of two.
    pub buffer_bytes: u32,
}

impl Ring {
    /// The words of the page.
    const fn words(&self) -> [u32; 6] {
        const { assert!(RingWord::BdsHigh as u32 == 0 && RingWord::Shift as u32 == 20) };
        [
            (self.bds >> 32) as u32,
            self.bds as u32,
            (self.buffers >> 32) as u32,
            self.buffers as u32,
            self.entries,
            self.buffer_bytes.trailing_zeros(),
        ]
    }
}

/// The range of its peer's BAR 0 that a card writes to if it sends by a [`Ring`]: the mailbox of the
/// send producer.
pub const fn reach_of_ring() -> Range<u32> {
    let producer = Mailbox::SendProducer.bar_offset();
    producer..producer + 4
}

/// Where in BAR 0 of a card that sends by a [`Ring`] its peer writes the send consumer index to,
/// while the window of that card is leased: [`Loader::lease_window`].
pub const fn ring_consumer() -> u32 {
    memory::REGISTERS_BYTES + memory::DIRECT_BYTES + PeerWord::RingConsumer as u32
}

/// The ranges of its peer's BAR 0 that a card writes to: the window's base, the mailbox, the window.
pub const fn reach() -> [Range<u32>; 3] {
    let base = Register::WindowBase.offset();
    let bell = BAR_BASE + BYTES * MAILBOX + 4;
    let window = memory::REGISTERS_BYTES + memory::DIRECT_BYTES;
    [base..base + 4, bell..bell + 4, window..0x1000]
}

impl Loader {
    /// NIC address of this card's peer page.
    pub fn peer_page(&self) -> u32 {
        self.peer_page
    }

    /// Leases the card's window to its peer, and shows the peer page there.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn lease_window<C: Card>(&self, card: &mut C) -> Result<(), LoadError<C::Error>> {
        card.lease_window(self.peer_page()).map_err(LoadError::Card)
    }

    /// Tells the card of its peer, or that it has none any more (no roles). Both windows are leased
    /// ([`open_peers`]). When this returns, nothing is under way to the peer that there was.
    ///
    /// # Errors
    /// What the firmware says, or that it does not answer.
    pub fn set_peer<C: Card>(
        &mut self,
        card: &mut C,
        peer: &Peer,
    ) -> Result<(), LoadError<C::Error>> {
        let by_ring = if peer.ring.is_some() { RING } else { 0 };
        let words = [
            (peer.bar >> 32) as u32,
            peer.bar as u32,
            peer.page,
            peer.roles | by_ring,
        ];
        const { assert!(PeerWord::BarHigh as u32 == 0 && PeerWord::Roles as u32 == 12) };
        if let Some(ring) = &peer.ring {
            card.write(self.peer_page() + RING_WORDS, &ring.words())
                .map_err(LoadError::Card)?;
        }
        card.write(self.peer_page(), &words)
            .map_err(LoadError::Card)?;
        self.ask_until_done(card, Command::Peer, 0)
    }
}

/// A card with what its host knows of it.
pub type LoadedCard<'a, C> = (&'a mut Loader, &'a mut C);

/// Makes two cards peers, as each is to know the other one.
///
/// # Errors
/// What the firmware of one says.
pub fn open_peers<C: Card>(
    cards: &mut [LoadedCard<'_, C>; 2],
    peers: &[Peer; 2],
) -> Result<(), LoadError<C::Error>> {
    for (loader, card) in cards.iter_mut() {
        loader.lease_window(*card)?;
    }
    for ((loader, card), peer) in cards.iter_mut().zip(peers) {
        loader.set_peer(*card, peer)?;
    }
    Ok(())
}

/// Closes both, and takes their windows back.
///
/// # Errors
/// What the firmware of one says; the windows remain leased.
pub fn close_peers<C: Card>(cards: &mut [LoadedCard<'_, C>; 2]) -> Result<(), LoadError<C::Error>> {
    // The first one once more: meanwhile the other one may have sent it a message.
    for number in [0, 1, 0] {
        if let Some((loader, card)) = cards.get_mut(number) {
            loader.set_peer(*card, &Peer::NONE)?;
        }
    }
    for (_, card) in cards {
        card.take_back_window();
    }
    Ok(())
}
