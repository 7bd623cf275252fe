//! A ring of receive buffers: standard, jumbo or mini.
//!
//! Every buffer has a number within its ring. The BD that queues it carries the number
//! as its index, and in its opaque word the ring, the number again and how many times
//! the buffer has been queued. The card copies index and opaque word to the return
//! BD, and sets the flags that name the ring. Nothing in a return BD is believed until
//! it fits what was queued, so a buffer that is handed back twice is noticed too.

use host_interface::bar;
use host_interface::bd::{BdFlags, ExtendedReceiveBd, ReceiveBd};
use host_interface::info::HostAddress;
use host_interface::ring;
use serde::Serialize;

use super::config::Config;
use super::drops::DropReason;
use super::error::NicError;
use super::memory::{
    JUMBO_RING, JUMBO_SLOT_BYTES, MINI_RING, Memory, SLOT_BYTES, STANDARD_RING, mini_slot,
};
use super::rings::JumboRing;
use crate::dma::DmaMemory;

/// The first turn of every buffer: a number that is not in memory by chance.
const FIRST_TURN: u16 = 0x5452;
/// Most pieces of a buffer: those of an extended BD.
pub(super) const MAX_PIECES: usize = 4;
/// The only piece of a jumbo buffer: a frame of 9000 bytes with header, tag and CRC.
const JUMBO_PIECE: (usize, usize) = (0, 9216);
/// The pieces of a jumbo buffer with an extended BD: as much in all, with gaps between
/// them, so that a card that runs over the end of one does no harm to the next.
const EXTENDED_PIECES: [(usize, usize); MAX_PIECES] =
    [(0, 3072), (4096, 2048), (8192, 2048), (12288, 2048)];

const _: () = {
    assert!(EXTENDED_PIECES[3].0 + EXTENDED_PIECES[3].1 <= JUMBO_SLOT_BYTES);
    assert!(JUMBO_PIECE.1 <= JUMBO_SLOT_BYTES);
};

/// Which ring a receive buffer is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ring {
    /// The standard ring.
    Standard,
    /// The jumbo ring.
    Jumbo,
    /// The mini ring.
    Mini,
}

impl Ring {
    /// The ring that the flags of a return BD name, if they name one.
    fn of(flags: BdFlags) -> Option<Self> {
        match (flags.jumbo_ring(), flags.mini_ring()) {
            (false, false) => Some(Self::Standard),
            (true, false) => Some(Self::Jumbo),
            (false, true) => Some(Self::Mini),
            (true, true) => None,
        }
    }

    fn flags(self) -> BdFlags {
        BdFlags::new()
            .with_jumbo_ring(self == Self::Jumbo)
            .with_mini_ring(self == Self::Mini)
    }

    /// The ring and a buffer's number in 16 bits: the lower half of the opaque word.
    fn mark(self, buffer: u16) -> u16 {
        (self as u16) << 14 | buffer
    }
}

/// One ring with its buffers.
pub(super) struct BufferRing {
    kind: Ring,
    /// Where the ring is in control memory.
    place: usize,
    entries: u32,
    extended: bool,
    mailbox: u32,
    memory: DmaMemory,
    slot: usize,
    /// The parts of a slot that the card fills, in their order.
    pieces: &'static [(usize, usize)],
    producer: u32,
    rung: u32,
    /// For each buffer its turn, and whether it is with the card.
    queued: Vec<(u16, bool)>,
}

impl BufferRing {
    /// The rings that a configuration asks for, all buffers with the driver.
    pub fn all(config: &Config, memory: &Memory) -> Vec<Self> {
        let new = |kind, count: u16, memory: &DmaMemory| {
            let (place, entries, mailbox) = match kind {
                Ring::Standard => (
                    STANDARD_RING,
                    ring::STANDARD_ENTRIES,
                    bar::MAILBOX_STANDARD_PRODUCER,
                ),
                Ring::Jumbo => (JUMBO_RING, ring::JUMBO_ENTRIES, bar::MAILBOX_JUMBO_PRODUCER),
                Ring::Mini => (MINI_RING, ring::MINI_ENTRIES, bar::MAILBOX_MINI_PRODUCER),
            };
            let extended = kind == Ring::Jumbo && config.jumbo == JumboRing::Extended;
            let (slot, pieces): (usize, &'static [(usize, usize)]) = match kind {
                Ring::Standard => (SLOT_BYTES, &[(0, SLOT_BYTES)]),
                Ring::Jumbo if extended => (JUMBO_SLOT_BYTES, &EXTENDED_PIECES),
                Ring::Jumbo => (JUMBO_SLOT_BYTES, &[JUMBO_PIECE]),
                // The slot of a mini buffer is its only piece.
                Ring::Mini => (config.mini.map_or(SLOT_BYTES, mini_slot), &[]),
            };
            Self {
                kind,
                place,
                entries,
                extended,
                mailbox,
                memory: memory.clone(),
                slot,
                pieces,
                producer: 0,
                rung: 0,
                queued: vec![(FIRST_TURN, false); usize::from(count)],
            }
        };
        let mut rings = vec![new(
            Ring::Standard,
            config.receive_buffers,
            &memory.standard,
        )];
        if let Some(memory) = &memory.jumbo {
            rings.push(new(Ring::Jumbo, config.jumbo_buffers, memory));
        }
        if let Some(memory) = &memory.mini {
            rings.push(new(Ring::Mini, config.mini_buffers, memory));
        }
        rings
    }

    pub fn kind(&self) -> Ring {
        self.kind
    }

    pub fn memory(&self) -> &DmaMemory {
        &self.memory
    }

    /// The pieces of a buffer: offsets in memory and bytes.
    pub fn pieces(&self, buffer: u16) -> impl Iterator<Item = (usize, usize)> + '_ {
        let start = usize::from(buffer) * self.slot;
        let whole = [(0, self.slot)];
        let count = self.pieces.len().max(1);
        (0..count).map(move |index| {
            let (offset, bytes) = self.pieces.get(index).copied().unwrap_or(whole[0]);
            (start + offset, bytes)
        })
    }

    /// Bytes that a buffer takes.
    pub fn capacity(&self) -> usize {
        self.pieces(0).map(|(_, bytes)| bytes).sum()
    }

    /// Buffers that the card has.
    pub fn outstanding(&self) -> usize {
        let queued = self.queued.iter();
        queued.filter(|(_, with_card)| *with_card).count()
    }

    /// Queues every buffer that is not with the card.
    pub fn fill(&mut self, control: &DmaMemory) -> Result<(), NicError> {
        for buffer in 0..self.queued.len() as u16 {
            let state = self.queued.get(usize::from(buffer));
            if state.is_some_and(|(_, with_card)| !with_card) {
                self.queue(control, buffer)?;
            }
        }
        Ok(())
    }

    /// The card has given every buffer back and forgotten the ring.
    pub fn forget(&mut self) {
        self.producer = 0;
        self.rung = 0;
        for (_, with_card) in &mut self.queued {
            *with_card = false;
        }
    }

    pub fn queue(&mut self, control: &DmaMemory, buffer: u16) -> Result<(), NicError> {
        let mut parts = [(0, 0); MAX_PIECES];
        for (part, (offset, bytes)) in parts.iter_mut().zip(self.pieces(buffer)) {
            *part = (self.memory.address(offset, bytes)?, bytes as u16);
        }
        let Some((turn, with_card)) = self.queued.get_mut(usize::from(buffer)) else {
            return Ok(());
        };
        *turn = turn.wrapping_add(1);
        *with_card = true;
        let opaque = u32::from(*turn) << 16 | u32::from(self.kind.mark(buffer));
        let [(address, length), rest @ ..] = parts;
        let base = ReceiveBd::new(address, length, self.kind.flags(), buffer, opaque);
        let index = self.producer as usize;
        if self.extended {
            let [second, third, fourth] = rest;
            let bd = ExtendedReceiveBd {
                address1: HostAddress::new(second.0),
                address2: HostAddress::new(third.0),
                address3: HostAddress::new(fourth.0),
                lengths_1_2: u32::from(second.1) << 16 | u32::from(third.1),
                length_3: u32::from(fourth.1) << 16,
                base,
            };
            control.write_words(self.place + index * 64, &extended_words(&bd))?;
        } else {
            control.write_words(self.place + index * 32, &base.words())?;
        }
        self.producer = ring::advance(self.producer, 1, self.entries);
        Ok(())
    }

    /// Mailbox and producer index to ring with, once enough buffers are waiting to be
    /// told of (or any, if `all`).
    pub fn ring_due(&mut self, all: bool) -> Option<(u32, u32)> {
        let waiting = ring::used(self.producer, self.rung, self.entries) as usize;
        let enough = if all {
            1
        } else {
            (self.queued.len() / 8).max(1)
        };
        (waiting >= enough).then(|| {
            self.rung = self.producer;
            (self.mailbox, self.producer)
        })
    }

    /// The buffer that a return BD of this ring hands back.
    fn judge(&self, bd: &ReceiveBd) -> Result<u16, DropReason> {
        let buffer = bd.index();
        let Some((turn, with_card)) = self.queued.get(usize::from(buffer)) else {
            return Err(DropReason::BadIndex);
        };
        if bd.opaque as u16 != self.kind.mark(buffer) {
            return Err(DropReason::BadMark);
        }
        if !with_card || (bd.opaque >> 16) as u16 != *turn {
            return Err(DropReason::Stale);
        }
        Ok(buffer)
    }
}

/// The ring, by its place in the list, and the buffer that a return BD hands back.
pub(super) fn judge(rings: &[BufferRing], bd: &ReceiveBd) -> Result<(usize, u16), DropReason> {
    let kind = Ring::of(bd.flags()).ok_or(DropReason::BadMark)?;
    let at = rings.iter().position(|ring| ring.kind == kind);
    let (at, ring) = at
        .and_then(|at| Some((at, rings.get(at)?)))
        .ok_or(DropReason::BadIndex)?;
    Ok((at, ring.judge(bd)?))
}

fn extended_words(bd: &ExtendedReceiveBd) -> [u32; 16] {
    let mut words = [0; 16];
    let head = [
        bd.address1.high,
        bd.address1.low,
        bd.address2.high,
        bd.address2.low,
        bd.address3.high,
        bd.address3.low,
        bd.lengths_1_2,
        bd.length_3,
    ];
    for (word, value) in words
        .iter_mut()
        .zip(head.into_iter().chain(bd.base.words()))
    {
        *word = value;
    }
    words
}
