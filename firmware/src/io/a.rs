//! CPU A's resources: the write channel, [deadlines], and the way to the [host].
//!
//! Hardware reference, sections 6 and 14. The ring works strictly in order, so an index that is
//! queued after its data reaches the host after that data.

mod datagrams;
mod deadlines;
mod host;

pub use datagrams::DATAGRAMS;

use super::Busy;
use super::deadline::Deadlines;
use super::filter::{Filter, MulticastList};
use super::interrupt::Interrupt;
use super::note::WriteNote;
use super::outbox::Outbox;
use super::states::WriteStates;
use crate::memory::layout::EUDP;
use crate::memory::region::Staging;
use crate::memory::shared::OfA;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::block;
use tigon2_chip::{Cpu, Register};
use tigon2_hal::assist::{DescriptorRing, HostAddress, Position, Transfer};
use tigon2_hal::events::Dispatch;
use tigon2_hal::schedule::barrier;

/// CPU A's io.
#[derive(Debug)]
pub struct IoA<B: Dispatch> {
    /// The chip, with its pending events.
    pub bus: B,
    /// The token that permits writes to CPU A's shared words.
    pub me: OfA,
    /// State words of transfers.
    pub states: WriteStates,
    /// Transfers to the host.
    pub write_ring: DescriptorRing<B::WriteChannel>,
    /// The payload of small transfers: 32 bytes for each write descriptor.
    pub staging: Staging,
    /// Transfers whose completion starts something else.
    awaited: u32,
    /// Events that wait for a write descriptor.
    held: u32,
    /// Where the free part of the receive buffer will end, once everything in front of
    /// `freed_behind` is written; 0 if nothing is to be freed.
    freed: u32,
    freed_behind: Position,
    /// Interrupts to the host.
    pub interrupt: Interrupt,
    /// The armed deadlines.
    deadlines: Deadlines<1>,
    /// Events to the host.
    pub outbox: Outbox,
    /// Whether doorbell A has rare work: an event to send or a cross call to finish.
    pub rare_work: bool,
    /// The address filter.
    pub filter: Filter,
    /// Endpoints' datagrams that were written.
    datagrams: [datagrams::Ended; EUDP],
}

impl<B: Dispatch> IoA<B> {
    /// The state before the host has configured anything.
    pub const fn new(
        bus: B,
        write: B::WriteChannel,
        staging: Staging,
        multicast: &'static mut MulticastList,
    ) -> IoA<B> {
        IoA {
            bus,
            me: OfA::new(),
            states: WriteStates::new(0, true, true),
            write_ring: DescriptorRing::new(write),
            staging,
            awaited: 0,
            held: 0,
            freed: 0,
            freed_behind: Position::START,
            interrupt: Interrupt::new(),
            deadlines: Deadlines::new(),
            outbox: Outbox::new(),
            rare_work: false,
            filter: Filter::new(multicast),
            datagrams: [const { datagrams::Ended::NONE }; EUDP],
        }
    }

    /// Places the write ring in the descriptor and buffer block with base K.
    pub fn place(&mut self, block: u32) {
        self.write_ring.place(block + block::DMA_WRITE_RING);
    }

    /// Rings CPU B.
    #[inline(always)]
    pub fn ring_b(&mut self) {
        self.bus.ring(Cpu::B);
    }
}

/// Transfers to the host.
impl<B: Dispatch> IoA<B> {
    /// Queues `words` for the host, padded to the 8 bytes that vendor firmware always moves. They
    /// stay in the staging slot of the descriptor until it is reused.
    ///
    /// # Errors
    /// [`Busy`] when no write descriptor is free.
    #[inline(always)]
    pub fn write_words(
        &mut self,
        host: HostAddress,
        words: &[u32],
        note: WriteNote,
    ) -> Result<(), Busy> {
        if !self.has_write_room(1) {
            return Err(Busy);
        }
        self.put_words(host, words, note);
        Ok(())
    }

    /// As [`write_words`](Self::write_words), when [`has_write_room`](Self::has_write_room) has
    /// returned true.
    #[inline(always)]
    pub fn put_words(&mut self, host: HostAddress, words: &[u32], note: WriteNote) {
        let slot = self.staging.address() + (self.write_ring.next_index() << 5);
        let mut address = slot;
        for word in words {
            self.bus.store(address, *word);
            address += 4;
        }
        self.put_staged(host, slot, address - slot, note);
    }

    /// As [`put_words`](Self::put_words) for two words: for that many a compiler keeps the loop.
    #[inline(always)]
    pub fn put_pair(&mut self, host: HostAddress, [first, second]: [u32; 2], note: WriteNote) {
        let slot = self.staging.address() + (self.write_ring.next_index() << 5);
        self.bus.store(slot, first);
        self.bus.store(slot + 4, second);
        self.put_staged(host, slot, 8, note);
    }

    /// As [`put_words`](Self::put_words) for a slot's worth of words, which stay in registers: a compiler
    /// would lay them down, and copy them by a loop. On the `note` no action follows.
    #[inline(always)]
    pub fn put_slot(
        &mut self,
        host: HostAddress,
        [a, b, c, d, e, f, g, h]: [u32; 8],
        note: WriteNote,
    ) {
        // One register for all eight: else each address is made anew.
        let slot = barrier(self.staging.address() + (self.write_ring.next_index() << 5));
        self.bus.store(slot, a);
        self.bus.store(slot + 4, b);
        self.bus.store(slot + 8, c);
        self.bus.store(slot + 12, d);
        self.bus.store(slot + 16, e);
        self.bus.store(slot + 20, f);
        self.bus.store(slot + 24, g);
        self.bus.store(slot + 28, h);
        let transfer = Transfer {
            host,
            local: slot,
            length: 32,
            state: self.states.words,
            note: note.word(),
        };
        self.write_ring.put(&mut self.bus, &transfer);
    }

    /// As [`put_words`](Self::put_words) for a status line of four words, the last of which are 0.
    #[inline(always)]
    pub fn put_line(&mut self, host: HostAddress, [first, second]: [u32; 2], note: WriteNote) {
        let slot = self.staging.address() + (self.write_ring.next_index() << 5);
        self.bus.store(slot, first);
        self.bus.store(slot + 4, second);
        self.bus.store(slot + 8, 0);
        self.bus.store(slot + 12, 0);
        self.put_staged(host, slot, 16, note);
    }

    /// Queues the transfer of what lies in the staging slot of the next descriptor.
    #[inline(always)]
    fn put_staged(&mut self, host: HostAddress, slot: u32, length: u32, note: WriteNote) {
        let transfer = Transfer {
            host,
            local: slot,
            length,
            state: self.states.words,
            note: note.word(),
        };
        if note != WriteNote::QUIET {
            self.await_next();
        }
        self.write_ring.put(&mut self.bus, &transfer);
    }

    /// Makes the completion of the next transfer an event. Completions up to now raise no event any
    /// more; tasks that wait for room or descriptors continue at the next one.
    #[inline(always)]
    fn await_next(&mut self) {
        if self.awaited == 0 {
            self.pass_writes();
        }
        self.awaited += 1;
        self.await_writes();
    }

    /// Queues a transfer whose end is an event, when [`has_write_room`](Self::has_write_room) has
    /// returned true.
    #[inline(always)]
    pub fn put_awaited(&mut self, transfer: &Transfer) {
        self.await_next();
        self.write_ring.put(&mut self.bus, transfer);
    }

    /// Records that an awaited transfer has completed, or never will.
    #[inline(always)]
    pub fn has_ended(&mut self) {
        self.awaited -= 1;
    }

    /// Whether the completion of a transfer is awaited.
    #[inline(always)]
    pub fn awaits_end(&self) -> bool {
        self.awaited != 0
    }

    /// Whether `count` transfers can be queued. Reads the channel only if there was no room at the
    /// last look; if there is still none, DMA Write Complete looks again.
    #[inline(always)]
    pub fn has_write_room(&mut self, count: u32) -> bool {
        self.write_ring.has_room(count) || self.makes_write_room(count)
    }

    #[inline(never)]
    fn makes_write_room(&mut self, count: u32) -> bool {
        if !self.awaits_anything() {
            self.pass_writes();
            if self.write_ring.has_room(count) {
                return true;
            }
        }
        self.await_writes();
        false
    }

    /// Reads the channel if fewer than `count` descriptors are known to be free and no completion
    /// is awaited.
    #[inline(always)]
    pub fn look_for_room(&mut self, count: u32) {
        if !self.write_ring.has_room(count) && !self.awaits_anything() {
            self.pass_writes();
        }
    }

    /// Reads the channel unless a completion is awaited, which reads it.
    pub fn look_at_writes(&mut self) {
        if !self.awaits_anything() {
            self.pass_writes();
        }
    }

    /// Reads the channel while room in the receive buffer waits to be freed, and frees it if it can
    /// be, unless a completion is awaited.
    pub fn look_at_frees(&mut self) {
        if self.awaited | self.held == 0 {
            self.pass_writes();
            self.free();
        }
    }

    /// Whether everything that was queued has been written.
    pub fn all_written(&mut self) -> bool {
        if !self.awaits_anything() {
            self.pass_writes();
        }
        let now = self.write_ring.position();
        self.write_ring.has_passed(now)
    }

    /// Retires completed transfers, none of which needs anything more.
    #[inline(always)]
    fn pass_writes(&mut self) {
        let mut walk = self.write_ring.finished(&mut self.bus);
        walk.pass();
        self.write_ring.acknowledge(&mut self.bus, walk);
    }

    /// Whether any transfer's completion is awaited.
    #[inline(always)]
    pub fn awaits_anything(&self) -> bool {
        self.awaited | self.held != 0 || self.freed != 0
    }

    /// Requests DMA Write Complete at the end of a transfer to the host: for an index, for room in
    /// the receive buffer or for a descriptor.
    #[inline(always)]
    pub fn await_writes(&mut self) {
        self.bus.set(EventBit::DmaWriteComplete);
    }

    /// Defers a software event that found no write descriptor until one is free: the event that
    /// frees them has a lower priority.
    #[inline(always)]
    pub fn wait_for_descriptor(&mut self, event: EventBit) {
        self.bus.clear(event);
        self.held |= event.mask();
        self.bus.set(EventBit::DmaWriteComplete);
    }

    /// Descriptors are free: sets the deferred events again.
    #[inline(always)]
    pub fn try_held_again(&mut self) {
        if self.held != 0 {
            let held = core::mem::take(&mut self.held);
            self.bus.core(|core| core.mask |= held);
        }
    }
}

/// Room in the receive buffer that no transfer frees by itself.
impl<B: Dispatch> IoA<B> {
    /// Frees the receive buffer up to `end` once everything that is queued now has been written.
    pub fn free_later(&mut self, end: u32) {
        self.freed = end;
        self.freed_behind = self.write_ring.position();
    }

    /// A transfer that is queued now also frees what was to be freed later.
    #[inline(always)]
    pub fn frees_with_data(&mut self) {
        self.freed = 0;
    }

    /// Whether something is to be freed later.
    pub fn frees_later(&self) -> bool {
        self.freed != 0
    }

    /// Frees the room of dropped frames, unless the write channel still reads older ones.
    #[inline(always)]
    pub fn free(&mut self) {
        if self.freed != 0 && self.write_ring.has_passed(self.freed_behind) {
            self.bus.write(Register::RxConsumer, self.freed);
            self.freed = 0;
        }
    }
}
