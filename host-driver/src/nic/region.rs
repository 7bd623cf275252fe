//! Regions of DMA memory: tables of words and rows of slots.
//!
//! A region is created from a span that [`super::layout`] has allocated once, and keeps its memory
//! mapped. An access through one region never reaches a byte of another.

use crate::dma::{DmaError, DmaMemory};

/// Entries of `WORDS` words each: a ring, an index, a block.
pub(super) struct Table<const WORDS: usize> {
    memory: DmaMemory,
    offset: usize,
    /// A power of two.
    entries: u32,
}

impl<const WORDS: usize> Table<WORDS> {
    /// The table at a place in memory; `entries` is a power of two.
    pub(super) fn new(memory: &DmaMemory, offset: usize, entries: u32) -> Self {
        debug_assert!(entries.is_power_of_two());
        Self {
            memory: memory.clone(),
            offset,
            entries,
        }
    }

    fn bytes(&self) -> usize {
        self.entries as usize * WORDS * 4
    }

    /// Offset of an entry. Indices wrap, so none leaves the table.
    fn at(&self, index: u32) -> usize {
        self.offset + (index & (self.entries - 1)) as usize * WORDS * 4
    }

    /// The same table for another reader.
    pub(super) fn again(&self) -> Self {
        Self::new(&self.memory, self.offset, self.entries)
    }

    /// The card's address of the table.
    ///
    /// # Errors
    /// [`DmaError`] if the table is not contiguous for the card.
    pub fn address(&self) -> Result<u64, DmaError> {
        self.memory.address(self.offset, self.bytes())
    }

    /// Its memory, and where it begins there.
    pub fn place(&self) -> (&DmaMemory, usize) {
        (&self.memory, self.offset)
    }

    /// The first word of an entry.
    ///
    /// # Errors
    /// [`DmaError`] if the memory is too small for the layout.
    pub fn first_word(&self, index: u32) -> Result<u32, DmaError> {
        self.memory.read_word(self.at(index))
    }

    /// A copy of an entry: the card may change the entry meanwhile.
    ///
    /// # Errors
    /// [`DmaError`] if the memory is too small for the layout.
    pub fn read(&self, index: u32) -> Result<[u32; WORDS], DmaError> {
        let mut words = [0; WORDS];
        self.memory.read_words(self.at(index), &mut words)?;
        Ok(words)
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// [`DmaError`] if the memory is too small for the layout.
    pub fn write(&self, index: u32, words: &[u32; WORDS]) -> Result<(), DmaError> {
        self.memory.write_words(self.at(index), words)
    }

    /// Sets all entries to zero.
    ///
    /// # Errors
    /// [`DmaError`] if the memory is too small for the layout.
    pub fn clear(&self) -> Result<(), DmaError> {
        self.memory.clear(self.offset, self.bytes())
    }
}

/// Slots for frames, all of one size.
pub(super) struct Slots {
    memory: DmaMemory,
    offset: usize,
    count: usize,
    bytes: usize,
}

impl Slots {
    /// The slots at a place in memory; there is at least one.
    pub(super) fn new(memory: &DmaMemory, offset: usize, count: usize, bytes: usize) -> Self {
        Self {
            memory: memory.clone(),
            offset,
            count,
            bytes,
        }
    }

    /// Their memory, for copies of frames.
    pub fn memory(&self) -> &DmaMemory {
        &self.memory
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> usize {
        self.bytes
    }

    /// Offset of a slot in the memory; a number after the last means the last.
    pub fn offset(&self, slot: usize) -> usize {
        self.offset + slot.min(self.count.saturating_sub(1)) * self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_index_leaves_its_table() {
        let memory = DmaMemory::new(4096, 0x10_0000).expect("a page");
        let table: Table<2> = Table::new(&memory, 64, 4);
        for index in [0, 3, 4, 7, u32::MAX] {
            table.write(index, &[index, !index]).expect("inside");
            assert_eq!(table.read(index).expect("inside"), [index, !index]);
        }
        let word = |offset| memory.read_word(offset).expect("inside");
        assert_eq!((word(60), word(96)), (0, 0), "before and behind");
        table.clear().expect("inside");
        assert!((64..96).step_by(4).all(|offset| word(offset) == 0));
        assert_eq!(table.address().expect("in one piece"), 0x10_0040);
    }

    #[test]
    fn a_slot_behind_the_last_is_the_last() {
        let memory = DmaMemory::new(8192, 0x10_0000).expect("two pages");
        let slots = Slots::new(&memory, 1024, 3, 2048);
        let offsets = [0, 1, 2, 3, usize::MAX].map(|slot| slots.offset(slot));
        assert_eq!(offsets, [1024, 3072, 5120, 5120, 5120]);
    }
}
