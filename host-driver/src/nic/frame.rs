//! A received frame and what the card says about it.

use std::io;
use std::os::fd::BorrowedFd;

use host_interface::bd::{BdErrors, BdFlags, ReceiveBd};

use super::buffers::MAX_PIECES;
use super::rings::Ring;
use crate::dma::{DmaError, DmaMemory};

/// Checksums that the card made of a received frame: one's-complement sums of
/// big-endian 16-bit words, not inverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceivedChecksums {
    /// Of everything behind the Ethernet header, with the pseudo-header unless that was
    /// forgone, if the card made it.
    pub transport: Option<u16>,
    /// Of the IPv4 header, if the card made it.
    pub ip: Option<u16>,
}

/// A frame that was received, still in its buffer; the buffer goes back to the card
/// when the callback returns.
pub struct ReceivedFrame<'a> {
    memory: &'a DmaMemory,
    pieces: [(usize, usize); MAX_PIECES],
    count: usize,
    bd: ReceiveBd,
    ring: Ring,
}

impl<'a> ReceivedFrame<'a> {
    /// The frame of a return BD in the pieces of its buffer, which take its length.
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

    /// Bytes of the frame, without CRC unless it was asked for.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.bd.length())
    }

    /// Never true: frames without an Ethernet header are dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the frame is in, and the offset and length of each of its
    /// pieces, to move it somewhere without a copy in between. There is one piece,
    /// unless the buffer has an extended BD.
    #[must_use]
    pub fn pieces(&self) -> (&DmaMemory, &[(usize, usize)]) {
        let pieces = self.pieces.get(..self.count).unwrap_or(&[]);
        (self.memory, pieces)
    }

    /// Copies the frame out.
    ///
    /// # Errors
    /// [`DmaError`] is impossible here, because the range was checked; it is passed
    /// on rather than hidden.
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

    /// Copies the frame out with everything that the card says about it.
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
        })
    }

    /// Lets the kernel take the frame straight from its buffer, behind `header`.
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

    /// The sums that the card made.
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

    /// What is wrong with the frame; None with a good one. Bad frames come only with
    /// an operating mode that asks for them.
    #[must_use]
    pub fn errors(&self) -> Option<BdErrors> {
        self.flags().error().then(|| self.bd.errors())
    }

    /// The ring that the frame's buffer is from.
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

/// A received frame, copied out, with what the card says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The frame.
    pub bytes: Vec<u8>,
    /// The VLAN tag that the card has stripped.
    pub vlan: Option<u16>,
    /// The sums that the card made.
    pub checksums: ReceivedChecksums,
    /// What is wrong with it.
    pub errors: Option<BdErrors>,
    /// The flags of the return BD.
    pub flags: BdFlags,
    /// The ring that its buffer is from.
    pub ring: Ring,
}
