//! A ring of receive buffers: standard, jumbo or mini.
//!
//! Every buffer has a number within its ring. The BD that queues it carries the number as its
//! index; its opaque word holds the ring or queue, the number again and how often the buffer has
//! been queued. The card copies index and opaque word to the return BD, and sets the flags that
//! name the ring. The driver trusts a return BD only if it matches what was queued, so it also
//! detects a buffer that is returned twice.

use host_interface::bd::{ExtendedReceiveBd, ReceiveBd};
use host_interface::info::HostAddress;
use host_interface::ring;

use super::drops::DropReason;
use super::error::NicError;
use super::layout::BufferTable;
use super::plan::BufferPlan;
use super::region::{Slots, Table};
use super::rings::Ring;
use super::sizes::JUMBO_SLOT_BYTES;
use crate::dma::{DmaError, DmaMemory};

/// The first turn of every buffer: a number that memory is unlikely to contain by chance.
const FIRST_TURN: u16 = 0x5452;
/// Most pieces of a buffer: those of an extended BD.
pub(super) const MAX_PIECES: usize = 4;
/// The only piece of a jumbo buffer: a frame of 9000 bytes with header, tag and CRC.
const JUMBO_PIECE: (usize, usize) = (0, 9216);
/// The pieces of a jumbo buffer with an extended BD: the same total size, with gaps in between, so
/// that a card that overruns one piece does not damage the next.
const EXTENDED_PIECES: [(usize, usize); MAX_PIECES] =
    [(0, 3072), (4096, 2048), (8192, 2048), (12288, 2048)];

const _: () = {
    assert!(EXTENDED_PIECES[3].0 + EXTENDED_PIECES[3].1 <= JUMBO_SLOT_BYTES);
    assert!(JUMBO_PIECE.1 <= JUMBO_SLOT_BYTES);
};

/// The memory of one ring: its BDs and its buffers.
pub(super) struct BufferMemory {
    pub bds: BufferTable<Table<8>, Table<16>>,
    pub slots: Slots,
}

impl BufferMemory {
    /// The card's address of the ring.
    fn address(&self) -> Result<u64, DmaError> {
        match &self.bds {
            BufferTable::Normal(table) => table.address(),
            BufferTable::Extended(table) => table.address(),
        }
    }

    fn clear(&self) -> Result<(), DmaError> {
        match &self.bds {
            BufferTable::Normal(table) => table.clear(),
            BufferTable::Extended(table) => table.clear(),
        }
    }
}

/// One ring with its buffers.
pub(super) struct BufferRing {
    kind: Ring,
    entries: u32,
    mailbox: u32,
    mark: u16,
    memory: BufferMemory,
    /// The parts of a slot that the card fills, in order.
    pieces: &'static [(usize, usize)],
    producer: u32,
    rung: u32,
    /// For each buffer its turn, and whether the card has it.
    queued: Vec<(u16, bool)>,
}

impl BufferRing {
    /// The ring of a plan; the driver has all buffers.
    pub fn new(plan: &BufferPlan, memory: BufferMemory) -> Self {
        let kind = plan.ring;
        Self {
            kind,
            entries: plan.entries,
            mailbox: plan.mailbox,
            mark: plan.mark,
            memory,
            pieces: match plan.slot {
                _ if plan.extended => &EXTENDED_PIECES,
                JUMBO_SLOT_BYTES => &[JUMBO_PIECE],
                // The slot is the only piece.
                _ => &[],
            },
            producer: 0,
            rung: 0,
            queued: vec![(FIRST_TURN, false); usize::from(plan.buffers)],
        }
    }

    /// The card restarts: its ring is empty.
    pub fn restart(&mut self) -> Result<(), DmaError> {
        self.forget();
        self.queued.fill((FIRST_TURN, false));
        self.memory.clear()
    }

    /// The card's address of the ring.
    pub fn address(&self) -> Result<u64, DmaError> {
        self.memory.address()
    }

    pub fn kind(&self) -> Ring {
        self.kind
    }

    pub fn memory(&self) -> &DmaMemory {
        self.memory.slots.memory()
    }

    /// The pieces of a buffer: offsets in memory and bytes.
    pub fn pieces(&self, buffer: u16) -> impl Iterator<Item = (usize, usize)> + '_ {
        let start = self.memory.slots.offset(usize::from(buffer));
        let whole = [(0, self.memory.slots.slot_bytes())];
        let count = self.pieces.len().max(1);
        (0..count).map(move |index| {
            let (offset, bytes) = self.pieces.get(index).copied().unwrap_or(whole[0]);
            (start + offset, bytes)
        })
    }

    /// Bytes of a buffer.
    pub fn capacity(&self) -> usize {
        self.pieces(0).map(|(_, bytes)| bytes).sum()
    }

    /// Buffers that the card has.
    pub fn outstanding(&self) -> usize {
        let queued = self.queued.iter();
        queued.filter(|(_, with_card)| *with_card).count()
    }

    /// Queues every buffer that the card does not have.
    pub fn fill(&mut self) -> Result<(), NicError> {
        for buffer in 0..self.queued.len() as u16 {
            let state = self.queued.get(usize::from(buffer));
            if state.is_some_and(|(_, with_card)| !with_card) {
                self.queue(buffer)?;
            }
        }
        Ok(())
    }

    /// Takes all buffers back from a ring that the card has discarded.
    pub fn forget(&mut self) {
        self.producer = 0;
        self.rung = 0;
        for (_, with_card) in &mut self.queued {
            *with_card = false;
        }
    }

    pub fn queue(&mut self, buffer: u16) -> Result<(), NicError> {
        let mut parts = [(0, 0); MAX_PIECES];
        for (part, (offset, bytes)) in parts.iter_mut().zip(self.pieces(buffer)) {
            *part = (self.memory().address(offset, bytes)?, bytes as u16);
        }
        let Some((turn, with_card)) = self.queued.get_mut(usize::from(buffer)) else {
            return Ok(());
        };
        *turn = turn.wrapping_add(1);
        *with_card = true;
        let opaque = u32::from(*turn) << 16 | u32::from(self.mark | buffer);
        let [(address, length), rest @ ..] = parts;
        let base = ReceiveBd::new(address, length, self.kind.flags(), buffer, opaque);
        match &self.memory.bds {
            BufferTable::Normal(bds) => bds.write(self.producer, &base.words())?,
            BufferTable::Extended(bds) => {
                let [second, third, fourth] = rest;
                let bd = ExtendedReceiveBd {
                    address1: HostAddress::new(second.0),
                    address2: HostAddress::new(third.0),
                    address3: HostAddress::new(fourth.0),
                    lengths_1_2: u32::from(second.1) << 16 | u32::from(third.1),
                    length_3: u32::from(fourth.1) << 16,
                    base,
                };
                bds.write(self.producer, &extended_words(&bd))?;
            }
        }
        self.producer = ring::advance(self.producer, 1, self.entries);
        Ok(())
    }

    /// Mailbox and producer index for the doorbell, once enough buffers are queued (or any, if
    /// `all`).
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

    /// The buffer that a return BD of this ring returns.
    fn check(&self, bd: &ReceiveBd) -> Result<u16, DropReason> {
        let buffer = bd.index();
        let Some((turn, with_card)) = self.queued.get(usize::from(buffer)) else {
            return Err(DropReason::BadIndex);
        };
        if bd.opaque as u16 != self.mark | buffer {
            return Err(DropReason::BadMark);
        }
        if !with_card || (bd.opaque >> 16) as u16 != *turn {
            return Err(DropReason::Stale);
        }
        Ok(buffer)
    }
}

/// The ring, by its place in the list, and the buffer that a return BD returns.
pub(super) fn check(rings: &[BufferRing], bd: &ReceiveBd) -> Result<(usize, u16), DropReason> {
    let kind = Ring::of(bd.flags()).ok_or(DropReason::BadMark)?;
    let at = rings.iter().position(|ring| ring.kind == kind);
    let (at, ring) = at
        .and_then(|at| Some((at, rings.get(at)?)))
        .ok_or(DropReason::BadIndex)?;
    Ok((at, ring.check(bd)?))
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
