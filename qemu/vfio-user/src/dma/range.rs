//! A range of the client's memory.

use crate::message::dma_flags;

/// A range to be added to a [`DmaTable`](super::DmaTable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaRange {
    /// First DMA address.
    pub iova: u64,
    /// Bytes, at least 1.
    pub size: u64,
    /// The device may read the range.
    pub readable: bool,
    /// The device may write the range.
    pub writable: bool,
}

impl DmaRange {
    /// A range for reading and writing.
    pub const fn read_write(iova: u64, size: u64) -> Self {
        Self {
            iova,
            size,
            readable: true,
            writable: true,
        }
    }

    /// Flags of the range in the protocol.
    pub(crate) fn flags(&self) -> u32 {
        let read = if self.readable { dma_flags::READ } else { 0 };
        let write = if self.writable { dma_flags::WRITE } else { 0 };
        read | write
    }
}
