//! Datagrams that come in fragments: a row of SRAM for each, with what of it is there.
//!
//! RFC 791, section 3.2, with the rules of RFC 5722 for overlaps: a datagram is known by its
//! source, destination and identification. Its bytes lie in the memory of the descriptor that was
//! taken for it; the row has a copy of the pieces, as the descriptor's slot may be used again.
//!
//! ```text
//!   +0x00  state, key, times, lengths          Row
//!   +0x40  runs: first unit in bits 31:16, behind the last one in bits 15:0; 16 of them
//!   +0x80  pieces of memory: host address, bytes; 8 of 16 bytes
//! ```
//!
//! A unit is 8 bytes of the IP payload, the UDP header among them.

pub(super) mod claim;
pub(super) mod early;
pub(super) mod in_order;
mod key;

pub use self::key::Key;
use super::headers::{IP, UDP};
use super::pieces::Pieces;
use super::sums::folded;
use crate::memory::layout::{ASSEMBLIES, EUDP_ASSEMBLIES, EUDP_ASSEMBLY_BYTES};
use host_interface::eudp::SEGMENTS;
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;
use tigon2_hal::schedule::barrier;

/// Gaps between what is there of one, and one more.
pub const RUNS: u32 = 16;
/// Microseconds for which a datagram's fragments are waited for.
pub const PATIENCE: u32 = 200_000;
/// Microseconds for which it is known that more fragments of a datagram are of no use, or the
/// host's.
pub const MEMORY: u32 = 10_000;
/// No length is known.
const UNKNOWN: u32 = u32::MAX;
/// [`Row::From`]: the datagram has a checksum.
const SUMMED: u32 = 1;
/// [`Row::From`]: the datagram is in the pool, and has taken the descriptor of an endpoint.
const CLAIMED: u32 = 2;
/// Offset of the runs.
const RUN_LIST: u32 = 0x40;
/// Offset of the pieces.
const PIECE_LIST: u32 = RUN_LIST + 4 * RUNS;
/// Bytes of a unit, as a shift.
const UNIT: u32 = 3;

/// A word of a row, by its offset.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Row {
    /// [`State`].
    State = 0x00,
    /// The source's address.
    Source = 0x04,
    /// The destination's.
    Destination = 0x08,
    /// The identification.
    Identification = 0x0C,
    /// When its first fragment came, in microseconds.
    Begun = 0x10,
    /// Whose memory it is in.
    Endpoint = 0x14,
    /// The descriptor's word.
    Cookie = 0x18,
    /// Bytes of the descriptor's memory.
    Room = 0x1C,
    /// Bytes of the IP payload; all ones as long as no fragment has said so.
    Length = 0x20,
    /// Where the last byte ends that is there.
    Reach = 0x24,
    /// The source's port in bits 31:16, [`SUMMED`] and [`CLAIMED`].
    From = 0x28,
    /// The sum of what is there, of pseudo-header and header.
    Sum = 0x2C,
    /// Number of runs.
    Runs = 0x30,
    /// Number of pieces.
    Pieces = 0x34,
    /// If [`CLAIMED`]: the endpoint whose descriptor it has taken.
    Claim = 0x38,
    /// That descriptor's word.
    ClaimCookie = 0x3C,
    /// Its piece, in words that the pieces leave free.
    ClaimWhat = PIECE_LIST + 12,
    /// See [`ClaimWhat`](Self::ClaimWhat).
    ClaimOffset = PIECE_LIST + 28,
}

/// What is done with a datagram's fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// The row has none.
    Free = 0,
    /// They are put together in a process's memory.
    Open = 1,
    /// They are the host's.
    Host = 2,
    /// They are dropped: it is complete.
    Spent = 3,
    /// They are dropped: it was given up. RDMA may still write some.
    GivenUp = 4,
    /// The same, and its descriptor is still to be given back.
    Failed = 5,
    /// It is complete in the pool, and its completion waits for a write descriptor.
    Whole = 6,
}

/// What came of noting a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Nothing of it was there.
    New,
    /// All of it was there.
    Duplicate,
    /// Some of it was there.
    Overlap,
    /// There are more gaps than a row has room for.
    Full,
}

/// A row, by its NIC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assembly(u32);

impl Assembly {
    /// The first one, whatever its state.
    pub const FIRST: Assembly = Assembly(EUDP_ASSEMBLIES);

    /// Its NIC address.
    #[inline(always)]
    pub(super) const fn word(self) -> u32 {
        self.0
    }

    /// The one at a NIC address.
    #[inline(always)]
    pub(super) const fn of_word(word: u32) -> Assembly {
        Assembly(word)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Assembly> {
        let mut at = EUDP_ASSEMBLIES;
        core::iter::from_fn(move || {
            let row = Assembly(at);
            at = barrier(at + EUDP_ASSEMBLY_BYTES);
            (row.0 < EUDP_ASSEMBLIES + ASSEMBLIES * EUDP_ASSEMBLY_BYTES).then_some(row)
        })
    }

    /// The row of a datagram.
    #[inline(never)]
    pub fn find<B: Bus>(bus: &mut B, key: &Key) -> Option<Assembly> {
        Assembly::all().find(|row| {
            row.get(bus, Row::Identification) == key.identification
                && row.get(bus, Row::Source) == key.source
                && row.get(bus, Row::Destination) == key.destination
                && row.state(bus) != State::Free
        })
    }

    /// A row for a datagram of which nothing is known: one that is free, or has not been of use for
    /// longest; none if all of them have datagrams that come, or are used otherwise.
    #[inline(never)]
    pub fn take<B: Bus>(
        bus: &mut B,
        key: &Key,
        state: State,
        now: u32,
        is_used: impl Fn(Assembly) -> bool,
    ) -> Option<Assembly> {
        let (mut best, mut oldest) = (None, 0);
        for row in Assembly::all() {
            // From SRAM: no more than it takes, and no call.
            let found = row.get(bus, Row::State);
            let age = if found == State::Free as u32 {
                UNKNOWN
            } else if found >= State::Host as u32 && found <= State::GivenUp as u32 {
                row.age(bus, now) + 1
            } else {
                continue;
            };
            if age > oldest && !is_used(row) {
                (best, oldest) = (Some(row), age);
            }
        }
        let row = best?;
        row.set(bus, Row::Source, key.source);
        row.set(bus, Row::Destination, key.destination);
        row.set(bus, Row::Identification, key.identification);
        row.set(bus, Row::Begun, now);
        row.enter(bus, state);
        Some(row)
    }

    /// Begins to put it together in the pieces of a descriptor.
    #[inline(never)]
    pub fn begin<B: Bus>(self, bus: &mut B, endpoint: u32, cookie: u32, pieces: &Pieces) {
        let (mut at, mut number, mut room) = (self.0 + PIECE_LIST, 0, 0);
        while number < SEGMENTS {
            let piece = pieces.of(number);
            if piece.bytes == 0 {
                break;
            }
            bus.store(at, piece.host.high);
            bus.store(at + 4, piece.host.low);
            bus.store(at + 8, piece.bytes);
            room += piece.bytes;
            at += 16;
            number += 1;
        }
        self.set(bus, Row::Endpoint, endpoint);
        self.set(bus, Row::Cookie, cookie);
        self.set(bus, Row::Room, room);
        self.set(bus, Row::Length, UNKNOWN);
        self.set(bus, Row::Reach, 0);
        self.set(bus, Row::From, 0);
        self.set(bus, Row::Sum, 0);
        self.set(bus, Row::Runs, 0);
        self.set(bus, Row::Pieces, number);
    }

    /// Whether the datagram of this key is put together in it.
    #[inline(always)]
    pub fn is_open_for<B: Bus>(self, bus: &mut B, key: &Key) -> bool {
        self.get(bus, Row::Identification) == key.identification
            && self.get(bus, Row::Source) == key.source
            && self.get(bus, Row::Destination) == key.destination
            && self.is_open(bus)
    }

    /// Whether its datagram is put together.
    #[inline(always)]
    pub(super) fn is_open<B: Bus>(self, bus: &mut B) -> bool {
        self.get(bus, Row::State) == State::Open as u32
    }

    /// Its state.
    #[inline(never)]
    pub fn state<B: Bus>(self, bus: &mut B) -> State {
        match self.get(bus, Row::State) {
            1 => State::Open,
            2 => State::Host,
            3 => State::Spent,
            4 => State::GivenUp,
            5 => State::Failed,
            6 => State::Whole,
            _ => State::Free,
        }
    }

    /// Changes its state.
    pub fn enter<B: Bus>(self, bus: &mut B, state: State) {
        self.set(bus, Row::State, state as u32);
    }

    /// Microseconds since its first fragment came.
    #[inline(always)]
    pub fn age<B: Bus>(self, bus: &mut B, now: u32) -> u32 {
        now.wrapping_sub(self.get(bus, Row::Begun)) & UNKNOWN >> 1
    }

    /// Whose memory it is in.
    pub fn endpoint<B: Bus>(self, bus: &mut B) -> u32 {
        self.get(bus, Row::Endpoint)
    }

    /// Who sends it.
    pub fn source<B: Bus>(self, bus: &mut B) -> u32 {
        self.get(bus, Row::Source)
    }

    /// Its descriptor's word.
    pub fn cookie<B: Bus>(self, bus: &mut B) -> u32 {
        self.get(bus, Row::Cookie)
    }

    /// Bytes of its memory.
    pub fn room<B: Bus>(self, bus: &mut B) -> u32 {
        self.get(bus, Row::Room)
    }

    /// Bytes of the IP payload, if a fragment has said so.
    pub fn length<B: Bus>(self, bus: &mut B) -> Option<u32> {
        let length = self.get(bus, Row::Length);
        (length != UNKNOWN).then_some(length)
    }

    /// Notes the bytes of the IP payload.
    pub fn set_length<B: Bus>(self, bus: &mut B, length: u32) {
        self.set(bus, Row::Length, length);
    }

    /// Where the last byte of the IP payload ends that is there.
    pub fn reach<B: Bus>(self, bus: &mut B) -> u32 {
        self.get(bus, Row::Reach)
    }

    /// Notes what its first fragment says: the source's port, and whether there is a checksum.
    pub fn set_from<B: Bus>(self, bus: &mut B, port: u32, is_summed: bool) {
        let claimed = self.get(bus, Row::From) & CLAIMED;
        self.set(bus, Row::From, from(port, is_summed) | claimed);
    }

    /// What its first fragment has said.
    pub fn from<B: Bus>(self, bus: &mut B) -> (u32, bool) {
        let from = self.get(bus, Row::From);
        (from >> 16, from & SUMMED != 0)
    }

    /// Adds to its sum: 16 bits and a few carries; returns it.
    #[inline(always)]
    pub fn add<B: Bus>(self, bus: &mut B, sum: u32) -> u32 {
        let sum = folded(self.get(bus, Row::Sum) + sum);
        self.set(bus, Row::Sum, sum);
        sum
    }

    /// The same as [`fill`](Self::fill) if all that is there ends at `from`; `false` if not.
    #[inline(always)]
    pub fn extend<B: Bus>(self, bus: &mut B, from: u32, end: u32) -> bool {
        let list = self.0 + RUN_LIST;
        let run = bus.load(list);
        if self.get(bus, Row::Runs) != 1 || run & 0xFFFF != from >> UNIT {
            return false;
        }
        bus.store(list, run & 0xFFFF_0000 | units(end));
        self.set(bus, Row::Reach, end);
        true
    }

    /// Notes that bytes `from` to `end` of the IP payload are there; `from` begins a unit.
    #[inline(never)]
    pub fn fill<B: Bus>(self, bus: &mut B, from: u32, end: u32) -> Noted {
        let list = self.0 + RUN_LIST;
        let reach = self.reach(bus).max(end);
        let (mut from, mut end) = (from >> UNIT, units(end));
        let mut count = self.get(bus, Row::Runs);
        for number in 0..count {
            let (first, last) = run(bus, list, number);
            if first <= from && end <= last {
                return Noted::Duplicate;
            }
            if from < last && first < end {
                return Noted::Overlap;
            }
        }
        // Those that it touches become one with it; none of them touch each other.
        let mut number = 0;
        while number < count {
            let (first, last) = run(bus, list, number);
            if last == from || first == end {
                from = from.min(first);
                end = end.max(last);
                count -= 1;
                let moved = bus.load(list + (count << 2));
                bus.store(list + (number << 2), moved);
            } else {
                number += 1;
            }
        }
        if count == RUNS {
            return Noted::Full;
        }
        bus.store(list + (count << 2), from << 16 | end);
        self.set(bus, Row::Runs, count + 1);
        self.set(bus, Row::Reach, reach);
        Noted::New
    }

    /// Whether all of it is there.
    #[inline(always)]
    pub fn is_whole<B: Bus>(self, bus: &mut B) -> bool {
        let length = self.get(bus, Row::Length);
        length != UNKNOWN
            && self.get(bus, Row::Runs) == 1
            && run(bus, self.0 + RUN_LIST, 0) == (0, units(length))
    }

    /// The memory of a piece, and its bytes.
    pub fn piece<B: Bus>(self, bus: &mut B, number: u32) -> Option<(HostAddress, u32)> {
        if number >= self.get(bus, Row::Pieces) {
            return None;
        }
        let at = self.0 + PIECE_LIST + (number << 4);
        let host = HostAddress {
            high: bus.load(at),
            low: bus.load(at + 4),
        };
        Some((host, bus.load(at + 8)))
    }

    fn get<B: Bus>(self, bus: &mut B, word: Row) -> u32 {
        bus.load(self.0 + word as u32)
    }

    fn set<B: Bus>(self, bus: &mut B, word: Row, value: u32) {
        bus.store(self.0 + word as u32, value);
    }
}

/// What [`Row::From`] says.
const fn from(port: u32, is_summed: bool) -> u32 {
    port << 16 | if is_summed { SUMMED } else { 0 }
}

/// First unit of a run, and behind its last one.
fn run<B: Bus>(bus: &mut B, list: u32, number: u32) -> (u32, u32) {
    let run = bus.load(list + (number << 2));
    (run >> 16, run & 0xFFFF)
}

/// Units of some bytes, a part of one counted whole.
const fn units(bytes: u32) -> u32 {
    (bytes + (1 << UNIT) - 1) >> UNIT
}

/// Clears all rows.
pub fn clear<B: Bus>(bus: &mut B) {
    for row in Assembly::all() {
        row.enter(bus, State::Free);
    }
}

/// The most bytes of an IP payload.
pub const PAYLOAD_MAX: u32 = 0xFFFF - IP;

const _: () = {
    assert!(PIECE_LIST + 16 * SEGMENTS == EUDP_ASSEMBLY_BYTES);
    assert!(Row::ClaimCookie as u32 + 4 <= RUN_LIST);
    assert!(units(PAYLOAD_MAX) < 1 << 16 && UDP == 1 << UNIT);
};

#[cfg(test)]
#[path = "assembly/tests.rs"]
mod tests;
