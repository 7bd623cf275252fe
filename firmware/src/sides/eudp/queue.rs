//! The endpoints' descriptors to send, as CPU B knows them.
//!
//! ```text
//!      done        taken        producer
//!   ----+===========+############+----      modulo 2^16; slot: modulo SLOTS
//!       | in work   | to be taken
//! ```

use super::job::Next;
use super::pulls::{Pulls, filled};
use super::{each, has_more, lowest, mailbox_word, room};
use crate::io::IoB;
use crate::memory::layout::{EUDP_BLOCK, EUDP_QUEUES};
use crate::memory::shared::EUDP_SENT;
use host_interface::eudp::{
    DescriptorWord, EndpointWord, HALF, SLOTS, Status, endpoint_word, send_slot,
};
use tigon2_hal::Bus;
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// A word of an endpoint's row in SRAM, by its offset; [`EndpointWord::Sent`] says how many CPU A
/// was told of. Of the endpoint that has its turn, [`Queues`] has the same words in the pad.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Row {
    /// Behind the last descriptor.
    Producer = 0,
    /// The next one to be taken; of the endpoint that has its turn, what it was when that came.
    Taken = 4,
    /// [`shape`](super::job::shape).
    Shape = 8,
}

/// NIC address of an endpoint's row. Compilers would make each word's address anew.
#[inline(always)]
fn row(endpoint: u32) -> u32 {
    barrier(EUDP_QUEUES + (endpoint << 4))
}

/// CPU A is told of descriptors that are done, and rung, for every so many of them while many of the
/// endpoint's wait: fewer events of CPU A leave more of the SRAM to CPU B.
const RING_EVERY: u32 = 4;

/// The queues of all endpoints.
#[derive(Debug)]
pub struct Queues {
    /// Those with descriptors to be taken.
    ready: u32,
    /// The one that had its turn.
    last: u32,
    /// The words of its row: loads of SRAM wait for the channels.
    producer: u32,
    taken: u32,
    shape: u32,
    /// Its [`EndpointWord::Filled`].
    filled: u32,
    /// Descriptors that are done, of all endpoints.
    done: u32,
}

/// Whether a descriptor is in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// It is.
    Yes,
    /// It is on its way: another endpoint has its turn.
    No,
    /// Its slot is not free yet.
    Later,
}

impl Queues {
    /// No descriptors.
    pub const EMPTY: Queues = Queues {
        ready: 0,
        last: 0,
        producer: 0,
        taken: 0,
        shape: 0,
        filled: 0,
        done: 0,
    };

    /// Whether there are descriptors to be taken.
    #[inline(always)]
    pub const fn any(&self) -> bool {
        self.ready != 0
    }

    /// Takes the producers of endpoints whose mailboxes were rung.
    #[inline(always)]
    pub fn rung<B: Bus>(&mut self, bus: &mut B, rung: u32) {
        if rung == 1 << self.last {
            self.produced(bus, self.last);
        } else {
            self.rung_by_others(bus, rung);
        }
    }

    #[inline(never)]
    fn rung_by_others<B: Bus>(&mut self, bus: &mut B, rung: u32) {
        for endpoint in each(rung) {
            self.produced(bus, endpoint);
        }
    }

    #[inline(always)]
    fn produced<B: Bus>(&mut self, bus: &mut B, endpoint: u32) {
        let producer = bus.load(mailbox_word(endpoint)) >> 16;
        let done = bus.load(sent(endpoint));
        let row = row(endpoint);
        let taken = self.taken_of(bus, endpoint);
        // No more than there is room for, whatever the process writes.
        let waiting = (producer.wrapping_sub(done) & 0xFFFF).min(room(bus, endpoint));
        if waiting > taken.wrapping_sub(done) & 0xFFFF {
            let producer = done.wrapping_add(waiting) & 0xFFFF;
            bus.store(row + Row::Producer as u32, producer);
            if endpoint == self.last {
                self.producer = producer;
            }
            self.ready |= 1 << endpoint;
        }
    }

    /// The next one of an endpoint's to be taken.
    #[inline(always)]
    fn taken_of<B: Bus>(&self, bus: &mut B, endpoint: u32) -> u32 {
        if endpoint == self.last {
            return self.taken;
        }
        bus.load(row(endpoint) + Row::Taken as u32)
    }

    /// The descriptor whose turn it is.
    #[inline(always)]
    pub fn next<B: Bus>(&mut self, bus: &mut B) -> Next {
        if self.ready != 1 << self.last {
            self.turn(bus);
        }
        self.again()
    }

    /// The same that [`next`](Self::next) has returned.
    #[inline(always)]
    pub fn again(&self) -> Next {
        Next {
            endpoint: self.last,
            descriptor: barrier(EUDP_BLOCK + send_slot(self.last, self.taken)),
            shape: self.shape,
            number: self.taken,
        }
    }

    /// Another endpoint has its turn.
    #[inline(never)]
    fn turn<B: Bus>(&mut self, bus: &mut B) {
        bus.store(row(self.last) + Row::Taken as u32, self.taken);
        let behind = self.ready & !((2 << self.last) - 1);
        self.last = lowest(if behind != 0 { behind } else { self.ready });
        self.load(bus);
    }

    /// Takes the row of the one that has its turn into the pad.
    #[inline(always)]
    fn load<B: Bus>(&mut self, bus: &mut B) {
        let row = row(self.last);
        self.producer = bus.load(row + Row::Producer as u32);
        self.taken = bus.load(row + Row::Taken as u32);
        self.shape = bus.load(row + Row::Shape as u32);
        self.filled = filled(bus, self.last);
    }

    /// Whether the slot of the [next](Self::next) one has it. Those that were pushed say so
    /// themselves; the others are pulled, and the endpoint has its turn when they have come.
    #[inline(always)]
    pub fn is_here<B: Dispatch>(&mut self, io: &mut IoB<B>, pulls: &mut Pulls, next: Next) -> Here {
        let left = self.left();
        if left > HALF {
            return Here::Yes;
        }
        if left == 0 && self.are_few() && pulls.sees_pushed(&mut io.bus, next) {
            self.filled = next.number.wrapping_add(1) & 0xFFFF;
            return Here::Yes;
        }
        // Nothing is to be done while others are on their way, or too few slots are free for that to be
        // worth it.
        if pulls.are_under_way(next.endpoint) {
            return self.wait(next, left);
        }
        let at = barrier(EUDP_BLOCK + endpoint_word(next.endpoint, EndpointWord::Reported));
        if left != 0 && self.filled.wrapping_sub(io.bus.load(at)) & 0xFFFF > SLOTS - HALF {
            return Here::Yes;
        }
        self.pull(io, pulls, next)
    }

    /// Looks for others that were pushed behind the [next](Self::next) one, which was seen.
    #[inline(always)]
    pub fn look_on<B: Bus>(&mut self, bus: &mut B, pulls: &mut Pulls) {
        if self.are_few() {
            self.filled = pulls.look(bus, self.last, self.taken, self.producer);
        }
    }

    /// How many descriptors are in their slots from the [next](Self::next) one on, which is.
    #[inline(always)]
    pub fn in_slots(&self) -> u32 {
        // An endpoint with no more descriptors than slots has none of them filled.
        let filled = self.left().max(1);
        filled.min(self.producer.wrapping_sub(self.taken) & 0xFFFF)
    }

    /// How many are known to be in their slots.
    #[inline(always)]
    const fn left(&self) -> u32 {
        self.filled.wrapping_sub(self.taken) & 0xFFFF
    }

    /// Waits for others of the endpoint that has its turn, if some are on their way and none is in a slot.
    #[inline(always)]
    pub const fn wait_if_empty(&mut self, pulls: &Pulls) {
        if self.left() == 0 && pulls.are_under_way(self.last) {
            self.ready &= !(1 << self.last);
        }
    }

    /// Others are on their way: the endpoint has its turn again when they come, if it has none left.
    #[inline(always)]
    const fn wait(&mut self, next: Next, left: u32) -> Here {
        if left != 0 {
            return Here::Yes;
        }
        self.ready &= !(1 << next.endpoint);
        Here::No
    }

    /// Whether few of the endpoint that has its turn are to be taken: they were pushed, most likely.
    #[inline(always)]
    const fn are_few(&self) -> bool {
        self.producer.wrapping_sub(self.taken) & 0xFFFF <= HALF
    }

    /// Looks for those that were pushed, and pulls more if few are left.
    #[inline(never)]
    fn pull<B: Dispatch>(&mut self, io: &mut IoB<B>, pulls: &mut Pulls, next: Next) -> Here {
        let Next {
            endpoint, number, ..
        } = next;
        let producer = self.producer;
        self.filled = pulls.fetch(io, endpoint, number, producer);
        if self.filled != number || !has_more(&mut io.bus, endpoint) {
            return Here::Yes;
        }
        if !pulls.pull_to_send(io, endpoint, producer) {
            return Here::Later;
        }
        self.wait(next, 0)
    }

    /// The [next](Self::next) one is taken.
    #[inline(always)]
    pub const fn take(&mut self, next: Next) {
        self.take_up_to(next.number.wrapping_add(1) & 0xFFFF);
    }

    /// The next ones are taken, up to the one with number `end`.
    #[inline(always)]
    pub const fn take_up_to(&mut self, end: u32) {
        if end == self.producer {
            self.ready &= !(1 << self.last);
        }
        self.taken = end;
    }

    /// Descriptors of an endpoint have come from the process's memory.
    pub fn is_supplied_again<B: Bus>(&mut self, bus: &mut B, endpoint: u32) {
        if endpoint == self.last {
            self.filled = filled(bus, endpoint);
        }
        let taken = self.taken_of(bus, endpoint);
        if taken != bus.load(row(endpoint) + Row::Producer as u32) {
            self.ready |= 1 << endpoint;
        }
    }

    /// The oldest one in work, with this `number`, is done: CPU A tells the host.
    #[inline(always)]
    pub fn complete<B: Dispatch>(
        &mut self,
        io: &mut IoB<B>,
        (endpoint, descriptor): (u32, u32),
        number: u32,
        status: Status,
    ) {
        set_status(&mut io.bus, descriptor, status);
        self.tell(io, endpoint, number.wrapping_add(1) & 0xFFFF, 1);
    }

    /// The next `count` in work, up to the one with number `end`, are done, and say so.
    #[inline(always)]
    pub fn tell<B: Dispatch>(&mut self, io: &mut IoB<B>, endpoint: u32, end: u32, count: u32) {
        self.done = self.done.wrapping_add(count);
        if endpoint != self.last || self.are_few() || self.done & (RING_EVERY - 1) < count {
            let bus = &mut io.bus;
            bus.store(sent(endpoint), end);
            EUDP_SENT.set(&io.me, bus, self.done);
            io.ring_a();
        }
    }

    /// The same of one that is refused.
    #[inline(never)]
    pub fn refuse<B: Dispatch>(
        &mut self,
        io: &mut IoB<B>,
        at: (u32, u32),
        number: u32,
        status: Status,
    ) {
        self.complete(io, at, number, status);
    }

    /// An endpoint begins or ends without descriptors, with this [`shape`](super::job::shape).
    pub fn empty<B: Bus>(&mut self, bus: &mut B, endpoint: u32, shape: u32) {
        let row = row(endpoint);
        bus.store(row + Row::Producer as u32, 0);
        bus.store(row + Row::Taken as u32, 0);
        bus.store(row + Row::Shape as u32, shape);
        if endpoint == self.last {
            self.load(bus);
        }
        self.ready &= !(1 << endpoint);
    }

    /// No descriptor of these endpoints is taken any more.
    pub fn hold(&mut self, endpoints: u32) {
        self.ready &= !endpoints;
    }
}

/// A descriptor says that it is done.
#[inline(always)]
pub fn set_status<B: Bus>(bus: &mut B, descriptor: u32, status: Status) {
    bus.store(descriptor + DescriptorWord::Status as u32, status as u32);
}

/// NIC address of the number of descriptors that are done.
#[inline(always)]
fn sent(endpoint: u32) -> u32 {
    EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Sent)
}
