//! What comes in order: the row of a datagram whose first fragment comes first, and what is behind what
//! is there.

use super::{
    ASSEMBLIES, Assembly, EUDP_ASSEMBLIES, EUDP_ASSEMBLY_BYTES, Key, PIECE_LIST, RUN_LIST, Row,
    State, UNKNOWN, from, run, units,
};
use crate::sides::eudp::headers::UDP;
use crate::sides::eudp::pieces::Piece;
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;

/// A datagram of whose first fragment all is known.
#[derive(Clone, Copy, Debug)]
pub(in crate::sides::eudp) struct First {
    /// Whose memory it is in.
    pub endpoint: u32,
    /// The descriptor's word.
    pub cookie: u32,
    /// The descriptor's memory.
    pub piece: Piece,
    /// Bytes of the IP payload.
    pub length: u32,
    /// Where the fragment ends in it.
    pub end: u32,
    /// The source's port.
    pub port: u32,
    /// Whether there is a checksum.
    pub is_summed: bool,
    /// The sum of pseudo-header and header.
    pub sum: u32,
}

/// Where fragments of a datagram may end.
#[derive(Clone, Copy, Debug)]
pub(in crate::sides::eudp) struct Ends {
    /// The last one: bytes of the IP payload; all ones as long as no fragment has said so.
    pub last: u32,
    /// All others, at most.
    pub most: u32,
}

impl Ends {
    /// The IP payload's length is known.
    #[inline(always)]
    pub(in crate::sides::eudp) const fn at(length: u32) -> Ends {
        Ends {
            last: length,
            most: length,
        }
    }

    /// Only the memory's is.
    #[inline(always)]
    const fn within(room: u32) -> Ends {
        Ends {
            last: UNKNOWN,
            most: UDP + room,
        }
    }
}

impl Assembly {
    /// The row behind it; behind the last one, the first.
    #[inline(always)]
    pub(in crate::sides::eudp) const fn behind(self) -> Assembly {
        let next = self.0 + EUDP_ASSEMBLY_BYTES;
        if next == EUDP_ASSEMBLIES + ASSEMBLIES * EUDP_ASSEMBLY_BYTES {
            return Assembly::FIRST;
        }
        Assembly(next)
    }

    /// Whether no row has a datagram of this identification: not even one of which nothing is known
    /// any more.
    #[inline(always)]
    pub(in crate::sides::eudp) fn is_new<B: Bus>(bus: &mut B, identification: u32) -> bool {
        !Assembly::all().any(|row| row.get(bus, Row::Identification) == identification)
    }

    /// Whether it has no datagram that comes or was given up, nor one of the host's.
    #[inline(always)]
    pub(in crate::sides::eudp) fn is_unused<B: Bus>(self, bus: &mut B) -> bool {
        let state = self.get(bus, Row::State);
        state == State::Free as u32 || state == State::Spent as u32
    }

    /// The same as [`take`](Self::take) and [`begin`](Self::begin), and notes the first fragment: of a
    /// datagram for one piece of memory.
    #[inline(always)]
    pub(in crate::sides::eudp) fn begin_first<B: Bus>(
        self,
        bus: &mut B,
        key: &Key,
        now: u32,
        first: &First,
    ) {
        bus.store(self.0 + PIECE_LIST, first.piece.host.high);
        bus.store(self.0 + PIECE_LIST + 4, first.piece.host.low);
        bus.store(self.0 + PIECE_LIST + 8, first.piece.bytes);
        bus.store(self.0 + RUN_LIST, units(first.end));
        self.set(bus, Row::Source, key.source);
        self.set(bus, Row::Destination, key.destination);
        self.set(bus, Row::Identification, key.identification);
        self.set(bus, Row::Begun, now);
        self.set(bus, Row::Endpoint, first.endpoint);
        self.set(bus, Row::Cookie, first.cookie);
        self.set(bus, Row::Room, first.piece.bytes);
        self.set(bus, Row::Length, first.length);
        self.set(bus, Row::Reach, first.end);
        self.set(bus, Row::From, from(first.port, first.is_summed));
        self.set(bus, Row::Sum, first.sum);
        self.set(bus, Row::Runs, 1);
        self.set(bus, Row::Pieces, 1);
        self.enter(bus, State::Open);
    }

    /// Where the data behind `end` goes, and where it may end, if all that is there ends at `end`
    /// without a gap, and it has one piece of memory. If a length is known, its front is there: the
    /// first fragment has said so, or the last one, behind which there is nothing.
    pub(in crate::sides::eudp) fn in_line<B: Bus>(
        self,
        bus: &mut B,
        end: u32,
    ) -> Option<(HostAddress, Ends)> {
        let length = self.length(bus);
        let (_, last) = run(bus, self.0 + RUN_LIST, 0);
        let is_in_line =
            last == units(end) && self.get(bus, Row::Pieces) == 1 && self.get(bus, Row::Runs) == 1;
        let (host, _) = self.piece(bus, 0).filter(|_| is_in_line)?;
        let ends = length.map_or_else(|| Ends::within(self.room(bus)), Ends::at);
        Some((host.plus(end - UDP), ends))
    }

    /// The same as [`fill`](Self::fill) of a fragment that ends at `end`, where all was one run up to it.
    #[inline(always)]
    pub(in crate::sides::eudp) fn grow<B: Bus>(self, bus: &mut B, end: u32) {
        bus.store_half(self.0 + RUN_LIST + 2, units(end) as u16);
        self.set(bus, Row::Reach, end);
    }
}
