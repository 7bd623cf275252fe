//! Devices on a card's PCI bus that it may reach beside host memory: other cards, frame buffers.
//!
//! ```text
//!   DMA ──► address ──┬── host memory, or a frame buffer     bytes move at once
//!                     ├── a range of another card's BAR      posted: the fabric delivers it
//!                     └── nothing that the host has allowed  error
//! ```
//!
//! The host allows ranges; a card reaches nothing else of another one. What is written to another
//! card waits here until the [fabric](crate::fabric) hands it over, before that card goes on.

use tigon2_model::HostMemoryError;

/// What an address on the bus belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Host memory, behind the bridge.
    Memory,
    /// BAR 0 of the card of this number.
    Card(usize),
    /// The frame buffer of this number.
    FrameBuffer(usize),
}

/// How often a target was spoken to, and how many bytes went over the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Transfers, each of one or more transactions.
    pub transfers: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What the host has accessed of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostAccesses {
    /// Words that the host's CPU read from a card.
    pub reads: u64,
    /// Words that it wrote.
    pub writes: u64,
}

/// A range of another card's BAR 0 that the host lets a card write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Its first address on the bus.
    pub(crate) address: u64,
    /// Its bytes.
    pub(crate) bytes: u64,
    /// Whose BAR it is.
    pub(crate) card: usize,
    /// Its offset in that.
    pub(crate) offset: u32,
}

/// A write to another card that has left this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) card: usize,
    /// Offset in its BAR.
    pub(crate) offset: u32,
    /// As they lie on the bus: a word's lowest byte first.
    pub(crate) bytes: Vec<u8>,
}

/// The devices that a card may reach, and what it has told them.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    allowed: Vec<Allowed>,
    posted: Vec<Posted>,
    traffic: Vec<(Target, Traffic)>,
    refused: u64,
}

impl Devices {
    pub(crate) fn allow(&mut self, range: Allowed) {
        self.allowed.push(range);
    }

    /// Takes all ranges of a card away.
    pub(crate) fn forbid(&mut self, card: usize) {
        self.allowed.retain(|range| range.card != card);
    }

    fn find(&self, address: u64, length: usize) -> Option<(usize, u32)> {
        let end = address.checked_add(length as u64)?;
        let holds = |range: &&Allowed| {
            address >= range.address && end <= range.address.saturating_add(range.bytes)
        };
        let range = self.allowed.iter().find(holds)?;
        Some((range.card, range.offset + (address - range.address) as u32))
    }

    /// The card that an address belongs to, if the host has allowed it.
    pub(crate) fn card_at(&self, address: u64) -> Option<usize> {
        self.find(address, 1).map(|(card, _)| card)
    }

    /// Posts a write: of whole words, as cards' BARs take.
    pub(crate) fn post(&mut self, address: u64, data: &[u8]) -> Result<(), HostMemoryError> {
        let length = data.len();
        let whole = address.is_multiple_of(4) && length.is_multiple_of(4);
        let Some((card, offset)) = self.find(address, length).filter(|_| whole) else {
            self.refused += 1;
            return Err(HostMemoryError { address, length });
        };
        self.count(Target::Card(card), length);
        self.posted.push(Posted {
            card,
            offset,
            bytes: data.to_vec(),
        });
        Ok(())
    }

    pub(crate) fn take_posted(&mut self) -> Vec<Posted> {
        std::mem::take(&mut self.posted)
    }

    pub(crate) fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Accesses to what the host has not allowed.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    pub(crate) fn count(&mut self, target: Target, bytes: usize) {
        let known = self.traffic.iter().position(|(known, _)| *known == target);
        let index = known.unwrap_or_else(|| {
            self.traffic.push((target, Traffic::default()));
            self.traffic.len() - 1
        });
        let traffic = &mut self.traffic[index].1;
        traffic.transfers += 1;
        traffic.bytes += bytes as u64;
    }

    pub(crate) fn traffic(&self, target: Target) -> Traffic {
        let known = self.traffic.iter().find(|(known, _)| *known == target);
        known.map_or(Traffic::default(), |(_, traffic)| *traffic)
    }
}
