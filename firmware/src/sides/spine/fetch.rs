//! CPU B fetches the messages that lie in the host's rings.
//!
//! [`host_interface::spine::rings`]. The mailboxes of endpoints are CPU B's: it sees who has more
//! messages, and asks the channel for them. A request is up to [`MOST`] that follow each other in an
//! endpoint's ring. CPU B makes one, and then sees to what else there is; endpoints take turns. CPU A
//! [runs](super::rings) what has arrived, and says how far it is.
//!
//! ```text
//!  mailbox ──► CPU B ── transfer ──► MESSAGES_IN ──► handler
//!
//!      run by A     arrived     requested
//!         v            v            v
//!   ------+============+############+------
//! ```
//!
//! A message's data are fetched when CPU A asks for them, those of one message at a time.

use super::endpoint::{BELLS, Open, count_dropped, doorbell, memory, row};
use super::supply::AGAIN;
use crate::io::IoB;
use crate::io::deadline::SlotB;
use crate::io::note::ReadNote;
use crate::memory::layout::{
    IN_SLOTS, MESSAGE_REQUESTS, MESSAGES_IN, SPINE_BELLS, SPINE_DATA_REQUEST, SPINE_IN_ENTRIES,
    SPINE_REQUESTS,
};
use crate::memory::shared::{
    SPINE_DATA, SPINE_ENDPOINTS_SEEN, SPINE_FETCHED, SPINE_MESSAGES_RUN, SPINE_REPORTED,
    SPINE_REQUESTED, SPINE_WANTED,
};
use host_interface::spine::rings::{
    Dropped, ENDPOINTS, EndpointWord, FIRST_MAILBOX, HEAD_BYTES, HeaderWord, MAILBOXES,
    MESSAGE_BYTES, PER_MAILBOX,
};
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, mailbox};
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// Messages of a request.
const MOST: u32 = 4;

/// Words of a mailbox, with two endpoints each.
const WORDS: u32 = mailbox::BYTES / 4;

const _: () = assert!(PER_MAILBOX == 2 * WORDS && ENDPOINTS == 64);

/// The endpoints' mailboxes, as the event's register has them.
pub const OF_ENDPOINTS: u32 = ((1 << MAILBOXES) - 1) << FIRST_MAILBOX;

/// In a request's length: it is data, whose bytes keep their order.
pub const IS_DATA: u32 = 1 << 31;

/// Bytes of a message, as a shift.
pub const MESSAGE_SHIFT: u32 = MESSAGE_BYTES.trailing_zeros();

/// NIC address of what CPU A knows of a request: the first message's NIC address, and bytes.
pub const fn request(number: u32) -> u32 {
    SPINE_REQUESTS + ((number & (MESSAGE_REQUESTS - 1)) << 3)
}

/// NIC address of what CPU A knows of a message: the endpoint in bits 7:0, or [`NOBODY`]; its serial
/// in bits 31:8.
pub const fn entry(number: u32) -> u32 {
    SPINE_IN_ENTRIES + ((number & (IN_SLOTS - 1)) << 2)
}

/// In a message's entry: its endpoint was closed.
pub const NOBODY: u32 = 0xFF;

/// NIC address of a message.
pub const fn in_slot(number: u32) -> u32 {
    MESSAGES_IN + ((number & (IN_SLOTS - 1)) << MESSAGE_SHIFT)
}

const _: () = assert!(IN_SLOTS.is_power_of_two() && MESSAGE_REQUESTS.is_power_of_two());

/// What CPU B knows of the host's rings. Counts wrap.
#[derive(Debug)]
pub struct Fetcher {
    /// Endpoints that may have more messages, a bit each.
    rung: [u32; 2],
    /// The endpoint whose messages were asked for last.
    served: u32,
    /// Messages that the channel has been given.
    requested: u32,
    /// Requests that the channel has been given, and that are done.
    asked: u32,
    fetched: u32,
    /// Requests for data that were seen.
    data: u32,
    /// The endpoints that were open at the last look, and the requests from before that.
    open: Open,
    before: u32,
    /// [`SPINE_WANTED`] when all of it was done.
    wanted: u32,
}

impl Fetcher {
    /// No endpoint is open.
    pub const NONE: Fetcher = Fetcher {
        rung: [0; 2],
        served: 0,
        requested: 0,
        asked: 0,
        fetched: 0,
        data: 0,
        open: Open::NONE,
        before: 0,
        wanted: 0,
    };

    /// Sees to what CPU A asks for, and to messages that wait. Returns whether nothing is left to do.
    #[inline(always)]
    pub fn look<B: Dispatch>(&mut self, io: &mut IoB<B>, has_rooms: bool) -> bool {
        let wanted = SPINE_WANTED.get(&mut io.bus);
        let mut is_done = wanted == self.wanted || self.answer(io, wanted, has_rooms);
        if self.rung != [0; 2] {
            is_done &= self.fetch(io);
        }
        is_done
    }

    /// Does what CPU A wants: fetches a message's data, and then follows which endpoints are open, so
    /// that data which were wanted before an endpoint was closed are under way by then.
    #[inline(never)]
    fn answer<B: Dispatch>(&mut self, io: &mut IoB<B>, wanted: u32, has_rooms: bool) -> bool {
        let open = Open::now(&mut io.bus);
        let has_data = SPINE_DATA.get(&mut io.bus) == self.data || self.fetch_data(io);
        let is_done = has_data && self.follow(io, open, has_rooms);
        if is_done {
            self.wanted = wanted;
        }
        is_done
    }

    /// Follows which endpoints are open, and listens to mailboxes while one is. One that was just opened
    /// may have rung already, so it is looked at; a bell from then on says more than the 0 with which an
    /// endpoint is opened, whatever its last owner rang with. Tells CPU A when nothing is under way of
    /// those that were closed.
    fn follow<B: Dispatch>(&mut self, io: &mut IoB<B>, open: Open, has_rooms: bool) -> bool {
        if open != self.open {
            match open.only_change(self.open) {
                Some(last) => {
                    self.note(last, 1);
                    io.bus.store_half(SPINE_BELLS + (last << 1), 0);
                }
                None => {
                    self.rung = [u32::MAX; 2];
                    for word in 0..ENDPOINTS / 2 {
                        io.bus.store(SPINE_BELLS + (word << 2), 0);
                    }
                }
            }
            self.open = open;
            self.before = self.asked;
            io.bus.set_to(EventBit::Mailbox, open.any() || has_rooms);
        }
        let is_done = self.fetched.wrapping_sub(self.before) as i32 >= 0;
        if is_done {
            SPINE_ENDPOINTS_SEEN.set(&io.me, &mut io.bus, open.word());
        } else {
            io.arm_within(SlotB::Watch, AGAIN);
        }
        is_done
    }

    /// The host has written these mailboxes, from that of the first endpoints on. As
    /// [`look`](Self::look).
    #[inline(never)]
    pub fn rung<B: Dispatch>(&mut self, io: &mut IoB<B>, boxes: u32) -> bool {
        let others_wait = self.rung != [0; 2];
        let mut left = boxes & ((1 << MAILBOXES) - 1);
        let (mut word, mut last) = (0, ENDPOINTS);
        while left != 0 {
            // Steps: the chip cannot count zeros.
            while left & 0xF == 0 {
                left = barrier(left >> 4);
                word += 4 * WORDS;
            }
            if left & 1 != 0 {
                for word in word..word + WORDS {
                    last = self.compare(&mut io.bus, word).unwrap_or(last);
                }
            }
            left = barrier(left >> 1);
            word += WORDS;
        }
        // If others wait there is a look for them soon.
        others_wait || last == ENDPOINTS || self.serve(io, last)
    }

    /// Looks for what is new in a word of the mailboxes, which has two endpoints. Returns one that has
    /// more messages.
    #[inline(always)]
    fn compare<B: Bus>(&mut self, bus: &mut B, word: u32) -> Option<u32> {
        let seen = SPINE_BELLS + (word << 2);
        let now = bus.load(BELLS + (word << 2));
        let new = now ^ bus.load(seen);
        if new == 0 {
            return None;
        }
        bus.store(seen, now);
        let both = u32::from(new & 0x00FF_0000 != 0) | u32::from(new & 0xFF != 0) << 1;
        let endpoint = word << 1;
        self.note(endpoint, both);
        // 1 is the first one, 2 the second, 3 are both.
        (both != 0).then_some(endpoint + (both >> 1))
    }

    /// An endpoint, or it and the next one, may have more messages: bits from that of the first one on.
    #[inline(always)]
    fn note(&mut self, endpoint: u32, bits: u32) {
        if let Some(word) = self.rung.get_mut((endpoint >> 5) as usize) {
            *word |= bits << (endpoint & 31);
        }
    }

    /// Asks for messages of the endpoint whose turn it is. As [`look`](Self::look).
    #[inline(never)]
    fn fetch<B: Dispatch>(&mut self, io: &mut IoB<B>) -> bool {
        match behind_last(self.rung, self.served) {
            Some(endpoint) => self.serve(io, endpoint),
            None => true,
        }
    }

    /// Asks for messages of an endpoint, if there is room. As [`look`](Self::look).
    #[inline(always)]
    fn serve<B: Dispatch>(&mut self, io: &mut IoB<B>, endpoint: u32) -> bool {
        let Some(has_more) = self.ask(io, endpoint) else {
            io.arm_within(SlotB::Watch, AGAIN);
            return false;
        };
        self.served = endpoint;
        if !has_more && let Some(word) = self.rung.get_mut((endpoint >> 5) as usize) {
            *word &= !(1 << (endpoint & 31));
        }
        let is_done = self.rung == [0; 2];
        if !is_done {
            // The others behind what else CPU B has to do.
            io.bus.ring(Cpu::B);
        }
        is_done
    }

    /// Asks for the next messages of an endpoint. Whether it may have more; none if there is no
    /// room for as many as one request can have of them.
    #[inline(never)]
    fn ask<B: Dispatch>(&mut self, io: &mut IoB<B>, endpoint: u32) -> Option<bool> {
        let bus = &mut io.bus;
        let row = row(endpoint);
        // First: the other words are this owner's when it is open, and maybe another one's before.
        if bus.load(row + EndpointWord::Open as u32) == 0 {
            return Some(false);
        }
        let fetched = bus.load(row + EndpointWord::Fetched as u32);
        let waiting = doorbell(bus, endpoint).wrapping_sub(fetched) & 0xFF;
        if waiting == 0 {
            return Some(false);
        }
        let slots = bus.load(row + EndpointWord::Slots as u32);
        if waiting > slots {
            count_dropped(bus, endpoint, Dropped::BeyondCredit);
            return Some(false);
        }
        let index = fetched & (slots - 1);
        let to_end = IN_SLOTS - (self.requested & (IN_SLOTS - 1));
        let count = waiting.min(slots - index).min(to_end).min(MOST);
        let under_way = self.requested.wrapping_sub(SPINE_MESSAGES_RUN.get(bus));
        if under_way + count > IN_SLOTS || !self.has_request(io) {
            return None;
        }
        let bus = &mut io.bus;
        let host = memory(bus, row).plus(HEAD_BYTES + (index << MESSAGE_SHIFT));
        let local = in_slot(self.requested);
        let (mut at, mut entry) = (barrier(local), barrier(entry(self.requested)));
        let mut serial = fetched;
        for _ in 0..count {
            // A message that has not arrived has no serial.
            bus.store(at + HeaderWord::Serial as u32, 0);
            serial = serial.wrapping_add(1);
            bus.store(entry, serial << 8 | endpoint);
            at += MESSAGE_BYTES;
            entry += 4;
        }
        // Before its messages can run.
        bus.store(row + EndpointWord::Fetched as u32, serial);
        self.requested = self.requested.wrapping_add(count);
        SPINE_REQUESTED.set(&io.me, &mut io.bus, self.requested);
        if under_way == 0 {
            // CPU A has no other message: it looks for this one while it arrives.
            io.ring_a();
        }
        self.put(io, host, local, count << MESSAGE_SHIFT);
        Some(count != waiting)
    }

    /// Asks for a message's data, as CPU A does. As [`look`](Self::look).
    fn fetch_data<B: Dispatch>(&mut self, io: &mut IoB<B>) -> bool {
        if !self.has_request(io) {
            io.arm_within(SlotB::Watch, AGAIN);
            return false;
        }
        let word = |offset| SPINE_DATA_REQUEST + offset;
        let [high, low, local, bytes] = [0, 4, 8, 12].map(|offset| io.bus.load(word(offset)));
        self.put(io, HostAddress { high, low }, local, bytes | IS_DATA);
        self.data = self.data.wrapping_add(1);
        true
    }

    /// Whether there is room for one more request, here and in the channel.
    fn has_request<B: Dispatch>(&self, io: &mut IoB<B>) -> bool {
        let reported = SPINE_REPORTED.get(&mut io.bus);
        self.asked.wrapping_sub(reported) < MESSAGE_REQUESTS && io.read_ring.has_room(1)
    }

    /// Gives the channel a request, and notes it for CPU A.
    fn put<B: Dispatch>(&mut self, io: &mut IoB<B>, host: HostAddress, local: u32, length: u32) {
        let state = if length & IS_DATA != 0 {
            io.states.data
        } else {
            io.states.words
        };
        let transfer = Transfer {
            host,
            local,
            length: length & !IS_DATA,
            state,
            note: ReadNote::MESSAGE.word(),
        };
        io.read_ring.put(&mut io.bus, &transfer);
        let at = request(self.asked);
        io.bus.store(at, local);
        io.bus.store(at + 4, length);
        self.asked = self.asked.wrapping_add(1);
    }

    /// A request is done.
    #[inline(always)]
    pub fn has_fetched<B: Dispatch>(&mut self, io: &mut IoB<B>) {
        self.fetched = self.fetched.wrapping_add(1);
        SPINE_FETCHED.set(&io.me, &mut io.bus, self.fetched);
        io.ring_a();
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
