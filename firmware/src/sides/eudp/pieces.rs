//! Pieces of the host's memory, judged: each in a region of its endpoint.

use crate::memory::layout::EUDP_BLOCK;
use host_interface::eudp::{
    DescriptorWord, REGIONS, RegionWord, SEGMENT_BYTES, SEGMENTS, Status, region_word,
};
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;
use tigon2_hal::schedule::barrier;

/// A piece of the host's memory.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Where it is.
    pub host: HostAddress,
    /// Its bytes.
    pub bytes: u32,
}

impl Piece {
    const NONE: Piece = Piece {
        host: HostAddress { high: 0, low: 0 },
        bytes: 0,
    };

    /// What follows its first `bytes`.
    #[inline(always)]
    pub fn behind(self, bytes: u32) -> Piece {
        Piece {
            host: self.host.plus(bytes),
            bytes: self.bytes - bytes,
        }
    }
}

/// Up to eight pieces of the host's memory, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    list: [Piece; SEGMENTS as usize],
    count: u32,
}

impl Pieces {
    /// None.
    pub const NONE: Pieces = Pieces {
        list: [Piece::NONE; SEGMENTS as usize],
        count: 0,
    };

    /// Takes the `count` pieces of an endpoint's descriptor; returns their bytes in all.
    ///
    /// # Errors
    /// [`Status::BadDescriptor`] if they are not all in regions of the endpoint.
    #[inline(always)]
    pub fn take<B: Bus>(
        &mut self,
        bus: &mut B,
        endpoint: u32,
        descriptor: u32,
        count: u32,
    ) -> Result<u32, Status> {
        self.count = 0;
        if count > SEGMENTS {
            return Err(Status::BadDescriptor);
        }
        let mut at = descriptor + DescriptorWord::Data as u32;
        let mut all = 0;
        for place in self.list.iter_mut().take(count as usize) {
            let (what, offset) = (bus.load(at), bus.load(at + 4));
            let (region, bytes) = (what >> 16, what & 0xFFFF);
            *place = piece(bus, endpoint, region, offset, bytes).ok_or(Status::BadDescriptor)?;
            all += bytes;
            at += SEGMENT_BYTES;
        }
        self.count = count;
        Ok(all)
    }

    /// One piece.
    #[inline(always)]
    pub fn set_only(&mut self, piece: Piece) {
        self.list[0] = piece;
        self.count = 1;
    }

    /// The only piece, if there is one.
    #[inline(always)]
    pub fn only(&self) -> Option<&Piece> {
        if self.count == 1 {
            self.list.first()
        } else {
            None
        }
    }

    /// A piece by its number; an empty one behind the last.
    #[inline(always)]
    pub fn of(&self, number: u32) -> Piece {
        let piece = self.list.get(number as usize);
        piece.copied().unwrap_or(Piece::NONE)
    }

    /// What follows the first `from` bytes in their piece, and that one's number.
    #[inline(always)]
    pub fn at(&self, mut from: u32) -> (u32, Piece) {
        let mut number = 0;
        let mut piece = self.of(0);
        while from >= piece.bytes && number + 1 < self.count {
            from -= piece.bytes;
            number += 1;
            piece = self.of(number);
        }
        (number, piece.behind(from.min(piece.bytes)))
    }
}

/// Bytes of a region that belongs to the endpoint.
#[inline(always)]
pub fn piece<B: Bus>(
    bus: &mut B,
    endpoint: u32,
    region: u32,
    offset: u32,
    bytes: u32,
) -> Option<Piece> {
    if region >= REGIONS {
        return None;
    }
    let row = barrier(EUDP_BLOCK + region_word(region, RegionWord::High));
    let mut word = |word: RegionWord| bus.load(row + word as u32 - RegionWord::High as u32);
    let there = word(RegionWord::Bytes);
    let mine = word(RegionWord::Owner) == endpoint + 1;
    if !mine || bytes == 0 || offset > there || bytes > there - offset {
        return None;
    }
    let whole = Piece {
        host: HostAddress {
            high: word(RegionWord::High),
            low: word(RegionWord::Low),
        },
        bytes: there,
    };
    Some(Piece {
        bytes,
        ..whole.behind(offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_walked_from_anywhere() {
        let mut pieces = Pieces::NONE;
        for (at, bytes) in [(0, 100), (1000, 50), (u32::MAX - 9, 30)] {
            pieces.list[pieces.count as usize] = Piece {
                host: HostAddress { high: 0, low: at },
                bytes,
            };
            pieces.count += 1;
        }
        let at = |from| {
            let (number, piece) = pieces.at(from);
            let host = u64::from(piece.host.high) << 32 | u64::from(piece.host.low);
            (number, host, piece.bytes)
        };
        assert_eq!(at(0), (0, 0, 100));
        assert_eq!(at(99), (0, 99, 1));
        assert_eq!(at(100), (1, 1000, 50));
        assert_eq!(at(170), (2, 0x1_0000_000A, 10));
        assert_eq!(at(180), (2, 0x1_0000_0014, 0));
        assert_eq!(pieces.of(8).bytes, 0);
    }
}
