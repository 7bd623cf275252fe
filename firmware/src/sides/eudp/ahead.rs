//! The sum of a datagram whose fragment with the UDP header leaves first.
//!
//! The checksum needs all data before the first frame leaves. So the data of the frames behind it is
//! fetched in front of its own: for the sum alone, each chunk over the one before, and the frame's
//! own data over all of them. For SDMA the frame is one that is held for its sum. Each frame behind
//! it is fetched again, without a sum.
//!
//! ```text
//!   first frame   | headers | 1, then 2, then 3, then its own data |
//!   process's memory        | its own | 1           | 2           | 3    |
//! ```

use super::frame::Frame;
use super::job::Job;
use crate::io::note::ReadNote;
use crate::io::states::Sum;
use crate::path::send::SendPath;
use tigon2_hal::assist::{Direction, Queue, Transfer};
use tigon2_hal::events::Dispatch;

/// Bytes of a chunk, which a frame's place in the transmit buffer has room for: an even number, as
/// the sum has halfwords.
const CHUNK: u32 = 8192;

impl Frame {
    /// Queues the transfers of all data behind the frame's own. Returns the state of that's first
    /// one.
    #[inline(never)]
    pub(super) fn sum_ahead<B: Dispatch, D: Direction>(
        &self,
        bus: &mut B,
        (job, send): (&Job, &SendPath),
        queue: &mut Queue<'_, D>,
        data: u32,
    ) -> u32 {
        let summed = data | Sum::ON;
        let mut state = summed | Sum::BEGINS;
        let mut from = self.data + (self.length - self.headers);
        let (mut number, mut piece) = job.pieces.at(from);
        while from < job.length {
            let mut left = CHUNK.min(job.length - from);
            let mut local = send.behind(self.start, self.headers);
            from += left;
            while left != 0 {
                if piece.bytes == 0 {
                    number += 1;
                    piece = job.pieces.of(number);
                }
                let bytes = piece.bytes.min(left);
                let transfer = Transfer {
                    host: piece.host,
                    local,
                    length: bytes,
                    state,
                    note: ReadNote::PIECE.word(),
                };
                queue.put(bus, &transfer);
                state = summed;
                piece = piece.behind(bytes);
                local = send.behind(local, bytes);
                left -= bytes;
            }
        }
        state
    }
}
