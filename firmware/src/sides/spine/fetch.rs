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
//! The message that an application sends next is [expected], so asking for it takes less.
//!
//! A message's data are fetched when CPU A asks for them, those of one message at a time.

mod expected;
mod turns;

use super::endpoint::{BELLS, Open, bell, count_dropped, doorbell, row};
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
use expected::{ByMailbox, Expected};
use host_interface::spine::rings::{
    Dropped, ENDPOINTS, EndpointWord, FIRST_MAILBOX, HeaderWord, MAILBOXES, MESSAGE_BYTES,
    PER_MAILBOX,
};
use tigon2_chip::events::EventBit;
use tigon2_chip::{Cpu, mailbox};
use tigon2_hal::Bus;
use tigon2_hal::assist::{HostAddress, Transfer};
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;
use turns::behind_last;

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
    /// The next message of the endpoint whose messages were asked for last.
    expected: ByMailbox,
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
        expected: Expected::NONE_OF_ALL,
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
    /// may have rung already, so it is looked at; a bell from then on is new if it says something else
    /// than now, whatever the last owner rang with. Tells CPU A when nothing is under way of those that
    /// were closed.
    fn follow<B: Dispatch>(&mut self, io: &mut IoB<B>, open: Open, has_rooms: bool) -> bool {
        if open != self.open {
            match open.only_change(self.open) {
                Some(last) => {
                    self.note(last);
                    let now = io.bus.load_half(bell(last));
                    io.bus.store_half(SPINE_BELLS + (last << 1), now);
                }
                None => {
                    self.rung = [u32::MAX; 2];
                    for at in (0..ENDPOINTS << 1).step_by(4) {
                        let now = io.bus.load(BELLS + at);
                        io.bus.store(SPINE_BELLS + at, now);
                    }
                }
            }
            self.open = open;
            self.expect_nothing();
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
    #[inline(always)]
    pub fn rung<B: Dispatch>(&mut self, io: &mut IoB<B>, boxes: u32) -> bool {
        let others_wait = self.rung != [0; 2];
        let mut left = boxes & ((1 << MAILBOXES) - 1);
        let (mut word, mut found) = (0, ENDPOINTS);
        while left != 0 {
            // Steps: the chip cannot count zeros.
            while left & 0xF == 0 {
                left = barrier(left >> 4);
                word += 4 * WORDS;
            }
            if left & 1 != 0 {
                for word in word..word + WORDS {
                    found = self.compare(&mut io.bus, word, found);
                }
            }
            left = barrier(left >> 1);
            word += WORDS;
        }
        if found == ENDPOINTS {
            return true;
        }
        if others_wait {
            // There is a look for them soon.
            self.note(found);
            return true;
        }
        self.serve(io, found)
    }

    /// Looks for what is new in a word of the mailboxes, which has two endpoints. Returns one that has
    /// more messages, or else the one that was found before; others wait.
    #[inline(always)]
    fn compare<B: Bus>(&mut self, bus: &mut B, word: u32, before: u32) -> u32 {
        let seen = SPINE_BELLS + (word << 2);
        let now = bus.load(BELLS + (word << 2));
        let new = now ^ bus.load(seen);
        if new == 0 {
            return before;
        }
        bus.store(seen, now);
        let (first, second) = (new & 0x00FF_0000, new & 0xFF);
        if first | second == 0 {
            return before;
        }
        let endpoint = word << 1;
        if before != ENDPOINTS {
            self.note(before);
        }
        if first != 0 && second != 0 {
            self.note(endpoint);
        }
        endpoint + u32::from(second != 0)
    }

    /// An endpoint may have more messages.
    #[inline(always)]
    fn note(&mut self, endpoint: u32) {
        if let Some(word) = self.rung.get_mut((endpoint >> 5 & 1) as usize) {
            *word |= 1 << (endpoint & 31);
        }
    }

    /// Asks for messages of the endpoint whose turn it is. As [`look`](Self::look).
    #[inline(never)]
    fn fetch<B: Dispatch>(&mut self, io: &mut IoB<B>) -> bool {
        let Some(endpoint) = behind_last(self.rung, self.served) else {
            return true;
        };
        if let Some(word) = self.rung.get_mut((endpoint >> 5 & 1) as usize) {
            *word &= !(1 << (endpoint & 31));
        }
        self.serve(io, endpoint)
    }

    /// Asks for messages of an endpoint, if there is room. As [`look`](Self::look).
    #[inline(never)]
    fn serve<B: Dispatch>(&mut self, io: &mut IoB<B>, endpoint: u32) -> bool {
        match self.ask(io, endpoint) {
            Some(false) => {}
            Some(true) => self.note(endpoint),
            None => {
                self.note(endpoint);
                io.arm_within(SlotB::Watch, AGAIN);
                return false;
            }
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
    #[inline(always)]
    fn ask<B: Dispatch>(&mut self, io: &mut IoB<B>, endpoint: u32) -> Option<bool> {
        let bus = &mut io.bus;
        let row = row(endpoint);
        // First: the other words are this owner's when it is open, and maybe another one's before.
        if bus.load(row + EndpointWord::Open as u32) == 0 {
            return Some(false);
        }
        let fetched = bus.load(row + EndpointWord::Fetched as u32);
        let rung = doorbell(bus, endpoint);
        let waiting = rung.wrapping_sub(fetched) & 0xFF;
        if waiting == 0 {
            return Some(false);
        }
        let slots = bus.load(row + EndpointWord::Slots as u32);
        if waiting > slots {
            count_dropped(bus, endpoint, Dropped::BeyondCredit);
            // Its mailbox's event may come yet, and is no other claim.
            bus.store_half(SPINE_BELLS + (endpoint << 1), rung as u16);
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
        let next = Expected::at(bus, endpoint, row, fetched, index);
        let local = self.request(io, &next, count, under_way == 0);
        self.note_request(io, local, count << MESSAGE_SHIFT);
        self.served = endpoint;
        self.expect_next(io);
        Some(count != waiting)
    }

    /// Asks for some messages of an endpoint from the next one on, and returns where the first one will
    /// be. With `is_first` CPU A has no other one.
    #[inline(always)]
    fn request<B: Dispatch>(
        &mut self,
        io: &mut IoB<B>,
        next: &Expected,
        count: u32,
        is_first: bool,
    ) -> u32 {
        let bus = &mut io.bus;
        let local = barrier(in_slot(self.requested));
        let (mut at, mut entry) = (local, barrier(entry(self.requested)));
        for _ in 0..count {
            // A message that has not arrived has no serial.
            bus.store(at + HeaderWord::Serial as u32, 0);
            at += MESSAGE_BYTES;
        }
        self.requested = self.requested.wrapping_add(count);
        SPINE_REQUESTED.set(&io.me, bus, self.requested);
        if is_first {
            // CPU A looks for this one while it arrives.
            io.ring_a();
        }
        let bus = &mut io.bus;
        let mut serial = next.fetched;
        for _ in 0..count {
            serial = serial.wrapping_add(1);
            bus.store(entry, serial << 8 | next.endpoint);
            entry += 4;
        }
        // Before its messages can run.
        bus.store(next.row + EndpointWord::Fetched as u32, serial);
        put(
            io,
            next.host,
            local,
            count << MESSAGE_SHIFT,
            io.states.words,
        );
        local
    }

    /// Asks for a message's data, as CPU A does. As [`look`](Self::look).
    fn fetch_data<B: Dispatch>(&mut self, io: &mut IoB<B>) -> bool {
        if !self.has_request(io) {
            io.arm_within(SlotB::Watch, AGAIN);
            return false;
        }
        let word = |offset| SPINE_DATA_REQUEST + offset;
        let [high, low, local, bytes] = [0, 4, 8, 12].map(|offset| io.bus.load(word(offset)));
        put(io, HostAddress { high, low }, local, bytes, io.states.data);
        self.note_request(io, local, bytes | IS_DATA);
        self.data = self.data.wrapping_add(1);
        true
    }

    /// Whether there is room for one more request, here and in the channel.
    fn has_request<B: Dispatch>(&self, io: &mut IoB<B>) -> bool {
        let reported = SPINE_REPORTED.get(&mut io.bus);
        self.asked.wrapping_sub(reported) < MESSAGE_REQUESTS && io.read_ring.has_room(1)
    }

    /// Notes a request for CPU A.
    #[inline(always)]
    fn note_request<B: Dispatch>(&mut self, io: &mut IoB<B>, local: u32, length: u32) {
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

/// Gives the channel a request.
#[inline(always)]
fn put<B: Dispatch>(io: &mut IoB<B>, host: HostAddress, local: u32, length: u32, state: u32) {
    let transfer = Transfer {
        host,
        local,
        length,
        state,
        note: ReadNote::MESSAGE.word(),
    };
    io.read_ring.put(&mut io.bus, &transfer);
}
