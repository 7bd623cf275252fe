//! The card's addresses of DMA memory.

use std::sync::Arc;

/// Addresses for the card.
#[derive(Debug, Clone)]
pub(super) enum Addresses {
    /// Contiguous from this address on.
    Linear(u64),
    /// Pieces of this size, each at its own address.
    Pieces(usize, Arc<[u64]>),
}

impl Addresses {
    /// Memory that is contiguous from an address on.
    pub fn at(address: u64) -> Self {
        Self::Linear(address)
    }

    /// Memory whose pieces of `bytes` bytes begin at these addresses.
    pub fn in_pieces(bytes: usize, starts: Vec<u64>) -> Self {
        Self::Pieces(bytes, starts.into())
    }

    /// Address of the first byte.
    pub fn first(&self) -> u64 {
        match self {
            Self::Linear(address) => *address,
            Self::Pieces(_, starts) => starts.first().copied().unwrap_or(0),
        }
    }

    /// Address of `bytes` bytes from `offset` on, which are inside the memory; None if they are not
    /// at consecutive addresses.
    pub fn of(&self, offset: usize, bytes: usize) -> Option<u64> {
        let (piece, starts) = match self {
            Self::Linear(address) => return Some(address + offset as u64),
            Self::Pieces(piece, starts) => (*piece, starts),
        };
        let first = offset / piece;
        let last = (offset + bytes.max(1) - 1) / piece;
        let start = *starts.get(first)?;
        for (index, next) in (0..).zip(starts.get(first..=last)?) {
            if *next != start + index * piece as u64 {
                return None;
            }
        }
        Some(start + (offset % piece) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_an_address_if_its_pieces_follow_each_other() {
        let pieces = Addresses::in_pieces(0x1000, vec![0x8000, 0x9000, 0x4000]);
        assert_eq!(pieces.first(), 0x8000);
        assert_eq!(pieces.of(0x10, 0x20), Some(0x8010));
        assert_eq!(pieces.of(0xFF0, 0x20), Some(0x8FF0), "over a boundary");
        assert_eq!(pieces.of(0x1FF0, 0x10), Some(0x9FF0), "up to one");
        assert_eq!(pieces.of(0x1FF0, 0x11), None, "over a jump");
        assert_eq!(pieces.of(0x2004, 4), Some(0x4004));
        assert_eq!(pieces.of(0x3000, 1), None, "outside");
        assert_eq!(Addresses::at(0x100).of(7, 9), Some(0x107));
    }
}
