//! Where extensions go: pieces of the arena, and of CPU A's scratch pad for their text.

use super::Loader;

/// A piece of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: u32,
    pub bytes: u32,
    /// The domain's region, in it.
    pub region: u32,
    pub region_bytes: u32,
    /// The text's place in CPU A's scratch pad; no bytes if it runs in the arena.
    pub pad: Extent,
}

/// Some memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub start: u32,
    pub bytes: u32,
}

impl Piece {
    /// All of it.
    pub const fn extent(&self) -> Extent {
        Extent {
            start: self.start,
            bytes: self.bytes,
        }
    }

    /// Memory without a region.
    pub const fn of(start: u32, bytes: u32) -> Piece {
        Piece {
            start,
            bytes,
            region: start,
            region_bytes: 0,
            pad: Extent { start: 0, bytes: 0 },
        }
    }
}

/// Pieces of the arena begin at multiples of this.
pub(super) const ALIGNMENT: u32 = 16;

impl Loader {
    /// Room for text in CPU A's scratch pad, where an instruction takes a cycle and not some five;
    /// first come, first served.
    pub(super) fn pad_place(&self, text: u32) -> Option<Extent> {
        let used = self.pieces().map(|piece| piece.pad);
        let found = free_place(self.pad, used.filter(|pad| pad.bytes != 0), text);
        let bytes = text.next_multiple_of(ALIGNMENT);
        (text != 0 && found.bytes >= bytes).then_some(Extent {
            start: found.start,
            bytes,
        })
    }

    /// Bytes of a domain's text that run from CPU A's scratch pad.
    pub fn text_in_pad(&self, domain: u32) -> u32 {
        let piece = self.pieces.get(domain as usize).copied().flatten();
        piece.map_or(0, |piece| piece.pad.bytes)
    }
}

/// The first free place in memory that is large enough, or the largest one, with its bytes.
pub(super) fn free_place(memory: Extent, used: impl Iterator<Item = Extent>, needs: u32) -> Extent {
    let mut used: Vec<Extent> = used.collect();
    used.sort_by_key(|one| one.start);
    used.push(Extent {
        start: memory.start + memory.bytes,
        bytes: 0,
    });
    let mut free = Extent {
        start: memory.start,
        bytes: 0,
    };
    let mut largest = free;
    for one in used {
        free.bytes = one.start - free.start;
        if free.bytes >= needs.next_multiple_of(ALIGNMENT) {
            return free;
        }
        if free.bytes > largest.bytes {
            largest = free;
        }
        free.start = one.start + one.bytes;
    }
    largest
}
