//! Completions of datagrams that are in a pool.

use super::{Completion, Endpoint, kind_of};
use crate::card::{Access, Card, Memory};
use crate::error::SendError;
use host_interface::eudp::{CompletionWord, Kind, POOL_BUFFERS};

/// A datagram that is to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pooled {
    /// The pool's buffer.
    pub buffer: u32,
    /// Its bytes.
    pub bytes: usize,
    /// Where it goes: the two words of a piece.
    piece: [u32; 2],
}

impl<M: Memory> Endpoint<M> {
    /// The datagram of the next completion, if that is in a pool.
    pub(crate) fn pooled(&self) -> Option<Pooled> {
        let words = self.next_entry()?;
        if kind_of(&words) != Kind::Pooled as u32 {
            return None;
        }
        let word = |word: CompletionWord| words[word as usize / 4];
        let piece = CompletionWord::Piece as usize / 4;
        Some(Pooled {
            buffer: word(CompletionWord::PortAndVerdict) >> 8 & (POOL_BUFFERS - 1),
            bytes: word(CompletionWord::Length) as usize,
            piece: [words[piece], words[piece + 1]],
        })
    }

    /// Takes the completion of a datagram in a pool, whose bytes are these. `None`, and the endpoint is
    /// lost, if they are for memory that is not its own.
    pub(crate) fn deliver<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        pooled: &Pooled,
        data: &[u8],
    ) -> Result<Option<Completion>, SendError<C::Error>> {
        let [what, offset] = pooled.piece;
        let mut regions = self.regions.iter();
        let region = regions.find(|(number, _)| *number == what >> 16);
        let at = offset as usize;
        let written = region.is_some_and(|(_, memory)| {
            let end = at.checked_add(data.len());
            data.len() <= (what & 0xFFFF) as usize
                && end.is_some_and(|end| end <= memory.bytes())
                && memory.access() == Access::ReadWrite
                && memory.write_bytes(at, data).is_ok()
        });
        match self.next_entry() {
            Some(words) if written => self.complete(card, &words),
            _ => {
                self.lose();
                Ok(None)
            }
        }
    }

    /// Nothing that the card says counts any more.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }

    /// A descriptor to receive has come back without a completion.
    pub(crate) fn received_elsewhere(&mut self) {
        self.receive.done = self.receive.done.wrapping_add(1);
    }
}
