//! Messages of handlers: to endpoints, to the wire, to the other card on the bus, to their own
//! domain.
//!
//! [`host_interface::spine::rings`]. A run notes a message and writes its arguments into the next
//! slot of a ring, which is nobody's until the run has returned. Then it is written into the ring
//! of its endpoint or to the other card, copied into a frame, or waits for its handler.
//!
//! ```text
//!  MESSAGES_OUT     freed       put         made       noted by the run in work
//!                    v           v           v           v
//!              ------+===========+###########+...........+------
//!                     being read   waits for
//!                     by the DMA   a descriptor
//! ```

use super::effects::{Effects, MESSAGES};
use super::endpoint::{doorbell, memory, row};
use super::noted;
use super::peer::{Peer, messages};
use super::supply::{FRAME, Pool, slot as frame_slot};
use crate::io::IoA;
use crate::io::note::{WriteKind, WriteNote};
use crate::memory::copy;
use crate::memory::layout::{MESSAGES_OUT, MESSAGES_POSTED, OUT_SLOTS, POST_SLOTS, SPINE_OUT_TO};
use crate::memory::shared::{
    SPINE_OUT, SPINE_OUT_FREED, SPINE_OUT_MARKED, SPINE_OUT_PUT, SPINE_OUT_ROOM, SPINE_POST_ROOM,
    SPINE_POSTED, SPINE_POSTS_RUN,
};
use host_interface::gencom::Gencom;
use host_interface::spine::ARGUMENT_WORDS;
use host_interface::spine::rings::{
    CUT_MESSAGE, DRIVER, ENDPOINTS, ETHER_TYPE, EndpointWord, FRAME_HEADER, HeaderWord,
    MESSAGE_BYTES, PEER, WIRE, from_card,
};
use tigon2_chip::events::EventBit;
use tigon2_hal::Bus;
use tigon2_hal::assist::{Position, Transfer};
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

const SHIFT: u32 = MESSAGE_BYTES.trailing_zeros();

/// NIC address of a slot for a message to others.
const fn out_slot(number: u32) -> u32 {
    MESSAGES_OUT + ((number & (OUT_SLOTS - 1)) << SHIFT)
}

/// NIC address of a slot for a message to the own domain.
const fn post_slot(number: u32) -> u32 {
    MESSAGES_POSTED + ((number & (POST_SLOTS - 1)) << SHIFT)
}

const _: () = assert!(OUT_SLOTS.is_power_of_two() && POST_SLOTS.is_power_of_two());

/// Messages that an endpoint has room for.
#[inline(always)]
fn credit<B: Bus>(bus: &mut B, endpoint: u32) -> u32 {
    let row = row(endpoint);
    if bus.load(row + EndpointWord::Open as u32) == 0 {
        return 0;
    }
    let slots = bus.load(row + EndpointWord::Slots as u32);
    let sent = bus.load(row + EndpointWord::Sent as u32);
    let taken = doorbell(bus, endpoint) >> 8;
    slots.saturating_sub(sent.wrapping_sub(taken) & 0xFF)
}

/// NIC address of the word that says which endpoint the message in a slot is for.
const fn to(number: u32) -> u32 {
    SPINE_OUT_TO + ((number & (OUT_SLOTS - 1)) << 2)
}

/// The slot of the message behind those that the run has noted.
#[inline(always)]
fn next_out<B: Bus>(bus: &mut B, noted: u32, endpoint: u32) -> u32 {
    let number = SPINE_OUT.get(bus).wrapping_add(noted);
    bus.store(to(number), endpoint);
    out_slot(number)
}

/// Notes a message to an endpoint; returns where its arguments go.
#[inline(always)]
pub fn to_endpoint<B: Bus>(effects: &mut Effects, bus: &mut B, to: u32, words: u32) -> Option<u32> {
    let endpoint = to.wrapping_sub(DRIVER);
    if endpoint >= ENDPOINTS || words > ARGUMENT_WORDS {
        return None;
    }
    let (takes, room) = (credit(bus, endpoint), SPINE_OUT_ROOM.get(bus));
    let before = effects.message(takes, room)?;
    let slot = next_out(bus, before, to);
    bus.store(slot + HeaderWord::Shape as u32, words << 16);
    Some(slot)
}

/// Notes a message to the wire; returns where its arguments go. What `high` and `low` are is said
/// at the import.
#[inline(always)]
pub fn to_wire<B: Bus>(
    effects: &mut Effects,
    bus: &mut B,
    high: u32,
    low: u32,
    words: u32,
) -> Option<u32> {
    if words > ARGUMENT_WORDS {
        return None;
    }
    let before = effects.message_to_wire(SPINE_OUT_ROOM.get(bus))?;
    let slot = next_out(bus, before, WIRE);
    bus.store(slot + HeaderWord::Shape as u32, words << 16);
    bus.store(slot + HeaderWord::BulkOffset as u32, high);
    bus.store(slot + HeaderWord::BulkBytes as u32, low);
    Some(slot)
}

/// Notes a message to a domain in bits 15:8 and a handler in bits 7:0 of the other card on the bus;
/// returns where its arguments go.
#[inline(always)]
pub fn to_peer<B: Bus>(effects: &mut Effects, bus: &mut B, to: u32, words: u32) -> Option<u32> {
    if words > ARGUMENT_WORDS {
        return None;
    }
    let (takes, room) = (messages::credit(bus), SPINE_OUT_ROOM.get(bus));
    let before = effects.message(takes, room)?;
    let slot = next_out(bus, before, PEER);
    bus.store(slot + HeaderWord::Shape as u32, words << 16 | to & 0xFFFF);
    Some(slot)
}

/// Notes a message to a handler of the own domain; returns where its arguments go.
#[inline(always)]
pub fn to_itself<B: Bus>(
    effects: &mut Effects,
    bus: &mut B,
    handler: u32,
    words: u32,
) -> Option<u32> {
    if words > ARGUMENT_WORDS {
        return None;
    }
    let before = effects.post(SPINE_POST_ROOM.get(bus))?;
    let slot = post_slot(SPINE_POSTED.get(bus).wrapping_add(before));
    bus.store(
        slot + HeaderWord::Shape as u32,
        words << 16 | handler & 0xFF,
    );
    Some(slot)
}

/// Messages that were sent and are not gone. How far they are is in SRAM: CPU A's pad has no room.
#[derive(Debug)]
pub struct Outgoing {
    /// Where the channel is when those that are marked are written.
    behind: Position,
    /// The other card on the bus.
    pub peer: Peer,
}

impl Outgoing {
    /// None.
    pub const fn new() -> Outgoing {
        Outgoing {
            behind: Position::START,
            peer: Peer::NONE,
        }
    }

    /// Says what room there is, before anything was sent.
    pub fn report_room<B: Dispatch>(&self, io: &mut IoA<B>) {
        let used = SPINE_OUT
            .get(&mut io.bus)
            .wrapping_sub(SPINE_OUT_FREED.get(&mut io.bus));
        SPINE_OUT_ROOM.set(&io.me, &mut io.bus, OUT_SLOTS - used);
        report_post_room(io);
    }

    /// Carries out what a run of a domain's handler has noted. A message is written at once, if those
    /// before it are and there is a descriptor.
    #[inline(never)]
    pub fn commit<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        effects: &Effects,
        pool: &mut Pool,
        (domain, handler): (u32, u32),
    ) {
        noted::carry_out(io, domain);
        let from = domain << 8 | handler;
        let (mut made, mut put) = (SPINE_OUT.get(&mut io.bus), SPINE_OUT_PUT.get(&mut io.bus));
        for _ in 0..effects.messages() {
            let slot = barrier(out_slot(made));
            let to = io.bus.load(to(made));
            let shape = io.bus.load(slot + HeaderWord::Shape as u32);
            let is_next = put == made;
            let is_put = match to {
                WIRE => {
                    put_frame(io, pool, slot, shape | from);
                    is_next
                }
                PEER => {
                    let serial = messages::next_serial(&mut io.bus);
                    address(&mut io.bus, slot, shape, serial);
                    is_next && self.peer.write_message(io, slot)
                }
                _ => {
                    let row = row(to.wrapping_sub(DRIVER));
                    let serial = next_serial(&mut io.bus, row);
                    address(&mut io.bus, slot, shape | from, serial);
                    is_next && write_one(io, row, slot, serial)
                }
            };
            made = made.wrapping_add(1);
            put = put.wrapping_add(is_put.into());
        }
        SPINE_OUT.set(&io.me, &mut io.bus, made);
        self.settle(io, made, put);
        if effects.posts() != 0 {
            post(io, effects.posts(), domain);
        }
    }

    /// Sends the driver the message of a run that was cut off, whose arguments lie at an address;
    /// `false` if there is no room.
    #[inline(never)]
    pub fn pass_to_driver<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        shape: u32,
        source: u32,
        arguments: u32,
    ) -> bool {
        let bus = &mut io.bus;
        if credit(bus, 0) == 0 || SPINE_OUT_ROOM.get(bus) == 0 {
            return false;
        }
        let slot = next_out(bus, 0, DRIVER);
        copy::words(bus, arguments, slot, shape >> 16 << 2);
        let serial = next_serial(bus, row(0));
        address(bus, slot, shape, serial);
        bus.store(slot + HeaderWord::BulkOffset as u32, CUT_MESSAGE | source);
        let made = SPINE_OUT.get(bus).wrapping_add(1);
        SPINE_OUT.set(&io.me, bus, made);
        self.write(io);
        true
    }

    /// Writes messages to their endpoints and to the peer, as far as there are descriptors.
    #[inline(never)]
    pub fn write<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        let bus = &mut io.bus;
        let (made, mut put) = (SPINE_OUT.get(bus), SPINE_OUT_PUT.get(bus));
        while put != made && self.write_next(io, put) {
            put = put.wrapping_add(1);
        }
        self.settle(io, made, put);
    }

    /// Writes a message, or finds that there is nothing to write; `false` if it has to wait.
    fn write_next<B: Dispatch>(&mut self, io: &mut IoA<B>, number: u32) -> bool {
        let slot = out_slot(number);
        match io.bus.load(to(number)) {
            WIRE => true,
            PEER => self.peer.write_message(io, slot),
            to => {
                let serial = io.bus.load(slot + HeaderWord::Serial as u32);
                write_one(io, row(to.wrapping_sub(DRIVER)), slot, serial)
            }
        }
    }

    /// Messages are written up to this one of those that were made: says what room there is, and has a
    /// turn follow if that is too little, or if messages wait for a descriptor.
    #[inline(never)]
    fn settle<B: Dispatch>(&mut self, io: &mut IoA<B>, made: u32, put: u32) {
        let bus = &mut io.bus;
        // Now: a load waits for the stores before it.
        let mut freed = SPINE_OUT_FREED.get(bus);
        let mut marked = SPINE_OUT_MARKED.get(bus);
        if put.wrapping_sub(freed) > OUT_SLOTS / 2 {
            io.look_at_writes();
        }
        if freed != marked && io.write_ring.has_passed(self.behind) {
            freed = marked;
        }
        if freed == marked {
            marked = put;
            self.behind = io.write_ring.position();
        }
        let room = OUT_SLOTS - made.wrapping_sub(freed);
        SPINE_OUT_PUT.set(&io.me, &mut io.bus, put);
        SPINE_OUT_FREED.set(&io.me, &mut io.bus, freed);
        SPINE_OUT_MARKED.set(&io.me, &mut io.bus, marked);
        SPINE_OUT_ROOM.set(&io.me, &mut io.bus, room);
        if put != made || room < MESSAGES {
            // Until a descriptor is free, or something is written.
            io.wait_for_descriptor(EventBit::Loaded);
        }
    }

    /// Whether there is something that a later turn has to see to: a message without a descriptor,
    /// or too little room for the messages of a run.
    pub fn waits<B: Dispatch>(&self, io: &mut IoA<B>) -> bool {
        let made = SPINE_OUT.get(&mut io.bus);
        SPINE_OUT_PUT.get(&mut io.bus) != made || SPINE_OUT_ROOM.get(&mut io.bus) < MESSAGES
    }

    /// An endpoint is closed: messages to it that have no descriptor yet are not written any more.
    pub fn forget_endpoint<B: Bus>(&mut self, bus: &mut B, endpoint: u32) {
        let made = SPINE_OUT.get(bus);
        let mut number = SPINE_OUT_PUT.get(bus);
        while number != made {
            if bus.load(to(number)) == endpoint + DRIVER {
                // As those to the wire, which are gone.
                bus.store(to(number), WIRE);
            }
            number = number.wrapping_add(1);
        }
    }

    /// NIC address of the next message of a domain to itself.
    pub fn next_post<B: Bus>(&self, bus: &mut B) -> Option<u32> {
        let next = SPINE_POSTS_RUN.get(bus);
        (SPINE_POSTED.get(bus) != next).then(|| post_slot(next))
    }

    /// That one is done.
    pub fn has_run_post<B: Dispatch>(&mut self, io: &mut IoA<B>) {
        let run = SPINE_POSTS_RUN.get(&mut io.bus).wrapping_add(1);
        SPINE_POSTS_RUN.set(&io.me, &mut io.bus, run);
        report_post_room(io);
    }

    /// A domain is gone: its messages to itself run nothing any more.
    pub fn forget<B: Bus>(&mut self, bus: &mut B, domain: u32) {
        let mut number = SPINE_POSTS_RUN.get(bus);
        while number != SPINE_POSTED.get(bus) {
            let at = post_slot(number) + HeaderWord::Shape as u32;
            let shape = bus.load(at);
            if shape >> 8 & 0xFF == domain {
                bus.store(at, 0xFF << 8);
            }
            number = number.wrapping_add(1);
        }
    }
}

impl Default for Outgoing {
    fn default() -> Outgoing {
        Outgoing::new()
    }
}

/// So many messages that a run of a domain's handler has noted wait for their handlers.
#[inline(never)]
fn post<B: Dispatch>(io: &mut IoA<B>, count: u32, domain: u32) {
    let mut posted = SPINE_POSTED.get(&mut io.bus);
    for _ in 0..count {
        let at = post_slot(posted) + HeaderWord::Shape as u32;
        let shape = io.bus.load(at) | domain << 8;
        io.bus.store(at, shape);
        posted = posted.wrapping_add(1);
    }
    SPINE_POSTED.set(&io.me, &mut io.bus, posted);
    report_post_room(io);
    io.bus.set(EventBit::Loaded);
}

/// Says what room there is for messages of domains to themselves.
fn report_post_room<B: Dispatch>(io: &mut IoA<B>) {
    let used = SPINE_POSTED
        .get(&mut io.bus)
        .wrapping_sub(SPINE_POSTS_RUN.get(&mut io.bus));
    SPINE_POST_ROOM.set(&io.me, &mut io.bus, POST_SLOTS - used);
}

/// The serial of one more message to the endpoint with this row.
fn next_serial<B: Bus>(bus: &mut B, row: u32) -> u32 {
    let sent = row + EndpointWord::Sent as u32;
    let serial = bus.load(sent).wrapping_add(1);
    bus.store(sent, serial);
    serial
}

/// The header of a message.
#[inline(always)]
fn address<B: Bus>(bus: &mut B, slot: u32, shape: u32, serial: u32) {
    // No loop over them: a compiler keeps it.
    bus.store(slot + HeaderWord::Shape as u32, shape);
    bus.store(slot + HeaderWord::BulkOffset as u32, 0);
    bus.store(slot + HeaderWord::BulkBytes as u32, 0);
    bus.store(slot + HeaderWord::Serial as u32, serial);
}

/// Queues the transfer of a message into the ring of the endpoint with this row; `false` if there is
/// no descriptor.
#[inline(always)]
fn write_one<B: Dispatch>(io: &mut IoA<B>, row: u32, slot: u32, serial: u32) -> bool {
    if !io.has_write_room(1) {
        return false;
    }
    let bus = &mut io.bus;
    let slots = bus.load(row + EndpointWord::Slots as u32);
    let index = serial.wrapping_sub(1) & (slots - 1);
    let offset = from_card(0) + (slots << SHIFT) + (index << SHIFT);
    let interrupts = bus.load(row + EndpointWord::Interrupts as u32) != 0;
    let host = memory(bus, row).plus(offset);
    let note = if interrupts {
        WriteNote::of(WriteKind::QueueStatus)
    } else {
        WriteNote::QUIET
    };
    let transfer = Transfer {
        host,
        local: slot,
        length: MESSAGE_BYTES,
        state: io.states.words,
        note: note.word(),
    };
    if interrupts {
        io.put_awaited(&transfer);
    } else {
        io.write_ring.put(&mut io.bus, &transfer);
    }
    true
}

/// Makes a frame of a message to the wire; there is a slot of the pool for it, and an entry of
/// the queue.
#[inline(never)]
fn put_frame<B: Dispatch>(io: &mut IoA<B>, pool: &mut Pool, slot: u32, shape: u32) {
    let bus = &mut io.bus;
    let high = bus.load(slot + HeaderWord::BulkOffset as u32);
    let low = bus.load(slot + HeaderWord::BulkBytes as u32);
    let own = [Gencom::MacAddressHigh, Gencom::MacAddressLow];
    let [own_high, own_low] = own.map(|word| bus.load(word.nic_address()));
    let words = shape >> 16;
    let number = pool.slots.next();
    pool.slots.take();
    let to = frame_slot(number);
    let header = [
        high << 16 | low >> 16,
        low << 16 | own_high & 0xFFFF,
        own_low,
        u32::from(ETHER_TYPE) << 16 | words,
        high >> 16,
    ];
    let mut at = to + FRAME;
    for word in header {
        bus.store(at, word);
        at += 4;
    }
    copy::words(bus, slot, at, words << 2);
    // What is shorter than a frame may be is filled up by who takes it off the wire.
    let length = FRAME_HEADER + (words << 2);
    let mut end = at + (words << 2);
    while end < to + FRAME + 60 {
        bus.store(end, 0);
        end += 4;
    }
    bus.store(to, length.max(60));
    pool.transmit(io, shape >> 8 & 0xFF, number);
    super::call_b(io);
}
