//! Completions: the host's queue of what is done.
//!
//! An entry is 32 bytes and one transfer; its last word has the number that comes next, so the host
//! needs no index. CPU B notes in SRAM how many descriptors of an endpoint it is done with; CPU A,
//! whose channel it is, tells the host.

use crate::io::note::WriteNote;
use crate::io::{Busy, IoA};
use crate::memory::layout::EUDP_BLOCK;
use crate::memory::shared::EUDP_SENT;
use host_interface::eudp::{
    COMPLETION_BYTES, DescriptorWord, ENDPOINTS, EndpointWord, Kind, endpoint_word, send_slot,
};
use tigon2_chip::HostAddress;
use tigon2_hal::events::Dispatch;

/// Words of a completion.
const COMPLETION_WORDS: usize = COMPLETION_BYTES as usize / 4;

/// An endpoint, as CPU A knows it.
#[derive(Clone, Copy, Debug)]
// Even none of these would have the side lie at such a multiple, where its pad has no room.
#[cfg_attr(feature = "eudp", repr(align(64)))]
pub struct Completions {
    /// Where the queue is.
    pub base: HostAddress,
    /// Its entries less 1.
    pub mask: u32,
    /// Descriptors to send that were reported, modulo 2^16.
    pub sent: u32,
    /// Its address.
    pub address: u32,
    /// Its port, in bits 15:0, and its VLAN, in bits 31:16.
    pub port: u32,
    /// Descriptors to receive that datagrams have taken, modulo 2^16.
    pub received: u32,
    /// Those of them whose slots are free.
    pub finished: u32,
    /// Those that are posted, if that is known: see [`supply`](super::supply).
    pub produced: u32,
    /// Those that are in slots, or were, modulo 2^16.
    pub filled: u32,
    /// Completions that were written.
    pub written: u32,
}

impl Completions {
    /// Of an endpoint that is not open.
    pub const NONE: Completions = Completions {
        base: HostAddress { high: 0, low: 0 },
        mask: 0,
        sent: 0,
        address: 0,
        port: 0,
        received: 0,
        finished: 0,
        produced: 0,
        filled: 0,
        written: 0,
    };
}

/// Descriptors to receive.
impl Completions {
    /// A datagram takes the next one.
    #[inline(always)]
    pub const fn take(&mut self) {
        self.received = self.received.wrapping_add(1) & 0xFFFF;
    }

    /// One that was taken is done with.
    #[inline(always)]
    pub const fn finish(&mut self) {
        self.finished = self.finished.wrapping_add(1) & 0xFFFF;
    }

    /// One that was taken is the next one again.
    pub const fn give_back(&mut self) {
        self.received = self.received.wrapping_sub(1) & 0xFFFF;
    }
}

impl Completions {
    /// Queues a completion, for which there is [room](IoA::has_write_room). On the transfer's `note` no
    /// action follows.
    #[inline(always)]
    pub fn complete<B: Dispatch>(&mut self, io: &mut IoA<B>, entry: &Entry, note: WriteNote) {
        let (host, number) = self.next();
        io.put_slot(host, entry.words(number), note);
    }

    /// Where the next completion goes, and its number.
    #[inline(always)]
    pub(super) fn next(&mut self) -> (HostAddress, u32) {
        let offset = (self.written & self.mask) << COMPLETION_BYTES.trailing_zeros();
        let number = self.written.wrapping_add(1);
        self.written = number;
        (self.base.plus(offset), number)
    }

    /// Whether the next completion is the last entry of the queue.
    pub(super) const fn is_at_end(&self) -> bool {
        self.written & self.mask == self.mask
    }
}

/// What CPU A knows of endpoints.
#[derive(Debug)]
pub struct Reporter {
    /// The endpoints' queues.
    pub queues: [Completions; ENDPOINTS as usize],
    /// The endpoints that are open.
    pub open: u32,
    /// CPU B's count that was seen.
    seen: u32,
    /// The command that is in work, and the last one; 0 for none.
    pub command: u32,
    /// See [`command`](Self::command).
    pub answered: u32,
    /// The endpoints that CPU B is to know of before the command is answered.
    pub awaited: u32,
    /// The endpoints with enough descriptors to receive: mailboxes of the others are looked at when
    /// they are rung, of these when few are left.
    pub enough: u32,
    /// The endpoints for which CPU B was asked for descriptors, and a bit that changes each time.
    pub asked: u32,
    /// See [`asked`](Self::asked).
    pub wanted: u32,
    /// Whether frames are followed while they arrive: then Follow Frame is set whenever one that
    /// arrives could be RDMA's only one.
    pub follows: bool,
}

/// What a completion says.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The descriptor's word.
    pub cookie: u32,
    /// What was completed.
    pub kind: Kind,
    /// [`host_interface::eudp::Status`].
    pub status: u32,
    /// Bytes of data.
    pub length: u32,
    /// The source's address.
    pub address: u32,
    /// The source's port, and the verdict.
    pub port: u32,
}

impl Entry {
    /// Of nothing.
    pub const NONE: Entry = Entry {
        cookie: 0,
        kind: Kind::Sent,
        status: 0,
        length: 0,
        address: 0,
        port: 0,
    };

    /// The words of the completion with this number.
    #[inline(always)]
    pub(super) const fn words(&self, number: u32) -> [u32; COMPLETION_WORDS] {
        [
            self.cookie,
            (self.kind as u32) << 16 | self.status,
            self.length,
            self.address,
            self.port,
            0,
            0,
            number,
        ]
    }
}

impl Reporter {
    /// Nothing is open.
    pub const fn new() -> Reporter {
        Reporter {
            queues: [Completions::NONE; ENDPOINTS as usize],
            open: 0,
            seen: 0,
            command: 0,
            answered: 0,
            awaited: 0,
            enough: 0,
            asked: 0,
            wanted: 0,
            follows: false,
        }
    }

    /// Writes a completion of what is rare.
    ///
    /// # Errors
    /// [`Busy`] when no write descriptor is free; one will be.
    #[inline(never)]
    pub fn complete_one<B: Dispatch>(
        &mut self,
        io: &mut IoA<B>,
        endpoint: u32,
        entry: &Entry,
    ) -> Result<(), Busy> {
        if !io.has_write_room(1) {
            return Err(Busy);
        }
        if let Some(queue) = self.queues.get_mut(endpoint as usize) {
            queue.complete(io, entry, WriteNote::QUIET);
        }
        Ok(())
    }

    /// The open endpoint of an address and a port, with its VLAN in bits 31:16.
    #[inline(always)]
    pub fn find(&self, address: u32, port: u32) -> Option<u32> {
        let mut left = self.open;
        for (endpoint, queue) in (0..).zip(&self.queues) {
            if left & 1 != 0 && queue.port == port && queue.address == address {
                return Some(endpoint);
            }
            left >>= 1;
            if left == 0 {
                break;
            }
        }
        None
    }

    /// Reports what CPU B is done with.
    #[cfg_attr(target_arch = "mips", unsafe(link_section = ".scratch_a.system"))]
    #[inline(never)]
    fn report<B: Dispatch>(&mut self, io: &mut IoA<B>, seen: u32) -> Result<(), Busy> {
        let mut left = self.open;
        let mut endpoint = 0;
        while left != 0 {
            if left & 1 != 0 {
                self.report_one(io, endpoint)?;
            }
            left >>= 1;
            endpoint += 1;
        }
        self.seen = seen;
        Ok(())
    }

    #[inline(always)]
    fn report_one<B: Dispatch>(&mut self, io: &mut IoA<B>, endpoint: u32) -> Result<(), Busy> {
        let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Sent);
        let sent = io.bus.load(at);
        while let Some(queue) = self.queues.get(endpoint as usize)
            && queue.sent != sent
        {
            let number = queue.sent;
            if !io.has_write_room(1) {
                return Err(Busy);
            }
            let descriptor = EUDP_BLOCK + send_slot(endpoint, number);
            let mut word = |word| io.bus.load(descriptor + word as u32);
            let entry = Entry {
                cookie: word(DescriptorWord::Cookie),
                kind: Kind::Sent,
                status: word(DescriptorWord::Status),
                length: word(DescriptorWord::Length) & 0xFFFF,
                address: 0,
                port: 0,
            };
            // In front of the completion: once the process has that, it may push into the slot, and
            // CPU B counts free slots from here.
            if let Some(queue) = self.queues.get_mut(endpoint as usize) {
                queue.sent = number.wrapping_add(1) & 0xFFFF;
                let at = EUDP_BLOCK + endpoint_word(endpoint, EndpointWord::Reported);
                io.bus.store(at, queue.sent);
                queue.complete(io, &entry, WriteNote::QUIET);
            }
        }
        Ok(())
    }
}

impl Default for Reporter {
    fn default() -> Reporter {
        Reporter::new()
    }
}

/// Reports what is done, as far as there are write descriptors.
#[inline(always)]
pub(super) fn report<B: Dispatch>(reporter: &mut Reporter, io: &mut IoA<B>) {
    let seen = EUDP_SENT.get(&mut io.bus);
    if seen != reporter.seen && reporter.report(io, seen).is_err() {
        // The next completed write comes here again.
        io.await_writes();
    }
}
