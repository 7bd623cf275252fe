//! Messages from the host's rings.
//!
//! [`host_interface::spine::rings`]. CPU A decides what is fetched, CPU B has the channel. A
//! request is up to [`MOST`] messages that follow each other in an endpoint's ring; they run in
//! the order in which they were asked for, and endpoints take turns.
//!
//! ```text
//!  mailbox ──► CPU A ── request ──► CPU B ── transfer ──► MESSAGES_IN ──► handler
//!                                                run      arrived     requested
//!                                                 v          v            v
//!                                           ------+==========+############+------
//! ```

use super::outgoing::{BELLS, doorbell, memory};
use super::slots::{NONE, Slots};
use super::supply::{FRAME, slot as frame_slot};
use super::{bump, call_b};
use crate::io::note::WriteNote;
use crate::io::{Busy, IoA};
use crate::memory::layout::{
    IN_SLOTS, MESSAGE_REQUESTS, MESSAGES_IN, SPINE_BELLS, SPINE_BLOCK, SPINE_IN_ENTRIES,
    SPINE_REQUESTS,
};
use crate::memory::shared::{
    SPINE_ASKED, SPINE_FETCHED, SPINE_RUNG_HIGH, SPINE_RUNG_LOW, SPINE_SERVED,
};
use host_interface::spine::rings::{
    BULK_MOST, Dropped, ENDPOINT_BYTES, ENDPOINTS, EndpointWord, HEAD_BYTES, HeaderWord, MAILBOXES,
    MESSAGE_BYTES, PER_MAILBOX, SLOTS_LEAST, SLOTS_MOST, bulk,
};
use host_interface::spine::{ARGUMENT_WORDS, endpoint_word};
use tigon2_chip::HostAddress;
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Messages of a request.
const MOST: u32 = 4;
/// In a request's length: it is data, whose bytes keep their order.
pub const IS_DATA: u32 = 1 << 31;
/// Slots of the pool that bulk data leave to frames.
const RESERVE: u32 = 4;

const SHIFT: u32 = MESSAGE_BYTES.trailing_zeros();

/// NIC address of a request: host address, NIC address, bytes.
pub const fn request(number: u32) -> u32 {
    SPINE_REQUESTS + ((number & (MESSAGE_REQUESTS - 1)) << 4)
}

/// NIC address of what CPU A knows of a message: the endpoint in bits 7:0, its serial in bits 31:8.
const fn entry(number: u32) -> u32 {
    SPINE_IN_ENTRIES + ((number & (IN_SLOTS - 1)) << 2)
}

const fn in_slot(number: u32) -> u32 {
    MESSAGES_IN + ((number & (IN_SLOTS - 1)) << SHIFT)
}

const _: () = assert!(IN_SLOTS.is_power_of_two() && MESSAGE_REQUESTS.is_power_of_two());
const _: () = assert!(BULK_MOST <= crate::memory::layout::POOL_FRAME && ENDPOINT_BYTES == 64);

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

/// What CPU A knows of the host's rings.
#[derive(Debug)]
pub struct Rings {
    requested: u32,
    arrived: u32,
    run: u32,
    /// Requests that were made, that were seen to be done, and whose endpoints were told so; wrap.
    asked: u32,
    seen: u32,
    told: u32,
    bulk: Bulk,
}

impl Rings {
    /// Nothing was asked for.
    pub const fn new() -> Rings {
        Rings {
            requested: 0,
            arrived: 0,
            run: 0,
            asked: 0,
            seen: 0,
            told: 0,
            bulk: Bulk::NONE,
        }
    }

    /// The host has written these mailboxes, from that of the first endpoints on.
    pub fn rung<B: Dispatch>(&mut self, io: &mut IoA<B>, boxes: u32) {
        let mut left = boxes & ((1 << MAILBOXES) - 1);
        let bus = &mut io.bus;
        let before = [SPINE_RUNG_LOW.get(bus), SPINE_RUNG_HIGH.get(bus)];
        let mut rung = before;
        let (mut last, mut count) = (0, 0);
        let (mut bell, mut seen, mut endpoint) = (BELLS, SPINE_BELLS, 0);
        while left != 0 {
            // Steps: the chip cannot count zeros.
            let step = if left & 0xF == 0 { 4 } else { 1 };
            if left & 1 != 0 {
                for half in [0, 1] {
                    let now = bus.load(bell + 4 * half);
                    let new = now ^ bus.load(seen + 4 * half);
                    bus.store(seen + 4 * half, now);
                    let first = u32::from(new & 0x00FF_0000 != 0);
                    let both = first | u32::from(new & 0xFF != 0) << 1;
                    let number = endpoint + 2 * half;
                    if both != 0 {
                        // 1 is the first one, 2 the second, 3 are both.
                        last = number + (both >> 1);
                        count += if both == 3 { 2 } else { 1 };
                    }
                    if let Some(word) = rung.get_mut((number >> 5) as usize) {
                        *word |= both << (number & 31);
                    }
                }
            }
            left = barrier(left >> step);
            bell += step << 3;
            seen += step << 3;
            endpoint += step * PER_MAILBOX;
        }
        if count == 1 && before == [0; 2] {
            let asked = self.asked;
            let left = self.ask(io, last);
            self.request_fetch(io, asked);
            if left == Some(false) {
                return;
            }
        }
        let bus = &mut io.bus;
        let [low, high] = rung;
        SPINE_RUNG_LOW.set(&io.me, bus, low);
        SPINE_RUNG_HIGH.set(&io.me, bus, high);
        self.fetch(io);
    }

    /// Asks for messages, as far as there is room; endpoints take turns.
    pub fn fetch<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        loop {
            let bus = &mut io.bus;
            let rung = [SPINE_RUNG_LOW.get(bus), SPINE_RUNG_HIGH.get(bus)];
            let Some(endpoint) = behind_last(rung, SPINE_SERVED.get(bus)) else {
                return;
            };
            let asked = self.asked;
            let Some(has_more) = self.ask(io, endpoint) else {
                return;
            };
            self.request_fetch(io, asked);
            SPINE_SERVED.set(&io.me, &mut io.bus, endpoint);
            if !has_more {
                let [low, high] = rung;
                let bit = 1 << (endpoint & 31);
                if endpoint < 32 {
                    SPINE_RUNG_LOW.set(&io.me, &mut io.bus, low & !bit);
                } else {
                    SPINE_RUNG_HIGH.set(&io.me, &mut io.bus, high & !bit);
                }
            }
        }
    }

    fn request_fetch<B: Dispatch>(&self, io: &mut IoA<B>, before: u32) {
        if self.asked != before {
            SPINE_ASKED.set(&io.me, &mut io.bus, self.asked);
            call_b(io);
        }
    }

    fn has_request(&self) -> bool {
        self.asked.wrapping_sub(self.told) < MESSAGE_REQUESTS
    }

    /// Asks for the next messages of an endpoint. Whether it may have more; none if there is no
    /// room for those that it has.
    fn ask<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> Option<bool> {
        let bus = &mut io.bus;
        let row = SPINE_BLOCK + endpoint_word(endpoint, EndpointWord::High);
        let fetched = bus.load(row + EndpointWord::Fetched as u32);
        let waiting = doorbell(bus, endpoint).wrapping_sub(fetched) & 0xFF;
        if waiting == 0 || bus.load(row + EndpointWord::Open as u32) == 0 {
            return Some(false);
        }
        let slots = bus.load(row + EndpointWord::Slots as u32);
        if waiting > slots {
            drop(bus, endpoint, Dropped::BeyondCredit);
            return Some(false);
        }
        let room = IN_SLOTS - self.requested.wrapping_sub(self.run);
        if room == 0 || !self.has_request() {
            return None;
        }
        let index = fetched & (slots - 1);
        let to_end = IN_SLOTS - (self.requested & (IN_SLOTS - 1));
        let count = waiting.min(slots - index).min(room).min(to_end).min(MOST);
        let host = memory(bus, endpoint).plus(HEAD_BYTES + (index << SHIFT));
        let local = in_slot(self.requested);
        self.put(bus, host, local, count << SHIFT);
        for more in 0..count {
            // A message that does not arrive has no serial.
            bus.store(local + (more << SHIFT) + HeaderWord::Serial as u32, 0);
            let serial = fetched.wrapping_add(more + 1);
            bus.store(
                entry(self.requested.wrapping_add(more)),
                serial << 8 | endpoint,
            );
        }
        bus.store(
            row + EndpointWord::Fetched as u32,
            fetched.wrapping_add(count),
        );
        self.requested = self.requested.wrapping_add(count);
        Some(count != waiting)
    }

    fn put<B: Bus>(&mut self, bus: &mut B, host: HostAddress, local: u32, bytes: u32) {
        let at = request(self.asked);
        bus.store(at, host.high);
        bus.store(at + 4, host.low);
        bus.store(at + 8, local);
        bus.store(at + 12, bytes);
        self.asked = self.asked.wrapping_add(1);
    }

    /// Sees what has arrived.
    #[inline(always)]
    pub fn arrivals<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        let fetched = SPINE_FETCHED.get(&mut io.bus);
        while self.seen != fetched {
            let length = io.bus.load(request(self.seen) + 12);
            if length & IS_DATA != 0 {
                self.bulk = Bulk(self.bulk.0 & 0xFF | Bulk::THERE);
            } else {
                self.arrived = self.arrived.wrapping_add(length >> SHIFT);
            }
            self.seen = self.seen.wrapping_add(1);
        }
    }

    /// Tells endpoints that their slots are free.
    ///
    /// # Errors
    /// [`Busy`] when no write descriptor is free; the rest is told later.
    pub fn report<B: Dispatch>(&mut self, io: &mut IoA<B>) -> Result<(), Busy> {
        while self.told != self.seen {
            let at = request(self.told);
            let (local, length) = (io.bus.load(at + 8), io.bus.load(at + 12));
            if length & IS_DATA == 0 {
                let last = (local + length - MESSAGES_IN) >> SHIFT;
                let last = io.bus.load(entry(last.wrapping_sub(1)));
                report(io, last)?;
            }
            self.told = self.told.wrapping_add(1);
        }
        Ok(())
    }

    /// Whether requests are under way.
    #[inline(always)]
    pub const fn awaits(&self) -> bool {
        self.asked != self.seen
    }

    /// Requests that were seen to be done; wraps.
    #[inline(always)]
    pub const fn seen(&self) -> u32 {
        self.seen
    }

    /// Whether a message could run now, or has to be asked what it needs.
    pub fn has_message(&self) -> bool {
        self.run != self.arrived && !self.bulk.is_asked()
    }

    /// The oldest message, if all of it is there. Those that are none are dropped and counted.
    pub fn next<B: Dispatch>(&mut self, io: &mut IoA<B>, slots: &mut Slots) -> Option<Incoming> {
        while self.has_message() {
            let expected = io.bus.load(entry(self.run));
            let endpoint = expected & 0xFF;
            let at = in_slot(self.run);
            let bus = &mut io.bus;
            let row = SPINE_BLOCK + endpoint_word(endpoint, EndpointWord::High);
            if bus.load(row + EndpointWord::Open as u32) == 0 {
                self.over(slots);
                continue;
            }
            let mut word = |word: HeaderWord| bus.load(at + word as u32);
            let (shape, serial) = (word(HeaderWord::Shape), word(HeaderWord::Serial));
            let (offset, bytes) = (word(HeaderWord::BulkOffset), word(HeaderWord::BulkBytes));
            let most = bus.load(row + EndpointWord::Bulk as u32);
            let lies = bytes <= BULK_MOST && offset <= most && bytes <= most - offset;
            let is_next = serial << 8 == expected & !0xFF;
            if !is_next || shape >> 16 > ARGUMENT_WORDS || !lies || offset & 7 != 0 {
                drop(bus, endpoint, Dropped::Malformed);
                self.over(slots);
                continue;
            }
            let data = match (bytes, self.bulk.there()) {
                (0, _) => (0, 0),
                (_, Some(slot)) => (frame_slot(slot) + FRAME, bytes),
                _ => {
                    self.ask_data(io, slots, endpoint, offset, bytes);
                    return None;
                }
            };
            return Some(Incoming {
                endpoint,
                arguments: at,
                shape,
                at: data.0,
                length: data.1,
            });
        }
        None
    }

    /// Asks for a message's data; without room for it later again.
    fn ask_data<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        slots: &mut Slots,
        endpoint: u32,
        offset: u32,
        bytes: u32,
    ) {
        if !self.has_request() || slots.next() == NONE || slots.free_count() <= RESERVE {
            return;
        }
        let bus = &mut io.bus;
        let row = SPINE_BLOCK + endpoint_word(endpoint, EndpointWord::Slots);
        let start = bulk(0) + (bus.load(row) << (SHIFT + 1)) + offset;
        let host = memory(bus, endpoint).plus(start);
        let slot = slots.next();
        slots.take();
        slots.hold(slot);
        let local = frame_slot(slot) + FRAME;
        self.put(bus, host, local, bytes | IS_DATA);
        self.bulk = Bulk::asked(slot);
        self.request_fetch(io, self.asked.wrapping_sub(1));
    }

    /// The oldest message is done with.
    pub fn over(&mut self, slots: &mut Slots) {
        if let Some(slot) = self.bulk.there() {
            slots.let_go(slot);
        }
        self.bulk = Bulk::NONE;
        self.run = self.run.wrapping_add(1);
    }

    /// Opens an endpoint by its row; `false` if it cannot be.
    pub fn open<B: Bus>(&mut self, bus: &mut B, endpoint: u32) -> bool {
        if endpoint >= ENDPOINTS {
            return false;
        }
        let row = SPINE_BLOCK + endpoint_word(endpoint, EndpointWord::High);
        let slots = bus.load(row + EndpointWord::Slots as u32);
        // A power of two: the chip cannot count bits.
        let fits = (SLOTS_LEAST..=SLOTS_MOST).contains(&slots) && slots & (slots - 1) == 0;
        if !fits || bus.load(row + EndpointWord::Open as u32) != 0 {
            return false;
        }
        for offset in (EndpointWord::Fetched as u32..ENDPOINT_BYTES).step_by(4) {
            bus.store(row + offset, 0);
        }
        bus.store(row + EndpointWord::Open as u32, 1);
        true
    }

    /// Closes an endpoint. Whether nothing is being fetched.
    pub fn close<B: Bus>(&mut self, bus: &mut B, endpoint: u32) -> bool {
        let row = SPINE_BLOCK + endpoint_word(endpoint, EndpointWord::Open);
        bus.store(row, 0);
        SPINE_FETCHED.get(bus) == self.asked
    }
}

impl Default for Rings {
    fn default() -> Rings {
        Rings::new()
    }
}

/// The first bit of two words behind a bit, or else the first of all.
fn behind_last(words: [u32; 2], last: u32) -> Option<u32> {
    let [low, high] = words;
    let mask = |from: u32| if from < 32 { u32::MAX << from } else { 0 };
    let next = last + 1;
    let above = if next < 32 {
        [low & mask(next), high]
    } else {
        [0, high & mask(next - 32)]
    };
    first_bit(above).or_else(|| first_bit(words))
}

/// The number of the first bit of two words, by steps: the chip cannot count zeros.
fn first_bit([low, high]: [u32; 2]) -> Option<u32> {
    let (mut word, mut number) = if low != 0 { (low, 0) } else { (high, 32) };
    if word == 0 {
        return None;
    }
    while word & 0xFF == 0 {
        word = barrier(word >> 8);
        number += 8;
    }
    while word & 1 == 0 {
        word = barrier(word >> 1);
        number += 1;
    }
    Some(number)
}

/// Tells an endpoint that its messages up to this one were fetched.
fn report<B: Dispatch>(io: &mut IoA<B>, entry: u32) -> Result<(), Busy> {
    let row = SPINE_BLOCK + endpoint_word(entry & 0xFF, EndpointWord::High);
    if io.bus.load(row + EndpointWord::Open as u32) == 0 {
        return Ok(());
    }
    // All of the serial: the entry has the lower 24 bits of it.
    let fetched = io.bus.load(row + EndpointWord::Fetched as u32);
    let behind = fetched.wrapping_sub(entry >> 8) & 0xFF_FFFF;
    let host = memory(&mut io.bus, entry & 0xFF);
    io.write_words(host, &[fetched.wrapping_sub(behind), 0], WriteNote::QUIET)
}

/// A message of an endpoint is dropped, and counted.
pub fn drop<B: Bus>(bus: &mut B, endpoint: u32, why: Dropped) {
    let first = SPINE_BLOCK + endpoint_word(endpoint, EndpointWord::Dropped);
    bump(bus, first + ((why as u32) << 2));
}
