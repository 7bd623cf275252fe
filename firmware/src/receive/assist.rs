//! Handing a frame on with VLAN tags, checksums and BDs of several buffers.
//!
//! Hardware reference, sections 6.5 and 14. A summed frame costs one transfer more: the
//! two bytes of the [seed](super::headers), with which the channel's sum begins, go to the
//! first bytes of the buffer, where the frame overwrites them at once. The channel then
//! stores the sum into the return BD, which waits behind the data in the same ring:
//!
//! ```text
//! write ring:   [seed] [data ...] [return BD] ...
//! channel's sum:  0 + seed + data --> its checksum word
//! ```
//!
//! So no event has to come between the data and the return BD.

use super::frame::{Accepted, CRC, Outcome, Taken, end_of, finish, wrapped};
use super::headers::{self, Headers};
use crate::Firmware;
use crate::dma::{States, staging, write};
use crate::statistics::count;
use tigon2_chip::bits::DmaState;
use tigon2_chip::memory::PACKET_MEMORY_END;
use tigon2_hal::Bus;
use tigon2_hal::assist::{DescriptorRing, HostAddress, Transfer, Write};

/// Buffers of an extended BD.
const BUFFERS: usize = 4;
/// Where the TCP/UDP sum is in a return BD.
const SUM_OFFSET: u32 = 18;
/// Bytes of the seed.
const SEED_BYTES: u32 = 2;

/// Queues a frame with all that is asked for. It stays with the MAC if there is no room.
#[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.text"))]
#[inline(never)]
pub(super) fn hand_on<B: Bus>(firmware: &mut Firmware<B>, accepted: &Accepted) {
    /// Seed, data, return BD.
    const TRANSFERS: u32 = 3;
    let receive = &mut firmware.receive;
    let bus = &mut firmware.bus;
    let ring = receive.rings.get(accepted.which);
    let extended = ring.is_extended();
    let more = if extended { BUFFERS as u32 - 1 } else { 0 };
    if !firmware.write_ring.has_room(TRANSFERS + more) {
        return count!(firmware, no_write_descriptors);
    }
    let frame = &accepted.frame;
    let base = receive.base;
    let mut found = if accepted.flaws != 0 {
        Headers::NOTHING
    } else if frame.start <= PACKET_MEMORY_END - headers::REACH {
        headers::look(bus, receive.wants, frame.start, accepted.length)
    } else {
        headers::look_round(bus, receive.wants, frame.start, accepted.length, base)
    };
    let bd = ring.next_address();
    let taken = Taken::new(bus, bd);
    let wanted = frame.length - receive.cut - found.stripped;
    let mut buffers = Buffers::one(&taken);
    if extended {
        buffers.extend(bus, bd - 32, wanted);
    }
    let truncated = wanted > buffers.room;
    let bytes = if truncated { buffers.room } else { wanted };
    if truncated || taken.room() < SEED_BYTES {
        found.forget_sums();
    }
    if found.summed {
        let end = frame.start + accepted.length;
        if found.padding != 0 {
            found.leave_out_padding(bus, base, end - found.padding);
        }
        if receive.cut == 0 {
            let crc = headers::sum_of(bus, base, end, CRC);
            found.leave_out(crc);
        }
    }
    let data = if bytes != 0 { buffers.count } else { 0 };
    let slot = staging(&firmware.write_ring, data + u32::from(found.summed));
    let mut outcome = Outcome::new(accepted, slot, bytes, truncated, ring.flag());
    outcome.flags |= found.flags;
    outcome.checksums = found.ip_sum << 16;
    outcome.errors_and_tag |= found.tag;
    outcome.stage(bus, &taken);
    ring.advance();

    let mut state = firmware.states.write_data;
    if found.summed {
        let seed = staging(&firmware.write_ring, 0);
        bus.store(seed, found.seed << 16);
        let transfer = Transfer {
            host: taken.host,
            local: seed,
            length: SEED_BYTES,
            state: (state | States::SUM | States::SUM_BEGINS) & !FREES,
            kind: write::QUIET,
            opaque: 0,
        };
        firmware.write_ring.put(bus, &transfer);
        state |= States::SUM;
    }
    if found.summed && buffers.count == 1 {
        firmware.write_ring.store_sum_at(bus, slot + SUM_OFFSET);
        state |= States::SUM_STORED;
    }
    let transfer = Transfer {
        host: taken.host,
        // Frames start at multiples of 8, so a tag does not reach the end of the buffer.
        local: frame.start + found.stripped,
        length: bytes,
        state,
        kind: write::RECEIVE_DATA,
        opaque: slot,
    };
    if bytes == 0 {
        receive.freed = end_of(base, frame);
    } else {
        receive.in_flight += 1;
        receive.freed = 0;
        if buffers.count == 1 {
            firmware.write_ring.put(bus, &transfer);
        } else {
            buffers.put(bus, &mut firmware.write_ring, base, transfer, found.summed);
        }
    }
    finish(firmware, accepted, &taken, &outcome);
}

/// The bit that frees what was moved in the receive buffer.
const FREES: u32 = DmaState::new().with_free_rx_buffer(true).into_bits();

/// Where the data goes.
struct Buffers {
    hosts: [HostAddress; BUFFERS],
    rooms: [u32; BUFFERS],
    /// How many of them the frame needs.
    count: u32,
    /// Bytes of those.
    room: u32,
}

impl Buffers {
    /// The buffer of an ordinary BD.
    #[inline(always)]
    fn one(taken: &Taken) -> Buffers {
        const NONE: HostAddress = HostAddress { high: 0, low: 0 };
        Buffers {
            hosts: [taken.host, NONE, NONE, NONE],
            rooms: [taken.room(), 0, 0, 0],
            count: 1,
            room: taken.room(),
        }
    }

    /// The other buffers of an extended BD at a NIC address, as far as `wanted` bytes need
    /// them. A length of 0 ends the list.
    #[inline(never)]
    fn extend<B: Bus>(&mut self, bus: &mut B, bd: u32, wanted: u32) {
        let lengths = [
            bus.load(bd + 24) >> 16,
            bus.load(bd + 24) & 0xFFFF,
            bus.load(bd + 28) >> 16,
        ];
        let [_, hosts @ ..] = &mut self.hosts;
        let [_, rooms @ ..] = &mut self.rooms;
        let mut address = bd;
        for ((host, room), length) in hosts.iter_mut().zip(rooms).zip(lengths) {
            if self.room >= wanted || length == 0 || self.room == 0 {
                return;
            }
            *host = HostAddress {
                high: bus.load(address),
                low: bus.load(address + 4),
            };
            *room = length;
            self.room += length;
            self.count += 1;
            address += 8;
        }
    }

    /// Queues the data in pieces, one for each buffer; `whole` is the transfer of all of it,
    /// and its opaque word the place of the return BD.
    #[inline(never)]
    fn put<B: Bus>(
        &self,
        bus: &mut B,
        ring: &mut DescriptorRing<Write>,
        base: u32,
        whole: Transfer,
        summed: bool,
    ) {
        let mut left = whole.length;
        let mut piece = whole;
        for (host, room) in self.hosts.into_iter().zip(self.rooms) {
            if left == 0 {
                return;
            }
            piece.host = host;
            piece.length = if left < room { left } else { room };
            left -= piece.length;
            piece.kind = write::QUIET;
            if left == 0 {
                piece.kind = whole.kind;
                if summed {
                    ring.store_sum_at(bus, whole.opaque + SUM_OFFSET);
                    piece.state |= States::SUM_STORED;
                }
            }
            ring.put(bus, &piece);
            piece.local = wrapped(base, piece.local + piece.length);
        }
    }
}
