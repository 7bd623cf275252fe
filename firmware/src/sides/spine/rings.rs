//! Messages from the host's rings, as CPU A runs them.
//!
//! CPU B [fetches](super::fetch) them, and they run in the order in which it does. When a request is
//! done, its endpoint is told that the slots in the host's memory are free.

use super::endpoint::{count_dropped, memory, row, set_open, want};
use super::fetch::{IS_DATA, MESSAGE_SHIFT, NOBODY, entry, in_slot, request};
use super::slots::{NONE, Slots};
use super::supply::{FRAME, slot as frame_slot};
use crate::io::note::WriteNote;
use crate::io::{Busy, IoA};
use crate::memory::layout::{MESSAGES_IN, SPINE_DATA_REQUEST};
use crate::memory::shared::{
    SPINE_DATA, SPINE_ENDPOINTS, SPINE_ENDPOINTS_SEEN, SPINE_FETCHED, SPINE_MESSAGES_RUN,
    SPINE_REPORTED, SPINE_REQUESTED,
};
use host_interface::spine::ARGUMENT_WORDS;
use host_interface::spine::rings::{
    BULK_MOST, Dropped, ENDPOINT_BYTES, ENDPOINTS, EndpointWord, HeaderWord, SLOTS_LEAST,
    SLOTS_MOST, bulk,
};
use tigon2_chip::Cpu;
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::Position;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Slots of the pool that bulk data leave to frames.
const RESERVE: u32 = 4;

const _: () = assert!(BULK_MOST <= crate::memory::layout::POOL_FRAME && ENDPOINT_BYTES == 64);

/// How often CPU A looks for a message that arrives: some 6 us, twice as long as it takes.
const LOOKS: u32 = 32;

/// Where the data of the oldest message are: a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bulk(u32);

impl Bulk {
    /// They were not asked for.
    const NONE: Bulk = Bulk(0);
    const ASKED: u32 = 1 << 8;
    const THERE: u32 = 1 << 9;

    /// They are being fetched into a slot of the pool.
    const fn asked(slot: u32) -> Bulk {
        Bulk(Bulk::ASKED | slot)
    }

    const fn is_asked(self) -> bool {
        self.0 & Bulk::ASKED != 0
    }

    /// The slot in which they are.
    fn there(self) -> Option<u32> {
        (self.0 & Bulk::THERE != 0).then_some(self.0 & 0xFF)
    }
}

/// What there is of a message's data, besides the NIC address of those that have arrived.
mod data {
    /// They have not.
    pub const AWAITED: u32 = 0;
    /// They are none of the endpoint's, or not read any more: the message is done with.
    pub const NONE: u32 = 1;
}

/// A message that can run.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    /// The endpoint.
    pub endpoint: u32,
    /// NIC address of its arguments.
    pub arguments: u32,
    /// Words of arguments; domain; handler.
    pub shape: u32,
    /// NIC address of its data.
    pub at: u32,
    /// Bytes of these.
    pub length: u32,
}

/// What CPU A knows of the host's rings. Counts wrap.
#[derive(Debug)]
pub struct Rings {
    /// Messages that have arrived, and have run.
    arrived: u32,
    run: u32,
    /// 1 if the last one has arrived before CPU B has seen it.
    early: u32,
    /// Requests that were seen to be done, and whose endpoints were told so.
    seen: u32,
    told: u32,
    /// 1 while frames wait until endpoints are told.
    hold_frames: u32,
    bulk: Bulk,
    /// Whether writes to an endpoint that was closed may be under way, and behind which position of
    /// the channel they are not.
    is_closing: u32,
    closed: Position,
}

impl Rings {
    /// Nothing has arrived.
    pub const fn new() -> Rings {
        Rings {
            arrived: 0,
            run: 0,
            early: 0,
            seen: 0,
            told: 0,
            hold_frames: 0,
            bulk: Bulk::NONE,
            is_closing: 0,
            closed: Position::START,
        }
    }

    /// Whether messages, or data, have arrived that were not seen, or messages are on their way.
    #[inline(always)]
    pub fn have_news<B: Bus>(&self, bus: &mut B) -> bool {
        SPINE_REQUESTED.get(bus) != self.run || SPINE_FETCHED.get(bus) != self.seen
    }

    /// Sees what has arrived.
    #[inline(always)]
    pub fn arrivals<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        let fetched = SPINE_FETCHED.get(&mut io.bus);
        while self.seen != fetched {
            let length = io.bus.load(request(self.seen) + 4);
            if length & IS_DATA != 0 {
                self.bulk = Bulk(self.bulk.0 & 0xFF | Bulk::THERE);
            } else {
                let others = (length >> MESSAGE_SHIFT) - self.early;
                self.arrived = self.arrived.wrapping_add(others);
                self.early = 0;
            }
            self.seen = self.seen.wrapping_add(1);
        }
        if self.arrived == self.run {
            self.look_for_next(io);
        }
    }

    /// Looks for the next message while it arrives: all of it is there when its last word is, sooner than
    /// CPU B sees the end of the transfer. Ends when there is anything else to do. From the pad, which
    /// leaves the SRAM to CPU B.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.low"))]
    #[inline(never)]
    fn look_for_next<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        if self.early != 0 || SPINE_REQUESTED.get(&mut io.bus) == self.run {
            return;
        }
        let at = in_slot(self.run) + HeaderWord::Serial as u32;
        let mut left = LOOKS;
        while left != 0 {
            // Until it arrives that is 0; `next` judges it.
            if io.bus.load(at) != 0 {
                self.arrived = self.arrived.wrapping_add(1);
                self.early = 1;
                return;
            }
            if left & 3 == 0 && io.bus.others(Cpu::A, EventBit::Loaded) != 0 {
                return;
            }
            left = barrier(left - 1);
        }
    }

    /// Tells endpoints that their slots are free, and CPU B which of the card's are.
    ///
    /// # Errors
    /// [`Busy`] when no write descriptor is free; the rest is told later.
    #[inline(always)]
    pub fn report<B: Dispatch>(&mut self, io: &mut IoA<B>) -> Result<(), Busy> {
        while self.told != self.seen {
            let at = request(self.told);
            let (local, length) = (io.bus.load(at), io.bus.load(at + 4));
            if length & IS_DATA == 0 {
                let last = (local + length - MESSAGES_IN) >> MESSAGE_SHIFT;
                let last = io.bus.load(entry(last.wrapping_sub(1)));
                report(io, last)?;
            }
            self.told = self.told.wrapping_add(1);
        }
        // Not before: the entries of those that have run are read above.
        SPINE_REPORTED.set(&io.me, &mut io.bus, self.told);
        // CPU B has not seen the end of that one's request.
        let run = self.run.wrapping_sub(self.early);
        SPINE_MESSAGES_RUN.set(&io.me, &mut io.bus, run);
        Ok(())
    }

    /// Whether frames are to wait, as the last [`report`](Self::report) found no descriptor.
    pub const fn hold_frames(&mut self) -> bool {
        self.hold_frames |= (self.told != self.seen) as u32;
        self.hold_frames != 0
    }

    /// Whether frames wait; from now on they do not.
    pub const fn let_frames_go(&mut self) -> bool {
        core::mem::replace(&mut self.hold_frames, 0) != 0
    }

    /// Whether a message could run now, or has to be asked what it needs.
    pub fn has_message(&self) -> bool {
        self.run != self.arrived && !self.bulk.is_asked()
    }

    /// The oldest message, if all of it is there. Those that are none are dropped and counted.
    #[inline(always)]
    pub fn next<B: Dispatch>(&mut self, io: &mut IoA<B>, slots: &mut Slots) -> Option<Incoming> {
        while self.has_message() {
            let bus = &mut io.bus;
            let expected = bus.load(entry(self.run));
            let endpoint = expected & 0xFF;
            let at = barrier(in_slot(self.run));
            let shape = bus.load(at + HeaderWord::Shape as u32);
            let serial = bus.load(at + HeaderWord::Serial as u32);
            let length = bus.load(at + HeaderWord::BulkBytes as u32);
            let is_next = serial << 8 == expected & !0xFF && endpoint != NOBODY;
            if !is_next || shape >> 16 > ARGUMENT_WORDS {
                self.skip(bus, slots, endpoint);
                continue;
            }
            let data = if length == 0 {
                0
            } else {
                match self.data(io, slots, (endpoint, at), length) {
                    data::AWAITED => return None,
                    data::NONE => continue,
                    data => data,
                }
            };
            return Some(Incoming {
                endpoint,
                arguments: at,
                shape,
                at: data,
                length,
            });
        }
        None
    }

    /// The oldest message is nobody's, or none of its endpoint's.
    #[inline(never)]
    fn skip<B: Bus>(&mut self, bus: &mut B, slots: &mut Slots, endpoint: u32) {
        if endpoint != NOBODY {
            count_dropped(bus, endpoint, Dropped::Malformed);
        }
        self.over(slots);
    }

    /// Where the data are of the oldest message, which lies at an address: see [`data`].
    #[inline(never)]
    fn data<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        slots: &mut Slots,
        (endpoint, at): (u32, u32),
        bytes: u32,
    ) -> u32 {
        let row = row(endpoint);
        let most = io.bus.load(row + EndpointWord::Bulk as u32);
        let offset = io.bus.load(at + HeaderWord::BulkOffset as u32);
        let lies = bytes <= BULK_MOST && offset <= most && bytes <= most - offset;
        if !lies || offset & 7 != 0 {
            self.skip(&mut io.bus, slots, endpoint);
            return data::NONE;
        }
        if let Some(slot) = self.bulk.there() {
            return frame_slot(slot) + FRAME;
        }
        if io.bus.load(row + EndpointWord::Open as u32) == 0 {
            // The endpoint was closed, so its memory is not read.
            self.skip(&mut io.bus, slots, NOBODY);
            return data::NONE;
        }
        self.ask_data(io, slots, endpoint, offset, bytes);
        data::AWAITED
    }

    /// Asks for a message's data; without room for it later again.
    #[inline(always)]
    fn ask_data<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        slots: &mut Slots,
        endpoint: u32,
        offset: u32,
        bytes: u32,
    ) {
        if slots.next() == NONE || slots.free_count() <= RESERVE {
            return;
        }
        let bus = &mut io.bus;
        let row = row(endpoint);
        let ring = bus.load(row + EndpointWord::Slots as u32) << MESSAGE_SHIFT;
        let host = memory(bus, row).plus(bulk(0) + 2 * ring + offset);
        let slot = slots.next();
        slots.take();
        slots.hold(slot);
        let words = [host.high, host.low, frame_slot(slot) + FRAME, bytes];
        for (offset, value) in (0..).step_by(4).zip(words) {
            bus.store(SPINE_DATA_REQUEST + offset, value);
        }
        self.bulk = Bulk::asked(slot);
        let data = SPINE_DATA.get(bus).wrapping_add(1);
        SPINE_DATA.set(&io.me, bus, data);
        want(io);
    }

    /// The oldest message is done with.
    #[inline(always)]
    pub fn over(&mut self, slots: &mut Slots) {
        if self.bulk != Bulk::NONE {
            self.let_go(slots);
        }
        self.run = self.run.wrapping_add(1);
    }

    /// Its data are not needed any more.
    #[inline(never)]
    fn let_go(&mut self, slots: &mut Slots) {
        if let Some(slot) = self.bulk.there() {
            slots.let_go(slot);
        }
        self.bulk = Bulk::NONE;
    }

    /// Opens an endpoint by its row; `false` if it cannot be.
    pub fn open<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> bool {
        if endpoint >= ENDPOINTS {
            return false;
        }
        let bus = &mut io.bus;
        let row = row(endpoint);
        let slots = bus.load(row + EndpointWord::Slots as u32);
        // A power of two: the chip cannot count bits.
        let fits = (SLOTS_LEAST..=SLOTS_MOST).contains(&slots) && slots & (slots - 1) == 0;
        if !fits || bus.load(row + EndpointWord::Open as u32) != 0 {
            return false;
        }
        for offset in (EndpointWord::Fetched as u32..ENDPOINT_BYTES).step_by(4) {
            bus.store(row + offset, 0);
        }
        set_open(io, endpoint, true);
        true
    }

    /// Closes an endpoint. Whether nothing of it is under way; then none of its messages runs any
    /// more.
    pub fn close<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> bool {
        if io.bus.load(row(endpoint) + EndpointWord::Open as u32) != 0 {
            set_open(io, endpoint, false);
            self.is_closing = 1;
            self.closed = io.write_ring.position();
        }
        if self.is_closing != 0 {
            io.look_at_writes();
            self.is_closing = u32::from(!io.write_ring.has_passed(self.closed));
        }
        let bus = &mut io.bus;
        let is_seen = SPINE_ENDPOINTS_SEEN.get(bus) == SPINE_ENDPOINTS.get(bus);
        let is_closed = is_seen && self.is_closing == 0;
        if is_closed {
            self.forget(io, endpoint);
        }
        is_closed
    }

    /// Messages of an endpoint that have arrived are nobody's.
    fn forget<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) {
        self.arrivals(io);
        // From here on CPU B uses no entry again.
        let mut number = SPINE_MESSAGES_RUN.get(&mut io.bus);
        while number != self.arrived {
            let of = io.bus.load(entry(number));
            if of & 0xFF == endpoint {
                io.bus.store(entry(number), of | NOBODY);
            }
            number = number.wrapping_add(1);
        }
    }
}

impl Default for Rings {
    fn default() -> Rings {
        Rings::new()
    }
}

/// Tells an endpoint that its messages up to this one were fetched.
#[inline(always)]
fn report<B: Dispatch>(io: &mut IoA<B>, entry: u32) -> Result<(), Busy> {
    if entry & 0xFF == NOBODY {
        return Ok(());
    }
    let row = row(entry & 0xFF);
    if io.bus.load(row + EndpointWord::Open as u32) == 0 {
        return Ok(());
    }
    // All of the serial: the entry has the lower 24 bits of it.
    let fetched = io.bus.load(row + EndpointWord::Fetched as u32);
    let behind = fetched.wrapping_sub(entry >> 8) & 0xFF_FFFF;
    let host = memory(&mut io.bus, row);
    if !io.has_write_room(1) {
        return Err(Busy);
    }
    io.put_pair(host, [fetched.wrapping_sub(behind), 0], WriteNote::QUIET);
    Ok(())
}
