//! The transfers that bring a frame's data.
//!
//! ```text
//!   alone, whole    | data |                          in front of SDMA's turn, and the headers behind
//!   fragment        | data |                          in front of SDMA's turn
//!   whole           | data |
//!   gathered        | piece | piece | .. |
//!   cut through     | first part | part | part |
//!                           it leaves  ^
//! ```

use super::flags::{AHEAD, GATHERED, LEADS, SUMMED, WHOLE};
use super::frame::{Frame, TRANSFERS};
use super::job::Job;
use super::pieces::Piece;
use crate::io::IoB;
use crate::io::note::ReadNote;
use crate::io::states::Sum;
use crate::path::send::SendPath;
use tigon2_hal::assist::Transfer;
use tigon2_hal::events::Dispatch;

impl Frame {
    /// Its transfer is queued no more: it is fetched when its turn comes.
    pub const fn leave_ahead(&mut self) {
        self.flags &= !AHEAD;
        self.missing = 0;
    }

    /// Whether the transfer that writes to `local` is its own, in front of its turn.
    pub const fn is_ahead_at(&self, local: u32) -> bool {
        self.has(AHEAD) && local == self.start + self.headers
    }

    /// Queues its transfers, all before it leaves: while channels, MAC and CPU A fill the SRAM port,
    /// CPU B takes 10 us or more for a part.
    #[inline(always)]
    pub fn fetch<B: Dispatch>(&mut self, job: &Job, send: &SendPath, io: &mut IoB<B>) {
        if self.has(AHEAD) {
            return;
        }
        if self.has(GATHERED) {
            return self.fetch_from(self.headers, job, send, io);
        }
        self.fetch_lead(io);
        if !self.has(WHOLE) && self.lead != self.length {
            self.fetch_from(self.lead, job, send, io);
        }
    }

    /// Queues its transfer, which is its only one, in front of its turn.
    #[inline(always)]
    pub fn fetch_ahead<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        // SDMA takes a frame only if there is room for all transfers that one can have.
        if io.read_ring.has_room(TRANSFERS + 1) {
            self.flags |= AHEAD;
            self.fetch_lead(io);
        }
    }

    /// Queues the transfer of the first part.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_b.endpoints"))]
    #[inline(never)]
    fn fetch_lead<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        let mut state = io.states.data;
        if self.has(SUMMED) {
            state |= Sum::ON | Sum::BEGINS | Sum::STORED;
            if self.lead != self.length {
                state &= !Sum::STORED;
            }
            io.read_ring.store_sum(&mut io.bus);
        }
        let transfer = Transfer {
            host: self.host,
            // Headers lie in one piece.
            local: self.start + self.headers,
            length: self.lead - self.headers,
            state,
            note: ReadNote::PART.word(),
        };
        io.read_ring.put(&mut io.bus, &transfer);
        self.missing = 1;
    }

    /// Queues the transfers of what comes from byte `from` of the frame on, in SRAM: what has no
    /// place in one transfer.
    #[inline(never)]
    fn fetch_from<B: Dispatch>(&mut self, from: u32, job: &Job, send: &SendPath, io: &mut IoB<B>) {
        let IoB {
            bus,
            read_ring,
            states,
            ..
        } = io;
        let (mut number, mut piece) = if self.has(GATHERED) {
            job.pieces.at(self.data + from - self.headers)
        } else {
            let bytes = self.length - self.headers;
            let whole = Piece {
                host: self.host,
                bytes,
            };
            (0, whole.behind(from - self.headers))
        };
        let mut queue = read_ring.open();
        let mut local = send.behind(self.start, from);
        let mut state = states.data;
        if self.has(LEADS) {
            state = self.sum_ahead(bus, (job, send), &mut queue, state);
        } else if self.has(SUMMED) {
            state |= Sum::ON;
            if from == self.headers {
                state |= Sum::BEGINS;
            }
        }
        let mut to = if from < self.lead {
            self.lead
        } else {
            self.end_of(from)
        };
        let mut left = to - from;
        loop {
            if piece.bytes == 0 {
                number += 1;
                piece = job.pieces.of(number);
            }
            let bytes = piece.bytes.min(left);
            left -= bytes;
            let mut note = ReadNote::PIECE;
            if left == 0 {
                note = ReadNote::PART;
                if self.has(SUMMED) && to == self.length {
                    state |= Sum::STORED;
                    queue.store_sum(bus);
                }
            }
            let transfer = Transfer {
                host: piece.host,
                local,
                length: bytes,
                state,
                note: note.word(),
            };
            queue.put(bus, &transfer);
            if left == 0 {
                self.missing += 1;
                if to == self.length {
                    break;
                }
                let end = self.end_of(to);
                (to, left) = (end, end - to);
            }
            state &= !Sum::BEGINS;
            piece = piece.behind(bytes);
            local = send.behind(local, bytes);
        }
    }
}
