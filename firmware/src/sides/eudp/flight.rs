//! The datagrams that RDMA has: some whole ones in the write channel's queue, or one of another kind.
//!
//! ```text
//!   number   done          taken        taken of an endpoint: received
//!   ----------+------+------+------     done with:             finished
//!             | 1st  | 2nd  | next
//!   channel    writes  queued
//! ```
//!
//! The completions of those in front of `completed` are in the channel's queue, too.
//!
//! A fragment is one of them, too: see [`part`](super::part). What comes in several pieces, or while
//! it arrives, is alone: there is no [`room`](Flights::room) for another one until it is done.

use super::completion::{Completions, Entry};
use super::datagram::Datagram;
use super::pieces::piece;
use crate::io::IoA;
use crate::io::a::DATAGRAMS;
use crate::io::note::WriteNote;
use crate::memory::layout::EUDP_BLOCK;
use host_interface::eudp::{DescriptorWord, Kind, Status, Verdict, pieces_of, receive_slot};
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Whole datagrams that may be in RDMA at a time.
pub const DEPTH: u32 = DATAGRAMS;

/// A datagram in RDMA.
#[derive(Clone, Copy, Debug)]
// So its place is found by a shift.
#[repr(C, align(32))]
pub struct Flight {
    /// What its headers say.
    pub datagram: Datagram,
    /// Its descriptor's word.
    pub cookie: u32,
    /// Its descriptor's only segment; zeros if there are several. Of a fragment: its datagram's row.
    pub segment: [u32; 2],
}

impl Flight {
    const NONE: Flight = Flight {
        datagram: Datagram::NONE,
        cookie: 0,
        segment: [0; 2],
    };

    /// Its completion.
    #[inline(always)]
    const fn entry(&self) -> Entry {
        let Datagram {
            length,
            is_summed,
            is_right,
            address,
            port,
            ..
        } = self.datagram;
        let verdict = if is_summed {
            Verdict::Right as u32
        } else {
            Verdict::Absent as u32
        };
        Entry {
            cookie: self.cookie,
            kind: Kind::Received,
            status: Status::Unwritable as u32 & (is_right as u32).wrapping_sub(1),
            length,
            address,
            port: port << 16 | verdict,
        }
    }

    /// Its data is not in the host's memory.
    pub(super) const fn spoil(&mut self) {
        self.datagram.is_right = false;
        self.datagram.length = 0;
    }

    /// Takes the endpoint's next descriptor, if that is one piece of memory, and long enough. Returns
    /// where it is.
    #[inline(always)]
    pub(super) fn take_descriptor<B: Bus>(
        &mut self,
        queue: &mut Completions,
        bus: &mut B,
    ) -> Option<HostAddress> {
        let Datagram {
            endpoint, length, ..
        } = self.datagram;
        if queue.received == queue.filled {
            return None;
        }
        let descriptor = barrier(EUDP_BLOCK + receive_slot(endpoint, queue.received));
        let to = bus.load(descriptor + DescriptorWord::To as u32);
        if pieces_of(to) != 1 {
            return None;
        }
        let at = descriptor + DescriptorWord::Data as u32;
        let (what, offset) = (bus.load(at), bus.load(at + 4));
        let (region, bytes) = (what >> 16, what & 0xFFFF);
        if bytes < length {
            return None;
        }
        let piece = piece(bus, endpoint, region, offset, bytes)?;
        self.cookie = bus.load(descriptor + DescriptorWord::Cookie as u32);
        self.segment = [what, offset];
        queue.take();
        Some(piece.host)
    }
}

const _: () = assert!(size_of::<Flight>() == 32);

/// The datagrams that RDMA has.
#[derive(Debug)]
#[repr(C)]
pub struct Flights {
    list: [Flight; DEPTH as usize],
    /// The number of the next one.
    taken: u32,
    /// The number of the oldest one that is not done.
    done: u32,
    /// The number of the oldest one whose completion is not queued.
    completed: u32,
    /// How many more may be taken now.
    room: u32,
}

impl Flights {
    /// None.
    pub const NONE: Flights = Flights {
        list: [Flight::NONE; DEPTH as usize],
        taken: 0,
        done: 0,
        completed: 0,
        room: DEPTH,
    };

    /// The place of the next one.
    #[inline(always)]
    pub const fn next(&mut self) -> &mut Flight {
        &mut self.list[(self.taken % DEPTH) as usize]
    }

    /// The one that is written first. If there is none, the place of the next one.
    #[inline(always)]
    pub const fn oldest(&mut self) -> &mut Flight {
        &mut self.list[(self.done % DEPTH) as usize]
    }

    /// Whether the completions of all are queued.
    #[inline(always)]
    pub const fn are_completed(&self) -> bool {
        self.completed == self.taken
    }

    /// Whether the completion of the oldest one is queued.
    #[inline(always)]
    pub const fn is_oldest_completed(&self) -> bool {
        self.completed != self.done
    }

    /// Queues the completion of the oldest one whose completion is not queued, for which there is
    /// [room](IoA::has_write_room). On the transfer's `note` no action follows.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.over"))]
    #[inline(never)]
    pub(super) fn complete<B: Dispatch>(
        &mut self,
        queue: &mut Completions,
        io: &mut IoA<B>,
        note: WriteNote,
    ) {
        let entry = self.next_entry();
        queue.complete(io, &entry, note);
    }

    /// The completion of the oldest one whose completion is not queued. It counts as queued from now
    /// on.
    #[inline(always)]
    pub(super) const fn next_entry(&mut self) -> Entry {
        let flight = &self.list[(self.completed % DEPTH) as usize];
        self.completed = self.completed.wrapping_add(1);
        flight.entry()
    }

    /// The one behind the oldest.
    pub(super) const fn second(&self) -> Option<&Flight> {
        if self.are_more() {
            Some(&self.list[(self.done.wrapping_add(1) % DEPTH) as usize])
        } else {
            None
        }
    }

    /// How many more may be taken now.
    #[inline(always)]
    pub const fn room(&self) -> u32 {
        self.room
    }

    /// Whether there are others behind the oldest one.
    #[inline(always)]
    pub const fn are_more(&self) -> bool {
        self.taken.wrapping_sub(self.done) > 1
    }

    /// The next one is taken; there is room for it.
    #[inline(always)]
    pub const fn take(&mut self) {
        self.taken = self.taken.wrapping_add(1);
        self.room -= 1;
    }

    /// The same of one that is alone.
    #[inline(always)]
    pub const fn take_alone(&mut self) {
        self.taken = self.taken.wrapping_add(1);
        self.room = 0;
    }

    /// Nothing is taken until [`go_on`](Self::go_on).
    #[inline(always)]
    pub const fn stop(&mut self) {
        self.room = 0;
    }

    /// Others may be taken again.
    #[inline(always)]
    pub const fn go_on(&mut self) {
        self.room = DEPTH - self.taken.wrapping_sub(self.done);
    }

    /// The oldest one is done with: its completion is queued, or it gets none.
    #[inline(always)]
    pub const fn finish(&mut self) {
        if !self.is_oldest_completed() {
            self.completed = self.completed.wrapping_add(1);
        }
        self.finish_completed();
    }

    /// The same of one whose completion is queued.
    #[inline(always)]
    pub const fn finish_completed(&mut self) {
        self.done = self.done.wrapping_add(1);
        self.go_on();
    }

    /// Those that are not done, the oldest first.
    pub(super) fn each(&self) -> impl Iterator<Item = &Flight> {
        let mut number = self.done;
        core::iter::from_fn(move || {
            if number == self.taken {
                return None;
            }
            let flight = &self.list[(number % DEPTH) as usize];
            number = number.wrapping_add(1);
            Some(flight)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_whole_datagrams_or_one_alone() {
        let mut flights = Flights::NONE;
        for first in 0..9 {
            for number in 0..DEPTH {
                assert_eq!(flights.room(), DEPTH - number);
                flights.next().cookie = first + number;
                flights.take();
            }
            for number in 0..DEPTH {
                assert_eq!(flights.room(), number);
                assert_eq!(flights.oldest().cookie, first + number);
                assert_eq!(flights.are_more(), number + 1 != DEPTH);
                flights.finish();
            }
            flights.next().cookie = 77;
            flights.take_alone();
            assert_eq!(flights.room(), 0);
            assert!(!flights.are_more());
            assert_eq!(flights.oldest().cookie, 77);
            flights.finish();
        }
    }
}
