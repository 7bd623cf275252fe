//! A received frame and the card's report about it.

use std::io;
use std::os::fd::BorrowedFd;

use host_interface::bd::{BdErrors, BdFlags, ReceiveBd};
use host_interface::queue::HashType;

use super::buffers::MAX_PIECES;
use super::rings::Ring;
use crate::dma::{DmaError, DmaMemory};

/// Checksums that the card computed for a received frame: one's-complement sums of big-endian
/// 16-bit words, not inverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceivedChecksums {
    /// The sum of everything after the Ethernet header, with the pseudo-header unless that is
    /// disabled, if the card computed it.
    pub transport: Option<u16>,
    /// The sum of the IPv4 header, if the card computed it.
    pub ip: Option<u16>,
}

/// A received frame, still in its buffer; the buffer returns to the card when the callback
/// returns.
pub struct ReceivedFrame<'a> {
    memory: &'a DmaMemory,
    pieces: [(usize, usize); MAX_PIECES],
    count: usize,
    bd: ReceiveBd,
    ring: Ring,
}

impl<'a> ReceivedFrame<'a> {
    /// The frame of a return BD, in the pieces of its buffer, which hold its length.
    pub(super) fn new(
        memory: &'a DmaMemory,
        places: impl Iterator<Item = (usize, usize)>,
        bd: ReceiveBd,
        ring: Ring,
    ) -> Self {
        let mut pieces = [(0, 0); MAX_PIECES];
        let mut count = 0;
        let mut left = usize::from(bd.length());
        for (piece, (offset, bytes)) in pieces.iter_mut().zip(places) {
            if left == 0 {
                break;
            }
            let bytes = bytes.min(left);
            *piece = (offset, bytes);
            left -= bytes;
            count += 1;
        }
        Self {
            memory,
            pieces,
            count,
            bd,
            ring,
        }
    }

    /// Bytes of the frame, without CRC unless it was requested.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.bd.length())
    }

    /// Always false: frames without an Ethernet header are dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory of the frame, and the offset and length of each piece, to move the frame without
    /// a copy. There is one piece, unless the buffer has an extended BD.
    #[must_use]
    pub fn pieces(&self) -> (&DmaMemory, &[(usize, usize)]) {
        let pieces = self.pieces.get(..self.count).unwrap_or(&[]);
        (self.memory, pieces)
    }

    /// Copies the frame.
    ///
    /// # Errors
    /// [`DmaError`] is impossible here, because the range was checked; it is passed on, not hidden.
    pub fn to_vec(&self) -> Result<Vec<u8>, DmaError> {
        let mut frame = vec![0; self.len()];
        let mut rest = frame.as_mut_slice();
        let (memory, pieces) = self.pieces();
        for (offset, bytes) in pieces {
            let (now, later) = rest.split_at_mut((*bytes).min(rest.len()));
            memory.read_bytes(*offset, now)?;
            rest = later;
        }
        Ok(frame)
    }

    /// Copies the frame and the card's report about it.
    ///
    /// # Errors
    /// As [`ReceivedFrame::to_vec`].
    pub fn to_received(&self) -> Result<Received, DmaError> {
        Ok(Received {
            bytes: self.to_vec()?,
            vlan: self.vlan(),
            checksums: self.checksums(),
            errors: self.errors(),
            flags: self.flags(),
            ring: self.ring,
            hash: self.hash(),
        })
    }

    /// Makes the kernel write the frame straight from its buffer, after `header`.
    ///
    /// # Errors
    /// What `write` says.
    pub fn write_to(&self, target: BorrowedFd<'_>, header: &[u8]) -> io::Result<usize> {
        let (memory, pieces) = self.pieces();
        match pieces {
            [(offset, bytes)] if header.is_empty() => memory.write_to(target, *offset, *bytes),
            _ => memory.write_pieces_to(target, header, pieces),
        }
    }

    /// The VLAN tag that the card has stripped.
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.flags().vlan_tag().then(|| self.bd.vlan())
    }

    /// The card's sums.
    #[must_use]
    pub fn checksums(&self) -> ReceivedChecksums {
        let flags = self.flags();
        ReceivedChecksums {
            transport: flags
                .transport_checksum()
                .then(|| self.bd.transport_checksum()),
            ip: flags.ip_checksum().then(|| self.bd.ip_checksum()),
        }
    }

    /// The errors of the frame; None for a good one. Bad frames arrive only in an operating mode
    /// that requests them.
    #[must_use]
    pub fn errors(&self) -> Option<BdErrors> {
        self.flags().error().then(|| self.bd.errors())
    }

    /// The hash and its input, in queue mode; the type is [`HashType::None`] without a hash.
    #[must_use]
    pub fn hash(&self) -> (HashType, u32) {
        (self.bd.hash_type().unwrap_or_default(), self.bd.hash())
    }

    /// The ring of the frame's buffer.
    #[must_use]
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// The flags of the return BD.
    #[must_use]
    pub fn flags(&self) -> BdFlags {
        self.bd.flags()
    }
}

/// A copy of a received frame, with the card's report about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The frame.
    pub bytes: Vec<u8>,
    /// The VLAN tag that the card has stripped.
    pub vlan: Option<u16>,
    /// The card's sums.
    pub checksums: ReceivedChecksums,
    /// Its errors.
    pub errors: Option<BdErrors>,
    /// The flags of the return BD.
    pub flags: BdFlags,
    /// The ring of its buffer.
    pub ring: Ring,
    /// The hash and its input, in queue mode.
    pub hash: (HashType, u32),
}
