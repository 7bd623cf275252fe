//! A fragment among the datagrams that RDMA has.

use super::assembly::Assembly;
use super::flight::{Flight, Flights};

/// In the endpoint of a [`Flight`]: it is a fragment.
const FRAGMENT: u32 = 1 << 31;

/// A fragment that RDMA writes.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its datagram.
    pub(super) assembly: Assembly,
    /// Whether the datagram is whole with it.
    pub(super) is_last: bool,
}

impl Flight {
    /// It is a fragment of a datagram for an endpoint.
    #[inline(always)]
    pub(super) const fn set_part(&mut self, endpoint: u32, part: Part) {
        self.datagram.endpoint = endpoint | FRAGMENT;
        self.segment = [part.assembly.word(), part.is_last as u32];
    }

    /// The fragment, if it is one.
    #[inline(always)]
    pub(super) const fn part(&self) -> Option<Part> {
        if self.datagram.endpoint & FRAGMENT == 0 {
            return None;
        }
        let [assembly, is_last] = self.segment;
        Some(Part {
            assembly: Assembly::of_word(assembly),
            is_last: is_last != 0,
        })
    }

    /// Whose it is.
    pub(super) const fn endpoint(&self) -> u32 {
        self.datagram.endpoint & !FRAGMENT
    }
}

impl Flights {
    /// Whether RDMA writes a fragment of this datagram.
    #[inline(never)]
    pub(super) fn has_part_of(&self, assembly: Assembly) -> bool {
        self.each().any(|flight| {
            let part = flight.part();
            part.is_some_and(|part| part.assembly == assembly)
        })
    }
}
