//! The slow path: delivers every frame that the fast path does not.
//!
//! These are frames with flaws, frames that are truncated or delivered with their CRC, headers
//! that wrap at the end of the receive buffer, and extended BDs, whose up to four buffers take a
//! frame in pieces. Only extended BDs are on the packet path.

use super::deliver::{
    Accepted, Outcome, SEED_BYTES, Taken, data_transfer, finish, put_seed, store_sum,
};
use super::frame::{CRC, end_of, wrapped};
use super::headers::{self, Headers};
use super::returns;
use super::state::Receive;
use crate::io::IoA;
use crate::io::note::WriteNote;
use crate::io::states::Sum;
use crate::memory::layout::RETURN_SLOTS;
use crate::memory::statistics::count;
use host_interface::bd::ExtendedReceiveBdAt;
use tigon2_hal::assist::{DescriptorRing, HostAddress, Transfer};
use tigon2_hal::events::Dispatch;

/// Buffers of an extended BD.
const BUFFERS: usize = 4;

/// Queues a frame with all requested offloads; `false` if there is no room: it stays with the MAC.
#[inline(never)]
pub(super) fn deliver<B: Dispatch>(
    receive: &mut Receive,
    io: &mut IoA<B>,
    accepted: Accepted,
) -> bool {
    if !io.has_write_room(BUFFERS as u32 + 1 + returns::TRANSFERS) {
        count!(io.bus, no_write_descriptors);
        return false;
    }
    let bus = &mut io.bus;
    let ring = receive.rings.get_mut(accepted.id);
    let extended = ring.is_extended();
    let frame = accepted.frame;
    let base = receive.base;
    let mut found = if accepted.flaws == 0 && receive.wants != 0 {
        headers::look_round(bus, receive.wants, frame.start, accepted.length, base)
    } else {
        Headers::NOTHING
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
        found.leave_out_padding(bus, base, end - found.padding);
        if receive.cut == 0 {
            let crc = headers::sum_of(bus, base, end, CRC);
            found.leave_out(crc);
        }
    }
    let flag = ring.flag();
    ring.advance();
    if extended {
        ring.advance();
    }
    let slot = receive.returns.slot();
    let outcome = Outcome::new(&accepted, slot, bytes, truncated, flag).with(&found);
    outcome.stage(bus, &taken);
    if outcome.is_flawed() {
        // Including this one, which [`finish`] subtracts.
        receive.untidy = RETURN_SLOTS + 1;
    }
    let state = io.states.data;
    let mut whole = data_transfer(&accepted, &taken, &found, state, slot, bytes);
    if found.summed {
        put_seed(receive, bus, &mut io.write_ring, &whole, found.seed);
        whole.state |= Sum::ON;
    }
    if bytes == 0 {
        io.free_later(end_of(base, &frame));
        io.await_writes();
    } else {
        io.frees_with_data();
        let bus = &mut io.bus;
        buffers.put(bus, &mut io.write_ring, base, whole, found.summed);
    }
    finish(receive, io, &accepted, &taken, &outcome);
    if bytes == 0 {
        // Without data, no descriptor precedes its slot.
        returns::queue(&mut receive.returns, io, 1);
    }
    true
}

/// The destination of the data.
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
    fn one(taken: &Taken) -> Buffers {
        Buffers {
            hosts: [
                taken.host,
                HostAddress::NULL,
                HostAddress::NULL,
                HostAddress::NULL,
            ],
            rooms: [taken.room(), 0, 0, 0],
            count: 1,
            room: taken.room(),
        }
    }

    /// Adds the other buffers of an extended BD at a NIC address, as far as `wanted` bytes need
    /// them. A length of 0 ends the list.
    fn extend<B: Dispatch>(&mut self, bus: &mut B, bd: u32, wanted: u32) {
        let bd = ExtendedReceiveBdAt(bd);
        let lengths = [
            bus.load(bd.lengths_1_2()) >> 16,
            bus.load(bd.lengths_1_2()) & 0xFFFF,
            bus.load(bd.length_3()) >> 16,
        ];
        let [_, hosts @ ..] = &mut self.hosts;
        let [_, rooms @ ..] = &mut self.rooms;
        let mut address = bd.address1();
        for ((host, room), length) in hosts.iter_mut().zip(rooms).zip(lengths) {
            if self.room >= wanted || length == 0 || self.room == 0 {
                return;
            }
            *host = bus.load_host_address(address);
            *room = length;
            self.room += length;
            self.count += 1;
            address += size_of::<HostAddress>() as u32;
        }
    }

    /// Queues the data in pieces, one for each buffer; `whole` is the transfer of all of it, and
    /// the last piece carries its note.
    fn put<B: Dispatch>(
        &self,
        bus: &mut B,
        ring: &mut DescriptorRing<B::WriteChannel>,
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
            piece.note = WriteNote::QUIET.word();
            if left == 0 {
                piece.note = whole.note;
                if summed {
                    store_sum(bus, ring, &mut piece);
                }
            }
            ring.put(bus, &piece);
            piece.local = wrapped(base, piece.local + piece.length);
        }
    }
}
