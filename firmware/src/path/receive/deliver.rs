//! Delivers a frame to the host: its data, then its return BD.
//!
//! Hardware reference, sections 6.5 and 14. A frame with a checksum costs one more transfer: it
//! writes the two bytes of the [seed](super::headers), with which the channel's sum begins, to the
//! start of the buffer, where the frame overwrites them at once. The channel then stores the sum
//! into the return BD, which follows the data in the same ring:
//! ```text
//! write ring:   [seed] [data ...] [seed] [data ...] ... [return BDs] ...
//! channel's sum:  0 + seed + data --> its checksum word
//! ```
//!
//! So no event is needed between the data and the return BD.

use super::headers::Headers;
use super::index::returned;
use super::state::Receive;
use crate::io::IoA;
use crate::io::buffer_ring::RingId;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use flow_classify::Verdict;
use host_interface::bd::{BdErrors, BdFlags, ReceiveBdAt};
use host_interface::extension::DropReason;
use tigon2_chip::bits::DmaState;
use tigon2_hal::assist::{DescriptorRing, HostAddress, Transfer};
use tigon2_hal::events::Dispatch;
use tigon2_hal::mac::ReceivedFrame;

/// The most transfers of a frame: the seed of its sum, and its data.
pub(super) const TRANSFERS: u32 = 2;
/// Where the TCP/UDP sum is in a return BD.
const SUM_OFFSET: u32 = 18;
/// Bytes of the seed.
pub(super) const SEED_BYTES: u32 = 2;
/// The bit that frees the moved bytes in the receive buffer.
const FREES: u32 = DmaState::new().with_free_rx_buffer(true).into_bits();
const END: u32 = BdFlags::new().with_end(true).into_bits() as u32;
const ERROR: u32 = BdFlags::new().with_error(true).into_bits() as u32;
pub(super) const NOW: u32 = BdFlags::new().with_coalesce_now(true).into_bits() as u32;
/// Flag and flaws of a truncated frame.
pub(super) const CUT: (u32, u32) = (ERROR, TRUNCATED << 16);
const TRUNCATED: u32 = BdErrors::new().with_truncated(true).into_bits() as u32;

impl Accepted {
    /// A frame of a receive queue; the ring has no meaning.
    pub const OF_QUEUE: Accepted = Accepted {
        frame: ReceivedFrame {
            start: 0,
            length: 0,
            errors: 0,
        },
        length: 0,
        id: RingId::Standard,
        flaws: 0,
        destination: 0,
    };
}

/// A frame to deliver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    /// Its place.
    pub frame: ReceivedFrame,
    /// Its bytes without CRC.
    pub length: u32,
    /// The ring of its buffer.
    pub id: RingId,
    /// Its errors, as the return BD reports them.
    pub flaws: u32,
    /// Its kind of destination.
    pub destination: u8,
}

/// Queues a frame without flaws that fits into the one buffer of its BD. The caller has checked
/// the room.
#[inline(always)]
pub(super) fn deliver<B: Dispatch>(
    receive: &mut Receive,
    io: &mut IoA<B>,
    accepted: &Accepted,
    taken: &Taken,
    found: &Headers,
) {
    let bus = &mut io.bus;
    let ring = receive.rings.get_mut(accepted.id);
    let bytes = accepted.frame.length - receive.cut - found.stripped;
    let flag = ring.flag();
    ring.advance();
    let slot = receive.returns.slot();
    let outcome = Outcome::new(accepted, slot, bytes, false, flag).with(found);
    outcome.stage(bus, taken);
    let state = io.states.data;
    let mut transfer = data_transfer(accepted, taken, found, state, slot, bytes);
    if found.summed {
        put_seed(receive, bus, &mut io.write_ring, &transfer, found.seed);
        transfer.state |= Sum::ON;
        store_sum(bus, &io.write_ring, &mut transfer);
    }
    io.write_ring.put(bus, &transfer);
    io.frees_with_data();
    finish(receive, io, accepted, taken, &outcome);
}

/// The transfer of `bytes` of a frame to the first buffer of a BD, with its return BD in `slot`.
#[inline(always)]
pub(super) const fn data_transfer(
    accepted: &Accepted,
    taken: &Taken,
    found: &Headers,
    state: u32,
    slot: u32,
    bytes: u32,
) -> Transfer {
    Transfer {
        host: taken.host,
        // Frames start at multiples of 8, so a tag does not reach the end of the buffer.
        local: accepted.frame.start + found.stripped,
        length: bytes,
        state,
        note: WriteNote::receive_data(slot).word(),
    }
}

/// Queues the seed of the sum before `data`.
#[inline(always)]
pub(super) fn put_seed<B: Dispatch>(
    receive: &Receive,
    bus: &mut B,
    ring: &mut DescriptorRing<B::WriteChannel>,
    data: &Transfer,
    seed: u32,
) {
    let local = receive.seeds + (ring.next_index() << 5);
    bus.store(local, seed << 16);
    let transfer = Transfer {
        host: data.host,
        local,
        length: SEED_BYTES,
        state: (data.state | Sum::ON | Sum::BEGINS) & !FREES,
        note: WriteNote::QUIET.word(),
    };
    ring.put(bus, &transfer);
}

/// Makes the channel store the sum in the return BD when `last`, which is queued next, completes.
#[inline(always)]
pub(super) fn store_sum<B: Dispatch>(
    bus: &mut B,
    ring: &DescriptorRing<B::WriteChannel>,
    last: &mut Transfer,
) {
    ring.store_sum_at(bus, WriteNote::of_word(last.note).slot() + SUM_OFFSET);
    last.state |= Sum::STORED;
}

/// The BD of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// Its buffer, the first one of an extended BD.
    pub host: HostAddress,
    index_and_room: u32,
    /// Its flags.
    pub flags: u32,
    pub opaque: u32,
}

impl Taken {
    /// Reads the BD at a NIC address.
    #[inline(always)]
    pub fn new<B: Dispatch>(bus: &mut B, bd: u32) -> Taken {
        let bd = ReceiveBdAt(bd);
        Taken {
            host: bus.load_host_address(bd.address()),
            index_and_room: bus.load(bd.index_and_length()),
            flags: bus.load(bd.kind_and_flags()),
            opaque: bus.load(bd.opaque()),
        }
    }

    /// Bytes of its buffer, the first one of an extended BD.
    #[inline(always)]
    pub const fn room(&self) -> u32 {
        self.index_and_room & 0xFFFF
    }

    /// Whether it requests an update at once.
    pub const fn asks_now(&self) -> bool {
        self.flags & NOW != 0
    }

    /// The third word of the return BD of a frame of `bytes`.
    #[inline(always)]
    pub const fn index_and_length(&self, bytes: u32) -> u32 {
        self.index_and_room & 0xFFFF_0000 | bytes
    }

    /// Writes the BD's part of the return BD of a frame of `bytes` into its slot.
    #[inline(always)]
    pub fn stage<B: Dispatch>(&self, bus: &mut B, slot: u32, bytes: u32) {
        let slot = ReceiveBdAt(slot);
        let index_and_length = self.index_and_length(bytes);
        // One by one: a loop costs five times as much.
        bus.store_host_address(slot.address(), self.host);
        bus.store(slot.index_and_length(), index_and_length);
        bus.store(slot.opaque(), self.opaque);
    }
}

/// BD flags of a frame without flaws and sums, from the ring with this flag.
#[inline(always)]
pub(super) const fn flags_of(ring_flag: u32, destination: u8) -> u32 {
    END | ring_flag | (destination as u32) << 5
}

/// The content of a frame's return BD, and its slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// NIC address of its slot.
    slot: u32,
    /// Bytes delivered to the host.
    bytes: u32,
    /// BD flags.
    flags: u32,
    /// IP and TCP/UDP sum; the DMA channel may store the latter instead.
    checksums: u32,
    /// Error flags, and the VLAN tag.
    errors_and_tag: u32,
    truncated: bool,
}

impl Outcome {
    /// A frame without sums and tag, in a buffer of the ring with this flag.
    #[inline(always)]
    pub const fn new(
        accepted: &Accepted,
        slot: u32,
        bytes: u32,
        truncated: bool,
        ring_flag: u32,
    ) -> Outcome {
        let flaws = accepted.flaws | if truncated { TRUNCATED } else { 0 };
        let error = if flaws != 0 { ERROR } else { 0 };
        Outcome {
            slot,
            bytes,
            flags: flags_of(ring_flag, accepted.destination) | error,
            checksums: 0,
            errors_and_tag: flaws << 16,
            truncated,
        }
    }

    /// Adds the results of the header inspection.
    #[inline(always)]
    pub const fn with(mut self, found: &Headers) -> Outcome {
        self.flags |= found.flags;
        self.checksums = found.ip_sum << 16;
        self.errors_and_tag |= found.tag;
        self
    }

    /// Writes the return BD into its slot.
    #[inline(always)]
    pub fn stage<B: Dispatch>(&self, bus: &mut B, taken: &Taken) {
        let slot = ReceiveBdAt(self.slot);
        taken.stage(bus, self.slot, self.bytes);
        bus.store(slot.kind_and_flags(), self.flags);
        bus.store(slot.checksums(), self.checksums);
        bus.store(slot.errors_and_vlan(), self.errors_and_tag);
    }

    /// As [`stage`](Self::stage), for a frame of a receive queue, with the classifier's verdict.
    pub fn stage_classified<B: Dispatch>(&self, bus: &mut B, taken: &Taken, verdict: Verdict) {
        self.stage(bus, taken);
        let kind = (verdict.hash_type as u32) << 24 | verdict.queue << 16;
        let slot = ReceiveBdAt(self.slot);
        bus.store(slot.kind_and_flags(), kind | self.flags);
        bus.store(slot.reserved(), verdict.hash);
    }

    /// Whether it sets words that the fast path does not write.
    pub const fn has_more(&self) -> bool {
        self.checksums | self.errors_and_tag != 0
    }

    /// Whether it reports an error of the frame.
    pub const fn is_flawed(&self) -> bool {
        self.errors_and_tag >> 16 != 0
    }
}

/// The data of a frame is queued: its return BD, which is in its slot, follows with the
/// [others](super::returns) of the run. Releases the MAC's descriptor.
#[inline(always)]
pub(super) fn finish<B: Dispatch>(
    receive: &mut Receive,
    io: &mut IoA<B>,
    accepted: &Accepted,
    taken: &Taken,
    outcome: &Outcome,
) {
    receive.ring.release();
    if receive.untidy != 0 {
        receive.untidy -= 1;
    }
    receive.returns.made();
    if outcome.truncated {
        receive.counters.drops.count(DropReason::BufferTooSmall);
    }
    receive
        .counters
        .received(accepted.destination, 1, accepted.length);
    returned(&mut receive.index, io, 1, taken.flags & NOW != 0);
}
