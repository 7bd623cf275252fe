//! Memory of an endpoint's, and pieces of it.

use crate::card::Access;
use crate::error::SendError;
use host_interface::eudp::SEGMENTS;

/// Memory that an endpoint may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub(crate) number: u32,
    pub(crate) bytes: u32,
    pub(crate) access: Access,
}

impl Region {
    /// A piece of it.
    pub fn segment(self, offset: u32, bytes: u32) -> Segment {
        Segment {
            region: self,
            offset,
            bytes,
        }
    }

    /// Its bytes.
    pub fn bytes(self) -> u32 {
        self.bytes
    }

    /// What the card may do with it.
    pub fn access(self) -> Access {
        self.access
    }
}

/// A piece of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    region: Region,
    offset: u32,
    pub(crate) bytes: u32,
}

impl Segment {
    /// Whether a datagram may be received there.
    pub(crate) fn is_writable(&self) -> bool {
        self.region.access == Access::ReadWrite
    }
}

/// The words of pieces.
pub(crate) fn segments<E: std::error::Error>(pieces: &[Segment]) -> Result<Vec<u32>, SendError<E>> {
    if pieces.is_empty() || pieces.len() > SEGMENTS as usize {
        return Err(SendError::Segments(pieces.len()));
    }
    let mut words = Vec::with_capacity(2 * pieces.len());
    for piece in pieces {
        let Segment {
            region,
            offset,
            bytes,
        } = *piece;
        let end = offset.checked_add(bytes);
        if bytes == 0 || bytes > 0xFFFF || end.is_none_or(|end| end > region.bytes) {
            return Err(SendError::Outside {
                offset,
                bytes,
                there: region.bytes,
            });
        }
        words.extend([region.number << 16 | bytes, offset]);
    }
    Ok(words)
}
